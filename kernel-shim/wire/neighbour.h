/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Next-hop resolution: check, by rtnetlink(7), whether the kernel knows the
 * link-layer address of the next hop to a GID.  If it does not, send a
 * datagram to the discard port, so that the kernel resolves it (ARP, NDP).
 *
 * Packets that are sent before the address is known wait in the kernel.  If
 * the ARP or NDP query is lost, the kernel repeats it only after a second.
 *
 * Callers: provider/wire/resolve.c for ibv_modify_qp() and ibv_create_ah(),
 * kernel-shim/cm/resolve.c for rdma_resolve_addr(), tools/why/stall_wire.c.  No
 * privileges, no lock and no state between calls: any thread may call them.
 * tests/wire/programs/test_neighbour.c tests them.
 *
 * Functions return 0 or -errno.  They also return 0 if the kernel cannot be
 * queried.
 */
#pragma once

#include <stdint.h>

/*
 * Check the next hop of packets from @from, an address of this host, to @gid.
 * @interface is the index of the interface if they are link-local, else 0.
 * Does not wait for the resolution.  Return:
 *
 *	0		the address is known or not needed (local or multicast
 *			destination, link without address resolution)
 *	-EINPROGRESS	the kernel resolves it; call again later.  If the
 *			resolution has failed by then, it is started again.
 *	-ENETUNREACH	no route; likewise other errors of socket(2),
 *			bind(2) and connect(2)
 */
int neighbour_find(const uint8_t gid[16], const uint8_t from[16],
		   uint32_t interface);

/*
 * Like neighbour_find(), but wait until the address is resolved.  Return
 * -ETIMEDOUT, not -EINPROGRESS, if it is not resolved in timeout_ms.
 */
int neighbour_wait(const uint8_t gid[16], const uint8_t from[16],
		   uint32_t interface, uint32_t timeout_ms);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The invariant CRC, ICRC (IB 7.8.1, annex A17): the CRC-32 of Ethernet over
 * the packet, with ones in place of all fields that routers change.
 *
 * wire_icrc() is for packets with their IP header.  wire_front_icrc() is for
 * sockets, where the kernel makes and removes that header: the sender
 * (sender.c) predicts it, and the receiver (receiver.c) reconstructs it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/crc/crc32.h"
#include "wire/packet.h"

/*
 * Return the ICRC of a packet.  The n bytes start with the IP header and end
 * before the ICRC.  They must contain an IP header without options, a UDP
 * header and a BTH, or (RoCE v1) a GRH and a BTH.
 */
uint32_t wire_icrc(const uint8_t *ip, size_t n);

/* Store the ICRC, least significant byte first.  Return the end. */
static inline uint8_t *wire_put_icrc(uint32_t icrc, uint8_t *to)
{
	to[0] = (uint8_t)icrc;
	to[1] = (uint8_t)(icrc >> 8);
	to[2] = (uint8_t)(icrc >> 16);
	to[3] = (uint8_t)(icrc >> 24);
	return to + WIRE_ICRC_BYTES;
}

static inline uint32_t wire_get_icrc(const uint8_t *from)
{
	return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
	       (uint32_t)from[3] << 24;
}

/*
 * The bytes before the BTH as the ICRC covers them, for callers that do not
 * have the IP header.  It is made for a path and valid for all packets of the
 * path.  It has no lock: wire_front_icrc() writes to it.
 */
struct wire_front {
	uint8_t bytes[8 + WIRE_IPV6_BYTES + WIRE_UDP_BYTES];
	uint8_t n;
	bool ipv4;
};
void wire_front_begin(struct wire_front *f, const struct wire_path *path);

/*
 * Return the ICRC of a packet with n bytes from the BTH to the pad, at least
 * WIRE_BTH_BYTES.  ip_id is the ID of IPv4; IPv6 ignores it.
 */
uint32_t wire_front_icrc(struct wire_front *f, uint16_t ip_id,
			 const uint8_t *bth, size_t n);

/*
 * A solver for the IPv4 ID, which a socket does not report.  The CRC is
 * linear, so the ID for which the ICRC is correct can be computed.  At most
 * one ID fits.  For a damaged packet one fits by chance with probability
 * 2^-16, so 16 of the 32 bits of the ICRC check the packet (docs/wire.md).
 */
struct wire_solver {
	/* by number of words from the BTH to the pad: inverse powers of x */
	uint32_t back[WIRE_MAX_TRANSPORT / 4 + 1];
};
void wire_solver_begin(struct wire_solver *s);
/*
 * Return the ID for which wire_front_icrc() of the n bytes is @icrc, or -1 if
 * there is none, if n is not a multiple of 4, or if n is less than
 * WIRE_BTH_BYTES or greater than WIRE_MAX_TRANSPORT.
 */
int32_t wire_solve_id(const struct wire_solver *s, struct wire_front *f,
		      const uint8_t *bth, size_t n, uint32_t icrc);

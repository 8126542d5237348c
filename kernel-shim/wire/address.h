/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Mapping of GIDs and QPNs to the addresses of RoCE v2: IP version, Ethernet
 * address, UDP source port.  Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Return whether the GID is an IPv4 address: ::ffff:a.b.c.d, or an IPv4
 * multicast group as a multicast GID, ffXX::ffff:a.b.c.d.
 */
bool wire_gid_is_ipv4(const uint8_t gid[16]);
/* Return whether the GID is a multicast group, also ::ffff:224.0.0.0/100. */
bool wire_gid_is_group(const uint8_t gid[16]);

/*
 * Return an Ethernet address in the low 48 bits: that of the multicast group,
 * or the one that a link-local GID contains.  Otherwise it is a locally
 * administered address, the same for each call.  It is used in pcap files;
 * the kernel sends packets to the address that it has resolved.
 */
uint64_t wire_mac(const uint8_t gid[16]);

/*
 * Return the UDP source port that rxe uses: of a connection whose flow label
 * is 0, and of a UD QP.
 */
uint16_t wire_port(uint32_t qpn, uint32_t peer);
uint16_t wire_port_ud(uint32_t qpn);

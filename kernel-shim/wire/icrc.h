/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The invariant CRC (IB 7.8.1, annex A17): a CRC-32 over the packet, in which
 * what routers change counts as ones.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/crc32.h"
#include "wire/packet.h"

/*
 * Of the n bytes from the IP header on, which end before the ICRC; there are
 * an IP header, a UDP header and a BTH in them, or a GRH and a BTH.  It goes
 * out with its lowest byte first.
 */
uint32_t wire_icrc(const uint8_t *ip, size_t n);

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

/* What the ICRC has in front of the BTH, for who sees no IP header: it is made
 * for a path, and good for all packets of that path. */
struct wire_front {
	uint8_t bytes[8 + WIRE_IPV6_BYTES + WIRE_UDP_BYTES];
	uint8_t n;
	bool ipv4;
};
void wire_front_begin(struct wire_front *f, const struct wire_path *path);

/* Of n bytes from the BTH to the pad; ip_id is that of IPv4, else ignored. */
uint32_t wire_front_icrc(struct wire_front *f, uint16_t ip_id,
			 const uint8_t *bth, size_t n);

/*
 * A socket does not tell the ID of IPv4.  The CRC is linear in it, so that
 * which ID fits can be computed: one, or none for 65535 wrong packets in 65536.
 */
struct wire_solver {
	uint32_t back[WIRE_MAX_TRANSPORT / 4 + 1];
};
void wire_solver_begin(struct wire_solver *s);
/* The ID by which wire_front_icrc() of those n bytes would be so, or -1.  n is
 * a multiple of 4 and at most WIRE_MAX_TRANSPORT, else it is -1, too. */
int32_t wire_solve_id(const struct wire_solver *s, struct wire_front *f,
		      const uint8_t *bth, size_t n, uint32_t icrc);

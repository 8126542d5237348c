/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Building of InfiniBand packets:
 *
 *	LRH | GRH | BTH | extensions | payload | pad | ICRC | VCRC
 *
 * for pcap files (tools/trace/trace_pcap.c).  The GRH is optional.  field.h
 * explains the format of the list.
 */
#pragma once

#include "wire/packet.h"

#define WIRE_LRH_BYTES 8
#define WIRE_VCRC_BYTES 2
/* LRH:LNH: a BTH follows, or a GRH */
#define WIRE_NEXT_BTH 2
#define WIRE_NEXT_GRH 3

/*
 * Local route header (IB 7.7).  words: length from the LRH to the ICRC, in
 * units of four bytes
 */
#define WIRE_LRH(FIELD)                \
	FIELD(uint8_t, vl, 0, 4)       \
	FIELD(uint8_t, sl, 8, 4)       \
	FIELD(uint8_t, next, 14, 2)    \
	FIELD(uint16_t, dlid, 16, 16)  \
	FIELD(uint16_t, words, 37, 11) \
	FIELD(uint16_t, slid, 48, 16)

WIRE_HEADER(lrh, WIRE_LRH, WIRE_LRH_BYTES)

/*
 * Return the variant CRC, VCRC (IB 7.8.2), of @n bytes from the LRH to the
 * ICRC.
 */
uint16_t wire_vcrc(const uint8_t *lrh, size_t n);

/*
 * Build a whole packet.  next and words of @lrh are computed.  @grh is NULL if
 * there is no GRH; its UDP ports are ignored.  Return the length, or 0 if the
 * opcode is not defined or the payload too long.
 */
size_t wire_build_infiniband(const struct wire_lrh *lrh,
			     const struct wire_path *grh,
			     const struct wire_packet *p,
			     uint8_t to[WIRE_MAX_BYTES]);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Parsing of RoCE v2 packets, the reverse of packet.h, by the same
 * definitions of the headers.  The input is not trusted, and no byte beyond
 * it is read.  Pure functions; the receiver (receiver.c) calls wire_parse()
 * for each packet.  tests/unit/test_parse.c and the fuzzer
 * tests/parse/parse_wire.c test them.
 *
 * An accepted packet (WIRE_TAKEN) has all headers that its opcode requires,
 * and a payload of at most WIRE_MAX_PAYLOAD bytes, padded to a multiple of 4.
 * The caller must check the opcode against the type of the QP, the length
 * against the MTU and the position in the message, the P_Key, the QPN and the
 * PSN.
 */
#pragma once

#include "wire/packet.h"

/* Reasons to discard a packet. */
enum wire_refusal {
	WIRE_TAKEN, /* accepted */
	WIRE_NO_ROCE, /* not IP, UDP and WIRE_PORT; or a fragment */
	WIRE_SHORT, /* ends within its headers; ATOMIC WRITE: its payload */
	WIRE_LONG, /* longer than its opcode or the largest MTU allows */
	WIRE_UNEVEN, /* length is not a multiple of 4 */
	WIRE_VERSION, /* transport header version is not 0 */
	WIRE_OPCODE, /* undefined or unsupported opcode */
	WIRE_PAD, /* pad count without payload, or with an empty one */
	WIRE_BAD_ICRC,
};

/*
 * Parse the n bytes from the BTH on, without the ICRC, which is not checked.
 * Members of *p that the opcode does not use are 0.  p->bth.pad is that of
 * the packet, p->payload points into the n bytes, and p->known is p->length.
 * *p is written only if the result is WIRE_TAKEN.
 */
enum wire_refusal wire_parse(struct wire_packet *p, const uint8_t *bth,
			     size_t n);

/*
 * Parse a RoCE v2 packet of n bytes, from the IP header to the ICRC, and
 * check the ICRC: the reverse of wire_build() without the Ethernet header.
 * Bytes after the length of the IP header are ignored (padding of short
 * Ethernet frames).  The checksums of IP and UDP are not checked.  *path and
 * *p are written only if the result is WIRE_TAKEN.
 */
enum wire_refusal wire_parse_ip(struct wire_path *path, struct wire_packet *p,
				const uint8_t *ip, size_t n);

/* Return a description for messages, for example "bad ICRC". */
const char *wire_refusal_name(enum wire_refusal r);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets of RoCE v2, taken apart: what packet.h puts together, by the same
 * description of the headers.  What comes is anybody's; nothing but the bytes
 * that are said to be there is read.
 *
 * A packet that is taken has all headers that its opcode asks for, its payload
 * is WIRE_MAX_PAYLOAD bytes at most, and its pad is what makes that whole
 * words.  It is the QP's to check the opcode against its type, the length
 * against its MTU and the place in a message, the P_Key, the QPN and the PSN.
 */
#pragma once

#include "wire/packet.h"

enum wire_refusal {
	WIRE_TAKEN,
	WIRE_NO_ROCE, /* not IP, UDP and our port; or it is a fragment */
	WIRE_SHORT, /* it ends before its headers do */
	WIRE_LONG, /* more bytes than its opcode or any MTU has room for */
	WIRE_UNEVEN, /* not whole words */
	WIRE_VERSION, /* of the transport: only 0 is defined */
	WIRE_OPCODE, /* there is no such one */
	WIRE_PAD, /* there is no payload to pad, or it needs none */
	WIRE_BAD_ICRC,
};

/*
 * n bytes from the BTH on, without the ICRC.  What the opcode has not is 0 in
 * *p; bth.pad is the packet's; the payload is a place in those bytes, and all
 * of it is known.  *p is written only if it is taken.
 */
enum wire_refusal wire_parse(struct wire_packet *p, const uint8_t *bth,
			     size_t n);

/*
 * n bytes from the IP header on, with the ICRC, which is checked: what
 * wire_build() makes without its Ethernet header, of version 2.  Bytes behind
 * the length that IP tells do not count (Ethernet pads short frames).  The
 * checksums of IP and UDP are not looked at.  *path and *p are written only if
 * it is taken.
 */
enum wire_refusal wire_parse_ip(struct wire_path *path, struct wire_packet *p,
				const uint8_t *ip, size_t n);

/* "bad ICRC" */
const char *wire_refusal_name(enum wire_refusal r);

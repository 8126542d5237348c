/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets that were sent to or received from other hosts: PACKET records
 * (trace/packet.h).
 */
#pragma once

#include <stdio.h>

#include "trace_file.h"
#include "wire/parse.h"

struct trace_packet {
	bool in;
	enum wire_refusal refusal;
	struct wire_path path;
	uint32_t bytes; /* length of the packet from the BTH to the ICRC */
	uint32_t icrc; /* as returned by wire_get_icrc() */
	/* offset and number of the bytes that this record has */
	uint32_t at, n;
	const uint8_t *byte;
};

/* Decode @r. Return false if it is another record or damaged. */
bool trace_packet(const struct trace_record *r, struct trace_packet *out);

/*
 * Print the packet's headers: "RC SEND_ONLY to QP 0x2000 psn=17 length=10".
 * Of a record that continues a packet, print only its offset.
 */
void trace_packet_print(FILE *to, const struct trace_record *r);

/*
 * Whether the receiver refused the packet, or whether it is a NAK or an RNR
 * NAK.
 */
bool trace_packet_is_error(const struct trace_record *r);

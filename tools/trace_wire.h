/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Packets that really travelled, as they were recorded (trace/packet.h). */
#pragma once

#include <stdio.h>

#include "trace_file.h"
#include "wire/parse.h"

struct trace_packet {
	bool in;
	enum wire_refusal refusal;
	struct wire_path path;
	uint32_t bytes; /* from the BTH to the ICRC */
	uint32_t icrc; /* as wire_get_icrc() has it */
	uint32_t at, n; /* the part of them that is here */
	const uint8_t *byte;
};

/* False: it is no such record, or not a sound one. */
bool trace_packet(const struct trace_record *r, struct trace_packet *out);

/* "RC SEND_ONLY to QP 0x2000 psn=17 length=10": what its bytes say. */
void trace_packet_print(FILE *to, const struct trace_record *r);

/* Refused by who received it, or a NAK. */
bool trace_packet_is_error(const struct trace_record *r);

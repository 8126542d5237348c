/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages of the IB communication manager (MADs) in a trace: CM_SENT
 * records.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "trace_file.h"
#include "wire/mad.h"

/* A CM_SENT record. Byte arrays are in wire order. */
struct trace_mad {
	uint8_t sgid[16], dgid[16];
	uint8_t traffic_class;
	uint32_t flow_label;
	uint8_t mad[MAD_BYTES];
};

/*
 * Decode @r. Return false if it is another record, damaged, or an unknown
 * message.
 */
bool trace_mad(const struct trace_record *r, struct trace_mad *out);

/* Name of the message, such as "REQ", or NULL if @r has none. */
const char *trace_mad_name(const struct trace_record *r);
/* Whether the message rejects: a REJ, or a SIDR_REP whose status is not 0. */
bool trace_mad_refuses(const struct trace_record *r);
/*
 * Print the transaction id and the message's fields as " name=value". Fields
 * that are 0 are left out, except GIDs.
 */
void trace_mad_print(FILE *to, const uint8_t mad[MAD_BYTES]);

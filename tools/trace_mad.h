/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages of the CM protocol in a trace. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "trace_file.h"
#include "wire/mad.h"

/* What such a record says; bytes as they travel. */
struct trace_mad {
	uint8_t sgid[16], dgid[16];
	uint8_t traffic_class;
	uint32_t flow_label;
	uint8_t mad[MAD_BYTES];
};

/* False: it is another record, or damaged, or of an unknown message. */
bool trace_mad(const struct trace_record *r, struct trace_mad *out);

/* "REQ", or NULL: it is none. */
const char *trace_mad_name(const struct trace_record *r);
/* Does it say no? */
bool trace_mad_refuses(const struct trace_record *r);
/* The message's fields that are not 0, " name=value" each. */
void trace_mad_print(FILE *to, const uint8_t mad[MAD_BYTES]);

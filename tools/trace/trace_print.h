/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Records of a trace as lines of text, and access to their values by name. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "trace_file.h"

/* Print a line. The time is relative to @start. */
void trace_print(FILE *to, const struct trace_record *r, uint64_t start);

/* Print the record without process and time. */
void trace_print_what(FILE *to, const struct trace_record *r);

/* Print a value of the given type of trace/events.h. */
void trace_print_value(FILE *to, const char *type, uint64_t value);

/*
 * Duration of a CALL record in ns; false if it is not known.
 * trace_call_name() is the name of the verb without "ibv_", or "?".
 */
bool trace_call_ns(const struct trace_record *r, uint64_t *ns);
const char *trace_call_name(const struct trace_record *r);

/*
 * Whether the record reports a failure, or a WR that has to wait or was
 * retransmitted.
 */
bool trace_is_error(const struct trace_record *r);

/* A DATA record: bytes of a message. */
struct trace_data {
	uint64_t wr_id, op, offset;
	uint32_t psn;
	size_t n;
	const uint8_t *byte;
};
/* Decode @r. Return false if it is another record or damaged. */
bool trace_data(const struct trace_record *r, struct trace_data *d);

#define TRACE_NAME_ROOM 64 /* size of a value of type name */
/* Copy such a value. False: there is none, and @name is empty. */
bool trace_name(const struct trace_record *r, const char *field,
		char name[TRACE_NAME_ROOM]);
/* Get the GID of that name. Return false if the record has none. */
bool trace_gid(const struct trace_record *r, const char *name, uint8_t gid[16]);

/*
 * Call @each for each value of the record, as text. Return 0, or the exit
 * code.
 */
int trace_each_value(const struct trace_record *r,
		     void (*each)(void *arg, const char *name,
				  const char *text),
		     void *arg);

/* Get the first value of that name. Return false if the record has none. */
bool trace_value(const struct trace_record *r, const char *name, uint64_t *out);
/* The value of that name, or 0 if the record has none. */
uint64_t trace_number(const struct trace_record *r, const char *name);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Records of a trace as lines of text. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "trace_file.h"

/* A line; its time is that since `start`. */
void trace_print(FILE *to, const struct trace_record *r, uint64_t start);

/* The same without the process and the time. */
void trace_print_what(FILE *to, const struct trace_record *r);

/* A value as events.h says of that type. */
void trace_print_value(FILE *to, const char *type, uint64_t value);

/* Of a call: how long it took, false if that is not known; its verb. */
bool trace_call_ns(const struct trace_record *r, uint64_t *ns);
const char *trace_call_name(const struct trace_record *r);

/* Does it tell of something that went wrong, or that waits? */
bool trace_is_error(const struct trace_record *r);

/* Of a record of DATA: bytes of a message. */
struct trace_data {
	uint64_t wr_id, op, offset;
	uint32_t psn;
	size_t n;
	const uint8_t *byte;
};
/* False: it is another one, or damaged. */
bool trace_data(const struct trace_record *r, struct trace_data *d);

/* The values of that name; false: the event has none. */
bool trace_gid(const struct trace_record *r, const char *name, uint8_t gid[16]);

/* Each of an event's values, as they are printed.  0, or the exit code. */
int trace_each_value(const struct trace_record *r,
		     void (*each)(void *arg, const char *name,
				  const char *text),
		     void *arg);

/* The value of that name; false: the event has none. */
bool trace_value(const struct trace_record *r, const char *name, uint64_t *out);
/* The same, or 0. */
uint64_t trace_number(const struct trace_record *r, const char *name);

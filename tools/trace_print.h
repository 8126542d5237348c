/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Records of a trace as lines of text. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "trace_file.h"

/* A line; its time is that since `start`. */
void trace_print(FILE *to, const struct trace_record *r, uint64_t start);

/* Does it tell of something that went wrong, or that waits? */
bool trace_is_error(const struct trace_record *r);

/* The value of that name; false: the event has none. */
bool trace_value(const struct trace_record *r, const char *name, uint64_t *out);

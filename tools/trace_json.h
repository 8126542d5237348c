/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Records of a trace as lines of JSON. */
#pragma once

#include <stdio.h>

#include "trace_file.h"

/* An object on a line of its own; its time is that since `start`. */
void trace_print_json(FILE *to, const struct trace_record *r, uint64_t start);

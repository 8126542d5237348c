/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Records of a trace as JSON Lines. */
#pragma once

#include <stdio.h>

#include "trace_file.h"

/*
 * Print a record as an object on one line. `ns` is the time relative to
 * @start.
 */
void trace_print_json(FILE *to, const struct trace_record *r, uint64_t start);

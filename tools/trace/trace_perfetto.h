/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A trace as Chrome trace-event JSON, for ui.perfetto.dev. Calls are slices
 * on the tracks of their threads, WRs are slices on tracks of their QPs. A
 * flow arrow leads from a message to its receive. A counter of each CQ shows
 * the number of unpolled completions.
 */
#pragma once

#include <stdio.h>

#include "trace_file.h"

/* Return 0, or the exit code after logging the error. */
int trace_perfetto(FILE *to, const struct trace_batch *b);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A trace as Chrome's trace-event JSON, for ui.perfetto.dev: calls on the
 * tracks of their threads, WRs on tracks of their QPs, from a message to its
 * receive an arrow, for each CQ how many completions wait.
 */
#pragma once

#include <stdio.h>

#include "trace_file.h"

/* 0, or the exit code. */
int trace_perfetto(FILE *to, const struct trace_batch *b);

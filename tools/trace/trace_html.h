/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A trace as one self-contained HTML page with a ladder diagram. */
#pragma once

#include <stdio.h>

#include "trace_file.h"

/* Return 0, or the exit code after logging the error. */
int trace_html(FILE *to, const struct trace_batch *b);

/*
 * The page before and after its data. html/page.py makes it from
 * html/ladder.* at build time.
 */
extern const char html_before_data[], html_after_data[];

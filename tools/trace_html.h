/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A trace as one HTML page that needs nothing else: a ladder diagram. */
#pragma once

#include <stdio.h>

#include "trace_file.h"

/* 0, or the exit code. */
int trace_html(FILE *to, const struct trace_batch *b);

/* The page, which html/page.py made of html/ladder.*, around its data. */
extern const char html_before_data[], html_after_data[];

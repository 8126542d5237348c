/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reports of the referee's findings in formats for other programs. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "notes.h"

/* Write a JSON object for each finding, each on a line of its own. */
void report_json(FILE *to, const struct notes *n);
/*
 * Write a JUnit test suite with a failed test case for each finding, or one
 * passed test case if there are none.
 */
void report_junit(FILE *to, const struct notes *n);
/* Write GitHub workflow commands, which GitHub shows next to the source. */
void report_github(FILE *to, const struct notes *n);

typedef void report_fn(FILE *to, const struct notes *n);
/* Return the function for a format, or NULL if there is no such format. */
report_fn *report_named(const char *format);

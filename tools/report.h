/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Findings for those who do not read stderr. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "notes.h"

/* One JSON object for each finding, each on a line. */
void report_json(FILE *to, const struct notes *n);
/* A test suite with a failed case for each; with none, one that passed. */
void report_junit(FILE *to, const struct notes *n);
/* GitHub's workflow commands, which it shows beside the source. */
void report_github(FILE *to, const struct notes *n);

typedef void report_fn(FILE *to, const struct notes *n);
/* NULL: there is no such format. */
report_fn *report_named(const char *format);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What urxe run and urxe env are told of a trace to be recorded. */
#pragma once

#include <stdbool.h>

struct record_options {
	const char *path; /* NULL: there is none */
	const char *records; /* of each thread; NULL: as it comes */
	const char *payload; /* bytes of each message; "": as it comes */
};

/* For getopt_long(). */
#define RECORD_OPTIONS                                        \
	{ "trace", required_argument, NULL, 'T' },            \
		{ "trace-records", required_argument, NULL, 'R' }, \
	{                                                     \
		"trace-payload", optional_argument, NULL, 'P' \
	}
/* Is option c, with that argument or NULL, one of those? */
bool record_option(struct record_options *o, int c, const char *arg);

/* Make the file, and name it in the environment.  0, or the exit code. */
int record_set_environment(const struct record_options *o);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The options of urxe run and urxe env that record a trace (trace/trace.h).
 */
#pragma once

#include <stdbool.h>

struct record_options {
	const char *path; /* NULL: no trace */
	const char *records; /* of each thread; NULL: the default number */
	/* bytes of each message; NULL: none; "": the default number */
	const char *payload;
};

/* clang-format off */
#define RECORD_OPTIONS							\
	OPTION_HEADING("Trace"),					\
	{ 'T', "trace", "FILE", "record verbs, WRs and errors in FILE for " \
	  "urxe trace", "no trace" },					\
	{ 'R', "trace-records", "N", "number of records kept for each thread; " \
	  "new ones overwrite the oldest", "16384" },			\
	{ 'P', "trace-payload", "[=BYTES]", "record the first BYTES of each " \
	  "message as well, 256 by default", "none" }
/* clang-format on */
/*
 * Store the argument arg (may be NULL) of option c.  Return false if c is not
 * one of RECORD_OPTIONS.
 */
bool record_option(struct record_options *o, int c, const char *arg);

/*
 * Create the trace file and set the environment for it.  Return 0 or the exit
 * code.
 */
int record_set_environment(const struct record_options *o);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What urxe run and urxe env are told of a trace to be recorded. */
#pragma once

#include <stdbool.h>

struct record_options {
	const char *path; /* NULL: there is none */
	const char *records; /* of each thread; NULL: as it comes */
	const char *payload; /* bytes of each message; "": as it comes */
};

/* clang-format off */
#define RECORD_OPTIONS							\
	OPTION_HEADING("Trace"),					\
	{ 'T', "trace", "FILE", "record verbs, WRs and errors in FILE for " \
	  "urxe trace", "no trace" },					\
	{ 'R', "trace-records", "N", "room of each thread, which overwrites " \
	  "its oldest records", "16384" },				\
	{ 'P', "trace-payload", "[=BYTES]", "record the first BYTES of each " \
	  "message as well, 256 if not said", "none" }
/* clang-format on */
/* Is option c, with that argument or NULL, one of those? */
bool record_option(struct record_options *o, int c, const char *arg);

/* Make the file, and name it in the environment.  0, or the exit code. */
int record_set_environment(const struct record_options *o);

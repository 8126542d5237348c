/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * urxe run --check: the referee (provider/referee) looks at the program and
 * all that it starts.  What it finds it notes in a file of ours, which is
 * printed as it grows, and of which the reports are made when all is over.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "notes.h"
#include "supervise.h"

#define CHECK_REPORTS 4

struct check_report {
	const char *format; /* json, junit or github */
	const char *file; /* NULL: stderr */
	FILE *to; /* opened before the first program */
};

struct check {
	const char *level; /* NULL: nobody looks */
	int exitcode; /* if something was found; 0: the program's */
	const char *suppressions; /* or NULL */
	bool leaks; /* objects that are left at exit count as well */
	struct check_report report[CHECK_REPORTS];
	unsigned int reports;
	char notes[64]; /* the file */
	struct notes all; /* that are read */
	size_t seen; /* of those that were there when a program ended */
	bool asked; /* an option that wants --check */
};

#define CHECK_CHOSEN (-1)

/* Options and their values.  CHECK_CHOSEN, or the exit code: refused. */
int check_choose(struct check *c, const char *level);
int check_set_exitcode(struct check *c, const char *value);
int check_set_leaks(struct check *c);
int check_set_suppressions(struct check *c, const char *value);
int check_add_report(struct check *c, const char *value);
/* All options are there: do they go together? */
int check_complete(const struct check *c);

/* Before the first program.  0, or the exit code. */
int check_begin(struct check *c);
/* Before a shell, which is not waited for: it has the environment only. */
void check_set_environment(const struct check *c);
/*
 * Print what was found since the last time, as far as standard error takes it
 * at once; c is a struct check.
 */
void check_show(void *c);
/* A program has ended: has something been found that changes how? */
void check_look(struct check *c, struct ending *e);
/* After the last one: the reports. */
void check_end(struct check *c);

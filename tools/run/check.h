/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * urxe run --check: report the findings of the referee (provider/referee),
 * which checks the program and all processes that it starts.
 *
 * The referee, in each process, appends its findings to a temporary file
 * that URXE_CHECK_FOUND names (format: provider/referee/report/finding.h).  The
 * supervising urxe run reads the file ten times a second and prints new
 * findings.  It writes the reports when the last program has ended.
 *
 * run.c parses the options, trial.c calls check_begin(), check_print_report()
 * and check_end(), supervise.c calls check_show() as struct attention.look.
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
	const char *level; /* lowest level to report; NULL: no --check */
	int exitcode; /* if there are findings; 0: the program's */
	const char *suppressions; /* absolute path, or NULL */
	bool leaks; /* objects left at exit are warnings, not notes */
	struct check_report report[CHECK_REPORTS];
	unsigned int reports;
	char notes[64]; /* path of the file of findings */
	struct notes all; /* the findings read so far */
	size_t seen; /* number of them when the last program ended */
	bool asked; /* an option that requires --check was given */
};

#define CHECK_CHOSEN (-1)

/*
 * Parse the value of an option.  Return CHECK_CHOSEN, or the exit code if the
 * value is refused; the error has been printed.
 */
int check_choose(struct check *c, const char *level);
int check_set_exitcode(struct check *c, const char *value);
int check_set_leaks(struct check *c);
int check_set_suppressions(struct check *c, const char *value);
int check_add_report(struct check *c, const char *value);
/* Check the options together, when all are parsed.  Return as above. */
int check_complete(const struct check *c);

/*
 * Open the reports and the file of findings, and set the environment.  Called
 * before the first program.  Return 0 or the exit code.
 */
int check_begin(struct check *c);
/*
 * Set the environment for the referee.  Called alone before a shell is
 * executed in place of urxe run: then there is no file of findings and no
 * report.
 */
void check_set_environment(const struct check *c);
/*
 * Print the findings since the last call, as far as standard error accepts
 * them without blocking.  c is a struct check.
 */
void check_show(void *c);
/*
 * Print the findings of a program that has ended as *e describes.  If it
 * succeeded and has findings, set its exit status to that of --exitcode.
 */
void check_print_report(struct check *c, struct ending *e);
/* Print the totals, write the reports and remove the file of findings. */
void check_end(struct check *c);

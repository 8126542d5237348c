/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Options of a command: one table for getopt_long(3), the help and suggestions.
 * A new option is a row in its command's table.
 */
#pragma once

#include <stdio.h>

#define OPTION_SHORT 0x100

struct command_option {
	/* that option_next() returns, with OPTION_SHORT if -letter is the same;
	 * 0: the row is a heading */
	int letter;
	const char *name;
	/* its value, as the help shows it: "NAME", "[=NAME]" if it may be
	 * missing, NULL if there is none */
	const char *value;
	const char *what; /* the heading, or what it does; is wrapped */
	const char *preset; /* what holds without it, or NULL */
};

/* `letter` of the row that ends a table is 0, too, and there is no `what`. */
/* clang-format off */
#define OPTION_HEADING(text) { .what = text }
#define OPTIONS_END { 0 }
/* clang-format on */

/*
 * The next option in argv, as getopt_long() does it; "stop" stops at the first
 * word that is none.  '?': it was refused, with the nearest one's name.
 */
int option_next(int argc, char **argv, const struct command_option *table,
		int stop);

/* A line for each. */
void options_print(FILE *to, const struct command_option *table);

/* Text from column `at` on, in lines that begin there; the first one does. */
void print_wrapped(FILE *to, const char *text, int at);

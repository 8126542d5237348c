/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Options of a command: one table for getopt_long(3), the help text and
 * suggestions.  To add an option, add a row to the table of the command.
 */
#pragma once

#include <stdio.h>

/* Flag in command_option.letter: there is a short option, too. */
#define OPTION_SHORT 0x100

struct command_option {
	/*
	 * The value that option_next() returns, with OPTION_SHORT set if
	 * -letter is the short form.  0: the row is a heading.
	 */
	int letter;
	const char *name;
	/*
	 * Name of the value in the help: "NAME", "[=NAME]" for an optional
	 * value, NULL if the option takes none.
	 */
	const char *value;
	const char *what; /* description or heading; it is wrapped */
	const char *preset; /* default, for the help, or NULL */
};

/* In the row that ends a table, `letter` is 0 and `what` is NULL. */
/* clang-format off */
#define OPTION_HEADING(text) { .what = text }
#define OPTIONS_END { 0 }
/* clang-format on */

/*
 * Return the letter of the next option in argv, or -1, as getopt_long() does.
 * If stop is set, parsing ends at the first word that is not an option.  '?':
 * invalid; the error has been printed, with the nearest option's name.
 */
int option_next(int argc, char **argv, const struct command_option *table,
		int stop);

/* Print the help for each option of the table, with the headings. */
void options_print(FILE *to, const struct command_option *table);

/*
 * Print text wrapped to lines that begin at column `at`.  The caller has
 * moved the output to that column for the first line.
 */
void print_wrapped(FILE *to, const char *text, int at);

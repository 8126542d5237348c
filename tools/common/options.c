// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Option parsing, suggestions and help from one table (options.h). */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdbool.h>
#include <string.h>

#include "chaos/nearest.h"
#include "commands.h"
#include "options.h"

#define OPTIONS 32 /* maximum number of options of a command */
#define COLUMN 27 /* at which the help describes an option */
#define WIDTH 79 /* maximum length of a line */

static bool is_end(const struct command_option *o)
{
	return !o->letter && !o->what;
}

/* Fill in the arguments of getopt_long() from the table. */
static void table_fill(const struct command_option *o, struct option *longs,
		       char *shorts)
{
	for (; !is_end(o); o++) {
		if (!o->letter)
			continue;
		*longs++ = (struct option){
			o->name,
			!o->value	 ? no_argument :
			*o->value == '[' ? optional_argument :
					   required_argument,
			NULL,
			o->letter & ~OPTION_SHORT,
		};
		if (!(o->letter & OPTION_SHORT))
			continue;
		*shorts++ = (char)o->letter;
		if (o->value)
			*shorts++ = ':';
	}
	*longs = (struct option){ 0 };
	*shorts = '\0';
}

/*
 * Suggest the nearest option for the unknown word.  getopt_long() has printed
 * that it is unknown.
 */
static void suggest(const char *word, const struct command_option *o)
{
	struct nearest near;
	size_t len;

	if (strncmp(word, "--", 2))
		return;
	word += 2;
	len = strcspn(word, "=");
	nearest_begin(&near, word, len);
	for (; !is_end(o); o++) {
		if (!o->letter)
			continue;
		/* the prefix of an option: it was ambiguous */
		if (!strncmp(o->name, word, len))
			return;
		nearest_try(&near, o->name);
	}
	if (near.word)
		fail(0, "did you mean --%s?", near.word);
}

int option_next(int argc, char **argv, const struct command_option *table,
		int stop)
{
	char shorts[2 * OPTIONS + 2] = "+";
	struct option longs[OPTIONS + 1];
	int c;

	table_fill(table, longs, shorts + (stop ? 1 : 0));
	c = getopt_long(argc, argv, shorts, longs, NULL);
	if (c == '?' && !optopt)
		suggest(argv[optind - 1], table);
	return c;
}

void print_wrapped(FILE *to, const char *text, int at)
{
	int column = at, n;

	while (*text) {
		n = (int)strcspn(text, " \n");
		if (column > at && column + 1 + n > WIDTH) {
			fprintf(to, "\n%*s", at, "");
			column = at;
		} else if (column > at) {
			fputc(' ', to);
			column++;
		}
		column += fprintf(to, "%.*s", n, text);
		text += n;
		text += strspn(text, " \n");
	}
	fputc('\n', to);
}

static void option_print(FILE *to, const struct command_option *o)
{
	const char *v = o->value ? o->value : "";
	char text[512], left[80];
	int n;

	n = snprintf(left, sizeof(left), "  ");
	if (o->letter & OPTION_SHORT)
		n += snprintf(left + n, sizeof(left) - (size_t)n, "-%c, ",
			      o->letter & ~OPTION_SHORT);
	n += snprintf(left + n, sizeof(left) - (size_t)n, "--%s%s%s", o->name,
		      *v && *v != '[' ? " " : "", v);
	fputs(left, to);
	if (n + 2 > COLUMN)
		fprintf(to, "\n%*s", COLUMN, "");
	else
		fprintf(to, "%*s", COLUMN - n, "");
	snprintf(text, sizeof(text), "%s%s%s%s", o->what, o->preset ? " [" : "",
		 o->preset ? o->preset : "", o->preset ? "]" : "");
	print_wrapped(to, text, COLUMN);
}

void options_print(FILE *to, const struct command_option *table)
{
	const struct command_option *o;

	for (o = table; !is_end(o); o++) {
		if (o->letter)
			option_print(to, o);
		else
			fprintf(to, "%s%s:\n", o == table ? "" : "\n", o->what);
	}
}

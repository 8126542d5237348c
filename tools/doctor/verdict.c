// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The output of urxe doctor: one line for each finding, or JSON. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/commands.h"
#include "doctor.h"
#include "common/json.h"

static struct {
	bool json, colour;
	const char *check;
	unsigned int lines, failed;
} out;

/*
 * Return whether output to fd may have colours: fd is a terminal, TERM is
 * neither unset nor dumb, and NO_COLOR (no-color.org) is not set.
 */
static bool colour_wanted(int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return !(no && *no) && term && *term && strcmp(term, "dumb") &&
	       isatty(fd);
}

static void put_json(const char *key, const char *s)
{
	printf(",\n     \"%s\": ", key);
	json_string(stdout, s);
}

static void put_line(enum verdict v, const char *cost, const char *mend,
		     const char *text)
{
	static const char *const word[] = { "ok  ", "warn", "FAIL" };
	static const char *const colour[] = { "\033[32m", "\033[33m",
					      "\033[1;31m" };

	printf("%s%s%s  %s", out.colour ? colour[v] : "", word[v],
	       out.colour ? "\033[0m" : "", text);
	if (cost)
		printf("; cost: %s", cost);
	if (mend)
		printf("; fix: %s", mend);
	putchar('\n');
}

static void put_object(enum verdict v, const char *cost, const char *mend,
		       const char *text)
{
	static const char *const word[] = { "ok", "warn", "fail" };

	printf("%s\n    {\"check\": \"%s\",\n     \"verdict\": \"%s\"",
	       out.lines ? "," : "", out.check, word[v]);
	put_json("found", text);
	if (cost)
		put_json("cost", cost);
	if (mend)
		put_json("mend", mend);
	putchar('}');
}

void report(enum verdict v, const char *cost, const char *mend, const char *fmt,
	    ...)
{
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		exit(fail(1, "no memory"));
	if (out.json)
		put_object(v, cost, mend, text);
	else
		put_line(v, cost, mend, text);
	free(text);
	out.lines++;
	out.failed += v == FAIL;
}

void report_begin(bool json)
{
	out.json = json;
	out.colour = colour_wanted(STDOUT_FILENO);
	if (!json)
		return;
	printf("{\"urxe\": \"" URXE_VERSION "\",\n \"checks\": [");
}

void report_check(const char *name)
{
	fflush(stdout); /* some checks fork */
	out.check = name;
}

int report_end(void)
{
	if (out.json)
		printf("\n ],\n \"failed\": %u}\n", out.failed);
	return out.failed ? 1 : 0;
}

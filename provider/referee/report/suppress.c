// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Suppression files, and built-in suppressions; suppress.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suppress.h"

struct suppression {
	struct suppression *next;
	char *rule, *pattern;
};

static struct suppression *from_files;

/* Built-in suppressions, for widely used programs. */
static const struct {
	const char *rule, *pattern;
} stock[] = {
	/*
	 * perftest's clients do not destroy the receive CQ, which only a
	 * server uses, nor with -R an rdma_cm_id, whose PD is librdmacm's.
	 */
	{ "object-left", "ib_*_bw" },
	{ "object-left", "ib_*_lat" },
	/* does not close its listening socket */
	{ "object-left", "rstream" },
};

static void suppression_add(const char *rule, const char *pattern)
{
	struct suppression *s = calloc(1, sizeof(*s));

	if (!s)
		return;
	s->rule = strdup(rule);
	s->pattern = strdup(pattern);
	if (!s->rule || !s->pattern) {
		free(s->rule);
		free(s->pattern);
		free(s);
		return;
	}
	s->next = from_files;
	from_files = s;
}

static int suppress_read(const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL, *pattern, *rule;
	int ret = 0, number;
	size_t room = 0;

	if (!f) {
		ret = -errno;
		fprintf(stderr, "urxe: no device: suppressions: %s: %s\n", path,
			strerror(errno));
		return ret;
	}
	for (number = 1; !ret && getline(&line, &room, f) >= 0; number++) {
		line[strcspn(line, "#\n")] = 0;
		rule = line + strspn(line, " \t");
		rule[strcspn(rule, " \t")] = 0;
		pattern = strchr(rule, ':');
		if (pattern && pattern[1] && pattern > rule) {
			*pattern = 0;
			suppression_add(rule, pattern + 1);
		} else if (*rule) {
			fprintf(stderr,
				"urxe: no device: suppressions: %s:%d: not "
				"RULE:PATTERN\n",
				path, number);
			ret = -EINVAL;
		}
	}
	free(line);
	fclose(f);
	return ret;
}

int suppress_init(void)
{
	const char *list = getenv("URXE_CHECK_SUPPRESSIONS");
	char path[4096];
	size_t n;
	int ret = 0;

	while (!ret && list && *list) {
		n = strcspn(list, ":");
		snprintf(path, sizeof(path), "%.*s", (int)n, list);
		if (n)
			ret = suppress_read(path);
		list += n + (list[n] == ':');
	}
	return ret;
}

static bool pattern_matches(const char *pattern,
			    const struct stack_frame *calls, size_t n)
{
	const char *slash;
	size_t i;

	if (!fnmatch(pattern, program_invocation_short_name, 0))
		return true;
	for (i = 0; i < n; i++) {
		slash = strrchr(calls[i].module, '/');
		if (!fnmatch(pattern, calls[i].function, 0) ||
		    !fnmatch(pattern, calls[i].module, 0) ||
		    (slash && !fnmatch(pattern, slash + 1, 0)))
			return true;
	}
	return false;
}

bool suppress(const char *rule, const struct stack_frame *calls, size_t n)
{
	const struct suppression *s;
	size_t i;

	for (s = from_files; s; s = s->next)
		if (!fnmatch(s->rule, rule, 0) &&
		    pattern_matches(s->pattern, calls, n))
			return true;
	for (i = 0; i < sizeof(stock) / sizeof(*stock); i++)
		if (!fnmatch(stock[i].rule, rule, 0) &&
		    pattern_matches(stock[i].pattern, calls, n))
			return true;
	return false;
}

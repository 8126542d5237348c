// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "notes.h"

/* A field of a line, in place: what was escaped is as it was. */
static char *field_take(char **rest, const char *end)
{
	char *field = *rest, *from = field, *to = field;

	while (*from && !strchr(end, *from)) {
		if (*from == '\\' && from[1]) {
			from++;
			*to++ = *from == 't' ? '\t' :
				*from == 'n' ? '\n' :
				*from == 'p' ? '|' : *from;
			from++;
		} else {
			*to++ = *from++;
		}
	}
	*rest = *from ? from + 1 : from;
	*to = 0;
	return field;
}

static unsigned long number_take(char **rest, const char *end)
{
	return strtoul(field_take(rest, end), NULL, 10);
}

static void call_read(struct call *c, char *field)
{
	c->what = field_take(&field, "|");
	c->function = field_take(&field, "|");
	c->offset = number_take(&field, "|");
	c->module = field_take(&field, "|");
	c->address = number_take(&field, "|");
}

/* Calls are split before they are read: a | may be escaped in them. */
static void calls_read(struct note *n, char *rest)
{
	struct call *more;
	char *end;

	while (*rest) {
		end = rest + strcspn(rest, "\t");
		if (*end)
			*end++ = 0;
		more = realloc(n->call, (n->calls + 1) * sizeof(*more));
		if (!more)
			return;
		n->call = more;
		more += n->calls++;
		memset(more, 0, sizeof(*more));
		call_read(more, rest);
		rest = end;
	}
}

static void note_read(struct notes *all, char *line)
{
	struct note n = { .count = 1 }, *more;

	n.id = field_take(&line, "\t");
	n.level = field_take(&line, "\t");
	n.rule = field_take(&line, "\t");
	n.source = field_take(&line, "\t");
	n.program = field_take(&line, "\t");
	n.object = field_take(&line, "\t");
	n.text = field_take(&line, "\t");
	n.hint = field_take(&line, "\t");
	calls_read(&n, line);
	more = realloc(all->note, (all->count + 1) * sizeof(*more));
	if (!more) {
		free(n.call);
		return;
	}
	all->note = more;
	more[all->count++] = n;
}

static void count_read(struct notes *all, char *line)
{
	const char *id = field_take(&line, "\t");
	size_t i;

	for (i = all->count; i-- > 0;)
		if (!strcmp(all->note[i].id, id)) {
			all->note[i].count =
				(unsigned int)number_take(&line, "\t");
			return;
		}
}

/* The lines stay in memory: the notes point into them. */
int notes_read(struct notes *all, const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL, *rest;
	size_t size = 0;
	ssize_t len;

	memset(all, 0, sizeof(*all));
	if (!f)
		return -errno;
	while ((len = getline(&line, &size, f)) > 0) {
		if (line[len - 1] == '\n')
			line[len - 1] = 0;
		rest = line;
		if (!strcmp(field_take(&rest, "\t"), "F")) {
			note_read(all, rest);
			line = NULL;
			size = 0;
		} else {
			count_read(all, rest);
		}
	}
	free(line);
	fclose(f);
	return 0;
}

void notes_free(struct notes *all)
{
	struct note *n;
	size_t i;

	for (n = all->note; n < all->note + all->count; n++) {
		for (i = 0; i < n->calls; i++)
			free(n->call[i].file);
		free(n->call);
		free(n->id - 2); /* the line begins with "F\t" */
	}
	free(all->note);
}

const struct call *note_place(const struct note *n)
{
	size_t i;

	for (i = 0; i < n->calls; i++)
		if (n->call[i].file)
			return &n->call[i];
	return NULL;
}

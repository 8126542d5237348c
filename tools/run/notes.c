// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Parse the file of findings that the referee appends to.  The strings of a
 * note point into its line, which is kept until the note is freed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "notes.h"

/*
 * Take the next field of a line, which one of the characters in end ends.
 * Unescape it in place, and advance *rest after it.
 */
static char *field_take(char **rest, const char *end)
{
	char *field = *rest, *from = field, *to = field;

	while (*from && !strchr(end, *from)) {
		if (*from == '\\' && from[1]) {
			from++;
			*to++ = *from == 't' ? '\t' :
				*from == 'n' ? '\n' :
				*from == 'p' ? '|' :
					       *from;
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

/* Split the calls at tabs before they are unescaped: | separates fields. */
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

/* Set the count of the note that a C or T line names.  Return it, or NULL. */
static struct note *count_read(struct notes *all, char *line)
{
	const char *id = field_take(&line, "\t");
	size_t i;

	for (i = all->count; i-- > 0;)
		if (!strcmp(all->note[i].id, id)) {
			all->note[i].count =
				(unsigned int)number_take(&line, "\t");
			return &all->note[i];
		}
	return NULL;
}

int notes_open(struct notes *all, const char *path)
{
	memset(all, 0, sizeof(*all));
	all->from = fopen(path, "re");
	return all->from ? 0 : -errno;
}

/*
 * Parse a line.  Return whether its memory must be kept, because a note
 * points into it.
 */
static bool line_read(struct notes *all, char *line,
		      void (*show)(struct note *, unsigned int))
{
	size_t before = all->count;
	char *rest = line;
	const char *kind = field_take(&rest, "\t");
	struct note *n;

	if (*kind == 'F' || *kind == 'S' || *kind == 'P') {
		note_read(all, rest);
		if (all->count == before)
			return false;
		all->note[before].open = *kind == 'P';
		if (*kind == 'S')
			show(&all->note[before], 0);
		return true;
	}
	n = count_read(all, rest);
	if (n && *kind == 'T')
		show(n, n->count);
	return false;
}

void notes_read(struct notes *all, void (*show)(struct note *, unsigned int))
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	clearerr(all->from);
	while ((len = getline(&line, &size, all->from)) > 0) {
		if (line[len - 1] != '\n') { /* incomplete yet */
			fseek(all->from, -len, SEEK_CUR);
			break;
		}
		line[len - 1] = 0;
		if (line_read(all, line, show)) {
			line = NULL;
			size = 0;
		}
	}
	free(line);
}

static void note_free(struct note *n)
{
	size_t i;

	for (i = 0; i < n->calls; i++)
		free(n->call[i].file);
	free(n->call);
	free(n->id - 2); /* the line: id follows a letter and a tab */
}

void notes_remove(struct notes *all, size_t i)
{
	note_free(&all->note[i]);
	memmove(&all->note[i], &all->note[i + 1],
		(--all->count - i) * sizeof(all->note[0]));
}

void notes_free(struct notes *all)
{
	size_t i;

	for (i = 0; i < all->count; i++)
		note_free(&all->note[i]);
	free(all->note);
	fclose(all->from);
}

const struct call *note_place(const struct note *n)
{
	size_t i;

	for (i = 0; i < n->calls; i++)
		if (n->call[i].file)
			return &n->call[i];
	return NULL;
}

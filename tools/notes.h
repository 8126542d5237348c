/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The findings that processes noted; provider/referee/finding.h has the form. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct call {
	char *what; /* of the first of a stack: "posted"; else "" */
	char *function; /* "": not known */
	char *module;
	unsigned long offset, address;
	char *file; /* of the source, or NULL */
	unsigned int line;
};

struct note {
	char *id, *level, *rule, *source, *program, *object, *text, *hint;
	unsigned int count;
	bool open; /* its level depends on how the command ends */
	struct call *call;
	size_t calls;
};

struct notes {
	struct note *note;
	size_t count;
	FILE *from;
};

/* -errno */
int notes_open(struct notes *n, const char *path);
/*
 * Read what was noted since the last time.  show is called for what the
 * processes did not print: for a note with 0, and with the number of times when
 * that is noted.
 */
void notes_read(struct notes *n, void (*show)(struct note *, unsigned int));
void notes_free(struct notes *n);
/* Forget the one with that index. */
void notes_remove(struct notes *n, size_t i);
/* The call that is to be shown for it: the first whose source is known. */
const struct call *note_place(const struct note *n);

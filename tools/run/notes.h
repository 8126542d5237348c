/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Findings of the referee, read from the file that URXE_CHECK_FOUND names.
 * provider/referee/report/finding.h defines the format.  The processes append
 * to the file while urxe run reads it (check.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct call {
	char *what; /* of the first call of a stack: "posted"; else "" */
	char *function; /* "": unknown */
	char *module;
	unsigned long offset, address; /* in function, in module */
	char *file; /* source file, or NULL; filled in by source.c */
	unsigned int line;
};

struct note {
	char *id, *level, *rule, *source, *program, *object, *text, *hint;
	unsigned int count;
	bool open; /* the level depends on the exit status of the command */
	struct call *call;
	size_t calls;
};

struct notes {
	struct note *note;
	size_t count;
	FILE *from; /* the file, at the first line that is not read yet */
};

/* Open the file.  Return 0 or -errno. */
int notes_open(struct notes *n, const char *path);
/*
 * Read the lines appended since the last call.  Call show for what the
 * processes leave to urxe run to print: with 0 for a new note, with the count
 * when the count of a repeated note is read.  An open note is only stored.
 */
void notes_read(struct notes *n, void (*show)(struct note *, unsigned int));
void notes_free(struct notes *n);
/* Remove and free the note with index i. */
void notes_remove(struct notes *n, size_t i);
/* Return the first call of n whose source file is known, or NULL. */
const struct call *note_place(const struct note *n);

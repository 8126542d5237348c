/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Suggestions for misspelled words in error messages: the valid word with the
 * least edit distance (optimal string alignment: Levenshtein distance, with
 * transpositions of adjacent characters).  A caller calls nearest_begin()
 * with the misspelled word, nearest_try() for each valid word, and then
 * nearest_text().
 */
#pragma once

#include <stddef.h>

struct nearest {
	const char *text; /* misspelled word, without terminating NUL */
	size_t len;
	const char *word; /* the nearest one so far; NULL: none is near */
	unsigned int distance; /* of word; nearest_try() accepts less */
};

void nearest_begin(struct nearest *n, const char *text, size_t len);
void nearest_try(struct nearest *n, const char *word);

/* Format " (did you mean WORD?)", or "" if no word is near.  Return @buf. */
#define NEAREST_TEXT 96
const char *nearest_text(const struct nearest *n, char buf[NEAREST_TEXT]);

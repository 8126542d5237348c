/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The word that was probably meant: the one with the least edit distance, where
 * two letters that are swapped count once (optimal string alignment).
 */
#pragma once

#include <stddef.h>

struct nearest {
	const char *text; /* that was typed, not ended by 0 */
	size_t len;
	const char *word; /* the nearest one so far, or NULL: none is near */
	unsigned int distance;
};

void nearest_begin(struct nearest *n, const char *text, size_t len);
void nearest_try(struct nearest *n, const char *word);

/* " (did you mean WORD?)", or "" if no word was near. */
#define NEAREST_TEXT 96
const char *nearest_text(const struct nearest *n, char buf[NEAREST_TEXT]);

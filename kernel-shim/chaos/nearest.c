// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Edit distance, for suggestions in error messages (nearest.h). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "nearest.h"

#define WORD_MAX 48 /* longer words are not compared */

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/*
 * The distance may be up to a third of the length; one for words of less than
 * three characters.
 */
void nearest_begin(struct nearest *n, const char *text, size_t len)
{
	*n = (struct nearest){ text, len, NULL, 1 };
	n->distance += len >= 3 ? (unsigned int)len / 3 : 1;
}

/*
 * Return the distance of @a, of length @n, and @b, of length @m, by dynamic
 * programming.  Row i is for the first i characters of @a; the last three
 * rows are kept.  Letter case is ignored, except in transpositions.
 */
static unsigned int distance(const char *a, size_t n, const char *b, size_t m)
{
	unsigned int row[3][WORD_MAX + 1], *now, *last, *before, differ;
	size_t i, j;

	for (j = 0; j <= m; j++)
		row[0][j] = (unsigned int)j;
	for (i = 1; i <= n; i++) {
		now = row[i % 3];
		last = row[(i + 2) % 3];
		before = row[(i + 1) % 3];
		now[0] = (unsigned int)i;
		for (j = 1; j <= m; j++) {
			differ = tolower((unsigned char)a[i - 1]) !=
				 tolower((unsigned char)b[j - 1]);
			now[j] = least(least(now[j - 1], last[j]) + 1,
				       last[j - 1] + differ);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
	}
	return row[n % 3][m];
}

void nearest_try(struct nearest *n, const char *word)
{
	size_t m = strlen(word);
	unsigned int d;

	if (n->len > WORD_MAX || m > WORD_MAX)
		return;
	d = distance(n->text, n->len, word, m);
	if (n->len > 2 && !strncmp(word, n->text, n->len))
		d = 1; /* the text is a prefix of @word */
	if (d >= n->distance)
		return;
	n->distance = d;
	n->word = word;
}

const char *nearest_text(const struct nearest *n, char buf[NEAREST_TEXT])
{
	*buf = '\0';
	if (n->word)
		snprintf(buf, NEAREST_TEXT, " (did you mean %s?)", n->word);
	return buf;
}

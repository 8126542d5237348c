/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A message in pieces, which come in any order: cache lines, words of 8 bytes,
 * or less where its address is not aligned, down to bytes.  A word at an
 * aligned address is one piece, as on every device there is.  Or else in
 * aligned lines of 64 bytes, whose addresses increase.
 */
#pragma once

#include "chaos/chance.h"

#define PIECES_MAX 16 /* of however long a message */

struct pieces {
	uint8_t n, next;
	bool lines; /* aligned ones, in their order */
	uint8_t order[PIECES_MAX];
	uint64_t end[PIECES_MAX]; /* of each, in order of addresses */
};

/* Cut len bytes for addr; one piece if there is nothing to cut. */
void pieces_cut(struct pieces *p, struct chance c, uint64_t addr, uint64_t len,
		bool lines);
/* Once more from the first, in another order if there is one. */
void pieces_again(struct pieces *p, struct chance c);

static inline bool pieces_left(const struct pieces *p)
{
	return p->next < p->n;
}

/* The next one is [*off, *off + the result). */
static inline uint64_t pieces_at(const struct pieces *p, uint64_t *off)
{
	uint8_t i = p->order[p->next];

	*off = i ? p->end[i - 1] : 0;
	return p->end[i] - *off;
}

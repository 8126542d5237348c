/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Division of a message into pieces that are copied one after the other.
 *
 * With the option "place" the pieces come in any order. The cuts are at
 * multiples of 64 or 8 bytes, or of the alignment of the message's address if
 * that is 1, 2 or 4. So if the address is a multiple of 8, a naturally
 * aligned word of up to 8 bytes arrives at once, as on every device. With the
 * option "lines" the cuts are at multiples of 64 bytes and the pieces come in
 * the order of their addresses.
 *
 * The transport (transport.c) uses it, with qp->lock held.
 */
#pragma once

#include "chaos/random.h"

#define PIECES_MAX 16 /* limit for a message of any length */

struct pieces {
	uint8_t n, next;
	bool lines; /* aligned lines, in order */
	uint8_t order[PIECES_MAX];
	uint64_t end[PIECES_MAX]; /* of each piece, in order of addresses */
};

/*
 * Cut a message of @len bytes whose destination is @addr. A message that is
 * too short is one piece.
 */
void pieces_cut(struct pieces *p, struct random_stream c, uint64_t addr,
		uint64_t len, bool lines);
/* Start over with the same pieces, in another order unless p->lines. */
void pieces_restart(struct pieces *p, struct random_stream c);

static inline bool pieces_left(const struct pieces *p)
{
	return p->next < p->n;
}

/* Return the length of the next piece, and its offset in *off. */
static inline uint64_t pieces_at(const struct pieces *p, uint64_t *off)
{
	uint8_t i = p->order[p->next];

	*off = i ? p->end[i - 1] : 0;
	return p->end[i] - *off;
}

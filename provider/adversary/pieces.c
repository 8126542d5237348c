// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Cutting a message into pieces that arrive in any order. See pieces.h. */
#include "pieces.h"

#define LINE 64

/* Purposes of the random numbers of one message. */
enum { DRAW_GRAIN, DRAW_COUNT, DRAW_TAIL, DRAW_CUT, DRAW_ORDER };

/*
 * Return the granularity of the cuts in bytes: 1, 2 or 4 if @addr is aligned
 * to no more than that, else 8 or, for more than a line, perhaps 64.
 */
static uint32_t pieces_grain(struct random_stream c, uint64_t addr,
			     uint64_t len)
{
	if (addr & 7)
		return 1u << __builtin_ctzll(addr);
	return len > LINE && random_below(c, DRAW_GRAIN, 0, 2) ? LINE : 8;
}

/*
 * Insert @end in order, unless it is there or the table is full. @end is not
 * behind the last end.
 */
static void pieces_insert(struct pieces *p, uint64_t end)
{
	uint8_t at, i;

	for (at = 0; p->end[at] < end; at++)
		;
	if (p->end[at] == end || p->n == PIECES_MAX)
		return;
	for (i = p->n++; i > at; i--)
		p->end[i] = p->end[i - 1];
	p->end[at] = end;
}

/*
 * Choose the order of the pieces: by address if p->lines, else a random one
 * (Fisher-Yates shuffle).
 */
static void pieces_shuffle(struct pieces *p, struct random_stream c)
{
	uint8_t i, j, was;

	for (i = 0; i < p->n; i++)
		p->order[i] = i;
	if (p->lines)
		return;
	for (i = p->n - 1; i > 0; i--) {
		j = random_below(c, DRAW_ORDER, i, i + 1);
		was = p->order[i];
		p->order[i] = p->order[j];
		p->order[j] = was;
	}
}

void pieces_cut(struct pieces *p, struct random_stream c, uint64_t addr,
		uint64_t len, bool lines)
{
	uint32_t grain = lines ? LINE : pieces_grain(c, addr, len), i, cuts;
	uint64_t first = grain - addr % grain, places;

	p->n = 1;
	p->next = 0;
	p->lines = lines;
	p->end[0] = len;
	p->order[0] = 0;
	if (len <= first)
		return;
	places = (len - first - 1) / grain + 1;
	/*
	 * often cut off the last unit: programs poll it for the arrival of
	 * the message
	 */
	if (random_below(c, DRAW_TAIL, 0, 2))
		pieces_insert(p, first + (places - 1) * grain);
	cuts = 1 + random_below(c, DRAW_COUNT, 0, PIECES_MAX - 1);
	for (i = 0; i < cuts; i++)
		pieces_insert(p, first + random_draw(c, DRAW_CUT, i) % places *
						 grain);
	pieces_shuffle(p, c);
}

void pieces_restart(struct pieces *p, struct random_stream c)
{
	pieces_shuffle(p, c);
	p->next = 0;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pending async events: a table in the arena for events that could not be
 * written to their FIFO.  Any process that raises an event of this context is
 * a producer; the owner of the arena takes them (engine/cq/event.c), under
 * ctx->lock, and writes them to the FIFO.
 *
 * An entry's word is FIFO number + 1 (32) << 32 | type (31) << 1 | filled
 * (1); 0 is free.
 *
 *	producer: 0 -> word, not filled (acquire)	claims the entry
 *		  store element
 *		  -> word, filled (release)
 *	owner:	  word, filled -> not filled (acquire)	owns the entry
 *		  load element
 *		  -> 0 (release)
 *
 * A process that dies in between leaves an entry that is never filled and
 * never reused.  tests/model/orders.cpp ("kept_events") checks the memory
 * orders.
 */
#pragma once

#include <stdbool.h>

#include "shared/layout.h"

struct kept_event {
	uint32_t fifo, type;
	uint64_t element;
};

/*
 * Store an event.  @fifo is the FIFO number + 1.  @once: if an equal event is
 * pending, do not store another.  False: the table is full.
 */
static inline bool kept_event_put(struct urxe_kept_event *table, uint32_t fifo,
				  uint64_t element, uint32_t type, bool once)
{
	const uint64_t word = (uint64_t)fifo << 32 | type << 1;
	uint64_t was;
	uint32_t i;

	for (i = 0; i < URXE_KEPT_EVENTS; i++) {
		was = load_acquire(&table[i].word);
		if (once && was == (word | 1) &&
		    load_relaxed(&table[i].element) == element)
			return true; /* already pending */
		if (was || !cas_acquire(&table[i].word, &was, word))
			continue;
		store_relaxed(&table[i].element, element);
		store_release(&table[i].word, word | 1);
		return true;
	}
	return false;
}

/* Take the event out of an entry.  False: the entry has none. */
static inline bool kept_event_take(struct urxe_kept_event *k,
				   struct kept_event *e)
{
	uint64_t word = load_relaxed(&k->word);

	if (!(word & 1))
		return false;
	if (!cas_acquire(&k->word, &word, word & ~1ull))
		return false;
	e->fifo = word >> 32;
	e->type = (uint32_t)word >> 1;
	e->element = load_relaxed(&k->element);
	store_release(&k->word, 0);
	return true;
}

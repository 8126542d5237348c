/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Async events that whoever raised them could not write into their FIFO; the
 * owner of the arena does it.  An entry's word is FIFO number + 1 (32) << 32 |
 * type (31) << 1 | filled; 0 is free.
 *
 *	who raises: 0 -> word, not filled (acquire)	claims the entry
 *		    element				fills it
 *		    word, filled (release)
 *	the owner:  word, filled -> not filled (acquire)	has it, alone
 *		    element
 *		    word -> 0 (release)
 *
 * Who dies in between leaves an entry that is not filled, for good.
 */
#pragma once

#include <stdbool.h>

#include "shared/layout.h"

struct kept_event {
	uint32_t fifo, type;
	uint64_t element;
};

/*
 * once: an equal one that waits already stands for this one, too.  False: there
 * is no room.
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
			return true; /* it waits already */
		if (was || !cas_acquire(&table[i].word, &was, word))
			continue;
		store_relaxed(&table[i].element, element);
		store_release(&table[i].word, word | 1);
		return true;
	}
	return false;
}

/* False: there is none in this entry. */
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

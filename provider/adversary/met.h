/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Table of the objects that the adversary knows: the random seed of each
 * object, and for each option how many decisions were made for it. The seed
 * is a function of the process's seed, the kind and the ordinal of the object
 * among those of its kind.
 *
 * An object is identified by its kind and its address. If an object is
 * created at the address of a destroyed one, met_new() reinitializes the
 * entry. Callers are the interposers of the adversary, in any thread, without
 * a lock.
 *
 * The table is a lock-free hash table. An entry is added by compare-and-swap
 * at the head of its bucket and is never removed, so there is neither ABA nor
 * a lock that fork() could leave taken. The swap releases the new entry, and
 * look-ups load the head with acquire; after that `next`, `object` and `kind`
 * do not change. `key` and `turns` are relaxed: the program itself must
 * synchronize the creation of an object with its first use. If two threads
 * look up an unknown object at once, it may get two entries, of which later
 * look-ups find the newer one.
 */
#pragma once

#include "base/atomic.h"
#include "chaos/adversary.h"

enum met_kind { MET_CONTEXT, MET_CQ, MET_QP, MET_SRQ, MET_KINDS };

struct met {
	struct met *next;
	const void *object;
	enum met_kind kind;
	_Atomic uint64_t key; /* a struct chance */
	/* decisions made so far, by option */
	_Atomic uint64_t turns[KNOBS];
};

/* Register @object, which was just created, or reset its entry. */
void met_new(const struct adversary *a, enum met_kind kind, const void *object);
/*
 * Return the entry of @object, which is added if there is none; NULL if there
 * is no memory.
 */
struct met *met_find(const struct adversary *a, enum met_kind kind,
		     const void *object);

static inline struct chance met_chance(const struct met *m)
{
	return (struct chance){ load_relaxed(&m->key) };
}

/*
 * Make the next decision on @m: return whether the option @knob applies.
 * Store the number of this decision, from 0, in *nth unless @nth is NULL. If
 * @m is NULL, the option does not apply.
 */
static inline bool met_turn(const struct adversary *a, struct met *m,
			    enum adversary_knob knob, uint64_t *nth)
{
	uint64_t turn = m ? fetch_add_relaxed(&m->turns[knob], 1) : 0;

	if (nth)
		*nth = turn;
	return m && adversary_meets(a, met_chance(m), knob, turn);
}

/* Return the delay of decision @nth, 0.1 ms to 3.2 ms, in ns. */
uint64_t met_while(const struct met *m, enum adversary_knob knob, uint64_t nth);
/* Sleep for met_while(). errno is kept. */
void met_linger(const struct met *m, enum adversary_knob knob, uint64_t nth);

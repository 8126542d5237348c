/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Objects that the adversary has met: whose chance an object has, and how often
 * it was its turn.  An object is known by where it is in memory; who makes one
 * there says so, and it begins anew.  What is remembered is never forgotten, so
 * no lock is needed, and no fork can be in the way of one.
 */
#pragma once

#include "base/atomic.h"
#include "chaos/adversary.h"

enum met_kind { MET_CONTEXT, MET_CQ, MET_QP, MET_SRQ, MET_KINDS };

struct met {
	struct met *next;
	const void *object;
	enum met_kind kind;
	_Atomic uint64_t key; /* struct chance */
	_Atomic uint64_t turns[KNOBS];
};

/* It was made. */
void met_new(const struct adversary *a, enum met_kind kind, const void *object);
/* NULL: no memory. */
struct met *met_find(const struct adversary *a, enum met_kind kind,
		     const void *object);

static inline struct chance met_chance(const struct met *m)
{
	return (struct chance){ load_relaxed(&m->key) };
}

/* Its next turn: is it met?  *nth, if it is wanted, is the how manieth it was.
 */
static inline bool met_turn(const struct adversary *a, struct met *m,
			    enum adversary_knob knob, uint64_t *nth)
{
	uint64_t turn = m ? fetch_add_relaxed(&m->turns[knob], 1) : 0;

	if (nth)
		*nth = turn;
	return m && adversary_meets(a, met_chance(m), knob, turn);
}

/* ns: 0.1 ms to 3.2 ms. */
uint64_t met_while(const struct met *m, enum adversary_knob knob, uint64_t nth);
/* Sleep so long. */
void met_linger(const struct met *m, enum adversary_knob knob, uint64_t nth);

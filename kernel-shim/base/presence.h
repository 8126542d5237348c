/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Presence: a word that is odd while its owner is inside, for those who take
 * things away that he may be using.
 *
 *	owner				taker
 *	enters: the word is odd		takes the thing away
 *	(here)				(here)
 *	looks whether the thing is	looks whether the word is odd, and waits
 *	there, and uses it		until it has changed
 *	leaves: the word is even
 *
 * Each writes and then reads what the other writes.  One of them sees the
 * other, because these four accesses are seq_cst: in their single order either
 * the owner's look comes after the taking, and he keeps out, or his entering
 * comes before the taker's look, and he is waited for.  So things that are
 * looked up inside are loaded and cleared with seq_cst.
 *
 * If all takers are of the owner's process, he may enter by
 * presence_enter_private() and pay for no locked instruction; takers call
 * presence_barrier() (here).  That is membarrier(2), which runs a full barrier
 * on every thread of the process, as if each owner had one (here); of the four
 * accesses no order is asked.  Where the system has no membarrier there is a
 * barrier on both sides.
 *
 * A word that has changed was left; whoever enters later does not find the
 * thing any more.  An owner that dies inside leaves his word odd: whoever waits
 * for it has to ask, and whoever has it next begins with presence_clear().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "atomic.h"
#include "compiler.h"

struct presence {
	_Atomic uint32_t seq;
};

/* The word is the owner's alone: no read-modify-write is needed. */
static inline uint32_t presence_own(const struct presence *p)
{
	return load_relaxed(&p->seq);
}

static inline void presence_enter(struct presence *p)
{
	exchange_seq_cst(&p->seq, presence_own(p) | 1);
}

/* For takers of things that owners enter for by presence_enter_private(). */
void presence_barrier(void);
extern internal bool presence_cheap; /* owners need no barrier */

/* The same for who has seen that presence_cheap is true; for presence_leave_at(). */
static inline uint32_t presence_enter_cheap(struct presence *p)
{
	const uint32_t seq = presence_own(p) | 1;

	store_relaxed(&p->seq, seq);
	atomic_signal_fence(memory_order_seq_cst);
	return seq;
}

static inline void presence_enter_private(struct presence *p)
{
	store_relaxed(&p->seq, presence_own(p) | 1);
	if (__builtin_expect(presence_cheap, 1))
		atomic_signal_fence(memory_order_seq_cst);
	else
		presence_barrier();
}

/* He is through with what he found, and comes in anew. */
static inline void presence_move(struct presence *p)
{
	exchange_seq_cst(&p->seq, presence_own(p) + 2);
}

static inline void presence_leave(struct presence *p)
{
	store_release(&p->seq, presence_own(p) + 1);
}

/* The same, where he has not moved. */
static inline void presence_leave_at(struct presence *p, uint32_t seq)
{
	store_release(&p->seq, seq + 1);
}

/* Nobody is inside: whoever was is dead. */
static inline void presence_clear(struct presence *p)
{
	store_release(&p->seq, (presence_own(p) + 1) & ~1u);
}

static inline bool presence_is_inside(const struct presence *p)
{
	return load_seq_cst(&p->seq) & 1;
}

/*
 * Until who is inside now has left, or is dead (if that is asked).  For a moment
 * it gives way to others, for that is how long most stay; then it sleeps.
 */
void presence_wait(const struct presence *p, bool (*is_dead)(void *),
		   void *arg);

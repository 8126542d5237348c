/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Guards: taking things away from requesters that may be using them.
 *
 * A requester says in its guard what of others' it is about to use, raises the
 * guard (a word of presence in dev->guard[]), reads keys and connection words
 * (seq_cst), touches memory, and lowers the guard.  Whoever takes something
 * away clears its word (seq_cst) and then waits for the guards that name it;
 * base/presence.h has the argument.  So a requester that is stopped in the
 * middle holds up those alone who take away what it is at.
 *
 * What a guard names: its own context always, whose lkeys and CQs it uses; the
 * QP that answers (dest); the context whose receives that QP takes (rx; in XRC
 * the SRQ's, which is also the one of the keys), with SRQ, CQ and PD; and
 * what is used of that context: receives or not, and no key, one, or any, for
 * which lkeys a receive names is not known before it is taken (windows have none).
 *
 * The names are stored (release) before the guard is raised or moved, when the
 * requester has done with what they named before.  Who reads them finds those of
 * the presence that he saw, or later ones, and then that one is over.  A name that
 * says less than the one before may be stored at any time.
 *
 * A guard's owner is a process (struct urxe_process): when that is dead, the
 * guard holds nobody up, whoever else still has its context.  What it asked a
 * bouncer to do may be under way: those are waited for, too (bounce_slot.h).
 *
 * Who holds the wire has a guard as well, in his seat (dev->wire.seat[]) and in no
 * QP's name: it says of his what a requester's says, but that nothing of his own
 * context is used.
 *
 * tests/model/guard.pml is this, checked.
 *
 * Who takes away does not look at all guards.  Those of 64 QPs have a word that
 * says whether any of them may be up, busy, and one that is idle is passed over:
 *
 *	requester			taker			who doubts
 *	raises the guard		takes it away		busy -> doubted
 *	unless the word is busy,	(not if the word is	if all guards are
 *	makes it busy			idle:) looks at the	down: doubted ->
 *	looks for the thing		guards			idle
 *
 * All of that is seq_cst.  A requester who is inside has seen the word busy, or
 * made it so, after he raised his guard.  Who doubts looks at the guards after
 * he said so: a requester who still saw it busy has his guard up by then, or was
 * through; one who did not has made it busy again, and the doubt is void: the
 * word counts doubts, so that one cannot be taken for another.  So when the word
 * gets to be idle nobody is inside, and whoever raises a guard afterwards says
 * busy before he looks for the thing.  Where the taker finds the word idle the
 * thing was taken away before that, and is not found.  What those who left did
 * before is seen by whoever finds it idle, through him who found their guards
 * down.
 *
 * A requester pays with a load of a word that does not change while he works.
 * One doubts the word if he finds all guards down and nobody has entered since he
 * looked last (quiesce.c), so that it costs those who work nothing.
 *
 * tests/model/guard_group.pml is that, checked.
 */
#pragma once

#include "layout.h"

/* What is used of the other side; one key, or any of them, or none. */
#define GUARD_NOTHING 0u
#define GUARD_ONE_KEY(key) (1u << 31 | URXE_KEY_ENTRY(key))
#define GUARD_RECEIVE (1u << 30) /* its receives, and the CQ they fill */
#define GUARD_ANY_LKEY (1u << 29)
#define GUARD_ANY_RKEY (1u << 28)
#define GUARD_SEND (GUARD_RECEIVE | GUARD_ANY_LKEY)

/* What is taken away. */
struct guard_thing {
	enum {
		GUARD_OF_MR,
		GUARD_OF_MW,
		GUARD_OF_QP,
		GUARD_OF_SRQ,
		GUARD_OF_CQ,
	} kind;
	uint32_t slot; /* its context */
	uint32_t id; /* the key, the QPN, the index */
	uint32_t pd; /* of an MR */
};

static inline void guard_name(struct urxe_guard *g, uint32_t uses)
{
	store_release(&g->uses, uses);
}

static inline bool guard_names(const struct urxe_guard *g, uint32_t uses)
{
	return load_relaxed(&g->uses) == uses;
}

#define GUARD_NO_RX URXE_MAX_CTX
#define GUARD_NO_SRQ URXE_MAX_SRQ

/* A new QP's: nobody is inside. */
static inline void guard_init(struct urxe_guard *g)
{
	store_relaxed(&g->uses, GUARD_NOTHING);
	store_relaxed(&g->dest, 0);
	store_relaxed(&g->rx, GUARD_NO_RX);
}

#define GUARD_BUSY 1u
#define GUARD_DOUBTED 2u
#define GUARD_DOUBT 4u /* one more of them */

/* owner: process_id(); group: the word of its 64 */
static inline void guard_raise(struct urxe_guard *g, _Atomic uint64_t *group,
			       uint32_t owner)
{
	store_relaxed(&g->owner, owner);
	presence_enter(&g->requester);
	if (__builtin_expect(!(load_seq_cst(group) & GUARD_BUSY), 0))
		fetch_or_seq_cst(group, GUARD_BUSY);
}

/* May one of its guards be up?  seq_cst, after the thing was taken away. */
static inline bool guard_group_is_busy(const _Atomic uint64_t *group)
{
	return load_seq_cst(group) & (GUARD_BUSY | GUARD_DOUBTED);
}

/* Before one looks whether all are down; *doubt is for guard_group_idle(). */
static inline bool guard_group_doubt(_Atomic uint64_t *group, uint64_t *doubt)
{
	uint64_t was = load_relaxed(group);

	*doubt = ((was + GUARD_DOUBT) & ~(uint64_t)GUARD_BUSY) | GUARD_DOUBTED;
	return cas_seq_cst(group, &was, *doubt);
}

/* They were, since it was doubted. */
static inline void guard_group_idle(_Atomic uint64_t *group, uint64_t doubt)
{
	cas_seq_cst(group, &doubt, doubt & ~(uint64_t)GUARD_DOUBTED);
}

static inline void guard_lower(struct urxe_guard *g)
{
	presence_leave(&g->requester);
}

/* The receives that a responder takes, as indices in tables of one context. */
struct guard_rx {
	uint32_t slot; /* the context, or GUARD_NO_RX */
	uint32_t srq; /* or GUARD_NO_SRQ */
	uint32_t cq;
	uint32_t pd; /* of the lkeys */
};

/*
 * Name another responder in a guard that is in use.  The caller looks up the
 * responder, its SRQ and its CQ after this, and uses them only if they are the
 * named ones.
 */
static inline void guard_turn_to(struct urxe_guard *g, uint32_t qpn,
				 const struct guard_rx *rx)
{
	store_release(&g->dest, qpn);
	store_release(&g->rx, rx->slot);
	store_release(&g->srq, rx->srq);
	store_release(&g->cq, rx->cq);
	store_release(&g->pd, rx->pd);
	presence_move(&g->requester);
}

/* It is up, and other memory is named from now on. */
static inline void guard_move(struct urxe_guard *g, uint32_t uses)
{
	guard_name(g, uses);
	presence_move(&g->requester);
}

/*
 * It is up, and names keys as well, which are looked up from now on.  Whoever
 * took one away and does not see its name cleared it before, so that it is not
 * found.
 */
static inline void guard_add(struct urxe_guard *g, uint32_t uses)
{
	exchange_seq_cst(&g->uses, uses);
}

static inline bool guard_is_of_key(uint32_t uses, bool rx, uint32_t rkey)
{
	return (uses & ~GUARD_RECEIVE) == GUARD_ONE_KEY(rkey) ||
	       (rx && uses & GUARD_ANY_RKEY);
}

/* May whoever has this guard up be using t?  own: the guard's context. */
static inline bool guard_concerns(const struct urxe_guard *g, uint32_t own,
				  const struct guard_thing *t)
{
	uint32_t uses = load_acquire(&g->uses);
	bool rx = load_acquire(&g->rx) == t->slot;
	bool receives = rx && uses & GUARD_RECEIVE;

	switch (t->kind) {
	case GUARD_OF_MR:
		return own == t->slot ||
		       (rx && uses & GUARD_ANY_LKEY &&
			load_acquire(&g->pd) == t->pd) ||
		       guard_is_of_key(uses, rx, t->id);
	case GUARD_OF_MW:
		return guard_is_of_key(uses, rx, t->id);
	case GUARD_OF_QP:
		return uses && load_acquire(&g->dest) == t->id;
	case GUARD_OF_SRQ:
		return receives && load_acquire(&g->srq) == t->id;
	case GUARD_OF_CQ:
		return own == t->slot ||
		       (receives && load_acquire(&g->cq) == t->id);
	}
	return true;
}

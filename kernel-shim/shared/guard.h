/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A guard is a hazard pointer (Michael, 2004) for objects that other
 * processes own.  Each QP number has one, in dev->guard[], and each socket
 * owner of the wire has one in its owner slot, dev->wire.owner_slot[].
 * Destroyers wait only for guards that name their object, so a requester that
 * is stopped delays only the destroyers of what it uses.
 *
 * To raise a guard is to make its in-use flag odd (base/presence.h): its
 * owner enters a critical section.  To lower it is to make the flag even.  To
 * move it is to lower and raise it in one step.
 *
 *	requester			destroyer
 *	store what it will use		invalidate the object (seq_cst)
 *	raise the guard			for each raised guard that names the
 *	load keys, connection word	object: wait until its in-use flag
 *	(seq_cst), copy			changes, it names other objects, or
 *	lower the guard			its process is dead
 *
 * The requester calls these functions under the lock of its QP; the thread
 * that reads the wire's socket calls them for its own guard.  The destroyer's
 * side is engine/run/quiesce.c: deregistration of MRs, invalidation of MWs,
 * destruction of QPs, SRQs and CQs, resizing of SRQs and CQs.
 *
 * A guard names:
 *
 *	owner	the process (struct urxe_process).  If it is dead the guard is
 *		ignored, even if another process shares its context.  0: the
 *		process has no id; a destroyer then checks whether the QP's
 *		context is live.  A copy that a dead requester requested from
 *		a bouncer may still be in progress; the destroyer also waits
 *		for that copy (bounce_slot.h)
 *	dest	the responder's QP number
 *	rx	the context that has the responder's receives and keys: the
 *		QP's, or for XRC the SRQ's
 *	srq, cq, pd	of that context: what the receives belong to
 *	uses	GUARD_*: whether it uses receives, and which keys: none, one,
 *		or any rkey or lkey.  The lkeys of a receive are unknown until
 *		the receive is taken.  Memory windows have no lkey
 *
 * The guard of a QP also names, implicitly, all MRs and CQs of the QP's own
 * context.  The guard of a socket owner does not, since a socket owner uses
 * nothing of its own context.
 *
 * Memory order: the handshake is that of base/presence.h.  The names are
 * stored (release) before the guard is raised or moved, and only when the
 * objects named before are no longer used.  So a destroyer that sees the
 * guard raised reads the names of that critical section or of a later one;
 * then the earlier one has been exited.  Names that cover less than the
 * current ones may be stored at any time.  Keys may be added within a
 * critical section before they are looked up (guard_add()).
 *
 * A damaged in-use flag would block destroyers for ever.  A destroyer that
 * waits long therefore has the owner's service thread verify the guard
 * (qp_check_guard()).
 *
 * tests/model/guard.pml checks the protocol, tests/model/orders.cpp ("guard",
 * "directory", "quiesce_try") the memory orders.
 *
 * Groups.  Guards of QPs are grouped by 64.  Each group has a summary word,
 * so that a destroyer skips idle groups:
 *
 *	idle		neither GUARD_BUSY nor GUARD_RECHECK: no guard is
 *			raised by a requester that has begun its lookups
 *	busy		GUARD_BUSY, with or without GUARD_RECHECK: guards may
 *			be raised
 *	GUARD_RECHECK(n)
 *			GUARD_RECHECK, without GUARD_BUSY: a thread scans the
 *			guards; n counts such scans
 *
 *	requester		destroyer	     scanning thread
 *	raise the guard		invalidate object    busy -> GUARD_RECHECK(n)
 *	unless busy: -> busy	unless idle:	     if no guard is raised:
 *	look objects up		  read the guards    GUARD_RECHECK(n) -> idle
 *
 * All these accesses are seq_cst.  A requester that enters after the store of
 * GUARD_RECHECK(n) either has raised its guard before the scan reads it, or
 * stores busy, which makes the final compare-and-swap fail.  The counter n
 * prevents ABA.  So if the word becomes idle, no requester uses objects, and
 * a requester that enters later stores busy before its lookups.  If a
 * destroyer reads idle, its invalidation precedes those lookups in the
 * seq_cst order, and they fail.  What earlier requesters did happens before
 * the destroyer's read, through the thread that scanned their guards and
 * stored idle.
 *
 * A requester pays one load of a word that does not change while it works.  A
 * destroyer starts a scan only if no guard is raised and none was since the
 * last time it read the group (engine/run/quiesce.c).
 *
 * tests/model/guard_group.pml checks this, tests/model/orders.cpp
 * ("guard_group") the memory orders.
 */
#pragma once

#include "layout.h"

/* urxe_guard.uses: what is used of the responder's side */
#define GUARD_NOTHING 0u
#define GUARD_ONE_KEY(key) (1u << 31 | URXE_KEY_ENTRY(key))
#define GUARD_RECEIVE (1u << 30) /* its receives, and their CQ */
#define GUARD_ANY_LKEY (1u << 29)
#define GUARD_ANY_RKEY (1u << 28)
#define GUARD_SEND (GUARD_RECEIVE | GUARD_ANY_LKEY)

/* An object to be destroyed */
struct guard_object {
	enum {
		GUARD_OF_MR,
		GUARD_OF_MW,
		GUARD_OF_QP,
		GUARD_OF_SRQ,
		GUARD_OF_CQ,
	} kind;
	uint32_t slot; /* slot of its context */
	uint32_t id; /* MR, MW: key; QP: QP number; SRQ, CQ: index */
	uint32_t pd; /* PD of an MR */
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

/* Initialize the names of a new QP's guard, which is lowered. */
static inline void guard_init(struct urxe_guard *g)
{
	store_relaxed(&g->uses, GUARD_NOTHING);
	store_relaxed(&g->dest, 0);
	store_relaxed(&g->rx, GUARD_NO_RX);
}

#define GUARD_BUSY 1u
#define GUARD_RECHECK 2u
#define GUARD_RECHECK_ONE 4u /* the unit of the scan counter */

/*
 * Raise the guard.  @owner is process_id(), @group the summary word of the
 * guard's group.  Call guard_name() before, and look the objects up (seq_cst)
 * after guard_raise().
 */
static inline void guard_raise(struct urxe_guard *g, _Atomic uint64_t *group,
			       uint32_t owner)
{
	store_relaxed(&g->owner, owner);
	presence_enter(&g->requester);
	if (__builtin_expect(!(load_seq_cst(group) & GUARD_BUSY), 0))
		fetch_or_seq_cst(group, GUARD_BUSY);
}

/*
 * Return whether a guard of the group may be raised.  Called after the object
 * was invalidated (seq_cst).
 */
static inline bool guard_group_is_busy(const _Atomic uint64_t *group)
{
	return load_seq_cst(group) & (GUARD_BUSY | GUARD_RECHECK);
}

/*
 * Store GUARD_RECHECK(n).  On success the caller scans the guards and, if
 * none is raised, passes *word to guard_group_idle().  False: the word has
 * changed.
 */
static inline bool guard_group_recheck(_Atomic uint64_t *group,
				       uint64_t *recheck)
{
	uint64_t was = load_relaxed(group);

	*recheck = ((was + GUARD_RECHECK_ONE) & ~(uint64_t)GUARD_BUSY) |
		   GUARD_RECHECK;
	return cas_seq_cst(group, &was, *recheck);
}

/* Store idle, unless the word has changed since guard_group_recheck(). */
static inline void guard_group_idle(_Atomic uint64_t *group, uint64_t recheck)
{
	cas_seq_cst(group, &recheck, recheck & ~(uint64_t)GUARD_RECHECK);
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
 * Name another responder in a raised guard, and move the guard.  The caller
 * looks up the responder, its SRQ and its CQ after this, and uses them only
 * if they are the named ones.
 */
static inline void guard_retarget(struct urxe_guard *g, uint32_t qpn,
				  const struct guard_rx *rx)
{
	store_release(&g->dest, qpn);
	store_release(&g->rx, rx->slot);
	store_release(&g->srq, rx->srq);
	store_release(&g->cq, rx->cq);
	store_release(&g->pd, rx->pd);
	presence_move(&g->requester);
}

/*
 * Name other keys of the same responder; the guard is raised, and moves.
 * Keys have to be looked up anew.
 */
static inline void guard_move(struct urxe_guard *g, uint32_t uses)
{
	guard_name(g, uses);
	presence_move(&g->requester);
}

/*
 * Name more keys; the guard is raised, and what it named before stays named.
 * The added keys are looked up afterwards.  A destroyer that does not see its
 * key named has invalidated it before (seq_cst), so the lookup fails.
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

/*
 * Return whether the owner of this guard, which is raised, may use @t.  @own
 * is the context slot of the guard's QP, URXE_MAX_CTX for a socket owner.
 */
static inline bool guard_concerns(const struct urxe_guard *g, uint32_t own,
				  const struct guard_object *t)
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

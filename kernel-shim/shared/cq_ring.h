/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The completion ring: many producers, in any process, and one poller.
 *
 * Position p lives in slot p mod depth.  A slot has two words, each position (32)
 * << 32 | owner (24) << 8 | state (8): the claim, in an array of its own, which
 * only producers write, and the one that its entry begins with, at which the
 * poller looks all the time.
 *
 *   claim CLAIMED(p, owner)	process `owner` fills it, or has done so
 *   claim MOVED(p)		the ring ends here: it was resized, go to the new one
 *   entry READY(p)		filled
 *
 * A slot is free for p while its claim is of p - depth and the poller has polled
 * that: head, which he stores (release) when he has read an entry, is past it.  A
 * producer takes such a claim to CLAIMED(p) by compare-and-swap, fills the entry
 * and stores READY(p) (release: the poller sees it filled).  The poller reads
 * the entry at his head when that is READY(head).  If the slot at the tail is not
 * free the ring is full: an overrun, never a wait.
 *
 * So between two producers' processes and a poller there is one line that goes
 * to and fro for a completion, the entry's.  head_seen is what a producer last
 * saw of head, for all of them: head itself is looked at once in a lap.  (Who saw
 * it acquired it, and stores head_seen with release: who acquires that may write
 * over what was read.)  It may lag behind head, and then it is looked at again.
 *
 * tail_hint only says where to start looking.  It never runs ahead of the
 * first free position, because it is stored after that position was claimed;
 * it may lag, and then the producer walks over taken slots.  It lags by laps
 * only if it was damaged; then a slot's own position says where to go on.  Who
 * walks for too long has met damage, and to him the ring is full.
 *
 * The owner is what has room of the id of a process (URXE_PROCESS_BRIEF): its
 * context may live on, with a child of it, and its context's slot may be
 * another one's by the time that somebody asks.  0: a process that had no id.
 *
 * A producer that dies between claim and READY would stop the poller for
 * ever.  So a poller whose head is not READY looks at its claim now and then; if
 * that is of a position that a dead process has, and the entry still is not READY,
 * he goes on without it.  (Only the dead could have written there.)  Nothing
 * waits for the dead.
 *
 * Resize.  A ring is replaced, never changed.  The resizer, who holds the
 * poller's lock, makes a new ring with positions from 0 and a tail_hint of
 * its own, stores its place in next_ring, and takes the claim at the old ring's
 * tail to MOVED(p) by compare-and-swap (release: next_ring is seen by whoever
 * sees MOVED).  Positions are claimed in order and p was free, so nothing
 * beyond p was claimed: the old ring ends at p, for good.  A full ring has no
 * free slot to end with; the resizer makes one by polling into its backlog.
 * A producer that meets MOVED goes on in next_ring.  Then the resizer stores
 * ring (seq_cst) and waits for the guards (guard.h).  A producer loads ring
 * anew (seq_cst) for each completion, its guard up: so after that wait nobody
 * comes to the old ring any more.  The resizer polls it up to p into the
 * backlog, waiting for what is CLAIMED unless the claimer is dead, and frees
 * it.  The backlog is polled before the new ring.  No completion is lost or
 * seen twice, and those of one producer stay in order.
 *
 * So whoever produces into a CQ holds a raised guard from before it loads
 * ring until it has published.
 *
 * Events.  The poller arms (seq_cst store) and then looks once more what is
 * READY; the producer makes READY (seq_cst) and then looks at arm.  One of the
 * two sees the other.  A CQ without a channel needs no more than release here.
 * Which events are raised when is said in provider/engine/cq_arm.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "shared/layout.h"

enum cqe_state { CQE_CLAIMED = 1, CQE_READY, CQE_MOVED };

static inline uint64_t cqe_word(uint32_t pos, uint32_t owner,
				enum cqe_state state)
{
	return (uint64_t)pos << 32 | (uint64_t)owner << 8 | state;
}

static inline uint32_t cqe_pos(uint64_t word)
{
	return word >> 32;
}

static inline enum cqe_state cqe_state(uint64_t word)
{
	return word & 0xff;
}

static inline uint32_t cqe_owner(uint64_t word)
{
	return word >> 8 & 0xffffff;
}

/* What a ring takes: its entries, then their claims. */
static inline uint64_t cq_ring_bytes(uint32_t log)
{
	return (sizeof(struct urxe_cqe) + sizeof(uint64_t)) << log;
}

/* A ring as somebody sees it who has found it sound. */
struct cq_ring {
	struct urxe_cqe *entry;
	_Atomic uint64_t *claim;
	uint32_t mask; /* entries - 1 */
	_Atomic uint32_t *tail_hint, *head_seen, *head;
};

/* At base, of 1 << log entries; sh: where its positions are. */
static inline void cq_ring_at(struct cq_ring *r, void *base, uint32_t log,
			      struct urxe_cq_sh *sh, uint32_t parity)
{
	r->entry = (struct urxe_cqe *)base;
	r->claim = (_Atomic uint64_t *)(void *)(r->entry + (1ull << log));
	r->mask = (1u << log) - 1;
	r->tail_hint = &sh->tail_hint[parity];
	r->head_seen = &sh->head_seen[parity];
	r->head = &sh->head[parity];
}

/* Nobody has seen it yet; its first position is `first`. */
static inline void cq_ring_init(const struct cq_ring *r, uint32_t first)
{
	uint32_t i, before;

	for (i = 0; i <= r->mask; i++) {
		before = first + i - r->mask - 1;
		store_relaxed(&r->claim[before & r->mask],
			      cqe_word(before, 0, CQE_CLAIMED));
		store_relaxed(&r->entry[before & r->mask].word,
			      cqe_word(before, 0, CQE_READY));
	}
	store_relaxed(r->tail_hint, first);
	store_relaxed(r->head_seen, first);
	store_relaxed(r->head, first);
}

/* Is word, which may be anything, a place that a ring can be in? */
static inline bool cq_ring_fits(uint64_t word)
{
	uint32_t log = URXE_CQ_LOG(word);

	return log <= URXE_CQ_MAX_LOG &&
	       URXE_CQ_OFFSET(word) - URXE_HEAP_OFFSET <=
		       URXE_ARENA_SIZE - URXE_HEAP_OFFSET - cq_ring_bytes(log);
}

/* An entry, and the position that it is taken for. */
struct cq_slot {
	struct urxe_cqe *cqe;
	uint32_t pos;
};

enum cq_claim { CQ_CLAIMED, CQ_FULL, CQ_MOVED };

/*
 * How far a producer walks: from any slot to the tail it is a ring or two, and
 * others may be faster than he for a while.
 */
#define CQ_RING_WALK(mask) (4 * (mask) + 4096)

/* Has the poller done with what was in the slot of position t before? */
static inline bool cq_ring_has_room(const struct cq_ring *r, uint32_t t)
{
	uint32_t head = load_acquire(r->head_seen);

	if (t - head <= r->mask)
		return true;
	/* acquire: he has read those entries */
	head = load_acquire(r->head);
	store_release(r->head_seen, head);
	return t - head <= r->mask;
}

/* Take the free slot at the tail to a state: CQ_CLAIMED, and *out is it. */
static inline enum cq_claim cq_ring_take(const struct cq_ring *r,
					 uint32_t owner, enum cqe_state to,
					 memory_order order,
					 struct cq_slot *out)
{
	uint32_t t = load_relaxed(r->tail_hint), ahead, steps;
	_Atomic uint64_t *c;
	uint64_t w;

	for (steps = 0; steps < CQ_RING_WALK(r->mask); steps++, t++) {
		c = &r->claim[t & r->mask];
		w = load_relaxed(c);
		while (cqe_pos(w) == t - r->mask - 1 &&
		       cqe_state(w) == CQE_CLAIMED) {
			if (!cq_ring_has_room(r, t)) {
				/* or it was taken, and polled, meanwhile */
				if (load_relaxed(c) == w)
					return CQ_FULL;
				w = load_relaxed(c);
				continue;
			}
			if (!atomic_compare_exchange_strong_explicit(
				    c, &w, cqe_word(t, owner, to), order,
				    memory_order_relaxed))
				continue;
			out->cqe = &r->entry[t & r->mask];
			out->pos = t;
			return CQ_CLAIMED;
		}
		if (cqe_state(w) == CQE_MOVED) {
			/* acquire: next_ring was stored before it */
			load_acquire(c);
			return CQ_MOVED;
		}
		ahead = cqe_pos(w) - t;
		/* a hint that was damaged, or the word was */
		if ((int32_t)ahead < 0)
			break;
		/* all up to a lap before that position was taken */
		if (ahead > r->mask + 1)
			t += ahead - (r->mask + 1);
	}
	return CQ_FULL;
}

/* The same where the hint says, if that is free and nobody is faster. */
static inline bool cq_ring_claim_hinted(const struct cq_ring *r,
					uint32_t owner, struct cq_slot *out)
{
	_Atomic uint32_t *const hint = r->tail_hint;
	const uint32_t t = load_relaxed(hint), mask = r->mask;
	_Atomic uint64_t *c = &r->claim[t & mask];
	uint64_t w = load_relaxed(c);

	if (cqe_pos(w) != t - mask - 1 || cqe_state(w) != CQE_CLAIMED ||
	    t - load_acquire(r->head_seen) > mask ||
	    !atomic_compare_exchange_strong_explicit(
		    c, &w, cqe_word(t, owner, CQE_CLAIMED),
		    memory_order_relaxed, memory_order_relaxed))
		return false;
	store_relaxed(hint, t + 1);
	out->cqe = &r->entry[t & mask];
	out->pos = t;
	return true;
}

/* Take the next entry.  On CQ_CLAIMED it is *out. */
static inline enum cq_claim cq_ring_claim(const struct cq_ring *r,
					  uint32_t owner, struct cq_slot *out)
{
	enum cq_claim got = cq_ring_take(r, owner, CQE_CLAIMED,
					 memory_order_relaxed, out);

	if (got == CQ_CLAIMED)
		store_relaxed(r->tail_hint, out->pos + 1);
	return got;
}

/*
 * End the ring at its tail: true, and *pos is where, or false while the ring
 * is full.
 */
static inline bool cq_ring_close(const struct cq_ring *r, uint32_t *pos)
{
	struct cq_slot s;

	if (cq_ring_take(r, 0, CQE_MOVED, memory_order_release, &s) !=
	    CQ_CLAIMED)
		return false;
	*pos = s.pos;
	return true;
}

/* The words of the slot that was claimed for position i last. */
static inline const char *cq_slot_invalid(uint64_t claim, uint64_t entry,
					  uint32_t i, uint32_t mask)
{
	if (cqe_pos(claim) != i || (cqe_pos(entry) - i) & mask)
		return "an entry is not of the lap that its neighbours are of";
	if ((cqe_state(claim) != CQE_CLAIMED &&
	     cqe_state(claim) != CQE_MOVED) ||
	    cqe_state(entry) != CQE_READY)
		return "an entry has a state that there is not";
	if (cqe_owner(entry) ||
	    (cqe_state(claim) == CQE_MOVED && cqe_owner(claim)))
		return "an entry that nobody claimed has an owner";
	if ((int32_t)(cqe_pos(entry) - i) > 0)
		return "an entry was filled that nobody had claimed";
	return NULL;
}

/*
 * Is it a ring that this protocol can have left?  NULL, or what is wrong.  Of a
 * ring in use only a repeated answer counts: it changes while it is read.
 */
static inline const char *cq_ring_invalid(const struct cq_ring *r)
{
	uint32_t i, first = cqe_pos(load_acquire(&r->claim[0]));
	const char *why;
	uint64_t w;

	/* the claims are of the last positions, as many as there are */
	for (i = 1; i <= r->mask; i++) {
		w = load_acquire(&r->claim[i]);
		if ((int32_t)(cqe_pos(w) - first) < 0)
			first = cqe_pos(w);
	}
	for (i = first; i - first <= r->mask; i++) {
		w = load_acquire(&r->claim[i & r->mask]);
		why = cq_slot_invalid(
			w, load_acquire(&r->entry[i & r->mask].word), i,
			r->mask);
		if (why)
			return why;
		if (cqe_state(w) == CQE_MOVED && i - first != r->mask)
			return "an entry was taken behind the ring's end";
	}
	return NULL;
}

static inline bool cq_ring_valid(const struct cq_ring *r)
{
	return !cq_ring_invalid(r);
}

/* Publish a claimed entry: release, or seq_cst where arm is looked at next. */
static inline void cq_ring_publish(struct urxe_cqe *e, uint32_t pos,
				   memory_order order)
{
	atomic_store_explicit(&e->word, cqe_word(pos, 0, CQE_READY), order);
}

static inline bool cq_ring_is_ready(const struct urxe_cqe *e, uint32_t pos)
{
	return load_acquire(&e->word) == cqe_word(pos, 0, CQE_READY);
}

/* Is somebody filling that entry, or was he, when he died?  word is its claim. */
static inline bool cq_ring_is_claimed(uint64_t word, uint32_t pos)
{
	return cqe_pos(word) == pos && cqe_state(word) == CQE_CLAIMED;
}

/* All before head were read. */
static inline void cq_ring_release(const struct cq_ring *r, uint32_t head)
{
	store_release(r->head, head);
}

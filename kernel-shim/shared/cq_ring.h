/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The completion ring: a bounded MPSC queue, whose slots have sequence
 * numbers (similar to Vyukov's bounded MPMC queue).  Producers are requesters
 * in any process, each with its guard raised (guard.h), and the owner's
 * flushes.  The one consumer is the poller, inside the gate of its CQ
 * (engine/core/lock.h).
 *
 * Position p is in slot p mod depth.  A slot has two words, each position
 * (32) << 32 | owner (24) << 8 | state (8): the claim, in an array of its
 * own, which only producers write, and the first word of the CQE, which the
 * poller polls.
 *
 *	claim CLAIMED(p, owner)	process `owner` fills the CQE, or did
 *	claim MOVED(p)		resized: the ring ends at p, continue in the
 *				new ring
 *	CQE READY(p)		the CQE is filled
 *
 * A slot is free for p if its claim has position p - depth and the poller has
 * polled that position, so that head is past it.  The producer changes such a
 * claim to CLAIMED(p) by compare-and-swap, fills the CQE and stores READY(p)
 * (release).  The poller reads the CQE at head if it is READY(head)
 * (acquire), and then stores head (release).  If the slot at the tail is not
 * free, the ring is full.  That is a CQ overrun; producers never wait.
 *
 * Cache lines: per completion, only the line of the CQE moves between the
 * producer's CPU and the poller's.  Producers share head_seen, a copy of
 * head, and load head itself about once per lap.  A producer loads head with
 * acquire and stores head_seen with release, so that a producer that acquires
 * head_seen may overwrite what the poller has read.  head_seen may lag behind
 * head; then head is loaded again.
 *
 * tail_hint is where a producer starts to search for the tail.  It is never
 * past the first free position, because it is stored after the claim of the
 * position before.  It may lag; then the producer walks over claimed slots.
 * It lags by laps only if it was overwritten by a defective process; then the
 * position in a slot's claim says where to continue.  The walk is bounded by
 * CQ_RING_WALK(); after that the ring counts as full.
 *
 * The owner in a claim is URXE_PROCESS_BRIEF() of the id of the producer's
 * process, and 0 if the process has no id.  A context slot would not do: a
 * context may outlive the process, in a forked child, and its slot may be
 * reused.
 *
 * Producer death.  A producer that dies between CLAIMED and READY would block
 * the poller.  A poller whose head is not READY therefore checks the claim
 * from time to time.  If the claim is CLAIMED(head), its owner is dead, and
 * the CQE is still not READY, the poller skips the position.  Only the dead
 * process could have written to that CQE.
 *
 * Resize.  A ring is replaced, never changed.  The resizer holds the CQ's
 * lock and gate, as a poller does:
 *
 *	1.  initialize a new ring, whose positions start at 0, with its own
 *	    tail_hint, head_seen and head (URXE_CQ_PARITY)
 *	2.  store its word in next_ring
 *	3.  compare-and-swap the claim at the old ring's tail to MOVED(p)
 *	    (release: a producer that sees MOVED sees next_ring)
 *	4.  store ring (seq_cst), and wait for the guards that name the CQ
 *	5.  poll the old ring up to p into the backlog, which is polled before
 *	    the new ring, and free the old ring
 *
 * Positions are claimed in order and p was free, so no position past p is
 * claimed: the old ring ends at p for good.  If the ring is full it has no
 * free slot for MOVED; the resizer makes one by polling into the backlog.  A
 * producer that meets MOVED continues in next_ring.  A producer loads ring
 * (seq_cst) for each completion, with its guard raised from before that load
 * until it has published.  So after step 4 no producer is in the old ring,
 * and what is CLAIMED and not READY then was claimed by a dead process.  No
 * completion is lost or seen twice, and those of one producer stay in order.
 *
 * Events (a Dekker handshake).  The poller stores arm (seq_cst) and then
 * checks once more which CQEs are READY.  The producer stores READY (seq_cst)
 * and then loads arm.  One of them sees the other.  If the CQ has no channel,
 * release is sufficient for READY.  engine/poll/cq_arm.h says which completions
 * raise events.
 *
 * tests/model/cq_ring.pml checks the protocol, with producers that die and a
 * resize; tests/model/orders.cpp ("cq_ring") the memory orders, except those
 * of arming; tests/unit/test_cq_ring.c the code.
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

/* Bytes of a ring: its CQEs, then their claims. */
static inline uint64_t cq_ring_bytes(uint32_t log)
{
	return (sizeof(struct urxe_cqe) + sizeof(uint64_t)) << log;
}

/* A ring as this process has mapped it, after cq_ring_fits(). */
struct cq_ring {
	struct urxe_cqe *entry;
	_Atomic uint64_t *claim;
	uint32_t mask; /* depth - 1 */
	_Atomic uint32_t *tail_hint, *head_seen, *head;
};

/*
 * Describe the ring of 1 << @log entries at @base.  @parity selects which of
 * the two sets of positions in @sh is its own.
 */
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

/* Make the ring empty, with first position @first, before it is published. */
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

/* Return whether @word, which may be damaged, names a ring in the heap. */
static inline bool cq_ring_fits(uint64_t word)
{
	uint32_t log = URXE_CQ_LOG(word);

	return log <= URXE_CQ_MAX_LOG &&
	       URXE_CQ_OFFSET(word) - URXE_HEAP_OFFSET <=
		       URXE_ARENA_SIZE - URXE_HEAP_OFFSET - cq_ring_bytes(log);
}

/* A claimed CQE and its position. */
struct cq_slot {
	struct urxe_cqe *cqe;
	uint32_t pos;
};

enum cq_claim { CQ_CLAIMED, CQ_FULL, CQ_MOVED };

/*
 * Maximum number of slots that a producer visits.  The tail is at most two
 * laps from any start.  The rest is a margin for producers that claim slots
 * meanwhile.
 */
#define CQ_RING_WALK(mask) (4 * (mask) + 4096)

/* Return whether the poller has polled the slot's previous position. */
static inline bool cq_ring_has_room(const struct cq_ring *r, uint32_t t)
{
	uint32_t head = load_acquire(r->head_seen);

	if (t - head <= r->mask)
		return true;
	/* acquire: the poller has read those CQEs */
	head = load_acquire(r->head);
	store_release(r->head_seen, head);
	return t - head <= r->mask;
}

/*
 * Change the claim of the free slot at the tail to state @to, with memory
 * order @order.  Return CQ_CLAIMED and the slot in *out; CQ_FULL if the ring
 * is full or damaged, or the walk has reached its limit; or CQ_MOVED if the
 * ring was closed.
 */
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
				/*
				 * if the claim has changed, another
				 * producer took the slot: retry
				 */
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
			/* acquire: next_ring was stored before MOVED */
			load_acquire(c);
			return CQ_MOVED;
		}
		ahead = cqe_pos(w) - t;
		/* tail_hint or the claim is damaged */
		if ((int32_t)ahead < 0)
			break;
		/* all up to a lap before that one are claimed */
		if (ahead > r->mask + 1)
			t += ahead - (r->mask + 1);
	}
	return CQ_FULL;
}

/*
 * Fast path of cq_ring_claim(): claim the slot at tail_hint if it is free and
 * no other producer is faster.
 */
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

/* Claim the next CQE.  On CQ_CLAIMED it is *out. */
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
 * End the ring at its tail with MOVED.  Return true, and the position in
 * *pos, or false if the ring is full.
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

/*
 * Check the two words of the slot whose last claimed position is @i.  Return
 * NULL or a message.
 */
static inline const char *cq_slot_invalid(uint64_t claim, uint64_t entry,
					  uint32_t i, uint32_t mask)
{
	if (cqe_pos(claim) != i || (cqe_pos(entry) - i) & mask)
		return "an entry is of another lap than its neighbours";
	if ((cqe_state(claim) != CQE_CLAIMED &&
	     cqe_state(claim) != CQE_MOVED) ||
	    cqe_state(entry) != CQE_READY)
		return "an entry has an invalid state";
	if (cqe_owner(entry) ||
	    (cqe_state(claim) == CQE_MOVED && cqe_owner(claim)))
		return "an unclaimed entry has an owner";
	if ((int32_t)(cqe_pos(entry) - i) > 0)
		return "an entry is filled but not claimed";
	return NULL;
}

/*
 * Check that the ring is in a state that this protocol can leave.  Return
 * NULL or a message.  A ring in use changes while it is read, so only a
 * result that is repeated counts.
 */
static inline const char *cq_ring_invalid(const struct cq_ring *r)
{
	uint32_t i, first = cqe_pos(load_acquire(&r->claim[0]));
	const char *why;
	uint64_t w;

	/* the claims have the last depth positions: find the first of them */
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
			return "an entry was claimed after the end of the ring";
	}
	return NULL;
}

static inline bool cq_ring_valid(const struct cq_ring *r)
{
	return !cq_ring_invalid(r);
}

/*
 * Publish a claimed CQE.  @order is release, or seq_cst if the caller loads
 * arm next.
 */
static inline void cq_ring_publish(struct urxe_cqe *e, uint32_t pos,
				   memory_order order)
{
	atomic_store_explicit(&e->word, cqe_word(pos, 0, CQE_READY), order);
}

static inline bool cq_ring_is_ready(const struct urxe_cqe *e, uint32_t pos)
{
	return load_acquire(&e->word) == cqe_word(pos, 0, CQE_READY);
}

/*
 * Return whether position @pos was claimed; @word is the claim of its slot.
 * The claim does not tell whether the CQE is filled: check cq_ring_is_ready()
 * as well.
 */
static inline bool cq_ring_is_claimed(uint64_t word, uint32_t pos)
{
	return cqe_pos(word) == pos && cqe_state(word) == CQE_CLAIMED;
}

/* Notify producers that all CQEs before @head have been read. */
static inline void cq_ring_release(const struct cq_ring *r, uint32_t head)
{
	store_release(r->head, head);
}

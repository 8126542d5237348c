/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The completion ring: many producers, in any process, and one poller.
 *
 * Each entry begins with a word: position (32) << 32 | owner (24) << 8 |
 * state (8).  Position p lives in slot p mod depth.
 *
 *   FREE(p)           the slot waits for position p
 *   CLAIMED(p, owner) process `owner` is filling it
 *   READY(p)          filled
 *   MOVED(p)          the ring ends here: it was resized, go to the new one
 *
 * A producer takes FREE(p) to CLAIMED(p) by compare-and-swap (acquire: the
 * poller's reads of the slot's last use are over), fills the slot and stores
 * READY(p) (release: the poller sees it filled).  The poller takes READY(p)
 * at its head and stores FREE(p + depth) (release).  If the slot at the tail
 * still carries the last lap, the ring is full: an overrun, never a wait.
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
 * ever.  A poller that meets the same CLAIMED word many times looks whether
 * its owner still lives, and if not, frees the slot itself.  Nothing waits
 * for the dead.
 *
 * Resize.  A ring is replaced, never changed.  The resizer, who holds the
 * poller's lock, makes a new ring with positions from 0 and a tail_hint of
 * its own, stores its place in next_ring, and takes FREE(p) at the old ring's
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

enum cqe_state { CQE_FREE, CQE_CLAIMED, CQE_READY, CQE_MOVED };

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

static inline void cq_ring_init(struct urxe_cqe *ring, uint32_t depth,
				uint32_t first)
{
	uint32_t i;

	for (i = 0; i < depth; i++)
		store_relaxed(&ring[(first + i) & (depth - 1)].word,
			      cqe_word(first + i, 0, CQE_FREE));
}

/* Is word, which may be anything, a place that a ring can be in? */
static inline bool cq_ring_fits(uint64_t word)
{
	uint32_t log = URXE_CQ_LOG(word);

	return log <= URXE_CQ_MAX_LOG &&
	       URXE_CQ_OFFSET(word) - URXE_HEAP_OFFSET <=
		       URXE_ARENA_SIZE - URXE_HEAP_OFFSET -
			       (sizeof(struct urxe_cqe) << log);
}

/* A ring as somebody sees it who has found it sound. */
struct cq_ring {
	struct urxe_cqe *entry;
	uint32_t mask; /* entries - 1 */
	_Atomic uint32_t *tail_hint;
};

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

/* Take the free entry at the tail to a state: CQ_CLAIMED, and *out is it. */
static inline enum cq_claim cq_ring_take(const struct cq_ring *r,
					 uint32_t owner, enum cqe_state to,
					 memory_order order,
					 struct cq_slot *out)
{
	uint32_t t = load_relaxed(r->tail_hint), ahead, steps;
	struct urxe_cqe *e;
	uint64_t w;

	for (steps = 0; steps < CQ_RING_WALK(r->mask); steps++, t++) {
		e = &r->entry[t & r->mask];
		w = load_relaxed(&e->word);
		while (w == cqe_word(t, 0, CQE_FREE)) {
			if (!atomic_compare_exchange_strong_explicit(
				    &e->word, &w, cqe_word(t, owner, to), order,
				    memory_order_relaxed))
				continue;
			out->cqe = e;
			out->pos = t;
			return CQ_CLAIMED;
		}
		if (cqe_state(w) == CQE_MOVED) {
			/* acquire: next_ring was stored before it */
			load_acquire(&e->word);
			return CQ_MOVED;
		}
		ahead = cqe_pos(w) - t;
		/* the last lap's entry is still there */
		if ((int32_t)ahead < 0)
			break;
		/* all up to a lap before that position was taken */
		if (ahead > r->mask + 1)
			t += ahead - (r->mask + 1);
	}
	return CQ_FULL;
}

/* Take the next entry.  On CQ_CLAIMED it is *out. */
static inline enum cq_claim cq_ring_claim(const struct cq_ring *r,
					  uint32_t owner, struct cq_slot *out)
{
	enum cq_claim got = cq_ring_take(r, owner, CQE_CLAIMED,
					 memory_order_acquire, out);

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

	if (cq_ring_take(r, 0, CQE_MOVED, memory_order_acq_rel, &s) !=
	    CQ_CLAIMED)
		return false;
	*pos = s.pos;
	return true;
}

/*
 * Is it a ring that this protocol can have left?  NULL, or what is wrong.  Of a
 * ring in use only a repeated answer counts: it changes while it is read.
 */
static inline const char *cq_ring_invalid(const struct cq_ring *r)
{
	uint32_t i, head, depth = r->mask + 1;
	bool free_before = false;
	uint64_t w;

	/* the oldest position is where the poller is */
	head = cqe_pos(load_acquire(&r->entry[0].word));
	for (i = 1; i < depth; i++) {
		w = load_acquire(&r->entry[i].word);
		if ((int32_t)(cqe_pos(w) - head) < 0)
			head = cqe_pos(w);
	}
	for (i = head; i - head < depth; i++) {
		w = load_acquire(&r->entry[i & r->mask].word);
		if (cqe_pos(w) != i)
			return "an entry is not of the lap that its neighbours are of";
		if (cqe_state(w) > CQE_MOVED)
			return "an entry has a state that there is not";
		if (cqe_state(w) != CQE_CLAIMED && cqe_owner(w))
			return "an entry that nobody claimed has an owner";
		if (free_before && cqe_state(w) != CQE_FREE)
			return "an entry was taken before an older one";
		free_before = cqe_state(w) == CQE_FREE ||
			      cqe_state(w) == CQE_MOVED;
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

static inline void cq_ring_release(struct urxe_cqe *e, uint32_t pos,
				   uint32_t depth)
{
	store_release(&e->word, cqe_word(pos + depth, 0, CQE_FREE));
}

/*
 * Take entry pos from its dead claimer, who left word there.  True if it is
 * free now; false: it was published after all.
 */
static inline bool cq_ring_skip(struct urxe_cqe *e, uint64_t word, uint32_t pos,
				uint32_t depth)
{
	return cas_acq_rel(&e->word, &word, cqe_word(pos + depth, 0, CQE_FREE));
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The completion ring: many producers, in any process, and one poller.
 *
 * Each entry begins with a word: position (32) << 32 | owner (16) << 8 |
 * state (8).  Position p lives in slot p mod depth.
 *
 *   FREE(p)           the slot waits for position p
 *   CLAIMED(p, owner) a producer of context `owner` is filling it
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
 * it may lag, and then the producer walks over taken slots.
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
 * ring (seq_cst) and waits for the guards (quiesce.h).  A producer loads ring
 * anew (seq_cst) for each completion, its guard up: so after that wait nobody
 * comes to the old ring any more.  The resizer polls it up to p into the
 * backlog, waiting for what is CLAIMED unless the claimer is dead, and frees
 * it.  The backlog is polled before the new ring.  No completion is lost or
 * seen twice, and those of one producer stay in order.
 *
 * So whoever produces into a CQ holds a raised guard from before it loads
 * ring until it has published.
 *
 * Events.  The poller arms (seq_cst store) and then polls once more; the
 * producer makes READY (seq_cst) and then looks at arm.  One of the two sees
 * the other.  A CQ without a channel needs no more than release here.
 */
#ifndef URXE_CQ_RING_H
#define URXE_CQ_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "shared/layout.h"

enum cqe_state { CQE_FREE, CQE_CLAIMED, CQE_READY, CQE_MOVED };

static inline uint64_t cqe_word(uint32_t pos, uint16_t owner,
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

static inline uint16_t cqe_owner(uint64_t word)
{
	return word >> 8 & 0xffff;
}

static inline void cq_ring_init(struct urxe_cqe *ring, uint32_t depth,
				uint32_t first)
{
	uint32_t i;

	for (i = 0; i < depth; i++)
		atomic_store_explicit(&ring[(first + i) & (depth - 1)].word,
				      cqe_word(first + i, 0, CQE_FREE),
				      memory_order_relaxed);
}

/* Take the free entry at the tail to a state; false: *seen is in its way. */
static inline bool cq_ring_take(struct urxe_cqe *ring, uint32_t mask,
				_Atomic uint32_t *tail_hint, uint16_t owner,
				enum cqe_state to, memory_order order,
				struct urxe_cqe **out, uint32_t *pos,
				enum cqe_state *seen)
{
	uint32_t t = atomic_load_explicit(tail_hint, memory_order_relaxed);
	uint64_t w;

	for (;; t++) {
		*out = &ring[t & mask];
		*pos = t;
		w = atomic_load_explicit(&(*out)->word, memory_order_relaxed);
		while (w == cqe_word(t, 0, CQE_FREE))
			if (atomic_compare_exchange_strong_explicit(
				    &(*out)->word, &w, cqe_word(t, owner, to),
				    order, memory_order_relaxed))
				return true;
		*seen = cqe_state(w);
		/* the last lap's entry is still there, or the ring ended */
		if (*seen == CQE_MOVED || (int32_t)(cqe_pos(w) - t) < 0)
			return false;
	}
}

enum cq_claim { CQ_CLAIMED, CQ_FULL, CQ_MOVED };

/* Take the next entry.  On CQ_CLAIMED, *out is it and *pos its position. */
static inline enum cq_claim cq_ring_claim(struct urxe_cqe *ring, uint32_t mask,
					  _Atomic uint32_t *tail_hint,
					  uint16_t owner,
					  struct urxe_cqe **out, uint32_t *pos)
{
	enum cqe_state seen;

	if (cq_ring_take(ring, mask, tail_hint, owner, CQE_CLAIMED,
			 memory_order_acquire, out, pos, &seen)) {
		atomic_store_explicit(tail_hint, *pos + 1,
				      memory_order_relaxed);
		return CQ_CLAIMED;
	}
	if (seen != CQE_MOVED)
		return CQ_FULL;
	/* acquire: next_ring was stored before it */
	atomic_load_explicit(&(*out)->word, memory_order_acquire);
	return CQ_MOVED;
}

/*
 * End the ring at its tail: true, and *pos is where, or false while the ring
 * is full.
 */
static inline bool cq_ring_close(struct urxe_cqe *ring, uint32_t mask,
				 _Atomic uint32_t *tail_hint, uint32_t *pos)
{
	enum cqe_state seen;
	struct urxe_cqe *e;

	return cq_ring_take(ring, mask, tail_hint, 0, CQE_MOVED,
			    memory_order_acq_rel, &e, pos, &seen);
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
	atomic_store_explicit(&e->word, cqe_word(pos + depth, 0, CQE_FREE),
			      memory_order_release);
}

/*
 * Take entry pos from its dead claimer, who left word there.  True if it is
 * free now; false: it was published after all.
 */
static inline bool cq_ring_skip(struct urxe_cqe *e, uint64_t word, uint32_t pos,
				uint32_t depth)
{
	return atomic_compare_exchange_strong_explicit(
		&e->word, &word, cqe_word(pos + depth, 0, CQE_FREE),
		memory_order_acq_rel, memory_order_relaxed);
}

#endif

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queues: the rings in shared memory (cq_ring.h), as producers see
 * them, and what their owner keeps in its own memory.
 */
#pragma once

#include <infiniband/verbs.h>

#include "context.h"
#include "lock.h"
#include "observe.h"
#include "peer.h"
#include "shared/cq_ring.h"

/* ------------------------------------------------------- producing */

/* A completion queue as a producer sees it, its own or a peer's. */
struct urxe_cq_view {
	struct urxe_cq_sh *sh;
	struct urxe_peer *peer; /* where it is */
	struct urxe_channel *channel; /* NULL: none */
	struct urxe_cq *own; /* NULL: a peer's, or as one of our QPs sees it */
};

/* An entry being filled: cq_begin ... cq_end. */
struct urxe_cqe_ref {
	struct cq_slot slot;
	struct urxe_cqe lost; /* a completion that the CQ has no room for */
};

/* View CQ index of peer's context.  False if there is no sound one. */
bool cq_view_init(struct urxe_cq_view *v, struct urxe_peer *peer,
		  uint32_t index);
void cq_view_fini(struct urxe_cq_view *v);

/* What completions are stamped with, and the device's raw clock: ns. */
uint64_t cq_clock(void);

/*
 * The caller's guard is up, from cq_begin to cq_end.
 *
 * Claim an entry, which the caller fills; false when the CQ is overrun, which
 * has then been reported to its owner.
 */
static inline bool cq_begin(struct urxe_cq_view *v, struct urxe_cqe_ref *ref);
/*
 * Publish it.  True: the CQ has a channel, and cq_notify() is to be called;
 * *solicited is then true of errors, too.
 */
static inline bool cq_publish(struct urxe_cq_view *v,
			      const struct urxe_cqe_ref *ref, bool *solicited);
/* Both. */
static inline void cq_end(struct urxe_cq_view *v,
			  const struct urxe_cqe_ref *ref, bool solicited);

/* No more completions: said once, by an event. */
void cq_break(struct urxe_cq_view *v, const char *why);

/*
 * The completion at pos is there: raise the CQ's event if it is armed for that,
 * now or when moderation says so.
 */
void cq_notify(struct urxe_cq_view *v, uint32_t pos, bool solicited);
/* If it is armed raise its event at once, for whatever is there. */
void cq_fire(struct urxe_cq_view *v, bool solicited);
/* Tell a CQ's poller that one of its QPs changed state. */
void cq_attention(struct urxe_cq_view *v);

/* The ring is full, or another one, or others claim, too ... */
bool cq_begin_late(struct urxe_cq_view *v, struct urxe_cqe_ref *ref);
/* ... and somebody waits for the completion, or looks at it. */
bool cq_publish_watched(struct urxe_cq_view *v, const struct urxe_cqe_ref *ref,
			bool *solicited);

static inline uint32_t cq_producer(const struct urxe_cq_view *v)
{
	return URXE_PROCESS_BRIEF(process_id(v->peer->fabric));
}

/*
 * The ring that word, which may be anything, names; false if there is none.  It
 * is not kept in the view, which is one for all threads that have a QP there.
 */
static inline bool cq_find_ring(struct urxe_arena *a, struct urxe_cq_sh *sh,
				uint64_t word, struct cq_ring *r)
{
	if (unlikely(!cq_ring_fits(word)))
		return false;
	cq_ring_at(r, (char *)a + URXE_CQ_OFFSET(word), URXE_CQ_LOG(word), sh,
		   URXE_CQ_HINT(word));
	return true;
}

static inline bool cq_begin(struct urxe_cq_view *v, struct urxe_cqe_ref *ref)
{
	struct cq_ring r;

	if (unlikely(load_relaxed(&v->sh->error)))
		return false;
	/* seq_cst: after our guard went up, see cq_ring.h */
	if (likely(cq_find_ring(v->peer->arena, v->sh,
				load_seq_cst(&v->sh->ring), &r)) &&
	    likely(cq_ring_claim_hinted(&r, cq_producer(v), &ref->slot)))
		return true;
	return cq_begin_late(v, ref);
}

static inline bool cq_publish(struct urxe_cq_view *v,
			      const struct urxe_cqe_ref *ref, bool *solicited)
{
	if (unlikely(urxe_observers || v->sh->channel ||
		     v->sh->flags & URXE_CQ_TIMESTAMP))
		return cq_publish_watched(v, ref, solicited);
	cq_ring_publish(ref->slot.cqe, ref->slot.pos, memory_order_release);
	return false;
}

/*
 * A ring as one of its producers last found it: his own, kept under his QP's lock,
 * and so never in a view that others have, too.
 */
struct urxe_cq_known {
	uint64_t word; /* that names it; none: nothing can be claimed there */
	struct cq_ring ring;
	bool watched; /* more is to be done than to publish */
};

void cq_known_forget(struct urxe_cq_known *k);
/* As cq_begin(), and find the ring anew. */
bool cq_begin_unknown(struct urxe_cq_view *v, struct urxe_cq_known *k,
		      struct urxe_cqe_ref *ref);

/* Is k the ring, and was an entry claimed there?  owner: cq_producer(). */
static inline bool cq_claim_known(const struct urxe_cq_view *v,
				  const struct urxe_cq_known *k,
				  uint32_t owner, struct cq_slot *slot)
{
	/* seq_cst: after our guard went up, see cq_ring.h */
	return likely(!load_relaxed(&v->sh->error) &&
		      load_seq_cst(&v->sh->ring) == k->word) &&
	       likely(cq_ring_claim_hinted(&k->ring, owner, slot));
}

/* As cq_begin(), where k is most likely the ring. */
static inline bool cq_begin_known(struct urxe_cq_view *v,
				  struct urxe_cq_known *k, uint32_t owner,
				  struct urxe_cqe_ref *ref)
{
	return cq_claim_known(v, k, owner, &ref->slot) ||
	       cq_begin_unknown(v, k, ref);
}

/* As cq_publish(), while nobody observes. */
static inline bool cq_publish_known(struct urxe_cq_view *v,
				    const struct urxe_cq_known *k,
				    const struct urxe_cqe_ref *ref,
				    bool *solicited)
{
	if (unlikely(k->watched))
		return cq_publish_watched(v, ref, solicited);
	cq_ring_publish(ref->slot.cqe, ref->slot.pos, memory_order_release);
	return false;
}

static inline void cq_end(struct urxe_cq_view *v,
			  const struct urxe_cqe_ref *ref, bool solicited)
{
	if (unlikely(cq_publish(v, ref, &solicited)))
		cq_notify(v, ref->slot.pos, solicited);
}

/* ------------------------------------------------------- the owner */

struct urxe_cq {
	struct urxe_context *ctx;
	struct urxe_cq *next; /* in ctx->cqs */
	struct urxe_cq_sh *sh;
	uint32_t index;
	struct urxe_mutex lock; /* pollers and resizers, if they are several */
	bool single_threaded;
	bool quick; /* it is not, and presence is cheap */
	struct urxe_gate gate; /* whoever has the lock, at work in the ring */
	/* the poller's, inside the gate */
	struct cq_ring ring;
	uint32_t head; /* next entry to poll */
	_Atomic uint32_t empty; /* polls in a row that found nothing, + 1 */
	_Atomic bool closely; /* look beyond the head: backlog, who claimed it */
	_Atomic bool forked; /* another process may poll it, too */
	uint64_t ask_at; /* is who claimed the entry at the head alive? */
	struct urxe_backlog *backlog; /* what a resize left over, or NULL */
	uint64_t ring_word; /* struct urxe_cq_sh.ring */
	struct urxe_cq_view view; /* for our own requesters and flushes */
	_Atomic uint32_t stalled; /* QPs of this send CQ that want attention */
	struct urxe_qp *send_qps, *recv_qps; /* under ctx->lock */
	_Atomic pthread_t batch_thread; /* in start_poll ... end_poll, or 0 */
	/* cq_arm.h; completions are counted from the first of all */
	uint32_t polled_before; /* less those of the ring and the backlog */
	uint32_t announced; /* those that an event stands for */
	_Atomic uint32_t armed_for; /* the last arming; enum urxe_arm */
	enum urxe_arm batch_event; /* one that waits for the batch's end */
	uint64_t hold_until; /* moderation: the service thread's, or 0 */
	unsigned int refs; /* QPs, under ctx->lock */
};

struct cq_params {
	uint32_t cqe; /* at least */
	uint32_t channel; /* number of its FIFO + 1, 0: none */
	uint32_t async_fifo; /* the same */
	uint32_t flags; /* URXE_CQ_* */
	bool single_threaded;
	uint64_t tag; /* of its events: shared/event_tag.h */
};

/* Make cq, which is zeroed, a CQ of ctx.  -errno */
int cq_open(struct urxe_cq *cq, struct urxe_context *ctx,
	    const struct cq_params *p);
/* False: QPs or SRQs still use it.  After that nobody finds it any more ... */
bool cq_unlink(struct urxe_cq *cq);
/* ... and its events can be waited for, and it can be freed. */
void cq_close(struct urxe_cq *cq);

/* Memory for a ring of cqe entries at least, and its word. */
int cq_ring_new(struct urxe_context *ctx, uint32_t cqe, uint64_t *word);
void cq_ring_free(struct urxe_context *ctx, uint64_t word);
/* Nobody has seen it yet: it is empty. */
void cq_start_ring(struct urxe_cq *cq, uint64_t word);
/* Poll that ring from now on. */
void cq_use_ring(struct urxe_cq *cq, uint64_t word);
/*
 * Make one of cqe entries at least and use that; no completion is lost.  The
 * caller is inside the gate.  0 or errno.
 */
int cq_resize(struct urxe_cq *cq, int cqe);

/* Be the one who polls or resizes: from here the gate may be entered. */
static inline void cq_lock(struct urxe_cq *cq)
{
	if (!cq->single_threaded)
		mutex_lock(&cq->lock);
}

static inline void cq_unlock(struct urxe_cq *cq)
{
	if (!cq->single_threaded)
		mutex_unlock(&cq->lock);
}

/* Is this thread between ibv_start_poll and ibv_end_poll? */
static inline bool cq_in_batch(const struct urxe_cq *cq)
{
	return pthread_equal(load_relaxed(&cq->batch_thread), pthread_self());
}

/* The caller, as cq_lock has it, has polled. */
static inline void cq_note_poll(struct urxe_cq *cq, bool found)
{
	store_relaxed(&cq->empty, found ? 1 : load_relaxed(&cq->empty) + 1);
}

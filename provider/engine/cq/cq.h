/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queues.  The ring in shared memory is a bounded MPSC queue;
 * shared/cq_ring.h has the protocol.  This file has the producer's view of a
 * CQ of any context (struct urxe_cq_view), and the owner's private state
 * (struct urxe_cq).
 *
 * Producers are requesters, of any process, and flushes.  Each calls
 * cq_begin() to cq_publish() while its QP's guard is raised, which keeps
 * the ring from being freed.  The consumer is poller.h.
 */
#pragma once

#include <infiniband/verbs.h>

#include "engine/core/context.h"
#include "engine/core/lock.h"
#include "engine/core/observe.h"
#include "engine/mem/peer.h"
#include "shared/cq_ring.h"

/* ------------------------------------------------------- producing */

/* The producer's view of a CQ of its own or of a peer. */
struct urxe_cq_view {
	struct urxe_cq_sh *sh;
	struct urxe_peer *peer; /* its context; no reference is held */
	struct urxe_channel *channel; /* NULL: none */
	struct urxe_cq *own; /* set in urxe_cq.view only, else NULL */
};

/* An entry that is being filled, between cq_begin() and cq_end(). */
struct urxe_cqe_ref {
	struct cq_slot slot;
	struct urxe_cqe lost; /* written if an overrun is ignored */
};

/*
 * Initialize a view of CQ index of peer's context.  False if there is no such
 * CQ or its shared state is not valid.
 */
bool cq_view_init(struct urxe_cq_view *v, struct urxe_peer *peer,
		  uint32_t index);
void cq_view_fini(struct urxe_cq_view *v);

/* The clock of completion timestamps and the device's raw clock, in ns. */
uint64_t cq_clock(void);

/*
 * Claim an entry, which the caller fills.  The caller's guard is raised until
 * the entry is published.  False if the CQ is in error.  If it is full, this
 * raises IBV_EVENT_CQ_ERR and returns false, unless the CQ ignores overruns:
 * then it returns an entry that is thrown away.
 */
static inline bool cq_begin(struct urxe_cq_view *v, struct urxe_cqe_ref *ref);
/*
 * Publish the entry.  True if the CQ has a channel: the caller then calls
 * cq_notify() with *solicited, which this sets for a completion with an
 * error.
 */
static inline bool cq_publish(struct urxe_cq_view *v,
			      const struct urxe_cqe_ref *ref, bool *solicited);
/* cq_publish(), and cq_notify() if necessary. */
static inline void cq_end(struct urxe_cq_view *v,
			  const struct urxe_cqe_ref *ref, bool solicited);

/*
 * Fill the fields of a claimed entry.  The caller overwrites those that are
 * not 0.
 */
static inline void cqe_fill(struct urxe_cqe *e, uint64_t wr_id, uint32_t qpn,
			    uint32_t wqe, enum ibv_wc_status status,
			    enum ibv_wc_opcode opcode)
{
	e->wr_id = wr_id;
	e->qpn = qpn;
	e->byte_len = 0;
	e->imm = 0;
	e->src_qp = 0;
	e->wqe = wqe;
	e->status = status;
	e->opcode = opcode;
	e->wc_flags = 0;
	e->inline_len = 0;
}

/* Put the CQ into the error state; raise IBV_EVENT_CQ_ERR once. */
void cq_break(struct urxe_cq_view *v, const char *why);

/*
 * Raise the CQ's event if it is armed for the completion at pos, which has
 * been published (cq_arm.h).  With moderation the event may be delayed
 * (cq_moderate.h).
 */
void cq_notify(struct urxe_cq_view *v, uint32_t pos, bool solicited);
/* If the CQ is armed, raise its event at once. */
void cq_fire(struct urxe_cq_view *v, bool solicited);
/* Notify a CQ's poller that one of its QPs has changed state. */
void cq_attention(struct urxe_cq_view *v);

/* Slow path of cq_begin(): resized or full ring, or contention. */
bool cq_begin_slow(struct urxe_cq_view *v, struct urxe_cqe_ref *ref);
/* Slow path of cq_publish(): channel, timestamps or observers. */
bool cq_publish_watched(struct urxe_cq_view *v, const struct urxe_cqe_ref *ref,
			bool *solicited);

static inline uint32_t cq_producer(const struct urxe_cq_view *v)
{
	return URXE_PROCESS_BRIEF(process_id(v->peer->fabric));
}

/*
 * Find the ring that word, a value read from shared memory, describes; false
 * if it is not valid.  The result is not cached in the view, because all
 * threads that have a QP with this CQ share the view.
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
	/* seq_cst: ordered after the store of the guard, see cq_ring.h */
	if (likely(cq_find_ring(v->peer->arena, v->sh,
				load_seq_cst(&v->sh->ring), &r)) &&
	    likely(cq_ring_claim_hinted(&r, cq_producer(v), &ref->slot)))
		return true;
	return cq_begin_slow(v, ref);
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
 * A producer's cached copy of a ring.  It belongs to one QP and is protected
 * by qp->lock.
 */
struct urxe_cq_known {
	uint64_t word; /* of the ring; 0: a dummy whose claims fail */
	struct cq_ring ring;
	bool watched; /* cq_publish_watched() is necessary */
};

void cq_known_forget(struct urxe_cq_known *k);
/* As cq_begin(), after it has updated the cached copy. */
bool cq_begin_unknown(struct urxe_cq_view *v, struct urxe_cq_known *k,
		      struct urxe_cqe_ref *ref);

/*
 * Claim an entry if k still is the CQ's ring; owner is cq_producer().  On
 * false, call cq_begin_unknown().
 */
static inline bool cq_claim_known(const struct urxe_cq_view *v,
				  const struct urxe_cq_known *k, uint32_t owner,
				  struct cq_slot *slot)
{
	/* seq_cst: ordered after the store of the guard, see cq_ring.h */
	return likely(!load_relaxed(&v->sh->error) &&
		      load_seq_cst(&v->sh->ring) == k->word) &&
	       likely(cq_ring_claim_hinted(&k->ring, owner, slot));
}

/* As cq_begin(), with a cached copy of the ring. */
static inline bool cq_begin_known(struct urxe_cq_view *v,
				  struct urxe_cq_known *k, uint32_t owner,
				  struct urxe_cqe_ref *ref)
{
	return cq_claim_known(v, k, owner, &ref->slot) ||
	       cq_begin_unknown(v, k, ref);
}

/* As cq_publish(), if there are no observers (observe.h). */
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
	/* excludes pollers and resizers; not used if single_threaded */
	struct urxe_mutex lock;
	bool single_threaded; /* one thread polls, as the program promised */
	bool quick; /* !single_threaded && presence_cheap (base/presence.h) */
	struct urxe_gate gate; /* its insider is the holder of the lock */
	/* consumer state, protected by the gate */
	struct cq_ring ring;
	uint32_t head; /* next entry to poll */
	_Atomic uint32_t empty; /* 1 + consecutive polls that found nothing */
	/* if the head is not ready, check the backlog and dead producers */
	_Atomic bool closely;
	_Atomic bool forked; /* a forked process may poll it as well */
	uint64_t ask_at; /* when to check that claim, clock_now() */
	struct urxe_backlog *backlog; /* CQEs of a former ring, or NULL */
	uint64_t ring_word; /* copy of struct urxe_cq_sh.ring */
	struct urxe_cq_view view; /* for this process's producers */
	_Atomic uint32_t stalled; /* send QPs to make progress on */
	struct urxe_qp *send_qps, *recv_qps; /* under ctx->lock */
	/*
	 * Sweeps of send_qps (exec/retry.c): the service thread is in one,
	 * under ctx->lock; number of sweeps; a QP that the last one has
	 * visited waits for its turn
	 */
	bool service_sweeps;
	_Atomic uint32_t sweep;
	_Atomic bool waits_turn;
	/* thread between ibv_start_poll and ibv_end_poll, or 0 */
	_Atomic pthread_t batch_thread;
	/* cq_arm.h; completions are counted since the CQ was created */
	uint32_t polled_before; /* those polled from former rings */
	uint32_t announced; /* completions up to this one have an event */
	_Atomic uint32_t armed_for; /* last arming: enum urxe_arm */
	enum urxe_arm batch_event; /* an event deferred to ibv_end_poll */
	uint64_t hold_until; /* moderation: when the service thread fires */
	/* the eager buffer (eager.h): this process has allocated it */
	bool eager_counted;
	_Atomic bool eager_used; /* it was used since the last check */
	uint64_t eager_idle_at; /* when it is freed if not used, ns */
	unsigned int refs; /* QPs, under ctx->lock */
};

struct cq_params {
	uint32_t cqe; /* minimum number of entries */
	uint32_t channel; /* number of its FIFO + 1, 0: none */
	uint32_t async_fifo; /* likewise, for async events */
	uint32_t flags; /* URXE_CQ_* */
	bool single_threaded;
	uint64_t tag; /* of its events: shared/event_tag.h */
};

/* Create a CQ of ctx in cq, which is zeroed.  0 or -errno. */
int cq_open(struct urxe_cq *cq, struct urxe_context *ctx,
	    const struct cq_params *p);
/* The last step of destroying a CQ, after poll_unlink() (poll/poller.h). */
void cq_close(struct urxe_cq *cq);

/*
 * Wait until each poller of ctx in this process has left its CQ's gate, so
 * that it holds no pointer to the object.  Takes ctx->lock.
 */
void cq_wait_pollers(struct urxe_context *ctx);

/* Allocate a ring of at least cqe entries; set *word.  0 or -ENOMEM. */
int cq_ring_new(struct urxe_context *ctx, uint32_t cqe, uint64_t *word);
void cq_ring_free(struct urxe_context *ctx, uint64_t word);
/* Make the ring, which is not published yet, empty. */
void cq_start_ring(struct urxe_cq *cq, uint64_t word);
/* Make it the ring that the owner polls. */
void cq_use_ring(struct urxe_cq *cq, uint64_t word);
/*
 * Exclude other pollers and resizers.  The caller may then enter the gate as
 * its insider.
 */
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

/* Count polls that found nothing; the caller is the poller (cq_lock()). */
static inline void cq_note_poll(struct urxe_cq *cq, bool found)
{
	store_relaxed(&cq->empty, found ? 1 : load_relaxed(&cq->empty) + 1);
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Receive queues of QPs and SRQs.  The owner posts receives into a ring in
 * shared memory, requesters of any process take them by compare-and-swap.
 * shared/rq_ring.h has the protocol.
 *
 * rq->lock serializes posting, resize and reset by the owner.  Pollers
 * release slots without it.
 */
#pragma once

#include <infiniband/verbs.h>

#include "engine/core/context.h"
#include "engine/core/lock.h"
#include "shared/rq_ring.h"
#include "sq.h"

/*
 * The owner's private copy of a receive in a queue with several requesters,
 * from posting to polling.  Receives of such a queue may complete in any
 * order; each has a ticket, its index in the set.  A struct urxe_recv
 * follows.  tests/model/srq_tickets.pml checks the tickets.
 */
struct urxe_kept {
	_Atomic bool out; /* posted, not polled yet; cleared by the poller */
	bool found; /* its completion was found; rq_recover.c */
	uint32_t pos; /* its index in the ring */
};

struct urxe_kept_set {
	uint32_t count, stride;
	char slot[];
};

/* The owner's private state of a receive queue. */
struct urxe_rq {
	struct urxe_lock lock;
	struct urxe_rq_sh *sh;
	char *ring;
	uint64_t ring_word; /* private copy of urxe_rq_sh.ring */
	uint32_t mask, stride, max_wr, max_sge;
	uint32_t prod;
	_Atomic uint32_t tail; /* slots below it were released by polling */
	struct urxe_kept_set *_Atomic kept; /* NULL: one requester only */
	uint32_t next_ticket;
};

/* A requester's view of a receive queue. */
struct urxe_rq_view {
	struct urxe_rq_sh *sh;
	uint64_t ring_word; /* the word that ring and mask were made from */
	const char *ring;
	uint32_t mask, stride, max_sge;
	uint32_t posted; /* cached sh->prod, valid with one requester only */
};

static inline const struct urxe_recv *rq_view_slot(const struct urxe_rq_view *v,
						   uint32_t index)
{
	return (const void *)(v->ring +
			      (uint64_t)(index & v->mask) * v->stride);
}

static inline struct urxe_recv *rq_slot(const struct urxe_rq *rq,
					uint32_t index)
{
	return (struct urxe_recv *)(void *)(rq->ring +
					    (uint64_t)(index & rq->mask) *
						    rq->stride);
}

static inline struct urxe_recv *kept_recv(struct urxe_kept *k)
{
	return (struct urxe_recv *)(void *)(k + 1);
}

static inline struct urxe_kept *kept_at(struct urxe_kept_set *set,
					uint32_t ticket)
{
	return (struct urxe_kept *)(void *)(set->slot +
					    (uint64_t)ticket * set->stride);
}

static inline struct urxe_sge recv_sge(const struct urxe_recv_sge *s)
{
	return (struct urxe_sge){ load_relaxed(&s->addr),
				  load_relaxed(&s->length),
				  load_relaxed(&s->lkey) };
}

/* The set of kept receives; NULL if there is one requester only. */
static inline struct urxe_kept_set *rq_kept_set(const struct urxe_rq *rq)
{
	return load_acquire(&rq->kept);
}

/* The kept receive of a ticket, or NULL if there is no such ticket. */
static inline struct urxe_kept *rq_kept(const struct urxe_rq *rq,
					uint32_t ticket)
{
	struct urxe_kept_set *set = rq_kept_set(rq);

	return likely(ticket < set->count) ? kept_at(set, ticket) : NULL;
}

/* Release the ticket and the slot of a receive that was polled. */
static inline void rq_release(struct urxe_rq *rq, struct urxe_kept *k)
{
	if (unlikely(!load_relaxed(&k->out)))
		return;
	store_release(&k->out, false);
	fetch_add_release(&rq->tail, 1);
}

/*
 * Initialize a view of a receive queue, of a peer or of this process.  False
 * if its shared state is not valid.
 */
bool rq_view_init(struct urxe_rq_view *v, struct urxe_arena *a,
		  struct urxe_rq_sh *sh);
/* Drop the cached producer index, after the queue may have been reset. */
static inline void rq_view_forget(struct urxe_rq_view *v)
{
	v->posted = load_relaxed(&v->sh->cons);
}

/*
 * Load the ring, which an SRQ may have replaced.  v->ring is NULL if there is
 * none.  False if the ring word is not valid.
 */
bool rq_view_load(struct urxe_rq_view *v, struct urxe_arena *a);

/*
 * Create a queue for max_wr receives of max_sge SGEs; shared: it has several
 * requesters.  0 or -ENOMEM.
 */
int rq_create(struct urxe_context *ctx, struct urxe_rq *rq,
	      struct urxe_rq_sh *sh, uint32_t max_wr, uint32_t max_sge,
	      bool single_threaded, bool shared);
void rq_destroy(struct urxe_context *ctx, struct urxe_rq *rq);
/* Empty the queue; rq->lock is held. */
void rq_reset(struct urxe_rq *rq);
/*
 * Replace the ring of SRQ index srq by one for max_wr receives, and wait
 * until no requester uses the old one.  Returns 0, ENOMEM, or EINVAL if more
 * receives are posted than would fit.  rq->lock is held.
 */
int rq_resize(struct urxe_context *ctx, struct urxe_rq *rq, uint32_t srq,
	      uint32_t max_wr);

/*
 * Post a list of receives.  Returns 0 or an errno value, with *bad the first
 * receive that was not posted.  qp: the QP of the queue, which must not be in
 * RESET, or NULL for an SRQ.
 */
int rq_post(struct urxe_context *ctx, struct urxe_rq *rq,
	    const struct urxe_qp *qp, struct ibv_recv_wr *wr,
	    struct ibv_recv_wr **bad);
/*
 * Post a receive again that was taken and will not be completed.  rq->lock is
 * held.
 */
void rq_repost(struct urxe_rq *rq, struct urxe_kept *k);
/* Wake the service thread of the requester that waits for a receive. */
void rq_wake_waiter(struct urxe_qp *qp);

/* rq_recover.c --------------------------------------------------------- */

/*
 * If processes have died since the last call: recover receives that they took
 * from the queues of ctx and did not complete.  Queues that are in use now
 * are left to a later call.  ctx->lock is held.
 */
void rq_recover(struct urxe_context *ctx);
/*
 * The same for a verb that holds no lock.  reap: first search for processes
 * that have died, at most every 100 ms.  False if there was nothing to recover.
 */
bool rq_recover_now(struct urxe_context *ctx, bool reap);

/*
 * The same for a thread that waits for receives: they may not complete because
 * a requester that took one has died, and another process need not notice.
 */
static inline void rq_recover_waiting(struct urxe_context *ctx)
{
	if (load_relaxed(&ctx->has_kept))
		rq_recover_now(ctx, true);
}

/* Have processes died since the last complete recovery? */
static inline bool rq_needs_recovery(const struct urxe_context *ctx)
{
	return unlikely(load_relaxed(&ctx->fabric->dev->recover_gen) !=
			load_relaxed(&ctx->recovered_gen));
}

/* ibv_post_recv */
int rq_post_recv(struct urxe_qp *qp, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad);

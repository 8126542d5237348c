/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Receive queues; the protocol is in shared/rq_ring.h. */
#pragma once

#include <infiniband/verbs.h>

#include "context.h"
#include "lock.h"
#include "shared/rq_ring.h"
#include "sq.h"

/*
 * What the owner remembers of a receive that several may take, from posting
 * to polling.  A struct urxe_recv follows.
 */
struct urxe_kept {
	_Atomic bool out; /* not polled yet; cleared by the poller */
	bool found; /* its completion was found; rq_recover.c */
	uint32_t pos;
};

struct urxe_kept_set {
	uint32_t count, stride;
	char slot[];
};

/* A receive queue, as its owner has it. */
struct urxe_rq {
	struct urxe_lock lock;
	struct urxe_rq_sh *sh;
	char *ring;
	uint64_t ring_word; /* urxe_rq_sh.ring, as we made it */
	uint32_t mask, stride, max_wr, max_sge;
	uint32_t prod;
	_Atomic uint32_t tail; /* released by polling */
	struct urxe_kept_set *_Atomic kept; /* NULL: one requester only */
	uint32_t next_ticket;
};

/* A receive queue, as a requester sees it. */
struct urxe_rq_view {
	struct urxe_rq_sh *sh;
	uint64_t ring_word; /* what ring and mask were made from */
	const char *ring;
	uint32_t mask, stride, max_sge;
	uint32_t posted; /* prod, as it was seen; one requester: responder.c */
};

static inline const struct urxe_recv *
rq_view_slot(const struct urxe_rq_view *v, uint32_t index)
{
	return (const void *)(v->ring + (uint64_t)(index & v->mask) * v->stride);
}

static inline struct urxe_recv *rq_slot(const struct urxe_rq *rq,
					uint32_t index)
{
	return (struct urxe_recv *)(void *)(rq->ring + (uint64_t)(index &
								  rq->mask) *
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

/* NULL: there is one requester only. */
static inline struct urxe_kept_set *rq_kept_set(const struct urxe_rq *rq)
{
	return load_acquire(&rq->kept);
}

/* NULL if there is no such ticket. */
static inline struct urxe_kept *rq_kept(const struct urxe_rq *rq,
					uint32_t ticket)
{
	struct urxe_kept_set *set = rq_kept_set(rq);

	return likely(ticket < set->count) ? kept_at(set, ticket) : NULL;
}

/* It was polled. */
static inline void rq_release(struct urxe_rq *rq, struct urxe_kept *k)
{
	if (unlikely(!load_relaxed(&k->out)))
		return;
	store_release(&k->out, false);
	fetch_add_release(&rq->tail, 1);
}

/* A peer's (or our own) receive queue; false if its numbers make no sense. */
bool rq_view_init(struct urxe_rq_view *v, struct urxe_arena *a,
		  struct urxe_rq_sh *sh);
/* It was emptied: what was seen posted is not any more. */
static inline void rq_view_forget(struct urxe_rq_view *v)
{
	v->posted = load_relaxed(&v->sh->cons);
}

/* Its ring, which may be a new one: v->ring is NULL if there is none. */
bool rq_view_load(struct urxe_rq_view *v, struct urxe_arena *a);

/*
 * Make and free the ring of a queue of max_wr receives of max_sge each;
 * shared: there are several requesters.
 */
int rq_create(struct urxe_context *ctx, struct urxe_rq *rq,
	      struct urxe_rq_sh *sh, uint32_t max_wr, uint32_t max_sge,
	      bool single_threaded, bool shared);
void rq_destroy(struct urxe_context *ctx, struct urxe_rq *rq);
/* Empty it; rq->lock is held. */
void rq_reset(struct urxe_rq *rq);
/* errno value; EINVAL if more is posted than would fit.  rq->lock is held. */
int rq_resize(struct urxe_context *ctx, struct urxe_rq *rq, uint32_t srq,
	      uint32_t max_wr);

/*
 * Append receives; errno value, *bad the first one not posted.  qp: whose queue
 * it is, which must not be in RESET, or NULL for an SRQ.
 */
int rq_post(struct urxe_context *ctx, struct urxe_rq *rq,
	    const struct urxe_qp *qp, struct ibv_recv_wr *wr,
	    struct ibv_recv_wr **bad);
/* Post again what was taken and will never be completed. */
void rq_post_again(struct urxe_rq *rq, struct urxe_kept *k);
/* Somebody waits for a receive of this queue. */
void rq_wake_waiter(struct urxe_qp *qp);

/* rq_recover.c --------------------------------------------------------- */

/*
 * Processes have died: have what they took from the queues of ctx back.
 * ctx->lock is held; what cannot be looked at now is left to the next call.
 */
void rq_recover(struct urxe_context *ctx);
/*
 * The same for a verb that holds no lock; full: its queue has no room.  False
 * if there was nothing to do.
 */
bool rq_recover_now(struct urxe_context *ctx, bool full);

static inline bool rq_deaths(const struct urxe_context *ctx)
{
	return unlikely(load_relaxed(&ctx->fabric->dev->deaths) !=
			load_relaxed(&ctx->deaths));
}

/* ibv_post_recv */
int rq_post_recv(struct urxe_qp *qp, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad);

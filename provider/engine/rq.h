/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Receive queues, in shared memory: a ring of slots, each a struct urxe_recv.
 *
 * prod is stored by the owner after it filled slots (release; seq_cst once
 * per post, because a parked requester looks the other way round).  A
 * requester reads the slot at cons and then takes it by compare-and-swap on
 * cons; it has copied all it needs before, so the slot may be posted anew as
 * soon as cons has passed it and its completion was polled.  done follows
 * cons when the completion is published: between the two lies what a dying
 * requester took with it.
 *
 * SRQs, and the queues of UD QPs, are a crowd's: receives that were taken are
 * completed in any order.  There done is not used.  Each receive has a
 * *ticket*, which comes back with its completion, and under that number the
 * owner keeps a copy, in its own memory, from posting to polling.  So the slot
 * may be posted anew while a slow requester is still at work, and what a dead
 * one took and did not complete can be posted again (rq_recover.c).
 */
#ifndef URXE_RQ_H
#define URXE_RQ_H

#include "urxe.h"

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

/* NULL: there is one requester only. */
static inline struct urxe_kept_set *rq_kept_set(const struct urxe_rq *rq)
{
	return atomic_load_explicit(&rq->kept, memory_order_acquire);
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
	if (unlikely(!atomic_load_explicit(&k->out, memory_order_relaxed)))
		return;
	atomic_store_explicit(&k->out, false, memory_order_release);
	atomic_fetch_add_explicit(&rq->tail, 1, memory_order_release);
}

/*
 * An SRQ can be resized.  The new ring has copies of what is posted, under
 * the same positions, and its word is stored before anything new is posted:
 * a requester that loaded prod (acquire) and then finds the word it knows can
 * trust its slots up to there; else it looks again (rq_view_load).  The old
 * ring is freed after a quiesce().
 */

/* A peer's (or our own) receive queue; false if its numbers make no sense. */
bool rq_view_init(struct urxe_rq_view *v, struct urxe_arena *a,
		  struct urxe_rq_sh *sh);
bool rq_view_load(struct urxe_rq_view *v);

/*
 * Make and free the ring of a queue of max_wr receives of max_sge each;
 * crowd: there are several requesters.
 */
int rq_create(struct urxe_context *ctx, struct urxe_rq *rq,
	      struct urxe_rq_sh *sh, uint32_t max_wr, uint32_t max_sge,
	      bool single_threaded, bool crowd);
void rq_destroy(struct urxe_context *ctx, struct urxe_rq *rq);
void rq_reset(struct urxe_rq *rq);
/* errno value; EINVAL if more is posted than would fit.  rq->lock is held. */
int rq_resize(struct urxe_context *ctx, struct urxe_rq *rq, uint32_t max_wr);

/* Append receives; errno value, *bad the first one not posted. */
int rq_post(struct urxe_context *ctx, struct urxe_rq *rq,
	    struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Post again what was taken and will never be completed. */
void rq_post_again(struct urxe_rq *rq, struct urxe_kept *k, uint32_t ticket);
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
	return unlikely(atomic_load_explicit(&ctx->fabric->dev->deaths,
					     memory_order_relaxed) !=
			atomic_load_explicit(&ctx->deaths,
					     memory_order_relaxed));
}

int urxe_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad);

#endif

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

/* Make and free the ring of a queue of max_wr receives of max_sge each. */
int rq_create(struct urxe_context *ctx, struct urxe_rq *rq,
	      struct urxe_rq_sh *sh, uint32_t max_wr, uint32_t max_sge,
	      bool single_threaded);
void rq_destroy(struct urxe_context *ctx, struct urxe_rq *rq);
void rq_reset(struct urxe_rq *rq);
/* errno value; EINVAL if more is posted than would fit.  rq->lock is held. */
int rq_resize(struct urxe_context *ctx, struct urxe_rq *rq, uint32_t max_wr);

/* Append receives; errno value, *bad the first one not posted. */
int rq_post(struct urxe_rq *rq, struct ibv_recv_wr *wr,
	    struct ibv_recv_wr **bad);

int urxe_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad);

#endif

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The WRs of a send queue, a receive queue or an SRQ, from their posting to
 * the polling of their completion.  An unsignaled WR is done when a later one
 * of its queue completes.  The lists are under referee_lock(); who posts holds
 * `posting` from before its shadows are there to after the real post.
 */
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>

#include "engine/wqe.h"
#include "finding.h"
#include "stack.h"

struct shadow;
struct shadow_cq;
struct shadow_qp;

struct shadow_wr {
	struct shadow_wr *next, *prev;
	uint64_t nth; /* of its queue, from 0 */
	uint64_t wr_id;
	const void *source; /* the program's WR, valid while it is posted */
	uint32_t opcode; /* enum ibv_wr_opcode; a receive's is 0 */
	uint32_t flags; /* enum ibv_send_flags */
	bool receive, signaled;
	bool beyond; /* the queue was full: it will be refused */
	bool is_inline; /* its data were taken by the post */
	uint64_t remote_addr; /* RDMA and atomics */
	uint32_t rkey; /* the same; or the key to invalidate, or to bind */
	struct ibv_ah *ah; /* UD, or NULL */
	struct ibv_mw *mw; /* a bind's, or NULL */
	struct ibv_mw_bind_info bind;
	struct stack posted;
	void *memory; /* what memory.c keeps of it */
	uint32_t num_sge;
	struct ibv_sge sge[]; /* of inline data its addresses, no lkeys */
};

/* Is it one of WQE_..._OPS?  A program may post any opcode. */
static inline bool wr_is(const struct shadow_wr *wr, uint32_t ops)
{
	return !wr->receive && wr->opcode < 32 && ops & WQE_BIT(wr->opcode);
}

struct shadow_queue {
	struct shadow_queue *next_queue; /* all of this process */
	struct shadow *owner; /* the QP or SRQ */
	struct shadow_cq *cq; /* where all its WRs complete, or NULL */
	bool is_send, is_srq;
	/* by a completion counter: what is done need not be polled, and so is
	 * not known here; it has no shadows of WRs
	 */
	bool counted;
	pthread_mutex_t posting;
	pthread_t poster; /* who holds it, if held */
	bool held;
	uint32_t capacity; /* as the device granted: more are refused */
	uint32_t count; /* in flight */
	uint32_t signaled; /* of these */
	uint64_t posted; /* ever */
	/* those posted before: a message came since, maybe the answer */
	uint64_t answered;
	struct shadow_wr *head, *last; /* by nth */
};

void queue_init(struct shadow_queue *q, struct shadow *owner,
		struct shadow_cq *cq, bool is_send, uint32_t capacity);
/* No WRs are left in it, and it is out of the list. */
void queue_fini(struct shadow_queue *q);
/*
 * The CQ is gone, and so are its QPs; but another thread that destroyed one may
 * not have come to its shadow yet.
 */
void queue_cq_ended(const struct shadow_cq *cq);
/* All of this process. */
struct shadow_queue *queue_first(void);

/* Around a post. */
void queue_post_begin(struct shadow_queue *q);
void queue_post_end(struct shadow_queue *q);

/* The caller's stack is the WR's; NULL: no memory. */
struct shadow_wr *queue_wr_new(uint32_t num_sge);
void queue_wr_free(struct shadow_wr *wr);
/* It is about to be posted. */
void queue_push(struct shadow_queue *q, struct shadow_wr *wr);
/* Those from the nth of the queue on were posted. */
void queue_posted(struct shadow_queue *q, uint64_t nth);
/*
 * The number of the refused WR @bad of a list whose first WR was the @first of
 * the queue.  @full: the queue had no room for it.  A list may lead back to an
 * earlier WR: then @bad is pushed several times, and was refused where the room
 * ended.
 */
uint64_t queue_nth_of(const struct shadow_queue *q, uint64_t first,
		      const void *bad, bool full);
/* The WR that was the nth of the queue, and those behind it, were refused. */
void queue_refused(struct shadow_queue *q, uint64_t nth);
/*
 * That completion was polled, of that QP or of no known one; it may be of no WR
 * that is known.
 */
void queue_complete(struct shadow_queue *q, const struct shadow_qp *of,
		    const struct ibv_wc *wc);
/* They will never complete: the QP is reset, or destroyed. */
void queue_forget(struct shadow_queue *q);

/* "QP 0x11, wr_id 7 (RDMA_WRITE)": into name, which is returned. */
const char *queue_wr_name(const struct shadow_queue *q,
			  const struct shadow_wr *wr, char name[FINDING_NAME]);

void queue_after_fork(void);

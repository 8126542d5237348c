/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shadows of the outstanding WRs of a send queue, a receive queue or an SRQ.
 *
 *	queue_push()		before the real post (posts.c, posts_ex.c)
 *	queue_refused()		after it, for WRs that it refused
 *	queue_complete()	when the completion was polled (polls.c)
 *	queue_forget()		when the QP is reset or destroyed
 *
 * An unsignaled WR is done when the completion of a later WR of its send
 * queue is polled.
 *
 * Lists and counts are guarded by referee_lock().  A thread that posts holds
 * `posting` as well, from before it pushes the shadows until after the real
 * post, so that the shadows are in the order of the WRs.  It is taken before
 * referee_lock().
 */
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>

#include "engine/qp/wqe.h"
#include "referee/report/finding.h"
#include "referee/report/stack.h"

struct shadow;
struct shadow_cq;
struct shadow_qp;

struct shadow_wr {
	struct shadow_wr *next, *prev;
	uint64_t nth; /* number in its queue, from 0 */
	uint64_t wr_id;
	const void *source; /* the program's WR, valid during the post */
	uint32_t opcode; /* enum ibv_wr_opcode; 0 for a receive */
	uint32_t flags; /* enum ibv_send_flags */
	bool receive, signaled;
	bool beyond; /* the queue was full: it will be refused */
	bool is_inline; /* the post copies its data */
	uint64_t remote_addr; /* RDMA and atomics */
	uint32_t rkey; /* RDMA, atomics; or the key to invalidate or bind */
	struct ibv_ah *ah; /* UD, or NULL */
	struct ibv_mw *mw; /* BIND_MW, or NULL */
	struct ibv_mw_bind_info bind;
	struct stack posted;
	void *memory; /* struct memory (memory_wr.h), or NULL */
	uint32_t num_sge;
	struct ibv_sge sge[]; /* inline data: lkey is not used */
};

/* Is the opcode in the mask @ops?  A program may post an invalid opcode. */
static inline bool wr_is(const struct shadow_wr *wr, uint32_t ops)
{
	return !wr->receive && wr->opcode < 32 && ops & WQE_BIT(wr->opcode);
}

struct shadow_queue {
	struct shadow_queue *next_queue; /* list of all queues */
	struct shadow *owner; /* the QP or SRQ */
	struct shadow_cq *cq; /* CQ of all its completions, or NULL */
	bool is_send, is_srq;
	/*
	 * A completion counter is attached.  The program need not poll, so it
	 * is not known which WRs are done: there are no shadows of WRs.
	 */
	bool counted;
	pthread_mutex_t posting;
	pthread_t poster; /* the thread that holds `posting`, if held */
	bool held;
	uint32_t capacity; /* granted by the device; it refuses more WRs */
	uint32_t count; /* outstanding WRs */
	uint32_t signaled; /* how many of them are signaled */
	uint64_t posted; /* the number of the next WR */
	/*
	 * send queue: a message, maybe a response, was received after the WRs
	 * with lower numbers were posted
	 */
	uint64_t answered;
	struct shadow_wr *head, *last; /* ordered by nth */
};

/* Initialize q, and add it to the list of queues. */
void queue_init(struct shadow_queue *q, struct shadow *owner,
		struct shadow_cq *cq, bool is_send, uint32_t capacity);
/* Free the WRs of q, and remove it from the list of queues. */
void queue_fini(struct shadow_queue *q);
/*
 * The CQ was destroyed: clear q->cq of its queues.  Its QPs are destroyed as
 * well, but another thread that destroyed one may not have freed its shadow
 * yet.
 */
void queue_cq_ended(const struct shadow_cq *cq);
/* Return the first of all queues of the process, or NULL. */
struct shadow_queue *queue_first(void);

/* Take and release q->posting, around a post.  Not under referee_lock(). */
void queue_post_begin(struct shadow_queue *q);
void queue_post_end(struct shadow_queue *q);

/*
 * Return a new WR with room for @num_sge SGEs, and with the stack of the
 * caller.  NULL: there is no memory.
 */
struct shadow_wr *queue_wr_new(uint32_t num_sge);
void queue_wr_free(struct shadow_wr *wr);
/*
 * Append the WR, which is about to be posted, and check it.  The queue owns
 * it from now on, and may free it at once (counted).
 */
void queue_push(struct shadow_queue *q, struct shadow_wr *wr);
/* The real post of the receives with number @nth and more returned. */
void queue_posted(struct shadow_queue *q, uint64_t nth);
/*
 * Return the number of the refused WR @bad in a list whose first WR has
 * number @first.  If it has no shadow, return the number of the next WR.
 * @full: it was refused because the queue was full.  A list may be circular,
 * so that @bad was pushed several times; then return the first number that
 * exceeds the capacity.
 */
uint64_t queue_nth_of(const struct shadow_queue *q, uint64_t first,
		      const void *bad, bool full);
/* Remove the WRs with number @nth and more, which the post refused. */
void queue_refused(struct shadow_queue *q, uint64_t nth);
/*
 * A completion of the queue was polled: check its WR, and remove it and the
 * WRs that are done with it.  @of: the QP of the completion, or NULL if it is
 * not known.  A completion without a shadow of its WR is ignored.
 */
void queue_complete(struct shadow_queue *q, const struct shadow_qp *of,
		    const struct ibv_wc *wc);
/* Remove all WRs, without checks: the QP was reset or destroyed. */
void queue_forget(struct shadow_queue *q);

/* Format "QP 0x11, wr_id 0x7 (RDMA_WRITE)" into name, and return it. */
const char *queue_wr_name(const struct shadow_queue *q,
			  const struct shadow_wr *wr, char name[FINDING_NAME]);

/* Called in a forked child: reset locks of threads that do not exist. */
void queue_after_fork(void);

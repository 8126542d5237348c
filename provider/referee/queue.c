// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shadows of work requests, and the queues that they are in; queue.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/reason.h"
#include "failed.h"
#include "limits.h"
#include "memory.h"
#include "queue.h"
#include "referee.h"
#include "shadow.h"

static struct shadow_queue *queues;

void queue_init(struct shadow_queue *q, struct shadow *owner,
		struct shadow_cq *cq, bool is_send, uint32_t capacity)
{
	q->owner = owner;
	q->cq = cq;
	q->is_send = is_send;
	q->is_srq = owner->type == SHADOW_SRQ;
	q->capacity = capacity;
	pthread_mutex_init(&q->posting, NULL);
	q->next_queue = queues;
	queues = q;
}

void queue_fini(struct shadow_queue *q)
{
	struct shadow_queue **p;

	for (p = &queues; *p && *p != q; p = &(*p)->next_queue)
		;
	if (!*p)
		return; /* queue_init() was not called */
	*p = q->next_queue;
	queue_forget(q);
	pthread_mutex_destroy(&q->posting);
}

void queue_cq_ended(const struct shadow_cq *cq)
{
	struct shadow_queue *q;

	for (q = queues; q; q = q->next_queue)
		if (q->cq == cq)
			q->cq = NULL;
}

struct shadow_queue *queue_first(void)
{
	return queues;
}

void queue_post_begin(struct shadow_queue *q)
{
	pthread_mutex_lock(&q->posting);
	q->poster = pthread_self();
	q->held = true;
}

void queue_post_end(struct shadow_queue *q)
{
	q->held = false;
	pthread_mutex_unlock(&q->posting);
}

/*
 * Reset each lock that was held by another thread: it does not exist in the
 * child.  A lock held by the forking thread is kept.
 */
void queue_after_fork(void)
{
	struct shadow_queue *q;

	for (q = queues; q; q = q->next_queue)
		if (!q->held || !pthread_equal(q->poster, pthread_self()))
			pthread_mutex_init(&q->posting, NULL);
}

/* ------------------------------------------------------- WRs */

struct shadow_wr *queue_wr_new(uint32_t num_sge)
{
	struct shadow_wr *wr;

	wr = calloc(1, sizeof(*wr) + num_sge * sizeof(wr->sge[0]));
	if (!wr)
		return NULL;
	wr->num_sge = num_sge;
	stack_take(&wr->posted);
	return wr;
}

void queue_wr_free(struct shadow_wr *wr)
{
	if (!wr)
		return;
	memory_forget(wr);
	free(wr);
}

void queue_push(struct shadow_queue *q, struct shadow_wr *wr)
{
	wr->nth = q->posted++;
	wr->next = NULL;
	wr->prev = q->last;
	if (q->is_send && wr_is(wr, WQE_FETCH_OPS))
		to_shadow_qp(q->owner)->reads = true;
	if (q->counted) {
		memory_unknown(q, wr);
		queue_wr_free(wr);
		return;
	}
	*(q->last ? &q->last->next : &q->head) = wr;
	q->last = wr;
	q->count++;
	q->signaled += wr->signaled;
	/*
	 * as in the real queue, a WR occupies its slot until its completion
	 * is polled
	 */
	wr->beyond = q->count > q->capacity;
	if (wr->beyond)
		return;
	limits_posted(q, wr);
	memory_posting(q, wr);
}

static void queue_drop(struct shadow_queue *q, struct shadow_wr *wr)
{
	*(wr->prev ? &wr->prev->next : &q->head) = wr->next;
	*(wr->next ? &wr->next->prev : &q->last) = wr->prev;
	q->count--;
	q->signaled -= wr->signaled;
	limits_left(q, wr);
	memory_unknown(q, wr);
	queue_wr_free(wr);
}

/*
 * Return the first WR whose number is nth or more, or NULL.  Search from the
 * end: such WRs were just posted.
 */
static struct shadow_wr *queue_from(const struct shadow_queue *q, uint64_t nth)
{
	struct shadow_wr *wr, *from = NULL;

	for (wr = q->last; wr && wr->nth >= nth; wr = wr->prev)
		from = wr;
	return from;
}

void queue_posted(struct shadow_queue *q, uint64_t nth)
{
	struct shadow_wr *wr;

	for (wr = queue_from(q, nth); wr; wr = wr->next)
		memory_posted(wr);
}

uint64_t queue_nth_of(const struct shadow_queue *q, uint64_t first,
		      const void *bad, bool full)
{
	const struct shadow_wr *wr;
	uint64_t nth = q->posted;

	for (wr = queue_from(q, first); wr; wr = wr->next) {
		if (wr->source != bad)
			continue;
		if (nth == q->posted)
			nth = wr->nth;
		if (full && wr->beyond)
			return wr->nth;
	}
	return nth;
}

void queue_refused(struct shadow_queue *q, uint64_t nth)
{
	while (q->last && q->last->nth >= nth)
		queue_drop(q, q->last);
	q->posted = nth;
}

void queue_forget(struct shadow_queue *q)
{
	while (q->head)
		queue_drop(q, q->head);
}

/*
 * May wc be the completion of the WR?  An unsignaled WR has one only if it
 * fails.
 */
static bool wr_is_of(const struct shadow_wr *wr, const struct ibv_wc *wc)
{
	return wr->wr_id == wc->wr_id &&
	       (wr->receive || wr->signaled || wc->status != IBV_WC_SUCCESS);
}

void queue_complete(struct shadow_queue *q, const struct shadow_qp *of,
		    const struct ibv_wc *wc)
{
	struct shadow_wr *wr = q->head;

	/* the receives of an SRQ may complete in any order */
	while (wr && !wr_is_of(wr, wc))
		wr = wr->next;
	if (!wr)
		return; /* the WR has no shadow */
	if (wc->status != IBV_WC_SUCCESS)
		failed_check(of, q, wr, wc);
	if (q->is_send) {
		limits_rnr_ended(to_shadow_qp(q->owner));
		/* the WRs before it are done as well */
		while (q->head != wr) {
			memory_done(q, q->head, NULL);
			queue_drop(q, q->head);
		}
	}
	memory_done(q, wr, wc);
	queue_drop(q, wr);
}

static const char *opcode_name(const struct shadow_wr *wr)
{
	return wr->receive ? "receive" : reason_op_name(wr->opcode);
}

const char *queue_wr_name(const struct shadow_queue *q,
			  const struct shadow_wr *wr, char name[FINDING_NAME])
{
	char owner[FINDING_NAME];

	snprintf(name, FINDING_NAME, "%.48s, wr_id 0x%llx (%s)",
		 shadow_name(q->owner, owner), (unsigned long long)wr->wr_id,
		 opcode_name(wr));
	return name;
}

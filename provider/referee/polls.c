// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Interposers of ibv_poll_cq and of the calls of struct ibv_cq_ex: after the
 * real poll, and before the program sees the completions, each is matched
 * with the shadow of its WR (queue_complete()).
 */
#include <errno.h>

#include "engine/poll/poller.h"
#include "referee.h"
#include "shadow.h"
#include "verbs/cq.h"

/*
 * Return the receive queue of a completion, or NULL.  An XRC SRQ has a CQ of
 * its own, but its completions do not name the SRQ: of the SRQs with this CQ,
 * return the first that has a receive with the wr_id.
 */
static struct shadow_queue *
receive_queue(struct shadow_cq *c, struct shadow_qp *q, const struct ibv_wc *wc)
{
	const struct shadow_wr *wr;
	struct shadow *s;

	if (q && q->srq)
		return &q->srq->rq;
	if (q && q->type != IBV_QPT_XRC_RECV)
		return &q->rq;
	for (s = shadow_first(); s; s = s->next) {
		if (s->type != SHADOW_SRQ || to_shadow_srq(s)->cq != c)
			continue;
		for (wr = to_shadow_srq(s)->rq.head; wr; wr = wr->next)
			if (wr->wr_id == wc->wr_id)
				return &to_shadow_srq(s)->rq;
	}
	return NULL;
}

/*
 * The provider sets wc->opcode in completions with an error as well, so it
 * identifies the queue.
 */
static void completed(struct shadow_cq *c, const struct ibv_wc *wc)
{
	struct shadow_qp *q = shadow_qp_numbered(c->s.context, wc->qp_num);
	struct shadow_queue *queue;

	if (wc->opcode & IBV_WC_RECV)
		queue = receive_queue(c, q, wc);
	else
		queue = q ? &q->sq : NULL;
	if (queue)
		queue_complete(queue, q, wc);
}

static int referee_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int i, got = referee_next.poll_cq(cq, n, wc), saved = errno;
	struct shadow_cq *c;

	if (got <= 0)
		return got;
	referee_lock();
	c = shadow_cq(cq);
	for (i = 0; c && i < got; i++)
		completed(c, &wc[i]);
	referee_unlock();
	errno = saved;
	return got;
}

/* ------------------------------------------------------- ibv_cq_ex */

/* vcq->current has all members, also those that were not requested. */
static void completed_ex(struct ibv_cq_ex *cq)
{
	struct urxe_vcq *vcq = container_of(cq, struct urxe_vcq, v.cq_ex);
	struct ibv_wc wc;
	struct shadow_cq *c;
	int saved = errno;

	poll_fill_wc(&vcq->current, &wc);
	referee_lock();
	c = shadow_cq(&vcq->v.cq);
	if (c)
		completed(c, &wc);
	referee_unlock();
	errno = saved;
}

static struct shadow_cq *cq_of(struct ibv_cq_ex *cq)
{
	struct shadow_cq *c;

	referee_lock();
	c = shadow_cq(ibv_cq_ex_to_cq(cq));
	referee_unlock();
	return c;
}

static int ex_start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	int ret = cq_of(cq)->start_poll(cq, attr);

	if (!ret)
		completed_ex(cq);
	return ret;
}

static int ex_next_poll(struct ibv_cq_ex *cq)
{
	int ret = cq_of(cq)->next_poll(cq);

	if (!ret)
		completed_ex(cq);
	return ret;
}

void referee_wrap_cq_ex(struct ibv_cq_ex *cq)
{
	struct shadow_cq *c = cq_of(cq);

	if (!c)
		return;
	c->start_poll = cq->start_poll;
	c->next_poll = cq->next_poll;
	cq->start_poll = ex_start_poll;
	cq->next_poll = ex_next_poll;
}

void referee_wrap_polls(struct pabi_ops *ops)
{
	ops->poll_cq = referee_poll_cq;
}

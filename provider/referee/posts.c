// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Interposers of ibv_post_send, ibv_post_recv, ibv_post_srq_recv and
 * ibv_bind_mw (which posts a WR).
 *
 * The shadows are pushed before the real post, because a WR may complete in
 * it.  Afterwards the shadows of refused WRs are removed.  The queue's lock
 * `posting` is held from before the first push until after that;
 * referee_lock() is not held during the real post.
 */
#include <errno.h>
#include <string.h>

#include "shared/opcode.h"
#include "fabric/fabric.h"
#include "limits.h"
#include "pair.h"
#include "posts.h"
#include "referee.h"
#include "shadow.h"
#include "verbs/qp.h"
#include "verbs/srq.h"

/*
 * Return a new shadow of a WR for a queue whose WRs have at most @max SGEs.
 * NULL: the post will refuse the number of SGEs, so @sge is not read; or
 * there is no memory.
 */
static struct shadow_wr *wr_shadow(uint64_t wr_id, const struct ibv_sge *sge,
				   int num_sge, uint32_t max)
{
	struct shadow_wr *wr;

	if (num_sge < 0 || (uint32_t)num_sge > max || (num_sge && !sge))
		return NULL;
	wr = queue_wr_new((uint32_t)num_sge);
	if (!wr)
		return NULL;
	wr->wr_id = wr_id;
	if (num_sge)
		memcpy(wr->sge, sge, (uint32_t)num_sge * sizeof(*sge));
	return wr;
}

static void wr_take_op(struct shadow_wr *to, const struct ibv_send_wr *wr,
		       enum ibv_qp_type type)
{
	switch (wr->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		to->remote_addr = wr->wr.atomic.remote_addr;
		to->rkey = wr->wr.atomic.rkey;
		break;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
	case URXE_WR_ATOMIC_WRITE:
		to->remote_addr = wr->wr.rdma.remote_addr;
		to->rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_LOCAL_INV:
	case IBV_WR_SEND_WITH_INV:
		to->rkey = wr->invalidate_rkey;
		break;
	case IBV_WR_BIND_MW:
		to->mw = wr->bind_mw.mw;
		to->rkey = wr->bind_mw.rkey;
		to->bind = wr->bind_mw.bind_info;
		break;
	default:
		break;
	}
	if (type == IBV_QPT_UD)
		to->ah = wr->wr.ud.ah;
}

static struct shadow_wr *send_shadow(const struct shadow_qp *q,
				     const struct ibv_send_wr *wr)
{
	bool bare = wr->opcode == IBV_WR_LOCAL_INV ||
		    wr->opcode == IBV_WR_BIND_MW;
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;
	struct shadow_wr *to;

	to = wr_shadow(wr->wr_id, wr->sg_list, bare ? 0 : wr->num_sge,
		       to_uqp(q->qp)->sq.max_sge);
	if (!to)
		return NULL;
	to->opcode = wr->opcode;
	to->flags = wr->send_flags;
	to->is_inline = is_inline;
	to->signaled = q->sig_all || wr->send_flags & IBV_SEND_SIGNALED;
	wr_take_op(to, wr, q->type);
	return to;
}

struct shadow_qp *posts_to(const struct ibv_qp *qp)
{
	struct shadow_qp *q;

	referee_lock();
	q = shadow_qp(qp);
	referee_unlock();
	return q;
}

void posts_done(struct shadow_qp *q, uint64_t first, int ret, const void *bad)
{
	if (ret) {
		referee_lock();
		if (bad)
			first = queue_nth_of(&q->sq, first, bad, ret == ENOMEM);
		queue_refused(&q->sq, first);
		referee_unlock();
	}
	limits_answered(q, ret);
	queue_post_end(&q->sq);
	pair_check(q);
}

/*
 * Were at most `capacity` WRs of this list pushed?  The post refuses more,
 * and a list may be circular.
 */
static bool queue_may_take(const struct shadow_queue *q, uint64_t first)
{
	return q->posted - first <= q->capacity;
}

static int referee_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
			     struct ibv_send_wr **bad)
{
	struct shadow_qp *q = posts_to(qp);
	const struct ibv_send_wr *w;
	struct shadow_wr *s;
	uint64_t first;
	int ret;

	if (!q)
		return referee_next.post_send(qp, wr, bad);
	queue_post_begin(&q->sq);
	referee_lock();
	first = q->sq.posted;
	for (w = wr; w && queue_may_take(&q->sq, first); w = w->next) {
		s = send_shadow(q, w);
		if (!s)
			break;
		s->source = w;
		queue_push(&q->sq, s);
	}
	referee_unlock();
	ret = referee_next.post_send(qp, wr, bad);
	posts_done(q, first, ret, ret ? *bad : NULL);
	return ret;
}

static int referee_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
			   struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = { .wr_id = bind->wr_id,
				  .opcode = IBV_WR_BIND_MW,
				  .send_flags = bind->send_flags };
	struct shadow_qp *q = posts_to(qp);
	struct shadow_wr *s;
	uint64_t first;
	int ret;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = mw->rkey;
	wr.bind_mw.bind_info = bind->bind_info;
	if (!q)
		return referee_next.bind_mw(qp, mw, bind);
	queue_post_begin(&q->sq);
	referee_lock();
	first = q->sq.posted;
	s = send_shadow(q, &wr);
	if (s)
		queue_push(&q->sq, s);
	referee_unlock();
	ret = referee_next.bind_mw(qp, mw, bind);
	posts_done(q, first, ret, NULL);
	return ret;
}

/* ------------------------------------------------------- receives */

typedef int post_recv_fn(void *to, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad);

static int to_qp(void *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return referee_next.post_recv(qp, wr, bad);
}

static int to_srq(void *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return referee_next.post_srq_recv(srq, wr, bad);
}

static int post_receives(struct shadow_queue *q, uint32_t max_sge, void *to,
			 post_recv_fn *post, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad)
{
	const struct ibv_recv_wr *w;
	struct shadow_wr *s;
	uint64_t first;
	int ret;

	if (!q)
		return post(to, wr, bad);
	queue_post_begin(q);
	referee_lock();
	first = q->posted;
	for (w = wr; w && queue_may_take(q, first); w = w->next) {
		s = wr_shadow(w->wr_id, w->sg_list, w->num_sge, max_sge);
		if (!s)
			break;
		s->source = w;
		s->receive = true;
		s->signaled = true;
		queue_push(q, s);
	}
	referee_unlock();
	ret = post(to, wr, bad);
	referee_lock();
	queue_posted(q, first);
	if (ret)
		queue_refused(q, queue_nth_of(q, first, *bad, ret == ENOMEM));
	referee_unlock();
	queue_post_end(q);
	return ret;
}

static int referee_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			     struct ibv_recv_wr **bad)
{
	struct shadow_qp *q = posts_to(qp);

	return post_receives(q ? &q->rq : NULL, to_uqp(qp)->rq.max_sge, qp,
			     to_qp, wr, bad);
}

static int referee_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
				 struct ibv_recv_wr **bad)
{
	struct shadow_srq *r;

	referee_lock();
	r = shadow_srq(srq);
	referee_unlock();
	return post_receives(r ? &r->rq : NULL, to_usrq(srq)->rq.max_sge, srq,
			     to_srq, wr, bad);
}

void referee_wrap_posts(struct pabi_ops *ops)
{
	ops->bind_mw = referee_bind_mw;
	ops->post_recv = referee_post_recv;
	ops->post_send = referee_post_send;
	ops->post_srq_recv = referee_post_srq_recv;
}

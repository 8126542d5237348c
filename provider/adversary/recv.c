// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The options "rnr" and "fill" for receives: a receive is posted late, so
 * that a sender that was not notified of it gets an RNR NAK; and the old
 * contents of its buffers are overwritten (fill.h). WRs of a list are posted
 * one by one.
 */
#include "fill.h"
#include "object_seed.h"
#include "parts.h"
#include "verbs/qp.h"
#include "verbs/srq.h"

static struct pabi_ops next;
static const struct adversary *with;

/* Post one WR to a QP or an SRQ. */
typedef int post_fn(void *queue, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad);

static int post_to_qp(void *queue, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad)
{
	return next.post_recv(queue, wr, bad);
}

static int post_to_srq(void *queue, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad)
{
	return next.post_srq_recv(queue, wr, bad);
}

/*
 * Programs err more often with the first receives of a queue, so these are
 * late more often.
 */
#define FIRST 4
#define FIRST_TIMES 4

static bool recv_is_late(const struct object_seed *m, uint64_t nth)
{
	const uint32_t random =
		with->option[ADV_rnr] * (nth < FIRST ? FIRST_TIMES : 1);

	return random_below(object_seed_stream(m), ADV_rnr, nth, 1000) < random;
}

/*
 * Post the WRs of a list one by one, each filled and delayed as the options
 * say. If there is no memory for the table entry, post the list as it is.
 * Return 0 or an errno value, with *bad as the verb sets it.
 */
static int recv_post_each(post_fn *post, void *queue, enum object_kind kind,
			  const struct urxe_rq *rq, struct urxe_peer *self,
			  uint32_t pd, struct ibv_recv_wr *wr,
			  struct ibv_recv_wr **bad)
{
	struct object_seed *m = object_seed_find(with, kind, queue);
	struct ibv_recv_wr one, *refused;
	struct fill fill;
	uint64_t nth;
	int ret;

	if (!m)
		return post(queue, wr, bad);
	for (; wr; wr = wr->next) {
		one = *wr;
		one.next = NULL;
		fill.len = 0;
		/* a wrong num_sge will be refused: do not read sg_list */
		if (object_seed_decide(with, m, ADV_fill, &nth) &&
		    wr->num_sge >= 0 && (uint32_t)wr->num_sge <= rq->max_sge)
			fill_set(&fill, self, pd, wr);
		if (recv_is_late(m, nth))
			object_seed_sleep(m, ADV_rnr, nth);
		ret = post(queue, &one, &refused);
		if (ret) {
			fill_undo(&fill);
			*bad = wr;
			return ret;
		}
	}
	return 0;
}

static int adversary_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
			       struct ibv_recv_wr **bad)
{
	struct urxe_qp *qp = to_uqp(ibqp);

	return recv_post_each(post_to_qp, ibqp, OBJECT_QP, &qp->rq,
			      qp->ctx->self, qp->sh->pd, wr, bad);
}

static int adversary_post_srq_recv(struct ibv_srq *ibsrq,
				   struct ibv_recv_wr *wr,
				   struct ibv_recv_wr **bad)
{
	struct urxe_srq *srq = to_usrq(ibsrq);

	return recv_post_each(post_to_srq, ibsrq, OBJECT_SRQ, &srq->rq,
			      srq->ctx->self, srq->sh->pd, wr, bad);
}

void recv_wrap(struct pabi_ops *ops, const struct adversary *a)
{
	next = *ops;
	with = a;
	if (!a->option[ADV_fill] && !a->option[ADV_rnr])
		return;
	ops->post_recv = adversary_post_recv;
	ops->post_srq_recv = adversary_post_srq_recv;
}

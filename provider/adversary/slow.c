// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The option "slow": a verb returns late, after others can see its effect. A
 * thread may lose its CPU anywhere; a delay at this place reveals programs
 * that note only after the call that they made it. Examples:
 *
 *	- another thread polls the completion of a WR before ibv_post_send
 *	  has returned;
 *	- a thread has polled a completion, and another thread handles
 *	  the next one first;
 *	- the peer of a QP in RTR sends before ibv_modify_qp has returned.
 *
 * A delay is 0.1 ms to 3.2 ms (object_seed_sleep()).
 */
#include "object_seed.h"
#include "parts.h"
#include "verbs/context.h"
#include "verbs/qp.h"

static struct pabi_ops next;
static const struct adversary *with;

static void slow_turn(enum object_kind kind, const void *object)
{
	struct object_seed *m = object_seed_find(with, kind, object);
	uint64_t nth;

	if (object_seed_decide(with, m, ADV_slow, &nth))
		object_seed_sleep(m, ADV_slow, nth);
}

#define SLOW(verb, kind, object, params, args)       \
	static int adversary_##verb params           \
	{                                            \
		int ret = next.verb args;            \
                                                     \
		slow_turn(kind, object);             \
		return ret;                          \
	}

SLOW(modify_qp, OBJECT_QP, qp,
     (struct ibv_qp * qp, struct ibv_qp_attr *attr, int mask), (qp, attr, mask))
SLOW(post_send, OBJECT_QP, qp,
     (struct ibv_qp * qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad),
     (qp, wr, bad))
SLOW(post_recv, OBJECT_QP, qp,
     (struct ibv_qp * qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad),
     (qp, wr, bad))
SLOW(post_srq_recv, OBJECT_SRQ, srq,
     (struct ibv_srq * srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad),
     (srq, wr, bad))
SLOW(req_notify_cq, OBJECT_CQ, cq, (struct ibv_cq * cq, int solicited_only),
     (cq, solicited_only))

/* A poll that finds nothing has no effect and is not delayed. */
static int adversary_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got = next.poll_cq(cq, n, wc);

	if (got > 0)
		slow_turn(OBJECT_CQ, cq);
	return got;
}

/* The functions that were replaced; all QPs, and all CQs, have the same. */
static int (*_Atomic next_wr_complete)(struct ibv_qp_ex *qp);
static start_poll_fn *_Atomic next_start_poll;

static int adversary_wr_complete(struct ibv_qp_ex *qp)
{
	int ret = load_acquire(&next_wr_complete)(qp);

	slow_turn(OBJECT_QP, &qp->qp_base);
	return ret;
}

static int adversary_start_poll(struct ibv_cq_ex *cq,
				struct ibv_poll_cq_attr *attr)
{
	int ret = load_acquire(&next_start_poll)(cq, attr);

	if (!ret)
		slow_turn(OBJECT_CQ, cq);
	return ret;
}

static struct ibv_mr *adversary_reg_mr(struct ibv_pd *pd, void *addr,
				       size_t length, uint64_t iova, int access)
{
	struct ibv_mr *mr = next.reg_mr(pd, addr, length, iova, access);

	slow_turn(OBJECT_CONTEXT, pd->context);
	return mr;
}

static struct ibv_qp *adversary_create_qp(struct ibv_pd *pd,
					  struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = next.create_qp(pd, init);

	slow_turn(OBJECT_CONTEXT, pd->context);
	return qp;
}

static struct ibv_qp *adversary_create_qp_ex(struct ibv_context *ctx,
					     struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = next.create_qp_ex(ctx, attr);
	struct urxe_vqp *vqp = qp ? to_vqp(qp) : NULL;

	if (vqp && pabi_qp_tail(&vqp->v)->comp_mask & PABI_QP_IS_EX) {
		store_release(&next_wr_complete, vqp->v.qp_ex.wr_complete);
		vqp->v.qp_ex.wr_complete = adversary_wr_complete;
	}
	slow_turn(OBJECT_CONTEXT, ctx);
	return qp;
}

static struct ibv_cq_ex *
adversary_create_cq_ex(struct ibv_context *ctx,
		       struct ibv_cq_init_attr_ex *attr)
{
	return start_poll_replace(next.create_cq_ex(ctx, attr),
				  &next_start_poll, adversary_start_poll);
}

void slow_wrap(struct pabi_ops *ops, const struct adversary *a)
{
	next = *ops;
	with = a;
	if (!a->option[ADV_slow])
		return;
	ops->create_cq_ex = adversary_create_cq_ex;
	ops->create_qp = adversary_create_qp;
	ops->create_qp_ex = adversary_create_qp_ex;
	ops->modify_qp = adversary_modify_qp;
	ops->poll_cq = adversary_poll_cq;
	ops->post_recv = adversary_post_recv;
	ops->post_send = adversary_post_send;
	ops->post_srq_recv = adversary_post_srq_recv;
	ops->reg_mr = adversary_reg_mr;
	ops->req_notify_cq = adversary_req_notify_cq;
}

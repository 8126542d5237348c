// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Registration of CQs, QPs and SRQs when they are created. The order of
 * creation numbers the objects, and so selects their random numbers (met.h).
 * These interposers are installed whichever options are set.
 */
#include "met.h"
#include "parts.h"

static struct pabi_ops next;
static const struct adversary *with;

static void meet(enum met_kind kind, const void *object,
		 struct ibv_context *ctx)
{
	met_new(with, kind, object);
	async_begin(ctx);
}

#define MEET(verb, kind, type, ctx_of, params, args) \
	static struct type *adversary_##verb params  \
	{                                            \
		struct type *made = next.verb args;  \
                                                     \
		if (made)                            \
			meet(kind, made, ctx_of);    \
		return made;                         \
	}

MEET(create_cq, MET_CQ, ibv_cq, ctx,
     (struct ibv_context * ctx, int cqe, struct ibv_comp_channel *channel,
      int vector),
     (ctx, cqe, channel, vector))
MEET(create_cq_ex, MET_CQ, ibv_cq_ex, ctx,
     (struct ibv_context * ctx, struct ibv_cq_init_attr_ex *attr), (ctx, attr))
MEET(create_qp, MET_QP, ibv_qp, pd->context,
     (struct ibv_pd * pd, struct ibv_qp_init_attr *init), (pd, init))
MEET(create_qp_ex, MET_QP, ibv_qp, ctx,
     (struct ibv_context * ctx, struct ibv_qp_init_attr_ex *attr), (ctx, attr))
MEET(create_srq, MET_SRQ, ibv_srq, pd->context,
     (struct ibv_pd * pd, struct ibv_srq_init_attr *init), (pd, init))
MEET(create_srq_ex, MET_SRQ, ibv_srq, ctx,
     (struct ibv_context * ctx, struct ibv_srq_init_attr_ex *attr), (ctx, attr))

void meet_wrap(struct pabi_ops *ops, const struct adversary *a)
{
	next = *ops;
	with = a;
	ops->create_cq = adversary_create_cq;
	ops->create_cq_ex = adversary_create_cq_ex;
	ops->create_qp = adversary_create_qp;
	ops->create_qp_ex = adversary_create_qp_ex;
	ops->create_srq = adversary_create_srq;
	ops->create_srq_ex = adversary_create_srq_ex;
}

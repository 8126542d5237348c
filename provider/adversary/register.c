// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Registration of CQs, QPs and SRQs when they are created. The order of
 * creation numbers the objects, and so selects their random numbers
 * (object_seed.h). These interposers are installed whichever options are set.
 */
#include "object_seed.h"
#include "parts.h"

static struct pabi_ops next;
static const struct adversary *with;

static void register_object(enum object_kind kind, const void *object,
			    struct ibv_context *ctx)
{
	object_seed_new(with, kind, object);
	async_begin(ctx);
}

#define REGISTER(verb, kind, type, ctx_of, params, args)     \
	static struct type *adversary_##verb params          \
	{                                                    \
		struct type *made = next.verb args;          \
                                                             \
		if (made)                                    \
			register_object(kind, made, ctx_of); \
		return made;                                 \
	}

REGISTER(create_cq, OBJECT_CQ, ibv_cq, ctx,
	 (struct ibv_context * ctx, int cqe, struct ibv_comp_channel *channel,
	  int vector),
	 (ctx, cqe, channel, vector))
REGISTER(create_cq_ex, OBJECT_CQ, ibv_cq_ex, ctx,
	 (struct ibv_context * ctx, struct ibv_cq_init_attr_ex *attr),
	 (ctx, attr))
REGISTER(create_qp, OBJECT_QP, ibv_qp, pd->context,
	 (struct ibv_pd * pd, struct ibv_qp_init_attr *init), (pd, init))
REGISTER(create_qp_ex, OBJECT_QP, ibv_qp, ctx,
	 (struct ibv_context * ctx, struct ibv_qp_init_attr_ex *attr),
	 (ctx, attr))
REGISTER(create_srq, OBJECT_SRQ, ibv_srq, pd->context,
	 (struct ibv_pd * pd, struct ibv_srq_init_attr *init), (pd, init))
REGISTER(create_srq_ex, OBJECT_SRQ, ibv_srq, ctx,
	 (struct ibv_context * ctx, struct ibv_srq_init_attr_ex *attr),
	 (ctx, attr))

void register_wrap(struct pabi_ops *ops, const struct adversary *a)
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

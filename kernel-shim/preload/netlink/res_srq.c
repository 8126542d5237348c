// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <infiniband/verbs.h>

#include "fabric/bitmap.h"
#include "res.h"

/* Runs of QPNs shown per SRQ; an entry has to fit in a message. */
#define MAX_RUNS 100

struct srq {
	const struct res_ctx *c;
	const struct urxe_srq_sh *sh;
	uint32_t index;
	bool details;
};

static int put_run(struct nl_msg *m, uint32_t first, uint32_t last)
{
	struct nlattr *entry = nla_nest_start(m, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
	int bad;

	if (!entry)
		return -1;
	if (first == last) {
		bad = nla_put_u32(m, RDMA_NLDEV_ATTR_RES_LQPN, first);
	} else {
		bad = nla_put_u32(m, RDMA_NLDEV_ATTR_MIN_RANGE, first);
		bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_MAX_RANGE, last);
	}
	nla_nest_end(m, entry);
	return bad;
}

static int put_runs(struct nl_msg *m, const struct srq *srq)
{
	const struct res_ctx *c = srq->c;
	uint32_t i, first = 0, last = 0, runs = 0;
	int bad = 0;

	for (i = 0; i < c->qps && runs < MAX_RUNS; i++) {
		if (c->qp[i].srq != srq->index + 1)
			continue;
		if (first && c->qp[i].qpn != last + 1) {
			bad |= put_run(m, first, last);
			first = 0;
			runs++;
		}
		if (!first)
			first = c->qp[i].qpn;
		last = c->qp[i].qpn;
	}
	return bad || (first && put_run(m, first, last));
}

/* The table has to be there, even if it is empty. */
static int put_qps(struct nl_msg *m, const struct srq *srq)
{
	struct nlattr *table;
	uint32_t i;
	int bad;

	for (i = 0; i < srq->c->qps; i++)
		if (srq->c->qp[i].srq == srq->index + 1)
			break;
	if (i == srq->c->qps)
		return nla_put(m, RDMA_NLDEV_ATTR_RES_QP, 0, NULL);
	table = nla_nest_start(m, RDMA_NLDEV_ATTR_RES_QP);
	if (!table)
		return -1;
	bad = put_runs(m, srq);
	nla_nest_end(m, table);
	return bad;
}

static int put_details(struct nl_msg *m, const struct urxe_srq_sh *sh)
{
	const struct urxe_rq_sh *rq = &sh->rq;
	struct nlattr *table = res_details(m);
	int bad;

	if (!table)
		return -1;
	bad = res_detail_u32(
		m, "posted",
		atomic_load_explicit(&rq->prod, memory_order_relaxed) -
			atomic_load_explicit(&rq->cons, memory_order_relaxed),
		false);
	bad |= res_detail_u32(
		m, "limit",
		atomic_load_explicit(&sh->limit, memory_order_relaxed), false);
	nla_nest_end(m, table);
	return bad;
}

static int fill(struct nl_msg *m, const void *object)
{
	const struct srq *srq = object;
	const struct urxe_srq_sh *sh = srq->sh;
	int bad;

	bad = nla_put_u32(m, RDMA_NLDEV_ATTR_RES_SRQN,
			  URXE_SRQN(srq->c->slot, srq->index));
	bad |= nla_put_u8(m, RDMA_NLDEV_ATTR_RES_TYPE, (uint8_t)sh->type);
	bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_PDN, res_pdn(srq->c, sh->pd));
	if (sh->type == IBV_SRQT_XRC)
		bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_CQN,
				   res_cqn(srq->c, sh->cq));
	bad |= put_qps(m, srq);
	bad |= res_put_owner(m, srq->c, sh->pid);
	return bad || (srq->details && put_details(m, sh));
}

static void list(struct res_out *o, struct res_ctx *c)
{
	uint64_t map[URXE_MAX_SRQ / 64];
	struct urxe_srq_sh sh;
	struct srq srq = { .c = c, .sh = &sh, .details = o->details };
	uint32_t i;

	if (!res_used(c, URXE_OBJ_SRQ) ||
	    !res_read(c, offsetof(struct urxe_arena, srq_map), map,
		      sizeof(map)))
		return;
	if (res_load_qps(c)) {
		o->r->err = -ENOMEM;
		return;
	}
	for (i = 1; i < URXE_MAX_SRQ && !res_done(o); i++) {
		if (!bitmap_test(map, i) ||
		    !res_read(c, offsetof(struct urxe_arena, srq[i]), &sh,
			      sizeof(sh)) ||
		    !atomic_load_explicit(&sh.live, memory_order_relaxed))
			continue;
		srq.index = i;
		res_put(o, URXE_SRQN(c->slot, i), 0, fill, &srq);
	}
}

const struct res_kind res_kind_srq = {
	.op = RDMA_NLDEV_CMD_RES_SRQ_GET,
	.table = RDMA_NLDEV_ATTR_RES_SRQ,
	.entry = RDMA_NLDEV_ATTR_RES_SRQ_ENTRY,
	.id = RDMA_NLDEV_ATTR_RES_SRQN,
	.list = list,
};

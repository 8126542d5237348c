// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>

#include "fabric/bitmap.h"
#include "res.h"

struct cq {
	const struct res_ctx *c;
	const struct urxe_cq_sh *sh;
	uint32_t index;
	uint32_t users;
	bool details;
};

static uint32_t depth(const struct urxe_cq_sh *sh)
{
	uint32_t log = URXE_CQ_LOG(
		atomic_load_explicit(&sh->ring, memory_order_relaxed));
	uint32_t n = 1u << log;

	return n > URXE_MAX_CQE ? URXE_MAX_CQE : n;
}

static int put_details(struct nl_msg *m, const struct urxe_cq_sh *sh)
{
	static const char *const arms[] = {
		[URXE_ARM_NONE] = "none",
		[URXE_ARM_SOLICITED] = "solicited",
		[URXE_ARM_NEXT] = "next",
	};
	uint32_t arm = atomic_load_explicit(&sh->arm, memory_order_relaxed);
	struct nlattr *table = res_details(m);
	int bad;

	if (!table)
		return -1;
	bad = res_detail_string(m, "armed",
				arm < sizeof(arms) / sizeof(*arms) ? arms[arm]
								   : "unknown");
	bad |= res_detail_string(m, "channel", sh->channel ? "yes" : "no");
	bad |= res_detail_string(
		m, "overrun",
		atomic_load_explicit(&sh->error, memory_order_relaxed) ? "yes"
								       : "no");
	nla_nest_end(m, table);
	return bad;
}

static int fill(struct nl_msg *m, const void *object)
{
	const struct cq *cq = object;
	int bad;

	bad = nla_put_u32(m, RDMA_NLDEV_ATTR_RES_CQE, depth(cq->sh));
	bad |= nla_put_u64(m, RDMA_NLDEV_ATTR_RES_USECNT, cq->users);
	bad |= nla_put_u8(m, RDMA_NLDEV_ATTR_DEV_DIM, 0);
	bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_CQN,
			   res_cqn(cq->c, cq->index));
	bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_CTXN, cq->c->slot);
	bad |= res_put_owner(m, cq->c, cq->sh->pid);
	return bad || (cq->details && put_details(m, cq->sh));
}

static void add_user(uint32_t *users, uint32_t index)
{
	if (index && index < URXE_MAX_CQ)
		users[index]++;
}

/* XRC SRQs use a CQ, too. */
static void add_srqs(const struct res_ctx *c, uint32_t *users)
{
	uint64_t map[URXE_MAX_SRQ / 64];
	struct urxe_srq_sh sh;
	uint32_t i;

	if (!res_used(c, URXE_OBJ_SRQ) ||
	    !res_read(c, offsetof(struct urxe_arena, srq_map), map,
		      sizeof(map)))
		return;
	for (i = 1; i < URXE_MAX_SRQ; i++)
		if (bitmap_test(map, i) &&
		    res_read(c, offsetof(struct urxe_arena, srq[i]), &sh,
			     sizeof(sh)) &&
		    atomic_load_explicit(&sh.live, memory_order_relaxed))
			add_user(users, sh.cq);
}

/* How many use each CQ; to be freed.  NULL: no memory. */
static uint32_t *count_users(struct res_ctx *c)
{
	uint32_t *users, i;

	users = calloc(URXE_MAX_CQ, sizeof(*users));
	if (!users || res_load_qps(c)) {
		free(users);
		return NULL;
	}
	/* twice, if it is for both directions, as the kernel counts */
	for (i = 0; i < c->qps; i++) {
		add_user(users, c->qp[i].send_cq);
		add_user(users, c->qp[i].recv_cq);
	}
	add_srqs(c, users);
	return users;
}

static void list(struct res_out *o, struct res_ctx *c)
{
	uint64_t map[URXE_MAX_CQ / 64];
	struct urxe_cq_sh sh;
	struct cq cq = { .c = c, .sh = &sh, .details = o->details };
	uint32_t *users, i;

	if (!res_used(c, URXE_OBJ_CQ) ||
	    !res_read(c, offsetof(struct urxe_arena, cq_map), map, sizeof(map)))
		return;
	users = count_users(c);
	if (!users) {
		o->r->err = -ENOMEM;
		return;
	}
	for (i = 1; i < URXE_MAX_CQ && !res_done(o); i++) {
		if (!bitmap_test(map, i) ||
		    !res_read(c, offsetof(struct urxe_arena, cq[i]), &sh,
			      sizeof(sh)) ||
		    !atomic_load_explicit(&sh.live, memory_order_relaxed))
			continue;
		cq.index = i;
		cq.users = users[i];
		res_put(o, res_cqn(c, i), 0, fill, &cq);
	}
	free(users);
}

const struct res_kind res_kind_cq = {
	.op = RDMA_NLDEV_CMD_RES_CQ_GET,
	.table = RDMA_NLDEV_ATTR_RES_CQ,
	.entry = RDMA_NLDEV_ATTR_RES_CQ_ENTRY,
	.id = RDMA_NLDEV_ATTR_RES_CQN,
	.list = list,
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "res.h"

#define AT_ONCE 256 /* entries of the table */

struct pd {
	const struct res_ctx *c;
	uint32_t handle, refs;
};

static int fill(struct nl_msg *m, const void *object)
{
	const struct pd *pd = object;
	int bad;

	bad = nla_put_u64(m, RDMA_NLDEV_ATTR_RES_USECNT, pd->refs);
	bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_PDN,
			   res_pdn(pd->c, pd->handle));
	bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_CTXN, pd->c->slot);
	bad |= res_put_owner(m, pd->c, pd->c->pid);
	return bad;
}

static void list(struct res_out *o, struct res_ctx *c)
{
	struct urxe_pd_sh table[AT_ONCE];
	struct pd pd = { .c = c };
	uint32_t i, n;

	if (!res_used(c, URXE_OBJ_PD))
		return;
	for (i = 0; i < URXE_MAX_PD && !res_done(o); i += AT_ONCE) {
		if (!res_read(c, offsetof(struct urxe_arena, pd[i]), table,
			      sizeof(table)))
			return;
		/* handle 0 is no PD */
		for (n = i ? 0 : 1; n < AT_ONCE; n++) {
			if (!(atomic_load_explicit(&table[n].live,
						   memory_order_relaxed) &
			      1))
				continue;
			pd.handle = i + n;
			pd.refs = atomic_load_explicit(&table[n].refs,
						       memory_order_relaxed);
			res_put(o, res_pdn(c, pd.handle), 0, fill, &pd);
		}
	}
}

const struct res_kind res_kind_pd = {
	.op = RDMA_NLDEV_CMD_RES_PD_GET,
	.table = RDMA_NLDEV_ATTR_RES_PD,
	.entry = RDMA_NLDEV_ATTR_RES_PD_ENTRY,
	.id = RDMA_NLDEV_ATTR_RES_PDN,
	.list = list,
};

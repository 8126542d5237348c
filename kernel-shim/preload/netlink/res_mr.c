// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "fabric/bitmap.h"
#include "res.h"

struct mr {
	const struct res_ctx *c;
	const struct urxe_key *k;
	uint32_t key;
	bool details;
};

/* The part of a key that stays when its tag changes. */
static uint32_t number(uint32_t key)
{
	return key >> 8;
}

static int put_details(struct nl_msg *m, const struct urxe_key *k)
{
	static const char *const kinds[] = {
		[URXE_MEM_PRIVATE] = "private",
		[URXE_MEM_DM] = "dm",
		[URXE_MEM_FILE] = "shared",
		[URXE_MEM_NULL] = "null",
	};
	struct nlattr *table = res_details(m);
	int bad;

	if (!table)
		return -1;
	bad = res_detail_string(m, "memory",
				k->kind < sizeof(kinds) / sizeof(*kinds)
					? kinds[k->kind]
					: "unknown");
	bad |= res_detail_u64(m, "iova", k->iova, true);
	bad |= res_detail_u32(m, "access", k->access, true);
	bad |= res_detail_u32(
		m, "windows",
		atomic_load_explicit(&k->windows, memory_order_relaxed), false);
	nla_nest_end(m, table);
	return bad;
}

static int fill(struct nl_msg *m, const void *object)
{
	const struct mr *mr = object;
	const struct urxe_key *k = mr->k;
	int bad = 0;

	/* the null MR cannot be reached from afar */
	if (k->kind != URXE_MEM_NULL)
		bad = nla_put_u32(m, RDMA_NLDEV_ATTR_RES_RKEY, mr->key);
	bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_LKEY, mr->key);
	bad |= nla_put_u64(m, RDMA_NLDEV_ATTR_RES_MRLEN, k->length);
	bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_MRN, number(mr->key));
	bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_PDN, res_pdn(mr->c, k->pd));
	bad |= res_put_owner(m, mr->c, k->pid);
	return bad || (mr->details && put_details(m, k));
}

/* As kernel drivers do that count nothing per MR. */
static int fill_stat(struct nl_msg *m, const void *object)
{
	const struct mr *mr = object;

	return nla_put_u32(m, RDMA_NLDEV_ATTR_RES_MRN, number(mr->key));
}

/* Entry i as it was read; memory windows are not shown. */
static void put_mr(struct res_out *o, const struct res_ctx *c, uint32_t i,
		   const struct urxe_key *k)
{
	uint64_t live = atomic_load_explicit(&k->live, memory_order_relaxed);
	struct mr mr = { c, k, (uint32_t)live, o->details };

	if (live != URXE_MR_LIVE(mr.key) || URXE_KEY_CTX(mr.key) != c->slot ||
	    URXE_KEY_INDEX(mr.key) != i || k->flags & URXE_MR_IS_MW)
		return;
	res_put(o, number(mr.key), 0,
		o->kind == &res_kind_mr_stat ? fill_stat : fill, &mr);
}

static void list(struct res_out *o, struct res_ctx *c)
{
	uint64_t map[URXE_MAX_KEY / 64];
	struct urxe_key k[64];
	uint32_t i, n, high;

	if (!res_used(c, URXE_OBJ_MR) ||
	    !res_read(c, offsetof(struct urxe_arena, key_high), &high,
		      sizeof(high)) ||
	    !res_read(c, offsetof(struct urxe_arena, key_map), map,
		      sizeof(map)))
		return;
	if (high > URXE_MAX_KEY)
		high = URXE_MAX_KEY;
	for (i = 0; i < high && !res_done(o); i += 64) {
		if (!map[i / 64])
			continue;
		if (!res_read(c, offsetof(struct urxe_arena, key[i]), k,
			      sizeof(k)))
			return;
		for (n = 0; n < 64; n++)
			if (bitmap_test(map, i + n))
				put_mr(o, c, i + n, &k[n]);
	}
}

const struct res_kind res_kind_mr = {
	.op = RDMA_NLDEV_CMD_RES_MR_GET,
	.table = RDMA_NLDEV_ATTR_RES_MR,
	.entry = RDMA_NLDEV_ATTR_RES_MR_ENTRY,
	.id = RDMA_NLDEV_ATTR_RES_MRN,
	.list = list,
};

const struct res_kind res_kind_mr_stat = {
	.op = RDMA_NLDEV_CMD_STAT_GET,
	.table = RDMA_NLDEV_ATTR_RES_MR,
	.entry = RDMA_NLDEV_ATTR_RES_MR_ENTRY,
	.id = RDMA_NLDEV_ATTR_RES_MRN,
	.list = list,
};

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Handles and numbers in the public structs that the program has overwritten:
 * refused, nobody else's object is touched, and put right again they work.
 */
#include <string.h>

#include "types.h"

static const uint32_t garbage[] = { UINT32_MAX, 0x7fffffff, 1u << 16, 8192,
				    4096 };
#define GARBAGES ((int)(sizeof(garbage) / sizeof(*garbage)))

#define no_object(expr)                                               \
	do {                                                          \
		errno = 0;                                            \
		ck_assert_msg((expr) == NULL, "%s succeeded", #expr); \
		ck_assert(errno == ENOENT || errno == EINVAL);        \
	} while (0)
#define refused(expr)                                                     \
	do {                                                              \
		int ret_ = (expr);                                        \
                                                                          \
		ck_assert_msg(ret_ == ENOENT || ret_ == EINVAL, "%s: %d", \
			      #expr, ret_);                               \
	} while (0)

START_TEST(pd_handle)
{
	struct ibv_parent_domain_init_attr parent = { 0 };
	struct opts o = default_opts();
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1 };
	struct ibv_srq_init_attr srq = { .attr = { 4, 1, 0 } };
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct ibv_qp_init_attr qp = { .cap = o.cap, .qp_type = IBV_QPT_RC };
	struct ibv_sge sge = { .length = 1 };
	struct ibv_pd *other;
	struct ibv_dm *dm;
	struct node n;
	uint32_t good;

	node_open(&n, NULL, MEM_HEAP, &o);
	other = ibv_alloc_pd(n.ctx);
	dm = ibv_alloc_dm(n.ctx, &dm_attr);
	ck_nonnull(other);
	ck_nonnull(dm);
	qp.send_cq = qp.recv_cq = n.scq;
	ah.grh.dgid = n.gid;
	parent.pd = n.pd;
	good = n.pd->handle;
	/* the last one is another PD's */
	n.pd->handle = _i < GARBAGES ? garbage[_i] : other->handle;
	no_object(ibv_reg_mr(n.pd, n.buf, 64, 0));
	no_object(ibv_reg_dm_mr(n.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED));
	no_object(ibv_alloc_null_mr(n.pd));
	no_object(ibv_alloc_mw(n.pd, IBV_MW_TYPE_1));
	no_object(ibv_create_qp(n.pd, &qp));
	no_object(ibv_create_srq(n.pd, &srq));
	no_object(ibv_create_ah(n.pd, &ah));
	no_object(ibv_alloc_parent_domain(n.ctx, &parent));
	refused(ibv_advise_mr(n.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));
	refused(ibv_dealloc_pd(n.pd));
	ck_assert_int_ne(
		ibv_rereg_mr(n.mr, IBV_REREG_MR_CHANGE_PD, n.pd, NULL, 0, 0),
		0);
	n.pd->handle = good;
	ck_ok(ibv_free_dm(dm));
	ck_ok(ibv_dealloc_pd(other));
	node_close(&n);
}
END_TEST

/* What is destroyed is what the object is, not what was written into it. */
START_TEST(other_handles)
{
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct opts o = default_opts();
	uint32_t bad = garbage[_i], good, key;
	struct ibv_srq *srq;
	struct ibv_dm *dm;
	struct ibv_mw *mw;
	struct ibv_cq *cq;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	srq = make_srq(&n, 4, 1);
	cq = ibv_create_cq(n.ctx, 4, NULL, NULL, 0);
	mw = ibv_alloc_mw(n.pd, IBV_MW_TYPE_2);
	dm = ibv_alloc_dm(n.ctx, &dm_attr);
	ck_nonnull(cq);
	ck_nonnull(mw);
	ck_nonnull(dm);
#define TRY(object, field, destroy)       \
	do {                              \
		good = (object)->field;   \
		(object)->field = bad;    \
		refused(destroy(object)); \
		(object)->field = good;   \
	} while (0)
	TRY(n.qp, handle, ibv_destroy_qp);
	TRY(srq, handle, ibv_destroy_srq);
	TRY(cq, handle, ibv_destroy_cq);
	TRY(mw, handle, ibv_dealloc_mw);
	TRY(dm, handle, ibv_free_dm);
	TRY(n.mr, handle, ibv_dereg_mr);
	TRY(n.mr, lkey, ibv_dereg_mr);
	key = n.mr->lkey;
	n.mr->lkey = bad;
	ck_assert_int_ne(ibv_rereg_mr(n.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
				      NULL, 0, 0),
			 0);
	n.mr->lkey = key;
	ck_ok(ibv_free_dm(dm));
	mw->rkey = n.mr->rkey; /* it is the program's to change */
	ck_ok(ibv_dealloc_mw(mw));
	ck_ok(ibv_destroy_cq(cq));
	ck_ok(ibv_destroy_srq(srq));
	node_close(&n);
}
END_TEST

/* Numbers that a QP shows are shown only. */
START_TEST(qp_number)
{
	union ibv_gid group = { .raw = { 0xff, 0x0e } };
	struct opts o = default_opts();
	struct ibv_qp *qp;
	struct node n;
	uint32_t good;

	node_open(&n, NULL, MEM_HEAP, &o);
	qp = make_qp(&n, IBV_QPT_UD, NULL);
	good = qp->qp_num;
	qp->qp_num = garbage[_i];
	ck_ok(ibv_attach_mcast(qp, &group, 0));
	qp->qp_num = good;
	ck_ok(ibv_detach_mcast(qp, &group, 0));
	ck_ok(ibv_destroy_qp(qp));
	node_close(&n);
}
END_TEST

int main(void)
{
	Suite *s = suite("handles");

	add_loop(s, pd_handle, GARBAGES + 1);
	add_loop(s, other_handles, GARBAGES);
	add_loop(s, qp_number, GARBAGES);
	return run(s);
}

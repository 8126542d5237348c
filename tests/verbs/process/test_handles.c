// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Handles and numbers in the public structs that the program has overwritten.
 * Verbs fail with ENOENT or EINVAL and do not use another object instead.
 * When the value is restored, the object works.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>

#include "../types.h"
#include "../qp/xrc.h"

static const uint32_t garbage[] = { UINT32_MAX, 0x7fffffff, 1u << 16, 8192,
				    4096 };
#define GARBAGES ((int)(sizeof(garbage) / sizeof(*garbage)))

/* Assert that @expr returns NULL, and errno is ENOENT or EINVAL. */
#define no_object(expr)                                               \
	do {                                                          \
		errno = 0;                                            \
		ck_assert_msg((expr) == NULL, "%s succeeded", #expr); \
		ck_assert(errno == ENOENT || errno == EINVAL);        \
	} while (0)
/* Assert that @expr returns ENOENT or EINVAL. */
#define refused(expr)                                                     \
	do {                                                              \
		int ret_ = (expr);                                        \
                                                                          \
		ck_assert_msg(ret_ == ENOENT || ret_ == EINVAL, "%s: %d", \
			      #expr, ret_);                               \
	} while (0)

/* Each verb that takes a PD refuses one whose handle was overwritten. */
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
	/*
	 * the last value is the handle of another PD, which must not be used
	 * instead
	 */
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

/*
 * A copy of struct ibv_pd has the context and the handle of the PD: memory
 * can be registered with it, as with a kernel driver. It cannot be
 * deallocated.
 */
START_TEST(pd_copy)
{
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct opts o = default_opts();
	struct ibv_pd *copy, *gone;
	struct ibv_context *other;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_dm *dm;
	struct ibv_pd *pd;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	/* without the private part of the provider's struct */
	copy = malloc(sizeof(*copy));
	gone = malloc(sizeof(*gone));
	ck_nonnull(copy);
	ck_nonnull(gone);
	*copy = *n.pd;
	mr = ibv_reg_mr(copy, n.buf, 64, IBV_ACCESS_LOCAL_WRITE);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	dm = ibv_alloc_dm(n.ctx, &dm_attr);
	ck_nonnull(dm);
	mr = ibv_reg_dm_mr(copy, dm, 0, 64, IBV_ACCESS_ZERO_BASED);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_free_dm(dm));
	mw = ibv_alloc_mw(copy, IBV_MW_TYPE_1);
	ck_nonnull(mw);
	ck_ok(ibv_dealloc_mw(mw));
	ck_errno(ibv_reg_dmabuf_mr(copy, 0, 64, 0, -1, 0), EBADF);
	refused(ibv_dealloc_pd(copy));
	/*
	 * the handle of a PD that was deallocated; of no PD; a context that
	 * does not have the PD
	 */
	pd = ibv_alloc_pd(n.ctx);
	ck_nonnull(pd);
	*gone = *pd;
	ck_ok(ibv_dealloc_pd(pd));
	no_object(ibv_reg_mr(gone, n.buf, 64, 0));
	copy->handle = 4000;
	no_object(ibv_reg_mr(copy, n.buf, 64, 0));
	other = open_device();
	n.pd->context = other;
	refused(ibv_dealloc_pd(n.pd));
	no_object(ibv_reg_mr(n.pd, n.buf, 64, 0));
	n.pd->context = n.ctx;
	ck_ok(ibv_close_device(other));
	free(copy);
	free(gone);
	node_close(&n);
}
END_TEST

/*
 * A verb that is a system call on other devices finds the object by its
 * handle, so it fails if the handle was overwritten.
 */
START_TEST(used_by_handle)
{
	struct ibv_ah_attr ah_attr = { .is_global = 1, .port_num = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	union ibv_gid group = { .raw = { 0xff, 0x0e } };
	struct opts o = default_opts();
	struct ibv_qp_init_attr init = { .cap = o.cap, .qp_type = IBV_QPT_RC };
	struct ibv_srq_init_attr_ex xrc = {
		.attr = { 4, 1, 0 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
	};
	struct ibv_modify_cq_attr cq_attr = { 0 };
	struct ibv_srq_attr srq_attr;
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct ibv_cq *cq;
	struct ibv_qp *ud;
	struct node n;
	uint32_t good;

	node_open(&n, NULL, MEM_HEAP, &o);
	srq = make_srq(&n, 4, 1);
	ud = make_qp(&n, IBV_QPT_UD, NULL);
	cq = ibv_create_cq(n.ctx, 4, NULL, NULL, 0);
	ck_nonnull(cq);
	ah_attr.grh.dgid = n.gid;
	ah = ibv_create_ah(n.pd, &ah_attr);
	ck_nonnull(ah);
#define SPOILED(object, expr)                   \
	do {                                    \
		good = (object)->handle;        \
		(object)->handle = garbage[_i]; \
		expr;                           \
		(object)->handle = good;        \
	} while (0)
	init.send_cq = cq;
	init.recv_cq = n.rcq;
	SPOILED(cq, no_object(ibv_create_qp(n.pd, &init)));
	init.send_cq = n.scq;
	init.recv_cq = cq;
	SPOILED(cq, no_object(ibv_create_qp(n.pd, &init)));
	init.srq = srq;
	SPOILED(srq, no_object(ibv_create_qp(n.pd, &init)));
	xrc.pd = n.pd;
	xrc.cq = cq;
	xrc.xrcd = open_xrcd(n.ctx, -1, O_CREAT);
	ck_nonnull(xrc.xrcd);
	SPOILED(cq, no_object(ibv_create_srq_ex(n.ctx, &xrc)));
	ck_ok(ibv_close_xrcd(xrc.xrcd));
	SPOILED(cq, refused(ibv_req_notify_cq(cq, 0)));
	SPOILED(cq, refused(ibv_resize_cq(cq, 8)));
	SPOILED(cq, refused(ibv_modify_cq(cq, &cq_attr)));
	SPOILED(srq, refused(ibv_query_srq(srq, &srq_attr)));
	SPOILED(srq, refused(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_LIMIT)));
	SPOILED(n.qp, refused(ibv_query_qp(n.qp, &attr, IBV_QP_STATE, &init)));
	attr.qp_state = IBV_QPS_ERR;
	SPOILED(n.qp, refused(ibv_modify_qp(n.qp, &attr, IBV_QP_STATE)));
	SPOILED(ud, refused(ibv_attach_mcast(ud, &group, 0)));
	SPOILED(ud, refused(ibv_detach_mcast(ud, &group, 0)));
	SPOILED(ah, refused(ibv_destroy_ah(ah)));
	ck_ok(ibv_destroy_ah(ah));
	ck_ok(ibv_destroy_qp(ud));
	ck_ok(ibv_destroy_cq(cq));
	ck_ok(ibv_destroy_srq(srq));
	node_close(&n);
}
END_TEST

/*
 * An object whose handle or lkey was overwritten is not destroyed, nor is
 * another one in its place. The rkey of an MW is not read.
 */
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
	mw->rkey = n.mr->rkey; /* the program may change it */
	ck_ok(ibv_dealloc_mw(mw));
	ck_ok(ibv_destroy_cq(cq));
	ck_ok(ibv_destroy_srq(srq));
	node_close(&n);
}
END_TEST

/* qp_num is output only: an overwritten one has no effect. */
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
	add(s, pd_copy);
	add_loop(s, used_by_handle, GARBAGES);
	add_loop(s, other_handles, GARBAGES);
	add_loop(s, qp_number, GARBAGES);
	return run(s);
}

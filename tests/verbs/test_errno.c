// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The error that a verb returns is in errno, too: libfabric's verbs provider
 * does "if (ret) return -errno". A verb that succeeds leaves errno unchanged.
 */
#include <string.h>

#include "harness.h"

#define UNTOUCHED 12345

/* Assert that @expr returns @err and sets errno to it. */
#define refused(expr, err)                                                \
	do {                                                              \
		errno = UNTOUCHED;                                        \
		ck_assert_int_eq(expr, err);                              \
		ck_assert_msg(errno == (err), "errno of %s is %d", #expr, \
			      errno);                                     \
	} while (0)
/* Assert that @expr is true and leaves errno unchanged. */
#define quiet(expr)                                                           \
	do {                                                                  \
		errno = UNTOUCHED;                                            \
		ck_assert_msg(expr, "%s", #expr);                             \
		ck_assert_msg(errno == UNTOUCHED, "errno of %s is %d", #expr, \
			      errno);                                         \
	} while (0)

/* Verbs that return an errno value, with invalid arguments. */
START_TEST(control_verbs)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { 4, 1, 0 } };
	struct ibv_srq_attr limit = { .srq_limit = 5 };
	struct ibv_modify_cq_attr cq_attr = { .attr_mask = 1u << 31 };
	struct ibv_values_ex values = { .comp_mask = 1u << 31 };
	struct opts o = default_opts();
	struct ibv_port_attr port;
	struct ibv_sge sge = { .length = 1 };
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_INLINE };
	union ibv_gid gid = { .raw = { 0xff } };
	struct ibv_qp_attr attr;
	struct ibv_srq *srq;
	struct ibv_mw *mw;
	struct node n;
	uint32_t num;

	node_open(&n, NULL, MEM_HEAP, &o);
	srq = ibv_create_srq(n.pd, &srq_attr);
	ck_nonnull(srq);
	mw = ibv_alloc_mw(n.pd, IBV_MW_TYPE_1);
	ck_nonnull(mw);
	attr.qp_state = IBV_QPS_RTS;
	refused(ibv_modify_qp(n.qp, &attr, IBV_QP_STATE), EINVAL);
	refused(ibv_resize_cq(n.scq, 0), EINVAL);
	refused(ibv_modify_cq(n.scq, &cq_attr), EINVAL);
	refused(ibv_query_port(n.ctx, 2, &port), EINVAL);
	refused(ibv_query_rt_values_ex(n.ctx, &values), EINVAL);
	refused(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), EINVAL);
	limit.max_wr = 0;
	refused(ibv_modify_srq(srq, &limit, IBV_SRQ_MAX_WR), EINVAL);
	refused(ibv_get_srq_num(srq, &num), EINVAL);
	refused(ibv_attach_mcast(n.qp, &gid, 0), EINVAL);
	refused(ibv_detach_mcast(n.qp, &gid, 0), EINVAL);
	refused(ibv_bind_mw(n.qp, mw, &bind), EINVAL);
	refused(ibv_advise_mr(n.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1),
		EFAULT);
	ck_ok(ibv_dealloc_mw(mw));
	ck_ok(ibv_destroy_srq(srq));
	node_close(&n);
}
END_TEST

/*
 * EBUSY for objects in use. ibv_rereg_mr returns IBV_REREG_MR_ERR_* instead
 * and sets errno to EINVAL.
 */
START_TEST(objects_in_use)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { 4, 1, 0 } };
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct ibv_parent_domain_init_attr parent_attr = { 0 };
	struct opts o = default_opts();
	struct ibv_qp_init_attr init;
	struct ibv_td_init_attr td_attr = { 0 };
	struct ibv_pd *parent;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_td *td;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	refused(ibv_dealloc_pd(n.pd), EBUSY);
	refused(ibv_destroy_cq(n.scq), EBUSY);
	srq = ibv_create_srq(n.pd, &srq_attr);
	ck_nonnull(srq);
	init = (struct ibv_qp_init_attr){ .send_cq = n.scq,
					  .recv_cq = n.rcq,
					  .cap = o.cap,
					  .srq = srq,
					  .qp_type = IBV_QPT_RC };
	qp = ibv_create_qp(n.pd, &init);
	ck_nonnull(qp);
	refused(ibv_destroy_srq(srq), EBUSY);
	ck_ok(ibv_destroy_qp(qp));
	ck_ok(ibv_destroy_srq(srq));
	dm = ibv_alloc_dm(n.ctx, &dm_attr);
	ck_nonnull(dm);
	mr = ibv_reg_dm_mr(n.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED);
	ck_nonnull(mr);
	refused(ibv_free_dm(dm), EBUSY);
	errno = UNTOUCHED;
	ck_assert_int_ne(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      n.buf, 64, 0),
			 0);
	ck_assert_int_eq(errno, EINVAL);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_free_dm(dm));
	td = ibv_alloc_td(n.ctx, &td_attr);
	ck_nonnull(td);
	parent_attr.pd = n.pd;
	parent_attr.td = td;
	parent = ibv_alloc_parent_domain(n.ctx, &parent_attr);
	ck_nonnull(parent);
	refused(ibv_dealloc_td(td), EBUSY);
	ck_ok(ibv_dealloc_pd(parent));
	ck_ok(ibv_dealloc_td(td));
	node_close(&n);
}
END_TEST

/* Posting in the wrong state, with too many SGEs, and to a full queue. */
START_TEST(data_verbs)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { 1, 1, 0 } };
	struct ibv_recv_wr recv = { 0 }, *bad_recv;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct opts o = default_opts();
	struct ibv_srq *srq;
	struct duo d;

	o.cap.max_recv_wr = 1;
	duo_open_unconnected(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	refused(post_wr(d.a.qp, &wr), EINVAL); /* in RESET */
	refused(ibv_post_recv(d.a.qp, &recv, &bad_recv), EINVAL);
	duo_connect(&d);
	wr.num_sge = 1000;
	refused(post_wr(d.a.qp, &wr), EINVAL);
	recv.num_sge = 1000;
	refused(ibv_post_recv(d.a.qp, &recv, &bad_recv), EINVAL);
	recv.num_sge = 0;
	ck_ok(ibv_post_recv(d.a.qp, &recv, &bad_recv));
	refused(ibv_post_recv(d.a.qp, &recv, &bad_recv), ENOMEM);
	srq = ibv_create_srq(d.a.pd, &srq_attr);
	ck_nonnull(srq);
	ck_ok(ibv_post_srq_recv(srq, &recv, &bad_recv));
	refused(ibv_post_srq_recv(srq, &recv, &bad_recv), ENOMEM);
	ck_ok(ibv_destroy_srq(srq));
	duo_close(&d);
}
END_TEST

/*
 * Calls through function pointers: ibv_wr_complete, ibv_start_poll, and the
 * copies of ibv_dm, also with an imported DM that was freed.
 */
START_TEST(extended_calls)
{
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct ibv_poll_cq_attr poll = { .comp_mask = 1 };
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 1 };
	struct opts o = default_opts();
	struct ibv_qp_init_attr_ex init;
	struct ibv_qp_ex *ex;
	struct ibv_cq_ex *cq;
	struct ibv_dm *dm, *freed;
	struct node n;
	char buf[8];

	node_open(&n, NULL, MEM_HEAP, &o);
	init = (struct ibv_qp_init_attr_ex){
		.send_cq = n.scq,
		.recv_cq = n.rcq,
		.cap = o.cap,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = n.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	ex = ibv_qp_to_qp_ex(ibv_create_qp_ex(n.ctx, &init));
	ck_nonnull(ex);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	refused(ibv_wr_complete(ex), EINVAL); /* in RESET */
	cq = ibv_create_cq_ex(n.ctx, &cq_attr);
	ck_nonnull(cq);
	refused(ibv_start_poll(cq, &poll), EINVAL);
	dm = ibv_alloc_dm(n.ctx, &dm_attr);
	ck_nonnull(dm);
	refused(ibv_memcpy_to_dm(dm, 64, buf, 8), EINVAL);
	refused(ibv_memcpy_from_dm(buf, dm, 1, 4), EINVAL);
	freed = ibv_import_dm(n.ctx, dm->handle);
	ck_nonnull(freed);
	ck_ok(ibv_free_dm(dm));
	refused(ibv_memcpy_to_dm(freed, 0, buf, 8), ENOENT);
	refused(ibv_memcpy_from_dm(buf, freed, 0, 8), ENOENT);
	ibv_unimport_dm(freed);
	ck_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	ck_ok(ibv_destroy_qp(&ex->qp_base));
	node_close(&n);
}
END_TEST

/*
 * Verbs that succeed leave errno unchanged, also if a system call within them
 * fails, as opening a file that does not exist.
 */
START_TEST(success_keeps_errno)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { 4, 1, 0 } };
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct opts o = default_opts();
	struct ibv_port_attr port;
	struct ibv_device_attr dev;
	struct ibv_qp_init_attr init;
	struct ibv_context *ctx;
	struct ibv_qp_attr attr;
	struct ibv_srq *srq;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_dm *dm;
	struct node n;

	node_open(&n, NULL, MEM_SHARED, &o);
	ctx = n.ctx;
	quiet(!ibv_query_device(ctx, &dev));
	quiet(!ibv_query_port(ctx, 1, &port));
	quiet((pd = ibv_alloc_pd(ctx)));
	quiet((cq = ibv_create_cq(ctx, 16, NULL, NULL, 0)));
	quiet((mr = ibv_reg_mr(pd, n.buf, 4096, ALL_ACCESS)));
	quiet((dm = ibv_alloc_dm(ctx, &dm_attr)));
	quiet((srq = ibv_create_srq(pd, &srq_attr)));
	init = (struct ibv_qp_init_attr){ .send_cq = cq,
					  .recv_cq = cq,
					  .cap = o.cap,
					  .srq = srq,
					  .qp_type = IBV_QPT_RC };
	quiet((qp = ibv_create_qp(pd, &init)));
	quiet(!ibv_modify_qp(qp, &attr, attr_init(&attr, &o)));
	quiet(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	quiet(!ibv_resize_cq(cq, 32));
	quiet(!ibv_req_notify_cq(cq, 0));
	quiet(!ibv_destroy_qp(qp));
	quiet(!ibv_destroy_srq(srq));
	quiet(!ibv_free_dm(dm));
	quiet(!ibv_dereg_mr(mr));
	quiet(!ibv_destroy_cq(cq));
	quiet(!ibv_dealloc_pd(pd));
	node_close(&n);
}
END_TEST

static bool poll_one(struct node *n, struct ibv_wc *wc)
{
	int got;

	do {
		got = ibv_poll_cq(n->scq, 1, wc);
	} while (!got);
	return got == 1 && !wc->status;
}

/* The same for posting and polling. */
START_TEST(posting_keeps_errno)
{
	struct opts o = default_opts();
	struct ibv_wc wc;
	struct duo d;

	duo_open(&d, TWO_PROCESSES, MEM_SHARED, _i ? MEM_SHARED : MEM_HEAP, &o);
	b_recv(&d, 1, 0, 4096);
	quiet(!post(&d, IBV_WR_RDMA_WRITE, 1, 0, 4096, 0, 0));
	quiet(poll_one(&d.a, &wc));
	quiet(!post(&d, IBV_WR_SEND, 2, 0, 4096, 0, 0));
	quiet(poll_one(&d.a, &wc));
	quiet(!post(&d, IBV_WR_RDMA_READ, 3, 0, 4096, 0, 0));
	quiet(poll_one(&d.a, &wc));
	quiet(!post_recv(&d.a, 4, 0, 64));
	quiet(!ibv_poll_cq(d.a.scq, 1, &wc));
	duo_close(&d);
}
END_TEST

/*
 * Posting succeeds though the destination QP does not exist; the completion
 * has the error.
 */
START_TEST(posting_without_destination)
{
	struct opts o = default_opts();
	struct addr no_peer;
	struct node n;
	struct ibv_send_wr wr = { .wr_id = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };

	o.timeout = 8;
	o.retry_cnt = 1;
	node_open(&n, NULL, MEM_HEAP, &o);
	no_peer = node_addr(&n);
	no_peer.qpn ^= 1;
	node_connect(&n, &no_peer);
	quiet(!post_wr(n.qp, &wr));
	expect(n.scq, 1, IBV_WC_RETRY_EXC_ERR);
	node_close(&n);
}
END_TEST

int main(void)
{
	Suite *s = suite("errno");

	add(s, control_verbs);
	add(s, objects_in_use);
	add(s, data_verbs);
	add(s, extended_calls);
	add(s, success_keeps_errno);
	add_loop(s, posting_keeps_errno, 2);
	add(s, posting_without_destination);
	return run(s);
}

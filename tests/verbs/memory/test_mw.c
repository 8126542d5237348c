// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory windows of types 1 and 2B: b binds and invalidates them, a accesses
 * b's memory through them.
 */
#include <pthread.h>
#include <string.h>

#include "../access.h"
#include "../harness.h"
#include "shared/layout.h"

#define WINDOW (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Arguments and results of an operation on the window of b, b->user. */
struct win {
	enum ibv_mw_type type;
	size_t off;
	uint64_t len;
	unsigned int access;
	uint32_t rkey; /* of the window, after the operation */
	enum ibv_wc_status status;
	int ret;
	bool no_mr;
};

static struct opts mw_opts(void)
{
	struct opts o = default_opts();

	o.mr_access |= IBV_ACCESS_MW_BIND;
	return o;
}

static void open_mw(struct duo *d, int where)
{
	struct opts o = mw_opts();

	duo_open(d, where, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d->a, 0, 4096, 1);
}

static void do_alloc(struct node *b, void *arg)
{
	struct win *w = arg;
	struct ibv_mw *mw = ibv_alloc_mw(b->pd, w->type);

	ck_nonnull(mw);
	ck_assert_ptr_eq(mw->pd, b->pd);
	ck_assert_ptr_eq(mw->context, b->ctx);
	ck_assert_int_eq(mw->type, w->type);
	b->user = mw;
	w->rkey = mw->rkey;
}

static void do_dealloc(struct node *b, void *arg)
{
	(void)arg;
	if (b->user)
		ck_ok(ibv_dealloc_mw(b->user));
	b->user = NULL;
}

/* Deallocate the window first: while it is bound, its MR is EBUSY. */
static void close_mw(struct duo *d)
{
	on_b(d, do_dealloc, NULL, 0);
	duo_close(d);
}

/*
 * Bind a type 1 window with ibv_bind_mw. Success increments the tag of its
 * rkey; an error that is returned does not change the rkey.
 */
static void do_bind1(struct node *b, void *arg)
{
	struct win *w = arg;
	struct ibv_mw *mw = b->user;
	struct ibv_mw_bind bind = {
		.wr_id = 77,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { .mr = w->no_mr ? NULL : b->mr,
			       .addr = w->no_mr ? 0 : b->base + w->off,
			       .length = w->len,
			       .mw_access_flags = w->access },
	};
	uint32_t old = mw->rkey;
	struct ibv_wc wc;

	w->ret = ibv_bind_mw(b->qp, mw, &bind);
	w->rkey = mw->rkey;
	if (w->ret) {
		ck_assert_uint_eq(mw->rkey, old);
		return;
	}
	ck_assert_uint_eq(mw->rkey, ibv_inc_rkey(old));
	wc = wait_wc(b->scq);
	ck_assert_uint_eq(wc.wr_id, 77);
	w->status = wc.status;
	if (!wc.status)
		ck_assert_int_eq(wc.opcode, IBV_WC_BIND_MW);
}

/* Bind a type 2 window with IBV_WR_BIND_MW; w->rkey has the new tag. */
static void do_bind2(struct node *b, void *arg)
{
	struct win *w = arg;
	struct ibv_send_wr wr = {
		.wr_id = 78,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	wr.bind_mw.mw = b->user;
	wr.bind_mw.rkey = w->rkey;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = b->mr,
		.addr = b->base + w->off,
		.length = w->len,
		.mw_access_flags = w->access,
	};
	w->ret = post_wr(b->qp, &wr);
	if (w->ret)
		return;
	w->rkey = wr.bind_mw.mw->rkey; /* the resulting key */
	wc = wait_wc(b->scq);
	ck_assert_uint_eq(wc.wr_id, 78);
	w->status = wc.status;
	if (!wc.status)
		ck_assert_int_eq(wc.opcode, IBV_WC_BIND_MW);
}

static void do_local_inv(struct node *b, void *arg)
{
	struct win *w = arg;
	struct ibv_send_wr wr = {
		.wr_id = 79,
		.opcode = IBV_WR_LOCAL_INV,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	wr.invalidate_rkey = w->rkey;
	ck_ok(post_wr(b->qp, &wr));
	wc = wait_wc(b->scq);
	ck_assert_uint_eq(wc.wr_id, 79);
	w->status = wc.status;
	if (!wc.status)
		ck_assert_int_eq(wc.opcode, IBV_WC_LOCAL_INV);
}

static void do_dereg(struct node *b, void *arg)
{
	int *ret = arg;

	*ret = ibv_dereg_mr(b->mr);
	if (!*ret)
		b->mr = NULL;
}

static int b_dereg(struct duo *d)
{
	int ret = -1;

	on_b(d, do_dereg, &ret, sizeof(ret));
	return ret;
}

static void b_do(struct duo *d, node_fn *fn, struct win *w)
{
	on_b(d, fn, w, sizeof(*w));
}

static enum ibv_wc_status bind2(struct duo *d, struct win *w)
{
	b_do(d, do_bind2, w);
	ck_ok(w->ret);
	return w->status;
}

static uint64_t b_addr(struct duo *d, size_t off)
{
	return d->at_b.base + off;
}

/*
 * Windows of types 1 and 2B are reported. A type that is none is EINVAL; a PD
 * with a window is EBUSY.
 */
START_TEST(capabilities)
{
	struct ibv_context *ctx = open_device();
	struct ibv_device_attr attr;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mw *mw;

	ck_ok(ibv_query_device(ctx, &attr));
	ck_assert(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	ck_assert(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	ck_assert(!(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A));
	ck_assert(attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
	ck_assert_int_eq(attr.max_mw, URXE_MAX_MW);
	ck_errno(ibv_alloc_mw(pd, 3), EINVAL);
	ck_errno(ibv_alloc_mw(pd, 0), EINVAL);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	ck_nonnull(mw);
	ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY);
	ck_ok(ibv_dealloc_mw(mw));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* URXE_MAX_MW windows can be allocated; one more is ENOMEM. */
START_TEST(max_mws)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	static struct ibv_mw *mw[URXE_MAX_MW];
	int i;

	for (i = 0; i < URXE_MAX_MW; i++) {
		mw[i] = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
		ck_nonnull(mw[i]);
	}
	ck_errno(ibv_alloc_mw(pd, IBV_MW_TYPE_2), ENOMEM);
	for (i = 0; i < URXE_MAX_MW; i++)
		ck_ok(ibv_dealloc_mw(mw[i]));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/*
 * A bound window gives access to its range by its last rkey. While it is
 * bound, the MR is EBUSY.
 */
START_TEST(type_1)
{
	struct win w = {
		.type = IBV_MW_TYPE_1, .off = 100, .len = 200, .access = WINDOW
	};
	uint32_t old, unbound;
	struct duo d;

	open_mw(&d, _i);
	b_do(&d, do_alloc, &w);
	unbound = w.rkey;
	ck_write(&d, b_addr(&d, 100), unbound, 8, IBV_WC_REM_ACCESS_ERR);
	b_do(&d, do_bind1, &w);
	ck_assert_int_eq(w.status, IBV_WC_SUCCESS);
	ck_write(&d, b_addr(&d, 100), unbound, 8, IBV_WC_REM_ACCESS_ERR);
	ck_write(&d, b_addr(&d, 100), w.rkey, 200, IBV_WC_SUCCESS);
	ck_assert(b_has(&d, 100, 200, 1));
	ck_write(&d, b_addr(&d, 99), w.rkey, 1, IBV_WC_REM_ACCESS_ERR);
	ck_write(&d, b_addr(&d, 100), w.rkey, 201, IBV_WC_REM_ACCESS_ERR);
	ck_read(&d, b_addr(&d, 250), w.rkey, 50, IBV_WC_SUCCESS);
	ck_assert_int_eq(b_dereg(&d), EBUSY);
	/* binding again invalidates the old rkey */
	old = w.rkey;
	w.off = 1000;
	b_do(&d, do_bind1, &w);
	ck_assert_int_eq(w.status, IBV_WC_SUCCESS);
	ck_write(&d, b_addr(&d, 100), old, 8, IBV_WC_REM_ACCESS_ERR);
	ck_write(&d, b_addr(&d, 100), w.rkey, 8, IBV_WC_REM_ACCESS_ERR);
	ck_write(&d, b_addr(&d, 1000), w.rkey, 200, IBV_WC_SUCCESS);
	/* length 0 unbinds, then the MR can be deregistered */
	w.len = 0;
	b_do(&d, do_bind1, &w);
	ck_assert_int_eq(w.status, IBV_WC_SUCCESS);
	ck_write(&d, b_addr(&d, 1000), w.rkey, 8, IBV_WC_REM_ACCESS_ERR);
	w.no_mr = true;
	b_do(&d, do_bind1, &w);
	ck_ok(w.ret);
	ck_assert_int_eq(w.status, IBV_WC_SUCCESS);
	ck_assert_int_eq(b_dereg(&d), 0);
	close_mw(&d);
}
END_TEST

/*
 * A type 1 window cannot be zero-based, bound by a WR or inline, or
 * invalidated. Deallocation revokes the access.
 */
START_TEST(type_1_rules)
{
	struct win w = { .type = IBV_MW_TYPE_1, .len = 64, .access = WINDOW };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };
	struct ibv_mw_bind bind = { 0 };
	struct ibv_mw *mw;
	struct duo d;

	open_mw(&d, SAME_CONTEXT);
	b_do(&d, do_alloc, &w);
	mw = d.b.user;
	w.access = WINDOW | IBV_ACCESS_ZERO_BASED;
	b_do(&d, do_bind1, &w);
	ck_assert_int_eq(w.ret, EINVAL);
	w.access = IBV_ACCESS_MW_BIND;
	b_do(&d, do_bind1, &w);
	ck_assert_int_eq(w.ret, EINVAL);
	bind.bind_info =
		(struct ibv_mw_bind_info){ d.b.mr, d.b.base, 8, WINDOW };
	bind.send_flags = IBV_SEND_INLINE;
	ck_assert_int_eq(ibv_bind_mw(d.b.qp, mw, &bind), EINVAL);
	/* IBV_WR_BIND_MW is for type 2 */
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = bind.bind_info;
	ck_assert_int_eq(post_wr(d.b.qp, &wr), EINVAL);
	/* invalidation is for type 2 */
	w.access = WINDOW;
	b_do(&d, do_bind1, &w);
	ck_assert_int_eq(w.status, IBV_WC_SUCCESS);
	b_do(&d, do_local_inv, &w);
	ck_assert_int_eq(w.status, IBV_WC_MW_BIND_ERR);
	duo_renew(&d);
	ck_write(&d, b_addr(&d, 0), w.rkey, 8, IBV_WC_SUCCESS);
	on_b(&d, do_dealloc, NULL, 0);
	ck_write(&d, b_addr(&d, 0), w.rkey, 8, IBV_WC_REM_ACCESS_ERR);
	close_mw(&d);
}
END_TEST

/*
 * A type 1 window can be used through every QP of its PD, a type 2 window
 * only through the QP that bound it.
 */
START_TEST(qps_that_may_use_a_window)
{
	struct win w = { .type = IBV_MW_TYPE_1, .len = 64, .access = WINDOW };
	struct duo d;

	open_mw(&d, _i);
	b_do(&d, do_alloc, &w);
	b_do(&d, do_bind1, &w);
	duo_renew(&d);
	ck_write(&d, b_addr(&d, 0), w.rkey, 64, IBV_WC_SUCCESS);
	on_b(&d, do_dealloc, NULL, 0);
	w.type = IBV_MW_TYPE_2;
	b_do(&d, do_alloc, &w);
	w.rkey = ibv_inc_rkey(w.rkey);
	ck_assert_int_eq(bind2(&d, &w), IBV_WC_SUCCESS);
	ck_write(&d, b_addr(&d, 0), w.rkey, 64, IBV_WC_SUCCESS);
	duo_renew(&d);
	ck_write(&d, b_addr(&d, 0), w.rkey, 64, IBV_WC_REM_ACCESS_ERR);
	/* only that QP may invalidate it */
	b_do(&d, do_local_inv, &w);
	ck_assert_int_eq(w.status, IBV_WC_MW_BIND_ERR);
	ck_assert_int_eq(b_dereg(&d), EBUSY);
	on_b(&d, do_dealloc, NULL, 0);
	ck_ok(b_dereg(&d));
	close_mw(&d);
}
END_TEST

/* The program chooses the tag of the rkey, its low 8 bits, in the bind WR. */
START_TEST(type_2)
{
	struct win w = {
		.type = IBV_MW_TYPE_2, .off = 64, .len = 100, .access = WINDOW
	};
	struct duo d;

	open_mw(&d, _i);
	b_do(&d, do_alloc, &w);
	w.rkey = (w.rkey & ~0xffu) | 0x5a; /* the chosen tag */
	ck_assert_int_eq(bind2(&d, &w), IBV_WC_SUCCESS);
	ck_write(&d, b_addr(&d, 64), w.rkey, 100, IBV_WC_SUCCESS);
	ck_assert(b_has(&d, 64, 100, 1));
	ck_write(&d, b_addr(&d, 64), w.rkey ^ 1, 8, IBV_WC_REM_ACCESS_ERR);
	close_mw(&d);
}
END_TEST

/*
 * A bind WR sets only the tag of the rkey, whatever the other bits of
 * wr.bind_mw.rkey are.
 */
START_TEST(type_2_key)
{
	static const uint32_t given[] = { 0x5a, 0, 0xffffff5a, 0x12345678 };
	struct win w = {
		.type = IBV_MW_TYPE_2, .off = 64, .len = 100, .access = WINDOW
	};
	uint32_t old;
	struct duo d;

	open_mw(&d, TWO_PROCESSES);
	b_do(&d, do_alloc, &w);
	old = w.rkey;
	w.rkey = given[_i];
	ck_assert_int_eq(bind2(&d, &w), IBV_WC_SUCCESS);
	ck_assert_uint_eq(w.rkey, (old & ~0xffu) | (given[_i] & 0xff));
	ck_write(&d, b_addr(&d, 64), w.rkey, 100, IBV_WC_SUCCESS);
	ck_write(&d, b_addr(&d, 64), given[_i], 8, IBV_WC_REM_ACCESS_ERR);
	close_mw(&d);
}
END_TEST

/*
 * After IBV_WR_LOCAL_INV the rkey gives no access, and the window can be
 * bound again.
 */
START_TEST(type_2_local_invalidate)
{
	struct win w = { .type = IBV_MW_TYPE_2, .len = 100, .access = WINDOW };
	struct duo d;
	int i;

	open_mw(&d, _i);
	b_do(&d, do_alloc, &w);
	for (i = 0; i < 300; i++) { /* the tag wraps */
		w.rkey = ibv_inc_rkey(w.rkey);
		ck_assert_int_eq(bind2(&d, &w), IBV_WC_SUCCESS);
		ck_write(&d, b_addr(&d, 0), w.rkey, 100, IBV_WC_SUCCESS);
		b_do(&d, do_local_inv, &w);
		ck_assert_int_eq(w.status, IBV_WC_SUCCESS);
	}
	ck_write(&d, b_addr(&d, 0), w.rkey, 1, IBV_WC_REM_ACCESS_ERR);
	ck_ok(b_dereg(&d));
	close_mw(&d);
}
END_TEST

static int send_inv(struct duo *d, uint32_t rkey, uint32_t len)
{
	struct ibv_sge sge = node_sge(&d->a, 0, len);
	struct ibv_send_wr wr = {
		.wr_id = 5,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_INV,
		.send_flags = IBV_SEND_SIGNALED,
	};

	wr.invalidate_rkey = rkey;
	return post_wr(d->a.qp, &wr);
}

/*
 * A SEND_WITH_INV invalidates the window when its message is received; the
 * receive completion has the rkey.
 */
START_TEST(type_2_remote_invalidate)
{
	struct win w = {
		.type = IBV_MW_TYPE_2, .off = 1000, .len = 100, .access = WINDOW
	};
	struct ibv_wc wc;
	struct duo d;

	open_mw(&d, _i);
	b_do(&d, do_alloc, &w);
	w.rkey = ibv_inc_rkey(w.rkey);
	ck_assert_int_eq(bind2(&d, &w), IBV_WC_SUCCESS);
	/* without a receive it waits */
	ck_ok(send_inv(&d, w.rkey, 16));
	expect_none(d.a.scq, QUIET_MS);
	b_recv(&d, 9, 0, 16);
	expect_ok(d.a.scq, 5, IBV_WC_SEND);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wc_flags & IBV_WC_WITH_INV, IBV_WC_WITH_INV);
	ck_assert_uint_eq(wc.wc_flags & IBV_WC_WITH_IMM, 0);
	ck_assert_uint_eq(wc.invalidated_rkey, w.rkey);
	ck_assert_uint_eq(wc.byte_len, 16);
	ck_assert(b_has(&d, 0, 16, 1));
	ck_write(&d, b_addr(&d, 1000), w.rkey, 1, IBV_WC_REM_ACCESS_ERR);
	ck_ok(b_dereg(&d));
	close_mw(&d);
}
END_TEST

/*
 * A SEND_WITH_INV of a key that is no window's is an error of class J (IB
 * 9.9.6.3): the receive and the responder's QP fail, and no NAK is sent.
 */
START_TEST(remote_invalidate_of_no_window)
{
	struct opts o = mw_opts();
	struct ibv_wc wc;
	struct duo d;

	o.timeout = 14; /* 67 ms */
	o.retry_cnt = 1;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	b_recv(&d, 9, 0, 16);
	ck_ok(send_inv(&d, d.at_b.rkey, 16)); /* an MR */
	expect(d.a.scq, 5, IBV_WC_RETRY_EXC_ERR);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_REM_INV_REQ_ERR);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	duo_renew(&d);
	ck_write(&d, b_addr(&d, 0), d.at_b.rkey, 8, IBV_WC_SUCCESS);
	close_mw(&d);
}
END_TEST

/* Expect that a bind WR fails and breaks the QP of b; reconnect. */
static void type_2_refused(struct duo *d, struct win *w)
{
	ck_assert_int_eq(bind2(d, w), IBV_WC_MW_BIND_ERR);
	ck_assert_int_eq(b_state(d), IBV_QPS_ERR);
	duo_renew(d);
}

/*
 * MW_BIND_ERR for length 0, a range outside of the MR, wrong access flags,
 * and a window that is bound.
 */
START_TEST(type_2_rules)
{
	struct win w = { .type = IBV_MW_TYPE_2, .len = 64, .access = WINDOW };
	struct duo d;
	uint32_t key;

	open_mw(&d, SAME_PROCESS);
	b_do(&d, do_alloc, &w);
	key = ibv_inc_rkey(w.rkey);
	w.rkey = key;
	w.len = 0;
	type_2_refused(&d, &w);
	w.len = d.b.o.size + 1;
	type_2_refused(&d, &w);
	w.len = 64;
	w.off = d.b.o.size - 63;
	type_2_refused(&d, &w);
	w.off = 0;
	w.access = IBV_ACCESS_MW_BIND | WINDOW;
	type_2_refused(&d, &w);
	w.access = WINDOW;
	ck_assert_int_eq(bind2(&d, &w), IBV_WC_SUCCESS);
	/* it is bound already */
	w.rkey = ibv_inc_rkey(key);
	type_2_refused(&d, &w);
	close_mw(&d);
}
END_TEST

/* With IBV_ACCESS_ZERO_BASED, WRs use offsets in the window as addresses. */
START_TEST(zero_based)
{
	struct win w = { .type = IBV_MW_TYPE_2,
			 .off = 500,
			 .len = 100,
			 .access = WINDOW | IBV_ACCESS_ZERO_BASED };
	struct duo d;

	open_mw(&d, _i);
	b_do(&d, do_alloc, &w);
	w.rkey = ibv_inc_rkey(w.rkey);
	ck_assert_int_eq(bind2(&d, &w), IBV_WC_SUCCESS);
	ck_write(&d, 0, w.rkey, 100, IBV_WC_SUCCESS);
	ck_assert(b_has(&d, 500, 100, 1));
	ck_write(&d, 99, w.rkey, 2, IBV_WC_REM_ACCESS_ERR);
	close_mw(&d);
}
END_TEST

/*
 * A bind needs IBV_ACCESS_MW_BIND in the MR, and IBV_ACCESS_LOCAL_WRITE for a
 * window with remote write or atomic access.
 */
START_TEST(bind_needs_mr_access)
{
	struct win w = { .type = IBV_MW_TYPE_2, .len = 64, .access = WINDOW };
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	b_do(&d, do_alloc, &w);
	w.rkey = ibv_inc_rkey(w.rkey);
	type_2_refused(&d, &w);
	close_mw(&d);

	o.mr_access = IBV_ACCESS_MW_BIND;
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	b_do(&d, do_alloc, &w);
	w.rkey = ibv_inc_rkey(w.rkey);
	type_2_refused(&d, &w);
	w.access = IBV_ACCESS_REMOTE_ATOMIC;
	type_2_refused(&d, &w);
	/* remote read by the window, which the MR itself does not allow */
	w.access = IBV_ACCESS_REMOTE_READ;
	ck_assert_int_eq(bind2(&d, &w), IBV_WC_SUCCESS);
	ck_assert(!(d.b.o.mr_access & IBV_ACCESS_REMOTE_READ));
	close_mw(&d);
}
END_TEST

/*
 * A window can allow remote write though the MR itself does not; the rkey of
 * the MR still gives no access.
 */
START_TEST(window_allows_more_than_mr)
{
	struct win w = { .type = IBV_MW_TYPE_2,
			 .len = 64,
			 .access = IBV_ACCESS_REMOTE_WRITE };
	struct opts o = default_opts();
	struct duo d;

	o.mr_access = IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d.a, 0, 64, 4);
	b_do(&d, do_alloc, &w);
	w.rkey = ibv_inc_rkey(w.rkey);
	ck_assert_int_eq(bind2(&d, &w), IBV_WC_SUCCESS);
	ck_write(&d, b_addr(&d, 0), w.rkey, 64, IBV_WC_SUCCESS);
	ck_assert(b_has(&d, 0, 64, 4));
	ck_write(&d, b_addr(&d, 0), d.at_b.rkey, 64, IBV_WC_REM_ACCESS_ERR);
	/*
	 * the failed WRITE has replaced the QPs, so the window, of type 2,
	 * cannot be used any more
	 */
	close_mw(&d);
}
END_TEST

/* IBV_ACCESS_REMOTE_ATOMIC alone allows atomics, and no WRITE. */
START_TEST(atomics)
{
	struct win w = { .type = IBV_MW_TYPE_1,
			 .len = 64,
			 .access = IBV_ACCESS_REMOTE_ATOMIC };
	struct duo d;

	open_mw(&d, _i);
	b_do(&d, do_alloc, &w);
	b_do(&d, do_bind1, &w);
	b_store64(&d, 8, 41);
	ck_assert_int_eq(access_to(&d, IBV_WR_ATOMIC_FETCH_AND_ADD,
				   b_addr(&d, 8), w.rkey, 8),
			 IBV_WC_SUCCESS);
	ck_assert_uint_eq(b_load64(&d, 8), 42);
	ck_write(&d, b_addr(&d, 8), w.rkey, 8, IBV_WC_REM_ACCESS_ERR);
	close_mw(&d);
}
END_TEST

/* A window has no lkey: its rkey as one is LOC_PROT_ERR. */
START_TEST(not_for_local_use)
{
	struct win w = { .type = IBV_MW_TYPE_1,
			 .len = 64,
			 .access = WINDOW | IBV_ACCESS_LOCAL_WRITE };
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct duo d;

	open_mw(&d, SAME_CONTEXT);
	b_do(&d, do_alloc, &w);
	b_do(&d, do_bind1, &w);
	sge = (struct ibv_sge){ d.b.base, 8, w.rkey };
	wr = rdma_wr(&d, IBV_WR_SEND, 1, &sge, 1, 0);
	ck_ok(post_wr(d.b.qp, &wr));
	expect(d.b.scq, 1, IBV_WC_LOC_PROT_ERR);
	close_mw(&d);
}
END_TEST

static uint32_t sq_psn(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ck_ok(ibv_query_qp(qp, &attr, IBV_QP_SQ_PSN, &init));
	return attr.sq_psn;
}

/*
 * Bind and local invalidate are executed in the order of the send queue and
 * consume no PSN.
 */
START_TEST(in_order)
{
	struct win w = { .type = IBV_MW_TYPE_2, .len = 64, .access = WINDOW };
	struct ibv_mw_bind_info info;
	struct ibv_send_wr wr[3];
	struct ibv_mw *mw;
	struct duo d;

	memset(wr, 0, sizeof(wr));
	open_mw(&d, SAME_CONTEXT);
	b_do(&d, do_alloc, &w);
	mw = d.b.user;
	info = (struct ibv_mw_bind_info){ d.b.mr, d.b.base, 64, WINDOW };
	wr[0] = (struct ibv_send_wr){ .wr_id = 1,
				      .next = &wr[1],
				      .opcode = IBV_WR_BIND_MW,
				      .send_flags = IBV_SEND_SIGNALED };
	wr[0].bind_mw.mw = mw;
	wr[0].bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr[0].bind_mw.bind_info = info;
	wr[1] = (struct ibv_send_wr){ .wr_id = 2,
				      .next = &wr[2],
				      .opcode = IBV_WR_SEND,
				      .send_flags = IBV_SEND_SIGNALED };
	wr[2] = (struct ibv_send_wr){ .wr_id = 3,
				      .opcode = IBV_WR_LOCAL_INV,
				      .send_flags = IBV_SEND_SIGNALED |
						    IBV_SEND_FENCE };
	wr[2].invalidate_rkey = wr[0].bind_mw.rkey;
	ck_ok(post_wr(d.b.qp, wr));
	expect_ok(d.b.scq, 1, IBV_WC_BIND_MW);
	expect_none(d.b.scq, QUIET_MS); /* no receive yet */
	ck_assert_uint_eq(sq_psn(d.b.qp), d.b.o.psn);
	ck_write(&d, d.b.base, wr[2].invalidate_rkey, 64, IBV_WC_SUCCESS);
	ck_ok(post_recv(&d.a, 1, 0, 64));
	expect_ok(d.b.scq, 2, IBV_WC_SEND);
	expect_ok(d.b.scq, 3, IBV_WC_LOCAL_INV);
	ck_assert_uint_eq(sq_psn(d.b.qp), d.b.o.psn + 1);
	ck_write(&d, d.b.base, wr[2].invalidate_rkey, 64,
		 IBV_WC_REM_ACCESS_ERR);
	close_mw(&d);
}
END_TEST

static void *bind_and_invalidate(void *arg)
{
	struct win w = { .type = IBV_MW_TYPE_2, .len = 64, .access = WINDOW };
	struct duo *d = arg;
	int i;

	b_do(d, do_alloc, &w);
	for (i = 0; i < 500; i++) {
		w.rkey = ibv_inc_rkey(w.rkey);
		ck_assert_int_eq(bind2(d, &w), IBV_WC_SUCCESS);
		ck_write(d, b_addr(d, 0), w.rkey, 64, IBV_WC_SUCCESS);
		b_do(d, do_local_inv, &w);
		ck_assert_int_eq(w.status, IBV_WC_SUCCESS);
	}
	return NULL;
}

/*
 * Concurrent invalidations in several contexts do not deadlock: a destroyer
 * waits for requesters in a critical section, not for other destroyers.
 */
START_TEST(concurrent_invalidations)
{
	pthread_t t[3];
	struct duo d[3];
	int i;

	for (i = 0; i < 3; i++)
		open_mw(&d[i], i);
	for (i = 0; i < 3; i++)
		ck_ok(pthread_create(&t[i], NULL, bind_and_invalidate, &d[i]));
	for (i = 0; i < 3; i++)
		ck_ok(pthread_join(t[i], NULL));
	for (i = 0; i < 3; i++)
		close_mw(&d[i]);
}
END_TEST

int main(void)
{
	Suite *s = suite("mw");

	add(s, capabilities);
	add(s, max_mws);
	add_loop(s, type_1, WHERE_COUNT);
	add(s, type_1_rules);
	add_loop(s, qps_that_may_use_a_window, WHERE_COUNT);
	add_loop(s, type_2, WHERE_COUNT);
	add_loop(s, type_2_key, 4);
	add_loop(s, type_2_local_invalidate, WHERE_COUNT);
	add_loop(s, type_2_remote_invalidate, WHERE_COUNT);
	add_loop(s, remote_invalidate_of_no_window, WHERE_COUNT);
	add(s, type_2_rules);
	add_loop(s, zero_based, WHERE_COUNT);
	add(s, bind_needs_mr_access);
	add_loop(s, window_allows_more_than_mr, WHERE_COUNT);
	add_loop(s, atomics, WHERE_COUNT);
	add(s, not_for_local_use);
	add(s, in_order);
	add(s, concurrent_invalidations);
	return run(s);
}

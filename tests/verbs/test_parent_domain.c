// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Parent domains, their allocators, and thread domains (man
 * ibv_alloc_parent_domain, ibv_alloc_td).
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define ALLOCATORS                                                             \
	(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |                              \
	 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

/* The last calls of the allocators, and what pool_alloc() shall do. */
struct pool {
	int allocs, frees;
	enum { GIVE, REFUSE, USE_DEFAULT } mode;
	struct ibv_pd *pd; /* argument of the last call */
	uint64_t type;
	char *given;
	size_t size;
};

static void *pool_alloc(struct ibv_pd *pd, void *context, size_t size,
			size_t alignment, uint64_t type)
{
	struct pool *p = context;

	p->allocs++;
	p->pd = pd;
	p->type = type;
	p->size = size;
	ck_assert_uint_eq(alignment & (alignment - 1), 0);
	ck_assert_uint_ge(alignment, sizeof(void *));
	if (p->mode == REFUSE)
		return NULL;
	if (p->mode == USE_DEFAULT)
		return IBV_ALLOCATOR_USE_DEFAULT;
	p->given = aligned_alloc(alignment, (size + alignment - 1) &
						    ~(alignment - 1));
	ck_assert_ptr_nonnull(p->given);
	memset(p->given, 0, size);
	return p->given;
}

static void pool_free(struct ibv_pd *pd, void *context, void *ptr,
		      uint64_t type)
{
	struct pool *p = context;

	p->frees++;
	ck_assert_ptr_eq(pd, p->pd);
	ck_assert_ptr_eq(ptr, p->given);
	ck_assert_uint_eq(type, p->type);
	free(ptr);
}

static struct ibv_pd *parent_of(struct ibv_pd *pd, struct ibv_td *td,
				struct pool *pool)
{
	struct ibv_parent_domain_init_attr a = { .pd = pd, .td = td };

	if (pool) {
		a.comp_mask = ALLOCATORS;
		a.alloc = pool_alloc;
		a.free = pool_free;
		a.pd_context = pool;
	}
	return ibv_alloc_parent_domain(pd->context, &a);
}

static struct ibv_td *new_td(struct ibv_context *ctx)
{
	struct ibv_td_init_attr a = { 0 };
	struct ibv_td *td = ibv_alloc_td(ctx, &a);

	ck_nonnull(td);
	ck_assert_ptr_eq(td->context, ctx);
	return td;
}

/*
 * EINVAL for unknown attributes, missing functions, no PD, and objects of
 * another context.
 */
START_TEST(errors)
{
	struct ibv_context *ctx = open_device(), *other = open_device();
	struct ibv_parent_domain_init_attr a = { 0 };
	struct ibv_td_init_attr ta = { .comp_mask = 1 };
	struct ibv_td *td = new_td(other);
	struct ibv_pd *pd, *far;

	pd = ibv_alloc_pd(ctx);
	far = ibv_alloc_pd(other);
	ck_nonnull(pd);
	ck_nonnull(far);
	ck_errno(ibv_alloc_td(ctx, &ta), EINVAL);
	ck_errno(ibv_alloc_parent_domain(ctx, &a), EINVAL); /* no PD */
	a.pd = pd;
	a.comp_mask = 1u << 9;
	ck_errno(ibv_alloc_parent_domain(ctx, &a), EINVAL);
	a.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	ck_errno(ibv_alloc_parent_domain(ctx, &a), EINVAL);
	a.alloc = pool_alloc;
	ck_errno(ibv_alloc_parent_domain(ctx, &a), EINVAL);
	a.comp_mask = 0;
	a.td = td;
	ck_errno(ibv_alloc_parent_domain(ctx, &a), EINVAL);
	a.td = NULL;
	a.pd = far;
	ck_errno(ibv_alloc_parent_domain(ctx, &a), EINVAL);
	ck_ok(ibv_dealloc_td(td));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_dealloc_pd(far));
	ck_ok(ibv_close_device(ctx));
	ck_ok(ibv_close_device(other));
}
END_TEST

/*
 * IBV_PARENT_DOMAIN_INIT_ATTR bit 2, ALLOW_CC_UNPROTECTED_ALLOC of rdma-core
 * 64, for guests with encrypted memory, is accepted and has no effect.
 */
START_TEST(allow_cc_unprotected)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *parent;
	struct ibv_parent_domain_init_attr a = { .pd = pd,
						 .comp_mask = 1u << 2 };
	struct ibv_mr *mr;
	char buf[64];

	parent = ibv_alloc_parent_domain(ctx, &a);
	ck_nonnull(parent);
	mr = ibv_reg_mr(parent, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_dealloc_pd(parent));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/*
 * A PD, parent domain or thread domain is EBUSY while another object uses it.
 * A parent domain can have a parent domain.
 */
START_TEST(busy)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *parent, *child;
	struct ibv_td *td = new_td(ctx);
	struct ibv_mr *mr;
	char buf[64];

	parent = parent_of(pd, td, NULL);
	ck_nonnull(parent);
	ck_assert_ptr_eq(parent->context, ctx);
	ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY);
	ck_assert_int_eq(ibv_dealloc_td(td), EBUSY);
	child = parent_of(parent, td, NULL);
	ck_nonnull(child);
	ck_assert_int_eq(ibv_dealloc_pd(parent), EBUSY);
	mr = ibv_reg_mr(child, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	ck_nonnull(mr);
	ck_assert_ptr_eq(mr->pd, child);
	ck_assert_int_eq(ibv_dealloc_pd(child), EBUSY);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_dealloc_pd(child));
	ck_assert_int_eq(ibv_dealloc_td(td), EBUSY);
	ck_ok(ibv_dealloc_pd(parent));
	ck_ok(ibv_dealloc_td(td));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/*
 * Connect a with b, where a's QP is in a parent domain of a's PD. So the QP
 * can use the MRs of that PD.
 */
static void open_in(struct duo *d, enum where where, struct ibv_td *(*make_td)(
						struct ibv_context *),
		    struct pool *pool, struct ibv_pd **parent,
		    struct ibv_td **td)
{
	struct opts o = default_opts();
	struct ibv_pd *pd;

	duo_open_unconnected(d, where, MEM_HEAP, MEM_HEAP, &o);
	*td = make_td ? make_td(d->a.ctx) : NULL;
	*parent = parent_of(d->a.pd, *td, pool);
	ck_nonnull(*parent);
	ck_ok(ibv_destroy_qp(d->a.qp));
	pd = d->a.pd;
	d->a.pd = *parent;
	node_make_qp(&d->a);
	d->a.pd = pd;
	ck_assert_ptr_eq(d->a.qp->pd, *parent);
	d->at_a = node_addr(&d->a);
	duo_connect(d);
}

static void close_in(struct duo *d, struct ibv_pd *parent, struct ibv_td *td)
{
	ck_assert_int_eq(ibv_dealloc_pd(parent), EBUSY);
	ck_ok(ibv_destroy_qp(d->a.qp));
	d->a.qp = NULL;
	ck_ok(ibv_dealloc_pd(parent));
	if (td)
		ck_ok(ibv_dealloc_td(td));
	duo_close(d);
}

static void traffic(struct duo *d, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		node_fill(&d->a, 0, 300, i);
		b_recv(d, i, 4096, 300);
		ck_ok(post(d, IBV_WR_RDMA_WRITE, 1, 0, 300, 512, 0));
		ck_ok(post(d, IBV_WR_SEND, 2, 0, 300, 0, 0));
		expect_ok(d->a.scq, 1, IBV_WC_RDMA_WRITE);
		expect_ok(d->a.scq, 2, IBV_WC_SEND);
		ck_assert_uint_eq(b_wait_recv(d).wr_id, i);
		ck_assert(b_has(d, 512, 300, i));
		ck_assert(b_has(d, 4096, 300, i));
	}
}

/*
 * The memory of a QP comes from the allocator of its parent domain, and is
 * returned to it by ibv_destroy_qp.
 */
START_TEST(allocators)
{
	struct pool pool = { .mode = GIVE };
	struct ibv_pd *parent;
	struct ibv_td *td;
	struct duo d;

	open_in(&d, _i, NULL, &pool, &parent, &td);
	ck_assert_int_ge(pool.allocs, 1);
	ck_assert_ptr_eq(pool.pd, parent);
	ck_assert_uint_eq(pool.type >> 32, 0); /* no rdma_driver_id */
	traffic(&d, 20);
	ck_assert_int_eq(pool.frees, 0);
	close_in(&d, parent, td);
	ck_assert_int_eq(pool.frees, pool.allocs);
}
END_TEST

/*
 * With IBV_ALLOCATOR_USE_DEFAULT the provider allocates, and does not call
 * the program's free function.
 */
START_TEST(default_allocators)
{
	struct pool pool = { .mode = USE_DEFAULT };
	struct ibv_pd *parent;
	struct ibv_td *td;
	struct duo d;

	open_in(&d, _i, NULL, &pool, &parent, &td);
	ck_assert_int_ge(pool.allocs, 1);
	traffic(&d, 5);
	close_in(&d, parent, td);
	ck_assert_int_eq(pool.frees, 0);
}
END_TEST

/* If the allocator returns NULL, ibv_create_qp is ENOMEM. */
START_TEST(failing_allocator)
{
	struct pool pool = { .mode = REFUSE };
	struct opts o = default_opts();
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = o.cap };
	struct ibv_pd *parent;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	parent = parent_of(n.pd, NULL, &pool);
	ck_nonnull(parent);
	attr.send_cq = n.scq;
	attr.recv_cq = n.rcq;
	ck_errno(ibv_create_qp(parent, &attr), ENOMEM);
	ck_assert_int_eq(pool.allocs, 1);
	ck_assert_int_eq(pool.frees, 0);
	ck_ok(ibv_dealloc_pd(parent));
	node_close(&n);
}
END_TEST

/* A QP in a thread domain transfers data. */
START_TEST(thread_domain)
{
	struct ibv_pd *parent;
	struct ibv_td *td;
	struct duo d;

	open_in(&d, _i, new_td, NULL, &parent, &td);
	traffic(&d, 50);
	close_in(&d, parent, td);
}
END_TEST

/*
 * The service thread continues a SEND that waits for a receive, also on a QP
 * in a thread domain.
 */
START_TEST(thread_domain_and_rnr)
{
	struct ibv_pd *parent;
	struct ibv_td *td;
	struct ibv_wc wc;
	struct duo d;

	open_in(&d, _i, new_td, NULL, &parent, &td);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 100, 0, 0));
	sleep_ms(QUIET_MS);
	b_recv(&d, 9, 0, 100);
	wc = b_wait_recv(&d); /* a's CQ is not polled */
	ck_assert_uint_eq(wc.wr_id, 9);
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	close_in(&d, parent, td);
}
END_TEST

struct poller {
	struct ibv_cq *cq;
	int want, got, bad;
};

/*
 * Poll @want completions; count those that are neither success nor flushed.
 */
static void *poll_them(void *arg)
{
	struct poller *p = arg;
	double end = now_ms() + WAIT_MS;
	struct ibv_wc wc;

	while (p->got < p->want && now_ms() < end) {
		if (ibv_poll_cq(p->cq, 1, &wc) <= 0)
			continue;
		p->bad += wc.status != IBV_WC_SUCCESS &&
			  wc.status != IBV_WC_WR_FLUSH_ERR;
		p->got++;
	}
	return NULL;
}

/*
 * A thread domain makes the QP single-threaded, not its CQ: another thread
 * polls, and so continues waiting WRs and flushes.
 */
START_TEST(thread_domain_and_pollers)
{
	struct ibv_pd *parent;
	struct ibv_td *td;
	struct poller p = { .want = 400 };
	pthread_t t;
	struct duo d;
	int i;

	open_in(&d, SAME_PROCESS, new_td, NULL, &parent, &td);
	p.cq = d.a.scq;
	pthread_create(&t, NULL, poll_them, &p);
	for (i = 0; i < 300; i++) {
		/* no receive at first (RNR), and the queue fills up */
		while (post(&d, IBV_WR_SEND, i, 0, 64, 0, 0) == ENOMEM)
			sched_yield();
		b_recv(&d, i, 0, 64);
		ck_assert_uint_eq(b_wait_recv(&d).wr_id, i);
	}
	for (i = 0; i < 50; i++)
		while (post(&d, IBV_WR_SEND, i, 0, 64, 0, 0) == ENOMEM)
			sched_yield();
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	for (i = 0; i < 50; i++)
		while (post(&d, IBV_WR_SEND, i, 0, 64, 0, 0) == ENOMEM)
			sched_yield();
	pthread_join(t, NULL);
	ck_assert_int_eq(p.got, 400);
	ck_assert_int_eq(p.bad, 0);
	close_in(&d, parent, td);
}
END_TEST

/* A CQ in a parent domain, and an extended QP in a thread domain. */
START_TEST(cq_and_qp_ex)
{
	struct ibv_qp_init_attr_ex qa = { .qp_type = IBV_QPT_RC };
	struct ibv_cq_init_attr_ex ca = { .cqe = 64 };
	struct opts o = default_opts();
	struct ibv_pd *parent;
	struct ibv_cq_ex *cq;
	struct ibv_qp_ex *x;
	struct ibv_td *td;
	struct ibv_sge sge;
	struct duo d;
	int i;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	td = new_td(d.a.ctx);
	parent = parent_of(d.a.pd, td, NULL);
	ck_nonnull(parent);
	ca.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	ca.parent_domain = parent;
	cq = ibv_create_cq_ex(d.a.ctx, &ca);
	ck_nonnull(cq);
	ck_assert_int_eq(ibv_dealloc_pd(parent), EBUSY);
	ck_ok(ibv_destroy_qp(d.a.qp));
	qa.cap = o.cap;
	qa.send_cq = ibv_cq_ex_to_cq(cq);
	qa.recv_cq = d.a.rcq;
	qa.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	qa.pd = parent;
	qa.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	d.a.qp = ibv_create_qp_ex(d.a.ctx, &qa);
	ck_nonnull(d.a.qp);
	d.at_a = node_addr(&d.a);
	duo_connect(&d);
	x = ibv_qp_to_qp_ex(d.a.qp);
	sge = node_sge(&d.a, 0, 64);
	for (i = 0; i < 500; i++) {
		ibv_wr_start(x);
		x->wr_id = i;
		x->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base);
		ibv_wr_set_sge(x, sge.lkey, sge.addr, sge.length);
		ck_ok(ibv_wr_complete(x));
		expect_ok(ibv_cq_ex_to_cq(cq), i, IBV_WC_RDMA_WRITE);
	}
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = NULL;
	ck_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	ck_ok(ibv_dealloc_pd(parent));
	ck_ok(ibv_dealloc_td(td));
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("parent_domain");

	add(s, errors);
	add(s, allow_cc_unprotected);
	add(s, busy);
	add_loop(s, allocators, WHERE_COUNT);
	add_loop(s, default_allocators, WHERE_COUNT);
	add(s, failing_allocator);
	add_loop(s, thread_domain, WHERE_COUNT);
	add_loop(s, thread_domain_and_rnr, WHERE_COUNT);
	add(s, thread_domain_and_pollers);
	add_loop(s, cq_and_qp_ex, WHERE_COUNT);
	return run(s);
}

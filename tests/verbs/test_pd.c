// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Protection domains: allocation, objects that keep one in use, limits. */
#include <string.h>

#include "harness.h"
#include "shared/layout.h"

START_TEST(alloc_dealloc)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *a = ibv_alloc_pd(ctx), *b = ibv_alloc_pd(ctx);

	ck_nonnull(a);
	ck_nonnull(b);
	ck_assert_ptr_eq(a->context, ctx);
	ck_assert_uint_ne(a->handle, b->handle);
	ck_ok(ibv_dealloc_pd(a));
	ck_ok(ibv_dealloc_pd(b));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

START_TEST(busy_with_an_mr)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);

	ck_nonnull(mr);
	ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

START_TEST(busy_with_a_dm_mr)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);
	struct ibv_mr *mr;

	ck_nonnull(dm);
	mr = ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED);
	ck_nonnull(mr);
	ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_free_dm(dm));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

START_TEST(busy_with_a_qp)
{
	struct opts o = default_opts();
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(ibv_dereg_mr(n.mr));
	n.mr = NULL;
	ck_assert_int_eq(ibv_dealloc_pd(n.pd), EBUSY);
	/* the failed call has not changed the PD */
	n.mr = ibv_reg_mr(n.pd, n.buf, n.o.size, 0);
	ck_nonnull(n.mr);
	node_close(&n);
}
END_TEST

/* max_pd PDs can be allocated in a context; one more is ENOMEM. */
START_TEST(max_pds)
{
	static struct ibv_pd *pd[URXE_MAX_PD];
	struct ibv_context *one = open_device(), *two = open_device();
	struct ibv_device_attr attr;
	int i;

	ck_ok(ibv_query_device(one, &attr));
	ck_assert_int_eq(attr.max_pd, URXE_MAX_PD - 1);
	for (i = 0; i < attr.max_pd; i++) {
		pd[i] = ibv_alloc_pd(one);
		ck_nonnull(pd[i]);
	}
	ck_errno(ibv_alloc_pd(one), ENOMEM);
	pd[i] = ibv_alloc_pd(two); /* the limit is per context */
	ck_nonnull(pd[i]);
	ck_ok(ibv_dealloc_pd(pd[17]));
	pd[17] = ibv_alloc_pd(one);
	ck_nonnull(pd[17]);
	for (i = 0; i <= attr.max_pd; i++)
		ck_ok(ibv_dealloc_pd(pd[i]));
	ck_ok(ibv_close_device(one));
	ck_ok(ibv_close_device(two));
}
END_TEST

int main(void)
{
	Suite *s = suite("pd");

	add(s, alloc_dealloc);
	add(s, busy_with_an_mr);
	add(s, busy_with_a_dm_mr);
	add(s, busy_with_a_qp);
	add(s, max_pds);
	return run(s);
}

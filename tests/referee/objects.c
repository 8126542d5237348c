// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Objects that are left. */
#include "case.h"

static void left_mr(bool wrong)
{
	static char buf[64];
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);

	ck_nonnull(mr);
	if (wrong)
		return;
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}

static void left_at_close(bool wrong)
{
	struct ibv_context *ctx = open_device();
	struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);

	ck_nonnull(cq);
	if (!wrong)
		ck_ok(ibv_destroy_cq(cq));
	ck_ok(ibv_close_device(ctx));
}

/* All of a connection, both ends in one process. */
static void left_qp(bool wrong)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	if (!wrong)
		duo_close(&d);
}

static const struct test_case cases[] = {
	{ "object-left", left_mr },
	{ "object-left+close", left_at_close },
	{ "object-left+qp", left_qp },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return case_main(argc, argv, cases);
}

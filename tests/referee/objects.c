// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Objects that are not destroyed */
#include <stdlib.h>
#include <unistd.h>

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

/* All objects of a connection, with both ends in one process */
static void left_qp(bool wrong)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	if (!wrong)
		duo_close(&d);
}

/* A CQ whose destruction was refused because of its QP remains in use. */
static void left_refused(bool wrong)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	ck_assert_int_eq(ibv_destroy_cq(d.a.scq), EBUSY);
	ck_assert_int_eq(ibv_destroy_cq(d.a.rcq), EBUSY);
	if (wrong)
		ck_ok(ibv_close_device(d.a.ctx));
	else
		duo_close(&d);
}

/* Several objects created at the same place */
static void left_many(bool wrong)
{
	struct opts o = default_opts();
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct ibv_ah *ah;
	struct duo d;
	int i;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	attr.grh.dgid = d.at_b.gid;
	attr.grh.sgid_index = 1;
	for (i = 0; i < 5; i++) {
		ah = ibv_create_ah(d.a.pd, &attr);
		ck_nonnull(ah);
		if (!wrong)
			ck_ok(ibv_destroy_ah(ah));
	}
	if (!wrong)
		duo_close(&d);
}

/* Registration of more than RLIMIT_MEMLOCK without CAP_IPC_LOCK */
static void memlock(bool wrong)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	char *buf = aligned_alloc(page, 17 * page);
	struct ibv_mr *mr;

	limit_memlock(16 * page);
	mr = ibv_reg_mr(pd, buf, (wrong ? 17 : 16) * page, 0);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
	free(buf);
}

static struct ibv_context *late_ctx;
static struct ibv_pd *late_pd;

__attribute__((destructor)) static void give_back(void)
{
	if (late_pd)
		ibv_dealloc_pd(late_pd);
	if (late_ctx)
		ibv_close_device(late_ctx);
}

/* A destructor destroys the objects, as in C++ programs. */
static void left_to_destructor(bool wrong)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	ck_nonnull(pd);
	if (wrong)
		return;
	late_ctx = ctx;
	late_pd = pd;
}

/* For reports.py: exit() in a forked child, which inherits all objects */
static void forked(bool wrong)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	pid_t pid;

	ck_nonnull(pd);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		if (wrong)
			ck_nonnull(ibv_create_cq(ctx, 1, NULL, NULL, 0));
		exit(0);
	}
	ck_assert_int_eq(reap_child(pid), 0);
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}

/* For reports.py: a program that exits with an error */
static void given_up(bool wrong)
{
	left_mr(true);
	exit(wrong ? 3 : 0);
}

/* For reports.py: a program that sets URXE_CHECK itself */
static void asked_late(bool wrong)
{
	ck_ok(setenv("URXE_CHECK", "warning", 1));
	left_mr(wrong);
}

static const struct test_case cases[] = {
	{ "object-left", left_mr },
	{ "object-left+close", left_at_close },
	{ "object-left+qp", left_qp },
	{ "object-left+refused", left_refused },
	{ "object-left+many", left_many },
	{ "object-left+destructor", left_to_destructor },
	{ "memlock-exceeded", memlock },
	{ "fork", forked },
	{ "late", asked_late },
	{ "exit", given_up },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return case_main(argc, argv, cases);
}

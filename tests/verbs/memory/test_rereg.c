// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ibv_rereg_mr: what each flag changes, what stays, and its errors. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "../access.h"
#include "../harness.h"

/* Arguments and results of one ibv_rereg_mr of b's MR. */
struct change {
	int flags;
	bool other_pd, no_pd, foreign_pd;
	size_t off, len;
	int access;
	void *addr; /* not NULL: used in place of off */
	int ret, err;
	uint32_t lkey, rkey;
	uint64_t at;
};

static void do_change(struct node *b, void *arg)
{
	struct change *c = arg;
	struct ibv_pd *pd = NULL;
	char *addr = c->addr ? c->addr : (char *)b->buf + c->off;

	if (c->flags & IBV_REREG_MR_CHANGE_PD && !c->no_pd) {
		pd = b->pd;
		if (c->other_pd) {
			if (!b->user)
				b->user = ibv_alloc_pd(b->ctx);
			pd = b->user;
		}
	}
	errno = 0;
	c->ret = ibv_rereg_mr(b->mr, c->flags, pd, addr, c->len, c->access);
	c->err = errno;
	c->lkey = b->mr->lkey;
	c->rkey = b->mr->rkey;
	c->at = (uintptr_t)b->mr->addr;
	if (!c->ret && pd)
		ck_assert_ptr_eq(b->mr->pd, pd);
}

static void b_change(struct duo *d, struct change *c, int ret)
{
	on_b(d, do_change, c, sizeof(*c));
	ck_assert_int_eq(c->ret, ret);
	ck_assert_uint_eq(c->rkey, d->at_b.rkey);
	ck_assert_uint_eq(c->lkey, c->rkey);
}

static void do_free_pd(struct node *b, void *arg)
{
	int *ret = arg;

	*ret = ibv_dealloc_pd(b->user);
}

static void open_it(struct duo *d, int where)
{
	struct opts o = default_opts();

	duo_open(d, where, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d->a, 0, 4096, 1);
}

/*
 * IBV_REREG_MR_CHANGE_ACCESS changes the access flags, including
 * IBV_ACCESS_ZERO_BASED, and keeps the keys.
 */
START_TEST(access_flags)
{
	struct change c = { .flags = IBV_REREG_MR_CHANGE_ACCESS,
			    .access = IBV_ACCESS_LOCAL_WRITE };
	struct duo d;

	open_it(&d, _i);
	ck_write(&d, d.at_b.base, d.at_b.rkey, 8, IBV_WC_SUCCESS);
	b_change(&d, &c, 0);
	ck_write(&d, d.at_b.base, d.at_b.rkey, 8, IBV_WC_REM_ACCESS_ERR);
	c.access |= IBV_ACCESS_REMOTE_READ;
	b_change(&d, &c, 0);
	ck_read(&d, d.at_b.base, d.at_b.rkey, 8, IBV_WC_SUCCESS);
	ck_write(&d, d.at_b.base, d.at_b.rkey, 8, IBV_WC_REM_ACCESS_ERR);
	c.access = ALL_ACCESS;
	b_change(&d, &c, 0);
	ck_write(&d, d.at_b.base, d.at_b.rkey, 8, IBV_WC_SUCCESS);
	/* zero-based, then addressed by virtual address again */
	c.access = ALL_ACCESS | IBV_ACCESS_ZERO_BASED;
	b_change(&d, &c, 0);
	ck_write(&d, 16, d.at_b.rkey, 8, IBV_WC_SUCCESS);
	ck_write(&d, d.at_b.base, d.at_b.rkey, 8, IBV_WC_REM_ACCESS_ERR);
	c.access = ALL_ACCESS;
	b_change(&d, &c, 0);
	ck_write(&d, d.at_b.base, d.at_b.rkey, 8, IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

/* IBV_REREG_MR_CHANGE_TRANSLATION changes the range and keeps the keys. */
START_TEST(translation)
{
	struct change c = { .flags = IBV_REREG_MR_CHANGE_TRANSLATION,
			    .off = 8192,
			    .len = 100 };
	struct duo d;

	open_it(&d, _i);
	b_change(&d, &c, 0);
	ck_assert_uint_eq(c.at, d.at_b.base + 8192);
	ck_write(&d, d.at_b.base, d.at_b.rkey, 8, IBV_WC_REM_ACCESS_ERR);
	ck_write(&d, c.at, d.at_b.rkey, 101, IBV_WC_REM_ACCESS_ERR);
	ck_write(&d, c.at, d.at_b.rkey, 100, IBV_WC_SUCCESS);
	ck_assert(b_has(&d, 8192, 100, 1));
	ck_assert(b_all(&d, 0, 8192, 0));
	duo_close(&d);
}
END_TEST

/*
 * IBV_REREG_MR_CHANGE_PD changes the PD: keys are refused for QPs of the old
 * PD, and the new PD is busy (EBUSY) while the MR is in it.
 */
START_TEST(pd_change)
{
	struct change c = { .flags = IBV_REREG_MR_CHANGE_PD, .other_pd = true };
	struct duo d;
	int ret;

	open_it(&d, _i);
	b_change(&d, &c, 0);
	ck_write(&d, d.at_b.base, d.at_b.rkey, 8, IBV_WC_REM_ACCESS_ERR);
	on_b(&d, do_free_pd, &ret, sizeof(ret));
	ck_assert_int_eq(ret, EBUSY);
	c.other_pd = false;
	b_change(&d, &c, 0);
	ck_write(&d, d.at_b.base, d.at_b.rkey, 8, IBV_WC_SUCCESS);
	on_b(&d, do_free_pd, &ret, sizeof(ret));
	ck_assert_int_eq(ret, 0);
	duo_close(&d);
}
END_TEST

/* All three changes in one call. */
START_TEST(all_changes_at_once)
{
	struct change c = { .flags = IBV_REREG_MR_CHANGE_TRANSLATION |
				     IBV_REREG_MR_CHANGE_PD |
				     IBV_REREG_MR_CHANGE_ACCESS,
			    .off = 4096,
			    .len = 4096,
			    .access = IBV_ACCESS_REMOTE_READ };
	struct duo d;

	open_it(&d, _i);
	b_change(&d, &c, 0);
	ck_read(&d, c.at, d.at_b.rkey, 4096, IBV_WC_SUCCESS);
	ck_write(&d, c.at, d.at_b.rkey, 8, IBV_WC_REM_ACCESS_ERR);
	duo_close(&d);
}
END_TEST

/*
 * A receive that was posted before its range left the MR completes with
 * LOC_PROT_ERR.
 */
START_TEST(posted_receives)
{
	struct change c = { .flags = IBV_REREG_MR_CHANGE_TRANSLATION,
			    .off = 8192,
			    .len = 4096 };
	struct duo d;

	open_it(&d, _i);
	b_recv(&d, 1, 0, 64);
	b_change(&d, &c, 0);
	ck_ok(post(&d, IBV_WR_SEND, 2, 0, 64, 0, 0));
	expect(d.a.scq, 2, IBV_WC_REM_OP_ERR);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_LOC_PROT_ERR);
	duo_renew(&d);
	b_recv(&d, 1, 8192, 64);
	ck_ok(post(&d, IBV_WR_SEND, 2, 0, 64, 0, 0));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	ck_assert(b_has(&d, 8192, 64, 1));
	duo_close(&d);
}
END_TEST

/*
 * Arguments that libibverbs refuses (IBV_REREG_MR_ERR_INPUT) leave the MR
 * unchanged.
 */
START_TEST(input_errors)
{
	struct change none = { .flags = IBV_REREG_MR_CHANGE_TRANSLATION,
			       .len = 0 };
	struct change unknown = { .flags = 1 << 20 };
	struct change stray = { .flags = IBV_REREG_MR_CHANGE_PD,
				.access = ALL_ACCESS };
	struct duo d;

	open_it(&d, SAME_CONTEXT);
	b_change(&d, &none, IBV_REREG_MR_ERR_INPUT);
	ck_assert_int_eq(none.err, EINVAL);
	b_change(&d, &unknown, IBV_REREG_MR_ERR_INPUT);
	b_change(&d, &stray, IBV_REREG_MR_ERR_INPUT);
	ck_write(&d, d.at_b.base, d.at_b.rkey, 8, IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

/* Arguments that the device refuses are an IBV_REREG_MR_ERR_CMD. */
START_TEST(command_errors)
{
	struct change no_pd = { .flags = IBV_REREG_MR_CHANGE_PD,
				.no_pd = true };
	struct change access = { .flags = IBV_REREG_MR_CHANGE_ACCESS,
				 .access = IBV_ACCESS_REMOTE_WRITE };
	struct change nothing = { 0 };
	struct duo d;

	open_it(&d, SAME_CONTEXT);
	b_change(&d, &no_pd, IBV_REREG_MR_ERR_CMD);
	b_change(&d, &access, IBV_REREG_MR_ERR_CMD);
	ck_assert_int_eq(access.err, EINVAL);
	b_change(&d, &nothing, IBV_REREG_MR_ERR_CMD);
	duo_close(&d);
}
END_TEST

/*
 * For an MR of device memory, ibv_rereg_mr refuses the access flags that
 * ibv_reg_dm_mr refuses.  The MR is unchanged.
 */
START_TEST(flags_of_device_memory)
{
	static const int bad[] = {
		IBV_ACCESS_LOCAL_WRITE, /* not zero-based */
		IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND,
		IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB,
		IBV_ACCESS_ZERO_BASED | 1 << 9, /* FLUSH_PERSISTENT */
		IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE,
	};
	struct opts o = default_opts();
	struct duo d;
	size_t i;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_DM, &o);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		errno = 0;
		ck_assert_int_eq(ibv_rereg_mr(d.b.mr,
					      IBV_REREG_MR_CHANGE_ACCESS, NULL,
					      NULL, 0, bad[i]),
				 IBV_REREG_MR_ERR_CMD);
		ck_assert_int_eq(errno, EINVAL);
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 64, 0, 0));
		expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
	}
	ck_ok(ibv_rereg_mr(d.b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   ALL_ACCESS | IBV_ACCESS_ZERO_BASED));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

/*
 * If the new range is not mapped (EFAULT) the MR is disabled: its keys are
 * refused, but it can be deregistered.
 */
START_TEST(unmapped)
{
	struct change c = { .flags = IBV_REREG_MR_CHANGE_TRANSLATION,
			    .len = 4096 };
	struct duo d;

	open_it(&d, SAME_PROCESS);
	c.addr =
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	b_change(&d, &c, IBV_REREG_MR_ERR_CMD);
	ck_assert_int_eq(c.err, EFAULT);
	ck_write(&d, d.at_b.base, d.at_b.rkey, 8, IBV_WC_REM_ACCESS_ERR);
	duo_close(&d); /* deregisters the MR */
}
END_TEST

/* A PD of another context is refused. */
START_TEST(another_device)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct duo d;

	open_it(&d, SAME_CONTEXT);
	ctx = open_device();
	pd = ibv_alloc_pd(ctx);
	ck_assert_int_eq(
		ibv_rereg_mr(d.a.mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0),
		IBV_REREG_MR_ERR_CMD);
	ck_assert_ptr_eq(d.a.mr->pd, d.a.pd);
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
	duo_close(&d);
}
END_TEST

/* An MR to which a memory window is bound cannot be reregistered (EBUSY). */
START_TEST(bound_window)
{
	struct opts o = default_opts();
	struct ibv_mw_bind bind = { .wr_id = 1,
				    .send_flags = IBV_SEND_SIGNALED };
	struct ibv_mw *mw;
	struct duo d;

	o.mr_access |= IBV_ACCESS_MW_BIND;
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	mw = ibv_alloc_mw(d.a.pd, IBV_MW_TYPE_1);
	ck_nonnull(mw);
	bind.bind_info = (struct ibv_mw_bind_info){ d.a.mr, d.a.base, 64,
						    IBV_ACCESS_REMOTE_READ };
	ck_ok(ibv_bind_mw(d.a.qp, mw, &bind));
	expect_ok(d.a.scq, 1, IBV_WC_BIND_MW);
	ck_assert_int_eq(ibv_rereg_mr(d.a.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
				      NULL, 0, ALL_ACCESS),
			 IBV_REREG_MR_ERR_CMD);
	ck_assert_int_eq(errno, EBUSY);
	ck_ok(ibv_dealloc_mw(mw));
	ck_ok(ibv_rereg_mr(d.a.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   ALL_ACCESS));
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("rereg");

	add_loop(s, access_flags, WHERE_COUNT);
	add_loop(s, translation, WHERE_COUNT);
	add_loop(s, pd_change, WHERE_COUNT);
	add_loop(s, all_changes_at_once, WHERE_COUNT);
	add_loop(s, posted_receives, WHERE_COUNT);
	add(s, input_errors);
	add(s, command_errors);
	add(s, flags_of_device_memory);
	add(s, unmapped);
	add(s, another_device);
	add(s, bound_window);
	return run(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Device memory: the rules of ibv_alloc_dm(3). */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../harness.h"
#include "shared/layout.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;

static void setup(void)
{
	ctx = open_device();
	pd = ibv_alloc_pd(ctx);
	ck_nonnull(pd);
}

static void teardown(void)
{
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}

static struct ibv_dm *alloc(size_t length, uint32_t log_align)
{
	struct ibv_alloc_dm_attr attr = { .length = length,
					  .log_align_req = log_align };

	return ibv_alloc_dm(ctx, &attr);
}

static uint64_t max_dm_size(void)
{
	struct ibv_device_attr_ex attr;

	ck_ok(ibv_query_device_ex(ctx, NULL, &attr));
	return attr.max_dm_size;
}

/* New device memory is zero, and copies change only their own range. */
START_TEST(copy_in_and_out)
{
	char in[4096], out[4096], zero[4096] = { 0 };
	struct ibv_dm *dm;
	size_t i;

	setup();
	for (i = 0; i < sizeof(in); i++)
		in[i] = (char)(i * 7 + i / 256);
	dm = alloc(4096, 0);
	ck_nonnull(dm);
	ck_assert_ptr_eq(dm->context, ctx);
	ck_ok(ibv_memcpy_from_dm(out, dm, 0, 4096));
	ck_assert_mem_eq(out, zero, 4096);
	ck_ok(ibv_memcpy_to_dm(dm, 0, in, 4096));
	ck_ok(ibv_memcpy_from_dm(out, dm, 0, 4096));
	ck_assert_mem_eq(out, in, 4096);
	ck_ok(ibv_memcpy_to_dm(dm, 100, in, 8));
	ck_ok(ibv_memcpy_from_dm(out, dm, 96, 16));
	ck_assert_mem_eq(out, in + 96, 4);
	ck_assert_mem_eq(out + 4, in, 8);
	ck_assert_mem_eq(out + 12, in + 108, 4);
	ck_ok(ibv_memcpy_to_dm(dm, 4092, in, 4));
	ck_ok(ibv_memcpy_to_dm(dm, 4096, in, 0));
	ck_ok(ibv_free_dm(dm));
	teardown();
}
END_TEST

/*
 * Copies outside of the memory, or not aligned to 4 bytes, fail with EINVAL.
 */
START_TEST(copy_errors)
{
	struct ibv_dm *dm;
	char buf[256];

	setup();
	memset(buf, 1, sizeof(buf));
	dm = alloc(128, 0);
	ck_nonnull(dm);
	ck_assert_int_eq(ibv_memcpy_to_dm(dm, 0, buf, 132), EINVAL);
	ck_assert_int_eq(ibv_memcpy_to_dm(dm, 128, buf, 4), EINVAL);
	ck_assert_int_eq(ibv_memcpy_to_dm(dm, 132, buf, 0), EINVAL);
	ck_assert_int_eq(ibv_memcpy_to_dm(dm, UINT64_MAX - 3, buf, 8), EINVAL);
	ck_assert_int_eq(ibv_memcpy_to_dm(dm, 2, buf, 4), EINVAL);
	ck_assert_int_eq(ibv_memcpy_to_dm(dm, 4, buf, 3), EINVAL);
	ck_assert_int_eq(ibv_memcpy_from_dm(buf, dm, 0, 132), EINVAL);
	ck_assert_int_eq(ibv_memcpy_from_dm(buf, dm, 124, 8), EINVAL);
	ck_assert_int_eq(ibv_memcpy_from_dm(buf, dm, 1, 4), EINVAL);
	ck_assert_int_eq(ibv_memcpy_from_dm(buf, dm, 0, 5), EINVAL);
	ck_assert_int_eq(ibv_memcpy_from_dm(buf, dm, 4, SIZE_MAX - 3), EINVAL);
	/* nothing was copied */
	ck_assert_int_eq(buf[0], 1);
	ck_ok(ibv_memcpy_from_dm(buf, dm, 0, 128));
	ck_assert_int_eq(buf[0], 0);
	ck_assert_int_eq(buf[127], 0);
	ck_ok(ibv_free_dm(dm));
	teardown();
}
END_TEST

/*
 * Invalid lengths, alignments and masks fail with EINVAL; more memory than
 * max_dm_size with ENOMEM.
 */
START_TEST(alloc_errors)
{
	struct ibv_alloc_dm_attr attr = { .length = 64, .comp_mask = 1 };

	setup();
	ck_errno(ibv_alloc_dm(ctx, &attr), EINVAL);
	attr.comp_mask = 1u << 31;
	ck_errno(ibv_alloc_dm(ctx, &attr), EINVAL);
	ck_errno(alloc(0, 0), EINVAL);
	ck_errno(alloc(64, 64), EINVAL);
	ck_errno(alloc(64, UINT32_MAX), EINVAL);
	ck_errno(alloc(max_dm_size() + 1, 0), ENOMEM);
	ck_errno(alloc(SIZE_MAX, 0), ENOMEM);
	teardown();
}
END_TEST

/* Any length can be allocated.  An MR cannot exceed it, even by a byte. */
START_TEST(odd_lengths)
{
	size_t len[] = { 1, 3, 4, 63, 65, 4095, 4097, 100001 };
	struct ibv_mr *mr;
	struct ibv_dm *dm;
	unsigned int i;

	setup();
	for (i = 0; i < sizeof(len) / sizeof(*len); i++) {
		dm = alloc(len[i], i);
		ck_nonnull(dm);
		mr = ibv_reg_dm_mr(pd, dm, 0, len[i], IBV_ACCESS_ZERO_BASED);
		ck_nonnull(mr);
		ck_ok(ibv_dereg_mr(mr));
		ck_errno(ibv_reg_dm_mr(pd, dm, 0, len[i] + 1,
				       IBV_ACCESS_ZERO_BASED),
			 EINVAL);
		ck_ok(ibv_free_dm(dm));
	}
	teardown();
}
END_TEST

/*
 * The number of allocations is limited only by the memory, of which each
 * takes at least 4 KiB.
 */
START_TEST(small_pieces)
{
	uint64_t i, pieces;
	struct ibv_dm **dm;

	setup();
	pieces = max_dm_size() / 4096;
	dm = calloc(pieces, sizeof(*dm));
	ck_nonnull(dm);
	for (i = 0; i < pieces; i++) {
		dm[i] = alloc(8, 0);
		ck_nonnull(dm[i]);
	}
	ck_errno(alloc(8, 0), ENOMEM);
	for (i = 0; i < pieces; i++)
		ck_ok(ibv_free_dm(dm[i]));
	teardown();
	free(dm);
}
END_TEST

/* Freed memory can be allocated again. */
START_TEST(freed_memory_reused)
{
	struct ibv_dm *a, *b;
	uint64_t max;
	char word[4] = "abc", got[4];
	int i;

	setup();
	max = max_dm_size();
	for (i = 0; i < 3; i++) {
		a = alloc(max, 0);
		ck_nonnull(a);
		ck_errno(alloc(1, 0), ENOMEM);
		/* memory that is allocated again is zero */
		ck_ok(ibv_memcpy_from_dm(got, a, max - 4, 4));
		ck_assert_mem_eq(got, "\0\0\0", 4);
		ck_ok(ibv_memcpy_to_dm(a, max - 4, word, 4));
		ck_ok(ibv_free_dm(a));
	}
	a = alloc(max / 2, 0);
	b = alloc(max / 2, 0);
	ck_nonnull(a);
	ck_nonnull(b);
	ck_errno(alloc(4096, 0), ENOMEM);
	ck_ok(ibv_free_dm(a));
	a = alloc(max / 4, 0);
	ck_nonnull(a);
	ck_ok(ibv_free_dm(a));
	ck_ok(ibv_free_dm(b));
	teardown();
}
END_TEST

static int take_half(void *arg)
{
	int *pipe_fd = arg;
	char c;

	setup();
	ck_nonnull(alloc(max_dm_size() / 2, 0));
	ck_assert_int_eq(write(pipe_fd[1], "x", 1), 1);
	/* exits without ibv_free_dm() */
	ck_assert_int_eq(read(pipe_fd[2], &c, 1), 1);
	return 0;
}

/*
 * All processes share the device memory.  That of an exited process is freed.
 */
START_TEST(across_processes)
{
	int up[2], down[2], fd[3];
	struct ibv_dm *dm;
	pid_t child;
	char c;

	ck_ok(pipe(up));
	ck_ok(pipe(down));
	fd[1] = up[1];
	fd[2] = down[0];
	child = spawn(take_half, fd);
	ck_assert_int_eq(read(up[0], &c, 1), 1);
	setup();
	ck_errno(alloc(max_dm_size(), 0), ENOMEM);
	dm = alloc(max_dm_size() / 2, 0);
	ck_nonnull(dm);
	ck_errno(alloc(1, 0), ENOMEM);
	ck_ok(ibv_free_dm(dm));
	ck_assert_int_eq(write(down[1], "x", 1), 1);
	ck_assert_int_eq(reap_child(child), 0);
	/* memory of exited processes is free after the device is opened */
	teardown();
	setup();
	dm = alloc(max_dm_size(), 0);
	ck_nonnull(dm);
	ck_ok(ibv_free_dm(dm));
	teardown();
}
END_TEST

/*
 * ibv_reg_dm_mr() requires IBV_ACCESS_ZERO_BASED, a range within the memory,
 * and valid access flags.
 */
START_TEST(registration_errors)
{
	const int zb = IBV_ACCESS_ZERO_BASED;
	struct ibv_dm *dm;

	setup();
	dm = alloc(4096, 0);
	ck_nonnull(dm);
	ck_errno(ibv_reg_dm_mr(pd, dm, 0, 4096, 0), EINVAL);
	ck_errno(ibv_reg_dm_mr(pd, dm, 0, 4096, ALL_ACCESS), EINVAL);
	ck_errno(ibv_reg_dm_mr(pd, dm, 0, 4097, zb), EINVAL);
	ck_errno(ibv_reg_dm_mr(pd, dm, 4096, 1, zb), EINVAL);
	ck_errno(ibv_reg_dm_mr(pd, dm, 5000, 1, zb), EINVAL);
	ck_errno(ibv_reg_dm_mr(pd, dm, UINT64_MAX, 2, zb), EINVAL);
	ck_errno(ibv_reg_dm_mr(pd, dm, 8, SIZE_MAX - 4, zb), EINVAL);
	ck_errno(ibv_reg_dm_mr(pd, dm, 0, 64, zb | IBV_ACCESS_REMOTE_WRITE),
		 EINVAL);
	ck_errno(ibv_reg_dm_mr(pd, dm, 0, 64, zb | IBV_ACCESS_REMOTE_ATOMIC),
		 EINVAL);
	ck_errno(ibv_reg_dm_mr(pd, dm, 0, 64, zb | 1 << 18), EINVAL);
	ck_ok(ibv_free_dm(dm));
	teardown();
}
END_TEST

/* ibv_free_dm() fails with EBUSY while there are MRs in the memory. */
START_TEST(busy_while_registered)
{
	struct ibv_mr *a, *b;
	struct ibv_dm *dm;

	setup();
	dm = alloc(4096, 0);
	ck_nonnull(dm);
	a = ibv_reg_dm_mr(pd, dm, 0, 4096, ALL_ACCESS | IBV_ACCESS_ZERO_BASED);
	b = ibv_reg_dm_mr(pd, dm, 64, 64, IBV_ACCESS_ZERO_BASED);
	ck_nonnull(a);
	ck_nonnull(b);
	ck_assert_uint_ne(a->lkey, b->lkey);
	ck_assert_ptr_eq(a->pd, pd);
	ck_assert_ptr_eq(a->context, ctx);
	ck_assert_uint_eq(b->length, 64);
	ck_assert_int_eq(ibv_free_dm(dm), EBUSY);
	ck_ok(ibv_dereg_mr(a));
	ck_assert_int_eq(ibv_free_dm(dm), EBUSY);
	/* the memory is still usable */
	ck_ok(ibv_memcpy_to_dm(dm, 0, &(int){ 7 }, 4));
	ck_ok(ibv_dereg_mr(b));
	ck_ok(ibv_free_dm(dm));
	teardown();
}
END_TEST

/*
 * ibv_reg_dm_mr() in one thread races with ibv_free_dm() in another: exactly
 * one succeeds.  Two handles are used, because ibv_free_dm() invalidates its
 * argument.
 */
struct race {
	_Atomic int turn; /* odd: both threads run */
	struct ibv_dm *dm;
	struct ibv_mr *mr;
};

#define RACES 50000
#define RACES_MS 10000 /* fewer races on a busy machine */

static void await_turn(struct race *r, int turn)
{
	while (atomic_load(&r->turn) != turn)
		sched_yield();
}

static void *registers(void *arg)
{
	struct race *r = arg;
	int i;

	for (i = 0;; i++) {
		await_turn(r, 2 * i + 1);
		if (!r->dm)
			break;
		r->mr = ibv_reg_dm_mr(pd, r->dm, 0, 64, IBV_ACCESS_ZERO_BASED);
		atomic_store(&r->turn, 2 * i + 2);
	}
	return NULL;
}

/*
 * Of ibv_reg_dm_mr() and ibv_free_dm() at the same time, exactly one
 * succeeds.
 */
START_TEST(registration_races_free)
{
	struct ibv_dm *keep, *dm;
	pthread_t thread;
	struct race r = { .turn = 0 };
	double end = now_ms() + RACES_MS;
	_Atomic int late;
	int i, freed;

	setup();
	keep = alloc(64, 0); /* the heap keeps its pages */
	ck_nonnull(keep);
	ck_ok(pthread_create(&thread, NULL, registers, &r));
	for (i = 0; i < RACES && now_ms() < end; i++) {
		dm = alloc(64, 0);
		ck_nonnull(dm);
		r.dm = ibv_import_dm(ctx, dm->handle);
		ck_nonnull(r.dm);
		atomic_store(&r.turn, 2 * i + 1);
		atomic_store_explicit(&late, i % 512, memory_order_relaxed);
		while (atomic_fetch_sub_explicit(&late, 1,
						 memory_order_relaxed) > 0)
			;
		freed = ibv_free_dm(dm);
		await_turn(&r, 2 * i + 2);
		ck_assert_int_eq(freed, r.mr ? EBUSY : 0);
		if (!r.mr) {
			ibv_unimport_dm(r.dm);
			continue;
		}
		ck_ok(ibv_dereg_mr(r.mr));
		ck_ok(ibv_free_dm(r.dm));
		ibv_unimport_dm(dm);
	}
	r.dm = NULL;
	atomic_store(&r.turn, 2 * i + 1);
	ck_ok(pthread_join(thread, NULL));
	ck_ok(ibv_free_dm(keep));
	teardown();
}
END_TEST

/* ibv_close_device() frees device memory. */
START_TEST(closing_the_device_frees)
{
	uint64_t max;
	int i;

	may_leak();
	for (i = 0; i < 3; i++) {
		setup();
		max = max_dm_size();
		ck_nonnull(alloc(max, 0));
		/* no ibv_free_dm() */
		ck_ok(ibv_dealloc_pd(pd));
		ck_ok(ibv_close_device(ctx));
	}
}
END_TEST

/*
 * An MR on a part of device memory: addresses count from the first byte of
 * that part.
 */
struct part {
	struct ibv_mr *mr;
	uint32_t rkey;
};

static void do_part(struct node *b, void *arg)
{
	struct part *p = arg;

	p->mr = ibv_reg_dm_mr(b->pd, b->dm, 4096, 100,
			      ALL_ACCESS | IBV_ACCESS_ZERO_BASED);
	ck_nonnull(p->mr);
	p->rkey = p->mr->rkey;
}

static void do_dereg_part(struct node *b, void *arg)
{
	struct part *p = arg;

	(void)b;
	ck_ok(ibv_dereg_mr(p->mr));
}

/* An MR on a part of device memory gives access to that part only. */
START_TEST(mr_of_a_part)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct part p;
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_DM, &o);
	on_b(&d, do_part, &p, sizeof(p));
	node_fill(&d.a, 0, 100, 5);
	sge = node_sge(&d.a, 0, 100);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 1, &sge, 1, 0);
	wr.wr.rdma.remote_addr = 0;
	wr.wr.rdma.rkey = p.rkey;
	ck_ok(post_wr(d.a.qp, &wr));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_assert(b_has(&d, 4096, 100, 5));
	ck_assert(b_all(&d, 0, 4096, 0));
	wr.wr.rdma.remote_addr = 1;
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	ck_assert(b_all(&d, 4196, 1000, 0));
	on_b(&d, do_dereg_part, &p, sizeof(p));
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("dm");

	add(s, copy_in_and_out);
	add(s, copy_errors);
	add(s, alloc_errors);
	add(s, odd_lengths);
	add(s, small_pieces);
	add(s, freed_memory_reused);
	add(s, across_processes);
	add(s, registration_errors);
	add(s, busy_while_registered);
	add(s, registration_races_free);
	add(s, closing_the_device_frees);
	add_loop(s, mr_of_a_part, WHERE_COUNT);
	return run(s);
}

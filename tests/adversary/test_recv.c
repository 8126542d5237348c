// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Options "fill" and "rnr": the contents of receive buffers, and receives
 * that are posted late.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "with.h"

#define OLD 0x11223344556600ffull /* buffer before posting */
#define FILLED 0xa5a5a5a5a5a500a5ull /* after posting */

static bool b_is(struct duo *d, size_t off, size_t len, uint64_t v)
{
	size_t i;

	for (i = off; i < off + len; i += 8)
		if (b_load64(d, i) != v)
			return false;
	return true;
}

static void b_set(struct duo *d, size_t off, size_t len, uint64_t v)
{
	size_t i;

	for (i = off; i < off + len; i += 8)
		b_store64(d, i, v);
}

/* Each location of b with each kind of memory. */
static void open_each(struct duo *d, int i, const char *options)
{
	struct opts o = default_opts();

	with_options(options);
	duo_open(d, i % WHERE_COUNT, MEM_HEAP, i / WHERE_COUNT, &o);
}
#define EACH (WHERE_COUNT * MEM_COUNT)

/* With "fill", a posted buffer is overwritten, and nothing around it. */
START_TEST(option_fill)
{
	struct ibv_wc wc;
	struct duo d;

	open_each(&d, _i, "fill=1000");
	b_set(&d, 0, 256, OLD);
	b_recv(&d, 1, 64, 128);
	ck_assert(b_is(&d, 0, 64, OLD));
	ck_assert(b_is(&d, 64, 128, FILLED));
	ck_assert(b_is(&d, 192, 64, OLD));
	/* a message changes only its own bytes */
	node_fill(&d.a, 0, 16, 5);
	ck_ok(post(&d, IBV_WR_SEND, 2, 0, 16, 0, 0));
	expect(d.a.scq, 2, IBV_WC_SUCCESS);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.byte_len, 16);
	ck_assert(b_has(&d, 64, 16, 5));
	ck_assert(b_is(&d, 80, 112, FILLED));
	duo_close(&d);
}
END_TEST

/*
 * Bytes that are 0 are not overwritten: a program that clears its buffers
 * finds zeros behind a short message.
 */
START_TEST(zeros_not_filled)
{
	struct duo d;

	open_each(&d, _i, "fill=1000");
	b_set(&d, 0, 256, 0);
	b_recv(&d, 1, 0, 256);
	ck_assert(b_is(&d, 0, 256, 0));
	duo_close(&d);
}
END_TEST

/* Without "fill" a posted buffer is not changed. */
START_TEST(receive_unchanged_without_fill)
{
	struct duo d;

	open_each(&d, _i, "rnr=1");
	b_set(&d, 0, 256, OLD);
	b_recv(&d, 1, 0, 256);
	ck_assert(b_is(&d, 0, 256, OLD));
	duo_close(&d);
}
END_TEST

#define BIG 32768

/* Of a big buffer only the first and last 4 KiB are filled. */
START_TEST(big_buffer_filled_at_its_ends)
{
	struct duo d;

	open_each(&d, _i, "fill=1000");
	b_set(&d, 0, 64, OLD);
	b_set(&d, BIG - 64, 128, OLD);
	b_recv(&d, 1, 0, BIG);
	ck_assert(b_is(&d, 0, 64, FILLED));
	ck_assert(b_is(&d, BIG - 64, 64, FILLED));
	ck_assert(b_is(&d, BIG, 64, OLD));
	duo_close(&d);
}
END_TEST

struct refused {
	int err, bad;
};

/* On b: fill the queue up to one entry, then post a list of two. */
static void do_refused(struct node *b, void *arg)
{
	struct ibv_sge sge[2] = { node_sge(b, 1024, 64),
				  node_sge(b, 2048, 64) };
	struct ibv_recv_wr wr[2] = {
		{ .next = &wr[1], .sg_list = &sge[0], .num_sge = 1 },
		{ .sg_list = &sge[1], .num_sge = 1 },
	};
	struct refused *r = arg;
	struct ibv_recv_wr *bad;
	int i;

	for (i = 0; i < 63; i++)
		ck_ok(post_recv(b, i, 0, 8));
	r->err = ibv_post_recv(b->qp, wr, &bad);
	r->bad = (int)(bad - wr);
}

/* The buffer of a WR that ibv_post_recv() refuses is not changed. */
START_TEST(refused_receive_not_filled)
{
	struct refused r;
	struct duo d;

	open_each(&d, _i, "fill=1000");
	b_set(&d, 1024, 64, OLD);
	b_set(&d, 2048, 64, OLD);
	on_b(&d, do_refused, &r, sizeof(r));
	ck_assert_int_eq(r.err, ENOMEM);
	ck_assert_int_eq(r.bad, 1);
	ck_assert(b_is(&d, 1024, 64, FILLED));
	ck_assert(b_is(&d, 2048, 64, OLD));
	duo_close(&d);
}
END_TEST

/*
 * Buffers with an invalid lkey or length, or without memory, are not filled:
 * the error is reported by the completion.
 */
START_TEST(invalid_receive_not_filled)
{
	struct opts o = default_opts();
	struct ibv_recv_wr wr = { .num_sge = 1 }, *bad;
	struct ibv_sge sge = { .length = 8192 };
	struct ibv_mr *mr, *ro;
	struct duo d;
	char *page;

	with_options("fill=1000");
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	memset(page, 1, 8192);
	mr = ibv_reg_mr(d.a.pd, page, 8192, IBV_ACCESS_LOCAL_WRITE);
	ck_nonnull(mr);
	ro = ibv_reg_mr(d.a.pd, page, 8192, 0);
	ck_nonnull(ro);
	wr.sg_list = &sge;
	sge.addr = (uintptr_t)page;
	sge.lkey = ro->lkey;
	ck_ok(ibv_post_recv(d.a.qp, &wr, &bad));
	sge.lkey = mr->lkey;
	sge.length = 8193;
	ck_ok(ibv_post_recv(d.a.qp, &wr, &bad));
	sge.length = 8192;
	sge.lkey = ~mr->lkey;
	ck_ok(ibv_post_recv(d.a.qp, &wr, &bad));
	ck_assert_int_eq(page[0], 1);
	ck_assert_int_eq(page[8191], 1);
	sge.lkey = mr->lkey;
	leave_hole(page + 4096, 4096);
	ck_ok(ibv_post_recv(d.a.qp, &wr, &bad));
	ck_assert_int_eq(page[0], 1);
	ck_ok(ibv_dereg_mr(ro));
	ck_ok(ibv_dereg_mr(mr));
	munmap(page, 8192);
	duo_close(&d);
}
END_TEST

/* Post 20 receives.  Return the duration in ms. */
static double post_twenty(const char *options)
{
	struct opts o = default_opts();
	struct duo d;
	double start;
	int i;

	with_options(options);
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	start = now_ms();
	for (i = 0; i < 20; i++)
		ck_ok(post_recv(&d.a, i, 0, 64));
	start = now_ms() - start;
	duo_close(&d);
	return start;
}

/* With "rnr", each post of a receive takes at least 0.1 ms. */
START_TEST(option_rnr)
{
	ck_assert_double_ge(post_twenty("rnr=1000"), 20 * 0.1);
}
END_TEST

static double post_quickly(int i)
{
	(void)i;
	return post_twenty("fill=1000");
}

/* Without "rnr" it does not. */
START_TEST(no_delay_without_rnr)
{
	expect_within(20 * 0.1, post_quickly, 0);
}
END_TEST

/*
 * A thread of b that posts a receive.  It sets @ready before or after that.
 */
struct poster {
	struct node *b;
	atomic_int *ready;
	int i;
	bool before;
};

static void *do_post(void *arg)
{
	struct poster *p = arg;

	if (p->before)
		atomic_store(p->ready, 1);
	ck_ok(post_recv(p->b, p->i, 0, 64));
	atomic_store(p->ready, 1);
	return NULL;
}

/* Send as soon as b is ready.  Return the status of the SEND. */
static enum ibv_wc_status send_when_ready(struct duo *d, int i, bool before)
{
	atomic_int ready = 0;
	struct poster p = { &d->b, &ready, i, before };
	struct ibv_wc wc;
	pthread_t t;

	ck_ok(pthread_create(&t, NULL, do_post, &p));
	while (!atomic_load(&ready))
		sched_yield();
	ck_ok(post(d, IBV_WR_SEND, i, 0, 8, 0, 0));
	wc = wait_wc(d->a.scq);
	ck_ok(pthread_join(t, NULL));
	return wc.status;
}

static void open_impatient(struct duo *d, const char *options,
			   uint8_t rnr_retry)
{
	struct opts o = default_opts();

	o.rnr_retry = rnr_retry;
	o.min_rnr_timer = 24; /* 41 ms: longer than any of these delays */
	with_options(options);
	duo_open(d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
}

/*
 * With "rnr", a receive that is announced before it is posted is not there
 * when the message arrives.
 */
START_TEST(receive_announced_before_post)
{
	struct duo d;
	int i;

	open_impatient(&d, "rnr=1000", 0);
	for (i = 0; send_when_ready(&d, i, true) != IBV_WC_RNR_RETRY_EXC_ERR;
	     i++)
		ck_assert_int_lt(i, 200);
	duo_close(&d);
}
END_TEST

/* With "rnr", a receive that is announced after the post is found. */
START_TEST(receive_announced_after_post)
{
	struct duo d;
	int i;

	open_impatient(&d, "rnr=1000,fill=1000", 0);
	for (i = 0; i < 50; i++)
		ck_assert_int_eq(send_when_ready(&d, i, false), IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

/*
 * With retries, and an RNR timer that is longer than the delay, the message
 * arrives.
 */
START_TEST(rnr_retries_succeed)
{
	struct duo d;
	int i;

	open_impatient(&d, "rnr=1000", 7);
	for (i = 0; i < 50; i++)
		ck_assert_int_eq(send_when_ready(&d, i, true), IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

/* Both options apply to SRQs, too. */
START_TEST(fill_and_rnr_of_srq)
{
	struct opts o = default_opts();
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 64,
						    .max_sge = 1 } };
	struct ibv_recv_wr wr = { .num_sge = 1 }, *bad;
	struct ibv_srq *srq;
	struct ibv_sge sge;
	struct node n;
	double start;
	int i;

	with_options("rnr=1000,fill=1000");
	node_open(&n, NULL, MEM_HEAP, &o);
	srq = ibv_create_srq(n.pd, &init);
	ck_nonnull(srq);
	memset(n.buf, 7, 256);
	sge = node_sge(&n, 0, 128);
	wr.sg_list = &sge;
	start = now_ms();
	for (i = 0; i < 20; i++)
		ck_ok(ibv_post_srq_recv(srq, &wr, &bad));
	ck_assert_double_ge(now_ms() - start, 20 * 0.1);
	ck_assert(node_all(&n, 0, 128, 0xa5));
	ck_assert(node_all(&n, 128, 128, 7));
	ck_ok(ibv_destroy_srq(srq));
	node_close(&n);
}
END_TEST

int main(void)
{
	Suite *s = suite("recv");

	add_loop(s, option_fill, EACH);
	add_loop(s, zeros_not_filled, EACH);
	add_loop(s, receive_unchanged_without_fill, EACH);
	add_loop(s, big_buffer_filled_at_its_ends, EACH);
	add_loop(s, refused_receive_not_filled, EACH);
	add(s, invalid_receive_not_filled);
	add(s, option_rnr);
	add(s, no_delay_without_rnr);
	add(s, receive_announced_before_post);
	add(s, receive_announced_after_post);
	add(s, rnr_retries_succeed);
	add(s, fill_and_rnr_of_srq);
	return run(s);
}

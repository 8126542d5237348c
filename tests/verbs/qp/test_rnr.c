// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* RNR retries: SEND and WRITE_WITH_IMM to a responder without receives. */
#include "../harness.h"

/* Values of min_rnr_timer; the RNR NAK timer in ms. */
#define TIMER_10MS 20 /* 10.24 */
#define TIMER_82MS 26 /* 81.92 */
#define TIMER_491MS 31 /* 491.52 */

static enum ibv_wr_opcode opcode(int i)
{
	return i / WHERE_COUNT ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND;
}

/* Return the ms until a WR fails with rnr_retry 0. */
static double give_up_at_once(int i)
{
	struct opts o = default_opts();
	double start, took;
	struct duo d;

	o.rnr_retry = 0;
	o.min_rnr_timer = TIMER_10MS;
	duo_open(&d, i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	start = now_ms();
	ck_ok(post(&d, opcode(i), 1, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	took = now_ms() - start;
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_ERR);
	/* the responder is unaffected */
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	b_expect_no_async(&d);
	ck_assert(b_all(&d, 0, 64, 0));
	duo_close(&d);
	return took;
}

/*
 * With rnr_retry 0 a WR fails with RNR_RETRY_EXC_ERR before one RNR timer of
 * the responder has expired.
 */
START_TEST(rnr_retry_0)
{
	expect_within(10.2, give_up_at_once, _i);
}
END_TEST

/* Return the ms until a WR fails with rnr_retry 3: at least 3 RNR timers. */
static double give_up_after_retries(int i)
{
	struct opts o = default_opts();
	double start, took;
	struct duo d;

	o.rnr_retry = 3;
	o.min_rnr_timer = TIMER_10MS;
	duo_open(&d, i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post_recv(&d.a, 9, 0, 8));
	start = now_ms();
	ck_ok(post(&d, opcode(i), 1, 0, 8, 0, 0));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	took = now_ms() - start;
	ck_assert_double_gt(took, 3 * 10.2);
	expect(d.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect(d.a.rcq, 9, IBV_WC_WR_FLUSH_ERR);
	/* the WRITE was not executed before the waiting message */
	ck_assert(b_all(&d, 0, 64, 0));
	duo_close(&d);
	return took;
}

/* With rnr_retry 3 a WR fails after three RNR timers, within 300 ms. */
START_TEST(rnr_retry_3)
{
	expect_within(300, give_up_after_retries, _i);
}
END_TEST

/*
 * Return the ms until a WR fails with rnr_retry 1: one RNR timer of 491 ms.
 */
static double retry_once(int i)
{
	struct opts o = default_opts();
	double start, took;
	struct duo d;

	o.rnr_retry = 1;
	o.min_rnr_timer = TIMER_491MS;
	duo_open(&d, i, MEM_HEAP, MEM_HEAP, &o);
	start = now_ms();
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	took = now_ms() - start;
	ck_assert_double_gt(took, 491);
	duo_close(&d);
	return took;
}

/* With rnr_retry 1 there is one retry, not two. */
START_TEST(rnr_retry_1)
{
	expect_within(950, retry_once, _i);
}
END_TEST

/* A message succeeds if its receive is posted during the retries. */
START_TEST(late_receive)
{
	struct opts o = default_opts();
	struct ibv_wc wc;
	struct duo d;
	int i;

	duo_open(&d, _i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 5; i++) {
		node_fill(&d.a, 0, 100, i);
		ck_ok(post(&d, opcode(_i), i, 0, 100, 256, 0));
		expect_none(d.a.scq, 20);
		b_recv(&d, 100 + i, 256, 100);
		expect(d.a.scq, i, IBV_WC_SUCCESS);
		wc = b_wait_recv(&d);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.wr_id, 100 + i);
		ck_assert(b_has(&d, 256, 100, i));
	}
	duo_close(&d);
}
END_TEST

/* rnr_retry 7 means unlimited retries. */
START_TEST(rnr_retry_7)
{
	struct opts o = default_opts();
	struct duo d;

	o.rnr_retry = 7;
	o.min_rnr_timer = 1; /* 10 us: thousands of retries */
	duo_open(&d, _i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post(&d, opcode(_i), 1, 0, 8, 0, 0));
	expect_none(d.a.scq, 500);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_RTS);
	b_recv(&d, 1, 0, 64);
	expect(d.a.scq, 1, IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

/*
 * Messages of a batch, whose receives are posted one by one, arrive in order.
 */
START_TEST(one_receive_at_a_time)
{
	struct opts o = default_opts();
	struct ibv_wc wc;
	struct duo d;
	int i;

	duo_open(&d, _i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 20; i++) {
		node_fill(&d.a, i * 64, 64, i);
		ck_ok(post(&d, opcode(_i), i, i * 64, 64, i * 64, 0));
	}
	for (i = 0; i < 20; i++) {
		b_recv(&d, i, i * 64, 64);
		expect(d.a.scq, i, IBV_WC_SUCCESS);
		wc = b_wait_recv(&d);
		ck_assert_uint_eq(wc.wr_id, i);
		ck_assert(b_has(&d, i * 64, 64, i));
	}
	expect_none(d.a.scq, QUIET_MS);
	duo_close(&d);
}
END_TEST

/* A message that succeeds resets the RNR retry counter. */
START_TEST(success_resets_rnr_count)
{
	struct opts o = default_opts();
	struct duo d;
	int i;

	/*
	 * One timer expires for each message.  The other five, 0.4 s, are for
	 * a receiver that is scheduled late.
	 */
	o.rnr_retry = 6;
	o.min_rnr_timer = TIMER_82MS;
	duo_open(&d, _i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 7; i++) {
		ck_ok(post(&d, opcode(_i), i, 0, 8, 0, 0));
		expect_none(d.a.scq, 90);
		b_recv(&d, i, 0, 64);
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	}
	duo_close(&d);
}
END_TEST

/* WRITE, READ and atomics need no receive. */
START_TEST(rdma_needs_no_receive)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	ck_ok(post(&d, IBV_WR_RDMA_READ, 2, 0, 8, 0, 0));
	ck_ok(post_atomic(&d, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 0, 0, 1, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_READ);
	expect_ok(d.a.scq, 3, IBV_WC_FETCH_ADD);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("rnr");

	add_loop(s, rnr_retry_0, 2 * WHERE_COUNT);
	add_loop(s, rnr_retry_3, 2 * WHERE_COUNT);
	add_loop(s, rnr_retry_1, WHERE_COUNT);
	add_loop(s, late_receive, 2 * WHERE_COUNT);
	add_loop(s, rnr_retry_7, 2 * WHERE_COUNT);
	add_loop(s, one_receive_at_a_time, 2 * WHERE_COUNT);
	add_loop(s, success_resets_rnr_count, 2 * WHERE_COUNT);
	add_loop(s, rdma_needs_no_receive, WHERE_COUNT);
	return run(s);
}

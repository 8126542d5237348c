// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Outstanding WRs when a QP goes to ERR, RESET or SQD, and when the peer's QP
 * goes to ERR or is destroyed.
 */
#include "../harness.h"

/*
 * Post @n WRs that cannot complete to each queue of a: SENDs, every other one
 * signaled, for which b posts no receive, and receives.
 */
static void park(struct duo *d, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		if (i % 2)
			ck_ok(post(d, IBV_WR_SEND, i, 0, 8, 0, 0));
		else
			ck_ok(post_unsignaled(d, IBV_WR_SEND, i, 0, 8, 0, 0));
		ck_ok(post_recv(&d->a, 100 + i, 0, 8));
	}
}

/* Expect the WRs of park() as WR_FLUSH_ERR, and no other completion. */
static void expect_flushed(struct duo *d, int n)
{
	struct ibv_wc wc;
	int i;

	/* each WR, signaled or not, in the order of posting */
	for (i = 0; i < n; i++) {
		wc = expect(d->a.scq, i, IBV_WC_WR_FLUSH_ERR);
		ck_assert_uint_eq(wc.qp_num, d->a.qp->qp_num);
		wc = expect(d->a.rcq, 100 + i, IBV_WC_WR_FLUSH_ERR);
		ck_assert_uint_eq(wc.qp_num, d->a.qp->qp_num);
	}
	expect_none(d->a.scq, QUIET_MS);
	expect_none(d->a.rcq, 0);
}

/*
 * On the transition to ERR all outstanding WRs are flushed, and later WRs as
 * well.
 */
START_TEST(to_err)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	park(&d, 20);
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	expect_flushed(&d, 20);
	/* WRs that are posted in ERR are flushed */
	park(&d, 64);
	expect_flushed(&d, 64);
	/* the peer's QP does not go to ERR */
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	duo_close(&d);
}
END_TEST

/* With one CQ for both queues, the order of posting holds for each queue. */
START_TEST(to_err_with_one_cq)
{
	struct opts o = default_opts();
	int next_send = 0, next_recv = 100, i;
	struct ibv_cq *rcq;
	struct ibv_wc wc;
	struct duo d;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	rcq = d.a.rcq;
	d.a.rcq = d.a.scq;
	duo_renew(&d);
	park(&d, 30);
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	for (i = 0; i < 60; i++) {
		wc = wait_wc(d.a.scq);
		ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
		ck_assert_uint_eq(wc.vendor_err, IBV_WC_WR_FLUSH_ERR);
		if (wc.wr_id < 100)
			ck_assert_uint_eq(wc.wr_id, next_send++);
		else
			ck_assert_uint_eq(wc.wr_id, next_recv++);
	}
	expect_none(d.a.scq, QUIET_MS);
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = NULL;
	d.a.rcq = rcq;
	duo_close(&d);
}
END_TEST

/*
 * WRs that were executed before the transition to ERR complete with success,
 * before the flushed ones.
 */
START_TEST(done_before_flushed)
{
	struct opts o = default_opts();
	struct duo d;
	int i;

	if (under_adversary()) /* it may delay WRs */
		return;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 10; i++)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0));
	expect_ok(d.a.scq, 0, IBV_WC_RDMA_WRITE);
	for (i = 10; i < 20; i++)
		ck_ok(post(&d, IBV_WR_SEND, i, 0, 8, 0, 0));
	sleep_ms(2);
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	for (i = 1; i < 10; i++)
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
	for (i = 10; i < 20; i++)
		expect(d.a.scq, i, IBV_WC_WR_FLUSH_ERR);
	duo_close(&d);
}
END_TEST

/*
 * The transition to RESET discards all outstanding WRs, and completions that
 * were not polled.
 */
START_TEST(to_reset)
{
	struct opts o = default_opts();
	struct duo d;
	int i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 5; i++)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0));
	park(&d, 20);
	ck_ok(qp_to(d.a.qp, IBV_QPS_RESET));
	expect_none(d.a.scq, QUIET_MS);
	expect_none(d.a.rcq, QUIET_MS);
	/* both queues are empty: all of their slots can be used */
	b_modify(&d, IBV_QPS_RESET);
	duo_connect(&d);
	for (i = 0; i < 64; i++) {
		ck_ok(post_recv(&d.a, i, 0, 8));
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0));
	}
	for (i = 0; i < 64; i++)
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

/* RESET after ERR discards flushed completions that were not polled. */
START_TEST(err_then_reset)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	park(&d, 10);
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	expect(d.a.scq, 0, IBV_WC_WR_FLUSH_ERR);
	ck_ok(qp_to(d.a.qp, IBV_QPS_RESET));
	expect_none(d.a.scq, QUIET_MS);
	expect_none(d.a.rcq, QUIET_MS);
	duo_close(&d);
}
END_TEST

/*
 * WRs that are posted in SQD are executed after the transition to RTS, and
 * flushed by the transition to ERR.
 */
START_TEST(send_queue_drain)
{
	struct opts o = default_opts();
	struct duo d;
	int i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d.a, 0, 512, 1);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	ck_ok(qp_to(d.a.qp, IBV_QPS_SQD));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	for (i = 0; i < 5; i++)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 10 + i, 0, 8, 64 + i * 8, 0));
	expect_none(d.a.scq, QUIET_MS);
	ck_assert(b_all(&d, 64, 40, 0));
	ck_ok(qp_to(d.a.qp, IBV_QPS_RTS));
	for (i = 0; i < 5; i++)
		expect_ok(d.a.scq, 10 + i, IBV_WC_RDMA_WRITE);
	ck_assert(b_has(&d, 64, 8, 1));
	/* SQD to ERR: they are flushed */
	ck_ok(qp_to(d.a.qp, IBV_QPS_SQD));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 20, 0, 8, 0, 0));
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	expect(d.a.scq, 20, IBV_WC_WR_FLUSH_ERR);
	duo_close(&d);
}
END_TEST

static void do_send(struct node *b, void *arg)
{
	struct ibv_sge sge = node_sge(b, 0, 8);
	struct ibv_send_wr wr = { .wr_id = *(uint64_t *)arg,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };

	ck_ok(post_wr(b->qp, &wr));
	expect(b->scq, wr.wr_id, IBV_WC_SUCCESS);
}

/* A QP in SQD receives messages. */
START_TEST(receives_while_drained)
{
	struct opts o = default_opts();
	uint64_t id = 3;
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(qp_to(d.a.qp, IBV_QPS_SQD));
	ck_ok(post_recv(&d.a, 5, 0, 8));
	on_b(&d, do_send, &id, sizeof(id));
	expect_ok(d.a.rcq, 5, IBV_WC_RECV);
	duo_close(&d);
}
END_TEST

/*
 * Receives may be posted from INIT on; the transition from INIT to ERR
 * flushes them.
 */
START_TEST(receives_before_connection)
{
	struct opts o = default_opts();
	struct ibv_wc wc;
	struct duo d;
	int i;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	qp_to_init(d.a.qp, &o);
	for (i = 0; i < 3; i++)
		ck_ok(post_recv(&d.a, i, 0, 8));
	expect_none(d.a.rcq, QUIET_MS);
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	for (i = 0; i < 3; i++) {
		wc = expect(d.a.rcq, i, IBV_WC_WR_FLUSH_ERR);
		ck_assert_uint_eq(wc.qp_num, d.a.qp->qp_num);
	}
	duo_close(&d);
}
END_TEST

static void do_connect(struct node *b, void *arg)
{
	node_connect(b, arg);
}

/* Receives that were posted in INIT are used when the QP is connected. */
START_TEST(receives_from_init_are_used)
{
	struct opts o = default_opts();
	uint64_t id = 1;
	struct duo d;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	qp_to_init(d.a.qp, &o);
	ck_ok(post_recv(&d.a, 42, 0, 8));
	qp_to_rtr(d.a.qp, &o, &d.at_b);
	qp_to_rts(d.a.qp, &o);
	on_b(&d, do_connect, &d.at_a, sizeof(d.at_a));
	on_b(&d, do_send, &id, sizeof(id));
	expect_ok(d.a.rcq, 42, IBV_WC_RECV);
	duo_close(&d);
}
END_TEST

/*
 * A SEND that waits for a receive (RNR) fails with RETRY_EXC_ERR if the
 * peer's QP goes to ERR or is destroyed.
 */
START_TEST(parked_when_peer_ends)
{
	struct opts o = default_opts();
	struct duo d;

	o.timeout = 11;
	o.retry_cnt = 1;
	duo_open(&d, _i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect_none(d.a.scq, QUIET_MS);
	if (_i < WHERE_COUNT)
		b_modify(&d, IBV_QPS_ERR);
	else
		b_destroy_qp(&d);
	expect(d.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("flush");

	add_loop(s, to_err, WHERE_COUNT);
	add_loop(s, to_err_with_one_cq, WHERE_COUNT);
	add_loop(s, done_before_flushed, WHERE_COUNT);
	add_loop(s, to_reset, WHERE_COUNT);
	add_loop(s, err_then_reset, WHERE_COUNT);
	add_loop(s, send_queue_drain, WHERE_COUNT);
	add_loop(s, receives_while_drained, WHERE_COUNT);
	add_loop(s, receives_before_connection, WHERE_COUNT);
	add_loop(s, receives_from_init_are_used, WHERE_COUNT);
	add_loop(s, parked_when_peer_ends, 2 * WHERE_COUNT);
	return run(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A process that cannot create the service thread: verbs that need it for a
 * sleeping program return EAGAIN, and polling does its work.
 */
#include <signal.h>
#include <unistd.h>

#include "../harness.h"

/* Open a duo with short timers where no thread can be created. */
static void open_slow(struct duo *d, enum where where, uint8_t rnr_retry)
{
	struct opts o = default_opts();

	allow_threads(false);
	o.channel = true;
	o.timeout = 12;
	o.retry_cnt = 2;
	o.rnr_retry = rnr_retry;
	o.min_rnr_timer = 14; /* 1 ms */
	duo_open(d, where, MEM_HEAP, MEM_HEAP, &o);
}

/*
 * ibv_req_notify_cq needs the service thread, which would wake the program
 * for completions by timers: EAGAIN.
 */
START_TEST(arm_needs_thread)
{
	struct duo d;

	open_slow(&d, _i, 2);
	errno = 0;
	ck_assert_int_eq(ibv_req_notify_cq(d.a.rcq, 0), EAGAIN);
	ck_assert_int_eq(errno, EAGAIN);
	allow_threads(true);
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	ck_assert_int_eq(count_threads(), 2);
	duo_close(&d);
}
END_TEST

/*
 * CQ moderation with a period needs the service thread (EAGAIN), with a count
 * only it does not.
 */
START_TEST(moderation_needs_thread)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { 10, 1000 } };
	struct duo d;

	open_slow(&d, SAME_PROCESS, 2);
	ck_assert_int_eq(ibv_modify_cq(d.a.rcq, &attr), EAGAIN);
	attr.moderate.cq_period = 0;
	ck_ok(ibv_modify_cq(d.a.rcq, &attr));
	duo_close(&d);
}
END_TEST

/* Poll @cq until the QP of a is in ERR. */
static void poll_until_error(struct duo *d, struct ibv_cq *cq)
{
	double end = now_ms() + WAIT_MS;
	struct ibv_wc wc;

	while (qp_state(d->a.qp) != IBV_QPS_ERR && now_ms() < end)
		if (cq)
			ck_assert_int_eq(ibv_poll_cq(cq, 1, &wc), 0);
	ck_assert_int_eq(qp_state(d->a.qp), IBV_QPS_ERR);
}

/* Polling drives the timers, with any CQ of the context. */
START_TEST(polls_drive_timers)
{
	struct duo d;

	open_slow(&d, _i % WHERE_COUNT, 2);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	if (_i / WHERE_COUNT)
		poll_until_error(&d, d.a.rcq);
	expect(d.a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	ck_assert_int_eq(count_threads(), 1);
	duo_close(&d);
}
END_TEST

/* Polling creates the service thread when that has become possible. */
START_TEST(thread_created_later)
{
	double end = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	struct duo d;

	open_slow(&d, SAME_PROCESS, 7);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect_none(d.a.scq, QUIET_MS);
	ck_assert_int_eq(count_threads(), 1);
	allow_threads(true);
	while (count_threads() == 1 && now_ms() < end)
		ck_assert_int_eq(ibv_poll_cq(d.a.scq, 1, &wc), 0);
	ck_assert_int_eq(count_threads(), 2);
	/*
	 * the thread executes the SEND of a: only the CQ of b is polled until
	 * it is received
	 */
	b_recv(&d, 2, 0, 64);
	ck_assert_int_eq(b_wait_recv(&d).wr_id, 2);
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	duo_close(&d);
}
END_TEST

/* Polling detects that the process of the peer has exited. */
START_TEST(polls_detect_dead_peer)
{
	double end = now_ms() + WAIT_MS;
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };
	struct duo d;

	open_slow(&d, TWO_PROCESSES, 7);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_ok(kill(d.pid, SIGKILL));
	ck_assert_int_eq(reap_child(d.pid), -SIGKILL);
	while (!wc.status && now_ms() < end) {
		ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
		while (!ibv_poll_cq(d.a.scq, 1, &wc) && now_ms() < end)
			;
	}
	ck_assert_int_eq(wc.status, IBV_WC_RETRY_EXC_ERR);
	ck_assert_int_eq(count_threads(), 1);
	close(d.sock);
	node_close(&d.a);
}
END_TEST

int main(void)
{
	Suite *s = suite("no_thread");

	add_loop(s, arm_needs_thread, WHERE_COUNT);
	add(s, moderation_needs_thread);
	add_loop(s, polls_drive_timers, 2 * WHERE_COUNT);
	add(s, thread_created_later);
	add(s, polls_detect_dead_peer);
	return run(s);
}

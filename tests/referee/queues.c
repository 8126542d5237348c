// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queues, CQs, both ends of a connection, completions and events */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "case.h"

/* Options of an RC connection within this process */
static struct opts few(void)
{
	struct opts o = default_opts();

	o.cap.max_send_wr = 8;
	o.cap.max_recv_wr = 8;
	return o;
}

static void cq_overrun(bool wrong)
{
	struct opts o = few();
	struct duo d;
	int i;

	/* a CQ created with 3 entries has 4, which a program may use */
	o.cqe = wrong ? 2 : 3;
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	/* no WR completes in SQD, so the CQ is not actually overrun */
	ck_ok(qp_to(d.a.qp, IBV_QPS_SQD));
	for (i = 0; i < 4; i++)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 64, 0));
	duo_close(&d);
}

/* The same with receives */
static void cq_overrun_recv(bool wrong)
{
	struct opts o = few();
	struct duo d;
	int i;

	o.cqe = wrong ? 4 : 5; /* 5 are rounded up to 8 */
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 6; i++)
		ck_ok(post_recv(&d.b, 1, (size_t)i * 64, 64));
	duo_close(&d);
}

static void sq_stuck(bool wrong)
{
	struct opts o = few();
	struct duo d;
	int i, ret = 0;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	for (i = 1; i <= 64 && !ret; i++) {
		if (wrong || i % 4) {
			ret = post_unsignaled(&d, IBV_WR_RDMA_WRITE, 2, 0, 8,
					      64, 0);
			continue;
		}
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 64, 0));
		expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	}
	ck_assert_int_eq(ret, wrong ? ENOMEM : 0);
	duo_close(&d);
}

/* A full queue with a signaled WR is no mistake. */
static void sq_full(bool wrong)
{
	struct opts o = few();
	struct duo d;
	int ret = 0, i;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	if (!wrong)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 64, 0));
	for (i = 0; i < 64 && !ret; i++)
		ret = post_unsignaled(&d, IBV_WR_RDMA_WRITE, 2, 0, 8, 64, 0);
	ck_assert_int_eq(ret, ENOMEM);
	if (!wrong)
		expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}

/*
 * Post until a post is refused, and then poll.  The CQ has space for all
 * posted WRs, and the refused WR, which has the buffer of the first one, does
 * not count.
 */
static void full_then_poll(bool wrong)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct opts o = few();
	struct duo d;
	uint32_t n, i;

	(void)wrong;
	o.cqe = 8;
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_query_qp(d.a.qp, &attr, IBV_QP_CAP, &init));
	n = attr.cap.max_send_wr;
	ck_ok(ibv_resize_cq(d.a.scq, (int)n));
	for (i = 0; i <= n; i++)
		ck_assert_int_eq(post(&d, IBV_WR_RDMA_READ, 1,
				      (size_t)(i % n) * 64, 64, i * 64, 0),
				 i < n ? 0 : ENOMEM);
	for (i = 0; i < n; i++)
		expect_ok(d.a.scq, 1, IBV_WC_RDMA_READ);
	duo_close(&d);
}

/* ENOMEM for lack of memory is not a full queue. */
static void out_of_memory(bool wrong)
{
	struct opts o = few();
	struct duo d;

	(void)wrong;
	ck_ok(setenv("URXE_FAULTS", "ibv_post_send:nth=3:ENOMEM", 1));
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post_unsignaled(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 64, 0));
	ck_ok(post_unsignaled(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 64, 0));
	ck_assert_int_eq(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 8, 64, 0), ENOMEM);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 8, 64, 0));
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}

static void receive_late(bool wrong)
{
	struct opts o = few();
	struct duo d;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	if (!wrong)
		ck_ok(post_recv(&d.b, 7, 0, 64));
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	if (wrong)
		ck_ok(post_recv(&d.b, 7, 0, 64));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	expect_ok(d.b.rcq, 7, IBV_WC_RECV);
	duo_close(&d);
}

/* The same twice, with a reset of the QPs in between; reports.py counts. */
static void receive_late_reset(bool wrong)
{
	struct opts o = few();
	struct duo d;
	int i;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 2; i++) {
		if (!wrong)
			ck_ok(post_recv(&d.b, 7, 0, 64));
		ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
		if (wrong && i)
			ck_ok(post_recv(&d.b, 7, 0, 64));
		if (wrong && !i) {
			ck_ok(qp_to(d.a.qp, IBV_QPS_RESET));
			ck_ok(qp_to(d.b.qp, IBV_QPS_RESET));
			duo_connect(&d);
			continue;
		}
		expect_ok(d.a.scq, 1, IBV_WC_SEND);
		expect_ok(d.b.rcq, 7, IBV_WC_RECV);
	}
	duo_close(&d);
}

static void mtu_mismatch(bool wrong)
{
	struct opts o = few();
	struct duo d;

	duo_open_unconnected(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	if (wrong)
		d.b.o.mtu = IBV_MTU_2048;
	duo_connect(&d);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 64, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}

static void rd_atomic_mismatch(bool wrong)
{
	struct opts o = few();
	struct duo d;

	duo_open_unconnected(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	if (wrong)
		d.b.o.max_dest_rd_atomic = 1;
	duo_connect(&d);
	ck_ok(post(&d, IBV_WR_RDMA_READ, 1, 0, 8, 64, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_READ);
	duo_close(&d);
}

/* The peer's QP is now connected to another QP: no finding for this one. */
static void end_of_another(bool wrong)
{
	struct opts o = few();
	struct duo d;

	(void)wrong;
	/* the adversary delays the READ */
	ck_ok(setenv("URXE_ADVERSARY", "1", 1));
	o.timeout = 8;
	o.retry_cnt = 1;
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 64, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_ok(qp_to(d.b.qp, IBV_QPS_RESET));
	d.b.o.max_dest_rd_atomic = 1;
	d.b.o.max_rd_atomic = 1;
	node_connect(&d.b, &d.at_b);
	ck_ok(post(&d, IBV_WR_RDMA_READ, 2, 0, 8, 64, 0));
	expect(d.a.scq, 2, IBV_WC_RETRY_EXC_ERR);
	duo_close(&d);
}

/* Without READs, the peer's small max_dest_rd_atomic does not matter. */
static void error_unpolled(bool wrong)
{
	struct opts o = few();
	struct duo d;

	duo_open_unconnected(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	d.b.o.max_dest_rd_atomic = 1;
	duo_connect(&d);
	d.at_b.rkey ^= 1;
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 64, 0));
	if (!wrong)
		expect(d.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	duo_close(&d);
}

static void completion_unpolled(bool wrong)
{
	struct opts o = few();
	struct duo d;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 64, 0));
	if (!wrong)
		expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}

/* Open a pair, and get an event of b's receive CQ.  Return the CQ. */
static struct ibv_cq *duo_open_with_event(struct duo *d)
{
	struct opts o = few();
	struct ibv_cq *cq;
	void *arg;

	o.channel = true;
	duo_open(d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_req_notify_cq(d->b.rcq, 0));
	ck_ok(post_recv(&d->b, 7, 0, 64));
	ck_ok(post(d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect_ok(d->a.scq, 1, IBV_WC_SEND);
	ck_ok(ibv_get_cq_event(d->b.chan, &cq, &arg));
	expect_ok(d->b.rcq, 7, IBV_WC_RECV);
	return cq;
}

/*
 * The referee waits 3 s (unpolled.c) from the destruction of the object,
 * which may be some time after the acknowledging thread was started.
 */
#define ACKNOWLEDGED_MS 6000

static void *acknowledge_late(void *cq)
{
	sleep_ms(ACKNOWLEDGED_MS);
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

static void destroy_stuck(bool wrong)
{
	pthread_t late;
	struct duo d;
	struct ibv_cq *cq = duo_open_with_event(&d);

	if (wrong)
		ck_ok(pthread_create(&late, NULL, acknowledge_late, cq));
	else
		ibv_ack_cq_events(cq, 1);
	duo_close(&d);
	if (wrong)
		pthread_join(late, NULL);
}

struct two_cqs {
	struct ibv_cq *right, *wrong;
};

static void *acknowledge_right(void *arg)
{
	struct two_cqs *cqs = arg;

	sleep_ms(ACKNOWLEDGED_MS);
	cqs->wrong->comp_events_completed--;
	ibv_ack_cq_events(cqs->right, 1);
	return NULL;
}

/* The event of one CQ is acknowledged for another CQ. */
static void event_of_other(bool wrong)
{
	struct two_cqs cqs;
	pthread_t late;
	struct duo d;

	cqs.right = duo_open_with_event(&d);
	cqs.wrong = ibv_create_cq(d.b.ctx, 1, NULL, NULL, 0);
	ck_nonnull(cqs.wrong);
	ibv_ack_cq_events(wrong ? cqs.wrong : cqs.right, 1);
	if (wrong)
		ck_ok(pthread_create(&late, NULL, acknowledge_right, &cqs));
	ck_ok(ibv_destroy_qp(d.b.qp));
	ck_ok(ibv_destroy_cq(cqs.right));
	if (wrong)
		pthread_join(late, NULL);
	d.b.qp = NULL;
	d.b.rcq = cqs.wrong;
	duo_close(&d);
}

/* More acknowledgements than events, for example one for each completion */
static void event_beyond(bool wrong)
{
	struct duo d;
	struct ibv_cq *cq = duo_open_with_event(&d);

	ibv_ack_cq_events(cq, wrong ? 3 : 1);
	if (wrong) {
		/* refused; otherwise it would never return */
		ck_assert_int_eq(ibv_destroy_cq(cq), EBUSY);
		cq->comp_events_completed -= 2;
	}
	duo_close(&d);
}

static struct ibv_async_event unacked;

static void *acknowledge_async_late(void *arg)
{
	sleep_ms(ACKNOWLEDGED_MS);
	ibv_ack_async_event(&unacked);
	return arg;
}

static void destroy_stuck_async(bool wrong)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD,
				    .en_sqd_async_notify = 1 };
	struct opts o = few();
	pthread_t late;
	struct duo d;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_modify_qp(d.a.qp, &attr,
			    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	unacked = wait_async(d.a.ctx, !wrong);
	ck_assert_int_eq(unacked.event_type, IBV_EVENT_SQ_DRAINED);
	if (wrong)
		ck_ok(pthread_create(&late, NULL, acknowledge_async_late,
				     NULL));
	duo_close(&d);
	if (wrong)
		pthread_join(late, NULL);
}

/* The program polls the completion and expects the error. */
static void wr_failed(bool wrong)
{
	struct opts o = few();
	struct duo d;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	if (wrong)
		d.at_b.rkey++;
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 64, 0));
	expect(d.a.scq, 1, wrong ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
	duo_close(&d);
}

/* The receive buffer is not writable: both ends get an error. */
static void wr_failed_receive(bool wrong)
{
	struct opts o = few();
	static char buf[64];
	struct ibv_sge sge = { .addr = (uintptr_t)buf, .length = 64 };
	struct ibv_recv_wr *bad, wr = { 2, NULL, &sge, 1 };
	struct ibv_mr *mr;
	struct duo d;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	mr = ibv_reg_mr(d.b.pd, buf, sizeof(buf),
			wrong ? 0 : IBV_ACCESS_LOCAL_WRITE);
	ck_nonnull(mr);
	sge.lkey = mr->lkey;
	ck_ok(ibv_post_recv(d.b.qp, &wr, &bad));
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect(d.a.scq, 1, wrong ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS);
	expect(d.b.rcq, 2, wrong ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
	ck_ok(ibv_dereg_mr(mr));
	duo_close(&d);
}

static void verb_refused(bool wrong)
{
	struct opts o = few();
	struct duo d;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	ck_assert_int_eq(ibv_resize_cq(d.a.rcq, wrong ? 1 << 30 : 300),
			 wrong ? EINVAL : 0);
	duo_close(&d);
}

static void verb_refused_full(bool wrong)
{
	struct opts o = few();
	struct duo d;
	int i;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 8; i++)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 64, 0));
	if (wrong)
		ck_assert_int_eq(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 64, 0),
				 ENOMEM);
	for (i = 0; i < 8; i++)
		expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}

/* For reports.py: a program that fails after a full queue */
static void full_then_exit(bool wrong)
{
	verb_refused_full(wrong);
	exit(wrong);
}

/* A call that fails at once does not wait for events. */
static void destroy_busy(bool wrong)
{
	struct duo d;
	struct ibv_cq *cq = duo_open_with_event(&d);

	(void)wrong;
	ck_assert_int_eq(ibv_destroy_cq(cq), EBUSY);
	ibv_ack_cq_events(cq, 1);
	duo_close(&d);
}

/* For reports.py: the process exits with an unacknowledged event. */
static void event_then_exit(bool wrong)
{
	struct duo d;
	struct ibv_cq *cq = duo_open_with_event(&d);

	ibv_ack_cq_events(cq, !wrong);
	exit(EXIT_SUCCESS);
}

static const struct test_case cases[] = {
	{ "event-then-exit", event_then_exit },
	{ "wr-failed", wr_failed },
	{ "wr-failed+receive", wr_failed_receive },
	{ "verb-refused", verb_refused },
	{ "verb-refused+full", verb_refused_full },
	{ "full-then-exit", full_then_exit },
	{ "cq-overrun", cq_overrun },
	{ "cq-overrun+receives", cq_overrun_recv },
	{ "sq-stuck", sq_stuck },
	{ "sq-stuck+full", sq_full },
	{ "none+full_then_poll", full_then_poll },
	{ "none+out_of_memory", out_of_memory },
	{ "none+end_of_another", end_of_another },
	{ "receive-late", receive_late },
	{ "receive-late+reset", receive_late_reset },
	{ "mtu-mismatch", mtu_mismatch },
	{ "rd-atomic-mismatch", rd_atomic_mismatch },
	{ "error-unpolled", error_unpolled },
	{ "completion-unpolled", completion_unpolled },
	{ "destroy-stuck", destroy_stuck },
	{ "destroy-stuck+async", destroy_stuck_async },
	{ "destroy-stuck+other", event_of_other },
	{ "event-unacked+beyond", event_beyond },
	{ "none+destroy_busy", destroy_busy },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return case_main(argc, argv, cases);
}

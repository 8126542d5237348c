// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Asynchronous events of QPs: IBV_EVENT_QP_LAST_WQE_REACHED with SRQs,
 * COMM_EST, SQ_DRAINED, and CQ overruns.
 */
#include <stdlib.h>

#include "../types.h"

/* Replace b's QP by one with an SRQ, which is stored in b->user. */
static void do_srq(struct node *b, void *arg)
{
	struct ibv_srq *srq = make_srq(b, 64, 4);
	int i;

	b->user = srq;
	ck_ok(ibv_destroy_qp(b->qp));
	b->qp = make_qp(b, IBV_QPT_RC, srq);
	for (i = 0; i < 8; i++)
		ck_ok(post_srq(srq, b, (uint64_t)i, 64 * (size_t)i, 64));
	*(struct addr *)arg = node_addr(b);
}

static void do_connect(struct node *b, void *arg)
{
	node_connect(b, arg);
}

static void open_srq(struct duo *d, enum where where)
{
	struct opts o = default_opts();

	duo_open_unconnected(d, where, MEM_HEAP, MEM_HEAP, &o);
	on_b(d, do_srq, &d->at_b, sizeof(d->at_b));
	on_b(d, do_connect, &d->at_a, sizeof(d->at_a));
	node_connect(&d->a, &d->at_b);
}

static void do_close_srq(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(ibv_destroy_qp(b->qp));
	b->qp = NULL;
	ck_ok(ibv_destroy_srq(b->user));
}

static void close_srq(struct duo *d)
{
	on_b(d, do_close_srq, NULL, 0);
	duo_close(d);
}

/*
 * A QP with an SRQ that enters ERR raises IBV_EVENT_QP_LAST_WQE_REACHED once.
 * Receives of the SRQ are not flushed.
 */
START_TEST(last_wqe_by_modify)
{
	struct duo d;

	open_srq(&d, _i);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	b_modify(&d, IBV_QPS_ERR);
	b_expect_async(&d, IBV_EVENT_QP_LAST_WQE_REACHED);
	/* the earlier receive is in the CQ; nothing is flushed */
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	b_modify(&d, IBV_QPS_ERR);
	b_expect_no_async(&d);
	close_srq(&d);
}
END_TEST

/*
 * The same if the QP enters ERR because of a peer's request, although b does
 * not poll.
 */
START_TEST(last_wqe_by_a_nak)
{
	struct duo d;

	open_srq(&d, _i);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 1 << 20, 0));
	expect(d.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	b_expect_async(&d, IBV_EVENT_QP_ACCESS_ERR);
	b_expect_async(&d, IBV_EVENT_QP_LAST_WQE_REACHED);
	b_modify(&d, IBV_QPS_ERR);
	b_expect_no_async(&d);
	close_srq(&d);
}
END_TEST

static void do_again(struct node *b, void *arg)
{
	ck_ok(qp_to(b->qp, IBV_QPS_RESET));
	node_connect(b, arg);
	ck_ok(qp_to(b->qp, IBV_QPS_ERR));
	expect_async(b->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, b->qp);
	expect_no_async(b->ctx);
}

/*
 * The event is raised once for each time that the QP enters ERR after RESET.
 */
START_TEST(last_wqe_after_reset)
{
	struct duo d;

	open_srq(&d, _i);
	b_modify(&d, IBV_QPS_ERR);
	b_expect_async(&d, IBV_EVENT_QP_LAST_WQE_REACHED);
	on_b(&d, do_again, &d.at_a, sizeof(d.at_a));
	close_srq(&d);
}
END_TEST

/* A QP with its own receive queue does not raise this event. */
START_TEST(no_last_wqe_without_srq)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	b_recv(&d, 1, 0, 8);
	b_modify(&d, IBV_QPS_ERR);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_WR_FLUSH_ERR);
	b_expect_no_async(&d);
	duo_close(&d);
}
END_TEST

static void do_to_rtr(struct node *b, void *arg)
{
	qp_to_init(b->qp, &b->o);
	qp_to_rtr(b->qp, &b->o, arg);
}

/*
 * An RDMA WRITE to a QP in state RTR raises IBV_EVENT_COMM_EST, too, and only
 * once.
 */
START_TEST(comm_est_by_a_write)
{
	struct opts o = default_opts();
	struct duo d;
	int i;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	on_b(&d, do_to_rtr, &d.at_a, sizeof(d.at_a));
	node_connect(&d.a, &d.at_b);
	for (i = 0; i < 3; i++) {
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
		expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	}
	b_expect_async(&d, IBV_EVENT_COMM_EST);
	b_expect_no_async(&d);
	duo_close(&d);
}
END_TEST

/*
 * A UC or UD QP with an empty send queue raises IBV_EVENT_SQ_DRAINED when it
 * enters SQD.
 */
START_TEST(drained_of_each_type)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD,
				    .en_sqd_async_notify = 1 };
	struct opts o = default_opts();
	struct duo d;

	duo_open_unconnected(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	turn(&d, types[_i]);
	ck_ok(ibv_modify_qp(d.a.qp, &attr,
			    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	expect_async(d.a.ctx, IBV_EVENT_SQ_DRAINED, d.a.qp);
	expect_no_async(d.a.ctx);
	duo_close(&d);
}
END_TEST

/*
 * Overrun of the send CQ raises IBV_EVENT_CQ_ERR and IBV_EVENT_QP_FATAL; the
 * QP enters ERR.
 */
START_TEST(send_cq_overrun)
{
	struct ibv_async_event ev[2];
	struct opts o = default_opts();
	bool qp_fatal = false, cq_err = false;
	struct duo d;
	int i;

	o.cqe = 4;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 6; i++)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	for (i = 0; i < 2; i++) {
		ev[i] = wait_async(d.a.ctx, true);
		if (ev[i].event_type == IBV_EVENT_QP_FATAL &&
		    ev[i].element.qp == d.a.qp)
			qp_fatal = true;
		if (ev[i].event_type == IBV_EVENT_CQ_ERR &&
		    ev[i].element.cq == d.a.scq)
			cq_err = true;
	}
	ck_assert(qp_fatal && cq_err);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_ERR);
	expect_no_async(d.a.ctx);
	duo_close(&d);
}
END_TEST

static void do_both_events(struct node *b, void *arg)
{
	enum ibv_event_type one, two;

	(void)arg;
	one = wait_async(b->ctx, true).event_type;
	two = wait_async(b->ctx, true).event_type;
	ck_assert((one == IBV_EVENT_CQ_ERR && two == IBV_EVENT_QP_FATAL) ||
		  (one == IBV_EVENT_QP_FATAL && two == IBV_EVENT_CQ_ERR));
	expect_no_async(b->ctx);
	ck_assert_int_eq(qp_state(b->qp), IBV_QPS_ERR);
}

/*
 * Overrun of the receive CQ: the requester's WR fails with IBV_WC_REM_OP_ERR,
 * and the responder gets IBV_EVENT_CQ_ERR and IBV_EVENT_QP_FATAL.
 */
START_TEST(receive_cq_overrun)
{
	struct opts o = default_opts();
	struct ibv_wc wc;
	struct duo d;
	int i;

	o.cqe = 4;
	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	duo_connect(&d);
	for (i = 0; i < 6; i++)
		b_recv(&d, (uint64_t)i, 0, 8);
	for (i = 0; i < 5; i++) {
		ck_ok(post(&d, IBV_WR_SEND, (uint64_t)i, 0, 8, 0, 0));
		wc = wait_wc(d.a.scq);
		ck_assert_int_eq(wc.status,
				 i < 4 ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
	}
	on_b(&d, do_both_events, NULL, 0);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("async_qp");

	add_loop(s, last_wqe_by_modify, WHERE_COUNT);
	add_loop(s, last_wqe_by_a_nak, WHERE_COUNT);
	add_loop(s, last_wqe_after_reset, WHERE_COUNT);
	add_loop(s, no_last_wqe_without_srq, WHERE_COUNT);
	add_loop(s, comm_est_by_a_write, WHERE_COUNT);
	add_loop(s, drained_of_each_type, 2);
	add_loop(s, send_cq_overrun, WHERE_COUNT);
	add_loop(s, receive_cq_overrun, WHERE_COUNT);
	return run(s);
}

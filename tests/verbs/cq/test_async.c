// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Asynchronous events, ibv_get_async_event(3): when they are raised, and that
 * ibv_destroy_qp() waits for their acknowledgement.
 */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "../harness.h"

/*
 * Successful WRs raise no asynchronous event.  A non-blocking
 * ibv_get_async_event() without events fails with EAGAIN.
 */
START_TEST(no_event_by_default)
{
	struct opts o = default_opts();
	struct ibv_async_event ev;
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	expect_no_async(d.a.ctx);
	b_expect_no_async(&d);
	ck_ok(fcntl(d.a.ctx->async_fd, F_SETFL,
		    fcntl(d.a.ctx->async_fd, F_GETFL) | O_NONBLOCK));
	ck_assert_int_eq(ibv_get_async_event(d.a.ctx, &ev), -1);
	ck_assert_int_eq(errno, EAGAIN);
	duo_close(&d);
}
END_TEST

static void do_init_and_rtr(struct node *b, void *arg)
{
	qp_to_init(b->qp, &b->o);
	qp_to_rtr(b->qp, &b->o, arg);
}

static void do_rts(struct node *b, void *arg)
{
	(void)arg;
	qp_to_rts(b->qp, &b->o);
}

/*
 * The first message that a QP in state RTR receives raises
 * IBV_EVENT_COMM_EST.
 */
START_TEST(communication_established)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	on_b(&d, do_init_and_rtr, &d.at_a, sizeof(d.at_a));
	node_connect(&d.a, &d.at_b);
	b_expect_no_async(&d);
	b_recv(&d, 1, 0, 64);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	b_expect_async(&d, IBV_EVENT_COMM_EST);
	/* once only, and only in RTR */
	b_recv(&d, 2, 0, 64);
	ck_ok(post(&d, IBV_WR_SEND, 2, 0, 8, 0, 0));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	b_expect_no_async(&d);
	on_b(&d, do_rts, NULL, 0);
	b_expect_no_async(&d);
	duo_close(&d);
}
END_TEST

/*
 * A WRITE with a wrong rkey raises IBV_EVENT_QP_ACCESS_ERR at the responder,
 * whose QP enters ERR.
 */
START_TEST(access_error)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	sge = node_sge(&d.a, 0, 8);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 1, &sge, 1, 0);
	wr.wr.rdma.rkey ^= 0x55;
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	b_expect_async(&d, IBV_EVENT_QP_ACCESS_ERR);
	b_expect_no_async(&d);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	/* the requester gets an error completion instead */
	if (d.where != SAME_CONTEXT)
		expect_no_async(d.a.ctx);
	duo_close(&d);
}
END_TEST

/*
 * An invalid request raises IBV_EVENT_QP_REQ_ERR at the responder, whose QP
 * enters ERR.
 */
START_TEST(request_error)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	/* a misaligned atomic */
	ck_ok(post_atomic(&d, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 12, 1, 0));
	expect(d.a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	b_expect_async(&d, IBV_EVENT_QP_REQ_ERR);
	b_expect_no_async(&d);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	duo_close(&d);
}
END_TEST

/*
 * The transition to SQD raises IBV_EVENT_SQ_DRAINED if en_sqd_async_notify is
 * set.
 */
START_TEST(drained)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD,
				    .en_sqd_async_notify = 1 };
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_modify_qp(d.a.qp, &attr,
			    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	expect_async(d.a.ctx, IBV_EVENT_SQ_DRAINED, d.a.qp);
	ck_ok(qp_to(d.a.qp, IBV_QPS_RTS));
	/* without en_sqd_async_notify */
	ck_ok(qp_to(d.a.qp, IBV_QPS_SQD));
	expect_no_async(d.a.ctx);
	duo_close(&d);
}
END_TEST

/*
 * IBV_EVENT_SQ_DRAINED is raised when the WRs that have started are complete.
 * Until then sq_draining is 1.
 */
START_TEST(drained_after_parked_wr)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD,
				    .en_sqd_async_notify = 1 };
	struct ibv_qp_init_attr init;
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	/* no receive is posted: started, not complete */
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	sleep_ms(5);
	ck_ok(ibv_modify_qp(d.a.qp, &attr,
			    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	expect_no_async(d.a.ctx);
	ck_ok(ibv_query_qp(d.a.qp, &attr, IBV_QP_STATE, &init));
	ck_assert_int_eq(attr.qp_state, IBV_QPS_SQD);
	ck_assert_int_eq(attr.sq_draining, 1);
	b_recv(&d, 1, 0, 64);
	expect_async(d.a.ctx, IBV_EVENT_SQ_DRAINED, d.a.qp);
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_ok(ibv_query_qp(d.a.qp, &attr, IBV_QP_STATE, &init));
	ck_assert_int_eq(attr.sq_draining, 0);
	duo_close(&d);
}
END_TEST

struct destroyer {
	struct ibv_qp *qp;
	_Atomic int done;
};

static void *destroy_qp(void *arg)
{
	struct destroyer *d = arg;

	ck_ok(ibv_destroy_qp(d->qp));
	d->done = 1;
	return NULL;
}

static void drain(struct duo *d, int where)
{
	struct opts o = default_opts();
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD,
				    .en_sqd_async_notify = 1 };

	duo_open(d, where, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_modify_qp(d->a.qp, &attr,
			    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
}

/*
 * ibv_destroy_qp() blocks until all events of the QP are acknowledged
 * (ibv_get_async_event(3)).
 */
START_TEST(destroy_waits_for_the_ack)
{
	struct destroyer killer = { 0 };
	struct ibv_async_event ev;
	pthread_t thread;
	struct duo d;

	drain(&d, _i);
	ev = wait_async(d.a.ctx, false);
	killer.qp = d.a.qp;
	ck_ok(pthread_create(&thread, NULL, destroy_qp, &killer));
	sleep_ms(QUIET_MS);
	ck_assert_int_eq(killer.done, 0);
	ibv_ack_async_event(&ev);
	ck_ok(pthread_join(thread, NULL));
	d.a.qp = NULL;
	duo_close(&d);
}
END_TEST

/*
 * ibv_destroy_qp() waits as soon as the event was read from the descriptor,
 * even if ibv_get_async_event() has not returned.
 */
START_TEST(destroy_waits_after_read)
{
	struct destroyer killer = { 0 };
	struct ibv_async_event ev = { .event_type = IBV_EVENT_SQ_DRAINED };
	pthread_t thread;
	char record[16];
	struct duo d;

	drain(&d, _i);
	ck_assert(fd_readable(d.a.ctx->async_fd, WAIT_MS));
	ck_assert_int_eq(read(d.a.ctx->async_fd, record, sizeof(record)),
			 sizeof(record));
	killer.qp = ev.element.qp = d.a.qp;
	ck_ok(pthread_create(&thread, NULL, destroy_qp, &killer));
	sleep_ms(QUIET_MS);
	ck_assert_int_eq(killer.done, 0);
	ibv_ack_async_event(&ev);
	ck_ok(pthread_join(thread, NULL));
	d.a.qp = NULL;
	duo_close(&d);
}
END_TEST

/* ibv_destroy_qp() removes events of the QP that were not read. */
START_TEST(destroy_with_unread_event)
{
	struct duo d;

	drain(&d, _i);
	ck_assert(fd_readable(d.a.ctx->async_fd, WAIT_MS));
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = NULL;
	ck_assert(!fd_readable(d.a.ctx->async_fd, QUIET_MS));
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("async");

	add_loop(s, no_event_by_default, WHERE_COUNT);
	add_loop(s, communication_established, WHERE_COUNT);
	add_loop(s, access_error, WHERE_COUNT);
	add_loop(s, request_error, WHERE_COUNT);
	add_loop(s, drained, WHERE_COUNT);
	add_loop(s, drained_after_parked_wr, WHERE_COUNT);
	add_loop(s, destroy_waits_for_the_ack, WHERE_COUNT);
	add_loop(s, destroy_waits_after_read, WHERE_COUNT);
	add_loop(s, destroy_with_unread_event, WHERE_COUNT);
	return run(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* WRs in flight (engine/qp/flight.h): errors, and WRs that are parked. */
#include "engine/exec/requester.h"
#include "engine/qp/why.h"
#include "wire.h"

/* ------------------------------------------------------- errors */

/*
 * An error takes effect when all earlier WRs are done.  Later WRs are
 * flushed.
 */
START_TEST(error_response)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);
	int i;

	wire.follows = true;
	for (i = 1; i <= 4; i++)
		wire_push(e, IBV_WR_SEND, i, 0);
	/*
	 * the second fails, and the third succeeds, before the first is
	 * answered
	 */
	wire_answer(e, 1, IBV_WC_REM_OP_ERR);
	wire_answer(e, 1, IBV_WC_SUCCESS);
	expect_none(e->cq);
	ck_assert_int_eq(qp_state(e->qp), IBV_QPS_RTS);
	/* no further WR is begun */
	wire_push(e, IBV_WR_SEND, 5, 0);
	ck_assert_uint_eq(wire_flying(e), 2);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	ck_assert_int_eq(qp_state(e->qp), IBV_QPS_ERR);
	ck_assert_uint_eq(wire_look(e).cancels, 1);
	ck_assert_uint_eq(wire_look(e).cancelled, 1);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_REM_OP_ERR);
	for (i = 3; i <= 5; i++)
		expect_wc(e->cq, i, IBV_WC_WR_FLUSH_ERR);
	expect_none(e->cq);
	ck_assert_uint_eq(wire_stalled(e), 0);
	engine_free(e);
}
END_TEST

/* The oldest failed WR breaks the QP, and its reason is recorded. */
START_TEST(reason_of_the_oldest)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);
	struct urxe_reason r;
	int i;

	wire.follows = true;
	for (i = 1; i <= 3; i++)
		wire_push(e, IBV_WR_SEND, i, 0);
	why_note(WORD, 3);
	wire_answer(e, 2, IBV_WC_REM_OP_ERR);
	why_note(DEPTH, 0);
	wire_answer(e, 1, IBV_WC_LOC_QP_OP_ERR);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_LOC_QP_OP_ERR);
	expect_wc(e->cq, 3, IBV_WC_WR_FLUSH_ERR);
	ck_assert(reason_kept(&e->qp->sh->broken, &r));
	ck_assert_uint_eq(r.wr_id, 2);
	ck_assert_uint_eq(r.code, REASON_DEPTH);
	engine_free(e);
}
END_TEST

/* A WR fails in begin() while an earlier one is in flight. */
START_TEST(error_in_begin)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);

	wire_push(e, IBV_WR_RDMA_READ, 1, 0);
	wire_verdict(e, WR_FAILED, IBV_WC_LOC_PROT_ERR);
	wire_push(e, IBV_WR_SEND, 2, 0);
	wire_verdict(e, WR_IN_FLIGHT, 0);
	wire_push(e, IBV_WR_SEND, 3, 0);
	ck_assert_uint_eq(wire_look(e).begun, 2);
	expect_none(e->cq);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_LOC_PROT_ERR);
	expect_wc(e->cq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_none(e->cq);
	ck_assert_uint_eq(wire_stalled(e), 0);
	engine_free(e);
}
END_TEST

/*
 * The service thread delivers the response; no WR is in flight after the one
 * that failed.
 */
START_TEST(error_of_last_wr)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);

	wire_push(e, IBV_WR_RDMA_READ, 1, 0);
	wire_push(e, IBV_WR_RDMA_WRITE, 2, 0);
	wire_answer(e, 1, IBV_WC_REM_ACCESS_ERR);
	wire_allow(e, 1);
	wait_until(!wire_stalled(e));
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_REM_ACCESS_ERR);
	expect_none(e->cq);
	ck_assert_uint_eq(wire_look(e).cancelled, 0);
	wire_push(e, IBV_WR_SEND, 3, 0);
	expect_wc(e->cq, 3, IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(wire_look(e).begun, 2);
	engine_free(e);
}
END_TEST

/* A UD QP goes to SQE, and from there back to RTS. */
START_TEST(error_of_a_datagram)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);
	struct urxe_qp *rc = e->qp;

	e->qp = engine_qp(IBV_QPT_UD, e->cq, e->cq, NULL);
	engine_qp_connect(e->qp, 0);
	e->qp->transport_data = &wire;
	e->qp->transport = &wire_transport;
	wire.follows = true;
	wire_push(e, IBV_WR_SEND, 1, 0);
	wire_push(e, IBV_WR_SEND, 2, 0);
	wire_answer(e, 0, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(qp_state(e->qp), IBV_QPS_SQE);
	expect_wc(e->cq, 1, IBV_WC_LOC_PROT_ERR);
	expect_wc(e->cq, 2, IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(wire_look(e).cancelled, 1);
	engine_qp_set(e->qp, IBV_QPS_RTS);
	wire_push(e, IBV_WR_SEND, 3, 0);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 3, IBV_WC_SUCCESS);
	engine_qp_close(e->qp);
	e->qp = rc;
	engine_free(e);
}
END_TEST

/* The CQ has one entry and gets three completions. */
START_TEST(overrun)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);
	struct urxe_cq *cq = e->cq;
	struct urxe_qp *qp = e->qp;
	int i;

	e->cq = engine_cq(e->ctx, 1);
	e->qp = engine_qp(IBV_QPT_RC, e->cq, e->cq, NULL);
	engine_qp_connect(e->qp, e->qp->qpn);
	e->qp->transport_data = &wire;
	e->qp->transport = &wire_transport;
	wire.follows = true;
	for (i = 1; i <= 4; i++)
		wire_push(e, IBV_WR_SEND, i, 0);
	for (i = 0; i < 3; i++)
		wire_answer(e, 0, IBV_WC_SUCCESS);
	ck_assert_int_eq(qp_state(e->qp), IBV_QPS_ERR);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	/* the WR in flight is flushed by the next post */
	wire_push(e, IBV_WR_SEND, 5, 0);
	expect_none(e->cq);
	ck_assert_uint_eq(wire_look(e).cancels, 1);
	ck_assert_uint_eq(wire_look(e).cancelled, 1);
	ck_assert_uint_eq(wire_stalled(e), 0);
	engine_qp_close(e->qp);
	engine_cq_close(e->cq);
	e->qp = qp;
	e->cq = cq;
	engine_free(e);
}
END_TEST

/*
 * Create an engine with WRs in flight, answered and queued, for ERR, RESET
 * and destruction.
 */
static struct engine *in_the_air(struct wire *wire)
{
	struct engine *e = wire_new(wire);
	int i;

	wire_push(e, IBV_WR_RDMA_READ, 1, 0);
	wire_push(e, IBV_WR_SEND, 2, 0);
	wire_push(e, IBV_WR_SEND, 3, 0);
	wire_answer(e, 1, IBV_WC_SUCCESS); /* the second SEND begins */
	for (i = 4; i < 6; i++)
		wire_push(e, IBV_WR_SEND, i, 0);
	ck_assert_uint_eq(wire_flying(e), 2);
	ck_assert_uint_eq(wire_stalled(e), 1);
	return e;
}

START_TEST(error_flushes_in_flight)
{
	struct wire wire;
	struct engine *e = in_the_air(&wire);
	int i;

	engine_qp_set(e->qp, IBV_QPS_ERR);
	for (i = 1; i < 6; i++)
		expect_wc(e->cq, i, IBV_WC_WR_FLUSH_ERR);
	expect_none(e->cq);
	ck_assert_uint_eq(wire_look(e).cancels, 1);
	ck_assert_uint_eq(wire_look(e).cancelled, 2);
	ck_assert_uint_eq(wire_stalled(e), 0);
	engine_free(e);
}
END_TEST

/* A peer breaks the connection: the poller detects it. */
START_TEST(broken_by_peer)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);

	wire_push(e, IBV_WR_RDMA_READ, 1, 0);
	conn_break(&e->qp->conn, RESP_NAK_ACCESS, NULL, NULL);
	expect_wc(e->cq, 1, IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(wire_look(e).cancels, 1);
	ck_assert_uint_eq(wire_stalled(e), 0);
	engine_free(e);
}
END_TEST

START_TEST(reset_in_flight)
{
	struct wire wire;
	struct engine *e = in_the_air(&wire);

	engine_qp_set(e->qp, IBV_QPS_RESET);
	ck_assert_uint_eq(wire_look(e).cancels, 1);
	ck_assert_uint_eq(wire_look(e).cancelled, 2);
	ck_assert_uint_eq(wire_stalled(e), 0);
	expect_none(e->cq);
	engine_qp_connect(e->qp, e->qp->qpn);
	wire_push(e, IBV_WR_SEND, 9, 0);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 9, IBV_WC_SUCCESS);
	engine_free(e);
}
END_TEST

START_TEST(destroy_in_flight)
{
	struct wire wire;
	struct engine *e = in_the_air(&wire);

	engine_free(e); /* engine_cq_close() checks cq->stalled */
	ck_assert_uint_eq(wire.cancels, 1);
	ck_assert_uint_eq(wire.cancelled, 2);
}
END_TEST

/*
 * A response to a QP whose peer has another connection by now does not change
 * that connection's ePSN.
 */
START_TEST(response_after_peer_reconnects)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);
	struct urxe_qp *peer = engine_qp(IBV_QPT_RC, e->cq, e->cq, NULL);

	engine_qp_set(e->qp, IBV_QPS_RESET);
	engine_qp_connect(peer, e->qp->qpn);
	engine_qp_connect(e->qp, peer->qpn);
	wire_push(e, IBV_WR_RDMA_READ, 1, 0);
	engine_qp_set(peer, IBV_QPS_RESET);
	engine_qp_connect(peer, peer->qpn);
	atomic_store(&peer->sh->epsn, 7);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(atomic_load(&peer->sh->epsn), 7);
	engine_qp_close(peer);
	engine_free(e);
}
END_TEST

/* ------------------------------------------------------- parked */

START_TEST(parked_behind_in_flight)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);

	e->qp->sh->min_rnr_timer = 31; /* half a second */
	wire_push(e, IBV_WR_RDMA_READ, 1, 0);
	wire_verdict(e, WR_RNR, 0);
	wire_push(e, IBV_WR_SEND, 2, 0);
	wire_push(e, IBV_WR_SEND, 3, 0);
	expect_none(e->cq);
	ck_assert_uint_eq(wire_flying(e), 1);
	ck_assert_uint_eq(wire_stalled(e), 2);
	/* earlier WRs complete while this one is parked */
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wire_stalled(e), 1);
	wire_verdict(e, WR_IN_FLIGHT, 0);
	expect_none(e->cq);
	ck_assert_uint_eq(wire_flying(e), 1);
	/* in flight, no longer parked */
	ck_assert_uint_eq(wire_stalled(e), 1);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	expect_wc(e->cq, 3, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wire_stalled(e), 0);
	engine_free(e);
}
END_TEST

/* When a parked WR is in flight, the RNR timer does not expire any more. */
START_TEST(parked_wr_in_flight_again)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);

	e->qp->attr.rnr_retry = 1;
	e->qp->sh->min_rnr_timer = 20; /* 10 ms */
	wire_push(e, IBV_WR_RDMA_READ, 1, 0);
	wire_verdict(e, WR_RNR, 0);
	wire_push(e, IBV_WR_SEND, 2, 0);
	wire_verdict(e, WR_IN_FLIGHT, 0);
	expect_none(e->cq);
	ck_assert_uint_eq(wire_flying(e), 2);
	usleep(50000); /* five periods */
	expect_none(e->cq);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	expect_none(e->cq);
	ck_assert_uint_eq(wire_stalled(e), 0);
	engine_free(e);
}
END_TEST

/*
 * The timer of a parked WR expires: it fails after the WRs before it are
 * done.
 */
static void expire(enum verdict v, enum ibv_wc_status status)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);

	e->qp->attr.rnr_retry = 2;
	e->qp->attr.retry_cnt = 1;
	e->qp->attr.timeout = 8; /* 1 ms */
	wire_push(e, IBV_WR_RDMA_READ, 1, 0);
	wire_verdict(e, v, 0);
	wire_push(e, IBV_WR_SEND, 2, 0);
	wire_push(e, IBV_WR_SEND, 3, 0);
	/* by the service thread, without polling */
	wait_until(wire_stalled(e) == 1);
	ck_assert_uint_eq(wire_flying(e), 1);
	ck_assert_int_eq(qp_state(e->qp), IBV_QPS_RTS);
	wire_verdict(e, WR_IN_FLIGHT, 0);
	wire_push(e, IBV_WR_SEND, 4, 0);
	expect_none(e->cq);
	ck_assert_uint_eq(wire_flying(e), 1);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, status);
	expect_wc(e->cq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_wc(e->cq, 4, IBV_WC_WR_FLUSH_ERR);
	expect_none(e->cq);
	ck_assert_uint_eq(wire_stalled(e), 0);
	engine_free(e);
}

START_TEST(timer_expires)
{
	expire(WR_RNR, IBV_WC_RNR_RETRY_EXC_ERR);
	expire(WR_SILENT, IBV_WC_RETRY_EXC_ERR);
}
END_TEST

/*
 * A transport may park a WR although this process has not looked up the peer.
 */
START_TEST(parked_before_peer_lookup)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);

	urxe_lock(&e->qp->lock);
	conn_drop(&e->qp->conn);
	urxe_unlock(&e->qp->lock);
	wire_verdict(e, WR_RNR, 0);
	wire_push(e, IBV_WR_SEND, 1, 0);
	expect_none(e->cq);
	wire_verdict(e, WR_DONE, 0);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wire_stalled(e), 0);
	engine_free(e);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine, errors of WRs in flight");

	add(s, error_response);
	add(s, reason_of_the_oldest);
	add(s, error_in_begin);
	add(s, error_of_last_wr);
	add(s, error_of_a_datagram);
	add(s, overrun);
	add(s, error_flushes_in_flight);
	add(s, broken_by_peer);
	add(s, reset_in_flight);
	add(s, destroy_in_flight);
	add(s, response_after_peer_reconnects);
	add(s, parked_behind_in_flight);
	add(s, parked_wr_in_flight_again);
	add(s, timer_expires);
	add(s, parked_before_peer_lookup);
	return run_suite(s);
}

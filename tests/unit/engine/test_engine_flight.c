// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* WRs in flight (engine/qp/flight.h): responses, ordering, the send queue. */
#include <unistd.h>

#include "engine/exec/requester.h"
#include "engine/exec/sq_post.h"
#include "engine/run/service.h"
#include "wire.h"

/* Modify the QP to SQD, with an event when it is drained. */
static void drain(struct engine *e)
{
	urxe_lock(&e->qp->lock);
	e->qp->sqd_notify = true;
	urxe_unlock(&e->qp->lock);
	engine_qp_set(e->qp, IBV_QPS_SQD);
}

static bool draining(struct engine *e)
{
	bool is;

	urxe_lock(&e->qp->lock);
	is = qp_is_draining(e->qp);
	/* until then the event is pending */
	ck_assert_int_eq(e->qp->sqd_notify, is);
	urxe_unlock(&e->qp->lock);
	return is;
}

/* ------------------------------------------------------- responses */

/* The poller calls progress(), which delivers the response. */
START_TEST(poller_delivers_response)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);

	wire.delivers = true;
	e->mem[WR_LOCAL] = 1;
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED), 0);
	expect_none(e->cq);
	ck_assert_uint_eq(wire_stalled(e), 1);
	ck_assert_int_eq(e->mem[WR_REMOTE], 0);
	wire_allow(e, 1);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wire_stalled(e), 0);
	ck_assert_int_eq(e->mem[WR_REMOTE], 1);
	engine_free(e);
}
END_TEST

/* The service thread calls progress() if no thread polls. */
START_TEST(service_thread_delivers_response)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);
	int i;

	wire.delivers = true;
	e->mem[WR_LOCAL] = 1;
	ck_assert_int_eq(post(e, IBV_WR_RDMA_READ, 1, IBV_SEND_SIGNALED), 0);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 2,
			      IBV_SEND_SIGNALED | IBV_SEND_FENCE),
			 0);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 3, IBV_SEND_SIGNALED), 0);
	usleep(20000);
	ck_assert_uint_eq(wire_stalled(e), 1);
	wire_allow(e, 3);
	wait_until(!wire_stalled(e));
	/* the last completion may not be published yet */
	for (i = 1; i <= 3; i++)
		expect_wc(e->cq, i, IBV_WC_SUCCESS);
	engine_free(e);
}
END_TEST

static _Atomic bool relayed;

/* Deliver a response once relay_progress() has set @relayed. */
static uint64_t relayed_progress(struct urxe_qp *qp, uint64_t now)
{
	(void)now;
	if (atomic_load(&relayed))
		wire_finish(qp, 0, IBV_WC_SUCCESS);
	return UINT64_MAX;
}

static uint64_t relay_progress(struct urxe_qp *qp, uint64_t now)
{
	(void)now;
	if (wire_of(qp)->allowed && !atomic_exchange(&relayed, true))
		service_need(qp->ctx);
	return UINT64_MAX;
}

/*
 * The progress of one QP enables that of another QP, which the service thread
 * has checked already in this pass: service_need() has it repeat the pass.
 */
START_TEST(service_thread_repeats_pass)
{
	struct urxe_transport relay = wire_transport, other = wire_transport;
	struct wire wire, second = { .verdict = WR_IN_FLIGHT };
	struct engine *e = wire_new(&wire), f = *e;

	relay.progress = relay_progress;
	other.progress = relayed_progress;
	e->qp->transport = &relay;
	f.cq = engine_cq(e->ctx, 4);
	ck_assert_ptr_eq(e->ctx->cqs, f.cq); /* checked first */
	f.qp = engine_qp(IBV_QPT_RC, f.cq, f.cq, NULL);
	engine_qp_connect(f.qp, f.qp->qpn);
	f.qp->transport_data = &second;
	f.qp->transport = &other;
	wire_push(e, IBV_WR_RDMA_READ, 1, 0);
	wire_push(&f, IBV_WR_RDMA_READ, 2, 0);
	usleep(20000); /* the service thread has checked both, and sleeps */
	wire_allow(e, 1);
	service_wake(e->ctx->arena);
	wait_until(!wire_stalled(&f));
	expect_wc(f.cq, 2, IBV_WC_SUCCESS);
	engine_qp_close(f.qp);
	engine_cq_close(f.cq);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	engine_free(e);
}
END_TEST

/* WRs complete in order, whatever the order of the responses (IB 10.8.3). */
START_TEST(responses_in_reverse_order)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);
	int i;

	wire.follows = true;
	for (i = 0; i < 4; i++)
		wire_push(e, IBV_WR_RDMA_WRITE, i, 0);
	ck_assert_uint_eq(wire_flying(e), 4);
	for (i = 3; i > 0; i--) {
		wire_answer(e, i, IBV_WC_SUCCESS);
		expect_none(e->cq);
	}
	wire_answer(e, 0, IBV_WC_SUCCESS);
	for (i = 0; i < 4; i++)
		expect_wc(e->cq, i, IBV_WC_SUCCESS);
	/* the same by progress() */
	urxe_lock(&e->qp->lock);
	wire.newest_first = true;
	urxe_unlock(&e->qp->lock);
	for (i = 0; i < 4; i++)
		wire_push(e, IBV_WR_SEND, i, 0);
	wire_allow(e, 4);
	for (i = 0; i < 4; i++)
		expect_wc(e->cq, i, IBV_WC_SUCCESS);
	expect_none(e->cq);
	ck_assert_uint_eq(wire_stalled(e), 0);
	engine_free(e);
}
END_TEST

/*
 * WRs that complete in begin() while an earlier one is in flight complete
 * after it.
 */
START_TEST(completed_in_begin)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);

	wire_push(e, IBV_WR_RDMA_READ, 1, 0);
	wire_verdict(e, WR_DONE, 0);
	wire_push(e, IBV_WR_SEND, 2, 0);
	wire_verdict(e, WR_DROPPED, 0);
	wire_push(e, IBV_WR_SEND, 3, 0);
	wire_verdict(e, WR_IN_FLIGHT, 0);
	wire_push(e, IBV_WR_SEND, 4, 0);
	expect_none(e->cq);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	expect_wc(e->cq, 3, IBV_WC_SUCCESS);
	expect_none(e->cq);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 4, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wire_stalled(e), 0);
	engine_free(e);
}
END_TEST

/*
 * WRITEs that a transport executes with execute() are not batched, and they
 * complete in order.
 */
START_TEST(executed_writes_not_batched)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);
	pid_t pid = engine_other_process(e);
	int i;

	/* without a transport, such WRITEs would be batched */
	wire.executes = true;
	wire_push(e, IBV_WR_RDMA_READ, 1, 0);
	for (i = 2; i < 4; i++) {
		struct ibv_send_wr *bad;
		char text[8] = "written";
		struct wr w;

		wr_fill(&w, e, IBV_WR_RDMA_WRITE, i,
			IBV_SEND_SIGNALED | IBV_SEND_INLINE);
		w.sge.addr = (uintptr_t)text;
		ck_assert_int_eq(sq_post(e->qp, &w.wr, &bad), 0);
	}
	expect_none(e->cq);
	ck_assert_uint_eq(wire_flying(e), 1);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	for (i = 1; i < 4; i++)
		expect_wc(e->cq, i, IBV_WC_SUCCESS);
	kill_child(pid);
	engine_free(e);
}
END_TEST

/* ------------------------------------------------------- ordering */

static void check_pair(struct engine *e, unsigned int i, unsigned int j,
		       unsigned int fence, bool follows)
{
	bool waits = must_wait(i, j, fence);

	urxe_lock(&e->qp->lock);
	wire_of(e->qp)->follows = follows;
	urxe_unlock(&e->qp->lock);
	wire_push(e, opcodes[i], 1, 0);
	ck_assert_uint_eq(wire_flying(e), 1);
	wire_push(e, opcodes[j], 2, fence);
	ck_assert_msg(wire_flying(e) == (waits && !follows ? 1 : 2),
		      "opcode %u, then %u%s%s", opcodes[i], opcodes[j],
		      fence ? " with a fence" : "",
		      follows ? ", which the transport orders" : "");
	wire_answer(e, 0, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wire_flying(e), 1);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
}

/*
 * All pairs of opcodes, with and without a fence, are ordered as must_wait()
 * says.
 */
START_TEST(order_of_opcode_pairs)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);
	unsigned int i, j, k;

	for (i = 0; i < OPCODES; i++)
		for (j = 0; j < OPCODES; j++)
			for (k = 0; k < 4; k++)
				check_pair(e, i, j, k & 1 ? IBV_SEND_FENCE : 0,
					   k & 2);
	ck_assert_uint_eq(wire_stalled(e), 0);
	engine_free(e);
}
END_TEST

/*
 * A fence waits for all earlier WRs, not only for the one before it.  A WR
 * that was answered holds nothing back.
 */
START_TEST(fence_waits_for_all_earlier)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);

	wire_push(e, IBV_WR_RDMA_READ, 1, 0);
	wire_push(e, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0);
	ck_assert_uint_eq(wire_flying(e), 2);
	wire_push(e, IBV_WR_SEND, 3, IBV_SEND_FENCE);
	ck_assert_uint_eq(wire_flying(e), 2);
	wire_answer(e, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wire_flying(e), 1);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wire_flying(e), 1);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 3, IBV_WC_SUCCESS);
	/* the atomic was answered: the next one passes the READ */
	wire_push(e, IBV_WR_RDMA_READ, 1, 0);
	wire_push(e, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0);
	wire_answer(e, 1, IBV_WC_SUCCESS);
	wire_push(e, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 0);
	ck_assert_uint_eq(wire_flying(e), 2);
	wire_answer(e, 1, IBV_WC_SUCCESS);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	expect_wc(e->cq, 3, IBV_WC_SUCCESS);
	engine_free(e);
}
END_TEST

/* ------------------------------------------------------- the queue */

START_TEST(sqd_drained)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);
	int i;

	for (i = 0; i < 2; i++) {
		wire_push(e, IBV_WR_RDMA_READ, 1, 0);
		drain(e);
		if (i)
			wire_push(e, IBV_WR_SEND, 2, 0);
		/* no further WR is begun */
		ck_assert_uint_eq(wire_flying(e), 1);
		ck_assert(draining(e));
		wire_answer(e, 0, IBV_WC_SUCCESS);
		ck_assert(!draining(e));
		ck_assert_uint_eq(wire_flying(e), 0);
		expect_wc(e->cq, 1, IBV_WC_SUCCESS);
		engine_qp_set(e->qp, IBV_QPS_RTS);
		ck_assert_uint_eq(wire_flying(e), i);
	}
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	engine_free(e);
}
END_TEST

/*
 * SQD completes a WR that had been begun and is parked, and begins no other.
 */
START_TEST(sqd_with_parked_wr)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);

	wire.follows = true;
	e->qp->sh->min_rnr_timer = 31;
	wire_push(e, IBV_WR_RDMA_READ, 1, 0);
	wire_verdict(e, WR_RNR, 0);
	wire_push(e, IBV_WR_SEND, 2, 0);
	wire_push(e, IBV_WR_SEND, 3, 0);
	drain(e);
	wire_verdict(e, WR_IN_FLIGHT, 0);
	expect_none(e->cq);
	ck_assert_uint_eq(wire_flying(e), 2);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	ck_assert(draining(e));
	wire_answer(e, 0, IBV_WC_SUCCESS);
	ck_assert(!draining(e));
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	expect_none(e->cq);
	engine_qp_set(e->qp, IBV_QPS_RTS);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 3, IBV_WC_SUCCESS);
	engine_free(e);
}
END_TEST

/* Set the indices as if @at WRs had been posted and polled. */
static void begin_at(struct engine *e, uint32_t at)
{
	struct urxe_sq *sq = &e->qp->sq;

	urxe_lock(&e->qp->lock);
	sq->prod = sq->begun = sq->done = at;
	atomic_store(&sq->tail, at);
	urxe_unlock(&e->qp->lock);
}

/*
 * Three WRs in flight, of which the second is parked while the queue drains.
 */
static void drain_at(struct engine *e)
{
	struct run r;

	wire_push(e, IBV_WR_RDMA_READ, 1, 0);
	wire_push(e, IBV_WR_SEND, 2, 0);
	wire_push(e, IBV_WR_SEND, 3, 0);
	ck_assert_uint_eq(wire_flying(e), 3);
	drain(e);
	wire_push(e, IBV_WR_SEND, 4, 0);
	urxe_lock(&e->qp->lock);
	wire_of(e->qp)->n = 1;
	run_begin(&r, e->qp);
	qp_guard_raise(e->qp, GUARD_SEND);
	requester_park_flight(e->qp, &r, e->qp->sq.done + 1, WR_RNR);
	urxe_unlock(&e->qp->lock);
	ck_assert(draining(e));
	/* the second and the third are begun again, and no other */
	wait_until(wire_flying(e) == 3);
	while (wire_flying(e)) {
		ck_assert(draining(e));
		wire_answer(e, 0, IBV_WC_SUCCESS);
	}
	ck_assert(!draining(e));
}

/* Draining works at all values of the queue's indices, including a wrap. */
START_TEST(sqd_at_all_indices)
{
	static const uint32_t at[] = {
		0,	     0x7fffffff, 0x80000000, 0x80000001,
		0xc0000000u, 0xfffffffe, 0xffffffff,
	};
	struct wire wire;
	struct engine *e = wire_new(&wire);
	int i;

	wire.follows = true;
	e->qp->sh->min_rnr_timer = 1;
	e->qp->attr.rnr_retry = 7;
	begin_at(e, at[_i]);
	drain_at(e);
	for (i = 1; i < 4; i++)
		expect_wc(e->cq, i, IBV_WC_SUCCESS);
	engine_qp_set(e->qp, IBV_QPS_RTS);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 4, IBV_WC_SUCCESS);
	/*
	 * the position of the previous drain does not count, even at this
	 * distance
	 */
	begin_at(e, at[_i] + (1u << 31) - 1);
	drain(e);
	wire_push(e, IBV_WR_SEND, 5, 0);
	ck_assert_uint_eq(wire_flying(e), 0);
	engine_free(e);
}
END_TEST

START_TEST(full_queue)
{
	struct wire wire;
	struct engine *e = wire_new(&wire);
	unsigned int i;

	wire.follows = true;
	for (i = 0; i < ENGINE_DEPTH; i++)
		wire_push(e, IBV_WR_SEND, i, 0);
	ck_assert_uint_eq(wire_flying(e), ENGINE_DEPTH);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 0, 0), ENOMEM);
	for (i = ENGINE_DEPTH; i-- > 0;)
		wire_answer(e, i, IBV_WC_SUCCESS);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 0, 0), ENOMEM);
	expect_wc(e->cq, 0, IBV_WC_SUCCESS);
	wire_push(e, IBV_WR_SEND, ENGINE_DEPTH, 0);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 0, 0), ENOMEM);
	wire_answer(e, 0, IBV_WC_SUCCESS);
	for (i = 1; i <= ENGINE_DEPTH; i++)
		expect_wc(e->cq, i, IBV_WC_SUCCESS);
	engine_free(e);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine, WRs in flight");

	add(s, poller_delivers_response);
	add(s, service_thread_delivers_response);
	add(s, service_thread_repeats_pass);
	add(s, responses_in_reverse_order);
	add(s, completed_in_begin);
	add(s, executed_writes_not_batched);
	add(s, order_of_opcode_pairs);
	add(s, fence_waits_for_all_earlier);
	add(s, sqd_drained);
	add(s, sqd_with_parked_wr);
	add_loop(s, sqd_at_all_indices, 7);
	add(s, full_queue);
	return run_suite(s);
}

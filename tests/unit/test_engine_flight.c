// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * WRs in flight (engine/flight.h): a carrier that takes them and answers when
 * the test says so.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "engine/flight.h"
#include "engine/requester.h"
#include "engine/service.h"
#include "shared/guard.h"

/* Under the QP's lock. */
struct wire {
	uint32_t flight[ENGINE_DEPTH]; /* slots, in the order they were begun */
	unsigned int n;
	enum verdict verdict; /* what it says to the next WR */
	enum ibv_wc_status status; /* if that is WR_FAILED */
	bool follows;
	bool executes; /* WRITEs, when they are begun */
	bool delivers; /* carries out what it answers */
	bool newest_first;
	unsigned int allowed; /* answers that progress() gives */
	unsigned int begun, cancels, cancelled;
};

static struct wire *wire_of(const struct urxe_qp *qp)
{
	return qp->carrier_data;
}

static enum verdict wire_begin(struct urxe_qp *qp, struct run *r,
			       struct urxe_wqe *w)
{
	struct wire *wire = wire_of(qp);

	ck_assert_ptr_eq(w, sq_slot(&qp->sq, qp->sq.begun));
	wire->begun++;
	if (wire->executes && w->opcode == IBV_WR_RDMA_WRITE)
		return execute(qp, r, w);
	if (wire->verdict == WR_IN_FLIGHT)
		wire->flight[wire->n++] = qp->sq.begun;
	r->status = wire->status;
	return wire->verdict;
}

static bool wire_follows(const struct urxe_qp *qp, const struct urxe_wqe *first,
			 const struct urxe_wqe *second)
{
	(void)first;
	(void)second;
	return wire_of(qp)->follows;
}

static void carry_out(struct urxe_qp *qp, uint32_t index)
{
	struct run r;

	transfer_begin(&r.batch, qp->ctx, false);
	guard_raise(qp->guard);
	ck_assert_int_eq(execute(qp, &r, sq_slot(&qp->sq, index)), WR_DONE);
	guard_lower(qp->guard);
}

/* The lock is held. */
static void wire_answer(struct urxe_qp *qp, unsigned int i,
			enum ibv_wc_status status)
{
	struct wire *wire = wire_of(qp);
	uint32_t index = wire->flight[i];

	ck_assert_uint_lt(i, wire->n);
	memmove(&wire->flight[i], &wire->flight[i + 1],
		(--wire->n - i) * sizeof(index));
	if (wire->delivers)
		carry_out(qp, index);
	flight_answer(qp, index, status);
	requester_run(qp);
}

static uint64_t wire_progress(struct urxe_qp *qp, uint64_t now)
{
	struct wire *wire = wire_of(qp);

	for (; wire->allowed && wire->n; wire->allowed--)
		wire_answer(qp, wire->newest_first ? wire->n - 1 : 0,
			    IBV_WC_SUCCESS);
	return wire->n ? now + 1000000 : UINT64_MAX;
}

static void wire_cancel(struct urxe_qp *qp)
{
	struct wire *wire = wire_of(qp);

	wire->cancels++;
	wire->cancelled += wire->n;
	wire->n = 0;
}

static const struct urxe_carrier carrier = {
	.begin = wire_begin,
	.follows = wire_follows,
	.progress = wire_progress,
	.cancel = wire_cancel,
};

static struct engine *wired(struct wire *wire)
{
	struct engine *e = engine_new();

	memset(wire, 0, sizeof(*wire));
	wire->verdict = WR_IN_FLIGHT;
	e->qp->carrier_data = wire;
	e->qp->carrier = &carrier;
	return e;
}

/* The i-th of those in flight. */
static void answer(struct engine *e, unsigned int i, enum ibv_wc_status status)
{
	urxe_lock(&e->qp->lock);
	wire_answer(e->qp, i, status);
	urxe_unlock(&e->qp->lock);
}

static void allow(struct engine *e, unsigned int n)
{
	urxe_lock(&e->qp->lock);
	wire_of(e->qp)->allowed += n;
	urxe_unlock(&e->qp->lock);
}

static void verdict(struct engine *e, enum verdict v, enum ibv_wc_status status)
{
	urxe_lock(&e->qp->lock);
	wire_of(e->qp)->verdict = v;
	wire_of(e->qp)->status = status;
	urxe_unlock(&e->qp->lock);
}

/* The service thread is there, too: what it uses is looked at so. */
static struct wire look(struct engine *e)
{
	struct wire wire;

	urxe_lock(&e->qp->lock);
	wire = *wire_of(e->qp);
	urxe_unlock(&e->qp->lock);
	return wire;
}

/* To SQD, with an event when it is drained. */
static void drain(struct engine *e)
{
	urxe_lock(&e->qp->lock);
	e->qp->sqd_notify = true;
	urxe_unlock(&e->qp->lock);
	engine_qp_set(e->qp, IBV_QPS_SQD);
}

static unsigned int flying(struct engine *e)
{
	return look(e).n;
}

static bool draining(struct engine *e)
{
	bool is;

	urxe_lock(&e->qp->lock);
	is = qp_is_draining(e->qp);
	/* until then the event is waited for */
	ck_assert_int_eq(e->qp->sqd_notify, is);
	urxe_unlock(&e->qp->lock);
	return is;
}

static void push(struct engine *e, uint8_t opcode, uint64_t wr_id,
		 unsigned int flags)
{
	ck_assert_int_eq(post_bare(e->qp, opcode, wr_id,
				   flags | IBV_SEND_SIGNALED), 0);
}

static uint32_t stalled(struct engine *e)
{
	return atomic_load(&e->cq->stalled);
}

/* ------------------------------------------------------- who answers */

START_TEST(poller_answers)
{
	struct wire wire;
	struct engine *e = wired(&wire);

	wire.delivers = true;
	e->mem[WR_LOCAL] = 1;
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED), 0);
	expect_none(e->cq);
	ck_assert_uint_eq(stalled(e), 1);
	ck_assert_int_eq(e->mem[WR_REMOTE], 0);
	allow(e, 1);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(stalled(e), 0);
	ck_assert_int_eq(e->mem[WR_REMOTE], 1);
	engine_free(e);
}
END_TEST

START_TEST(service_answers)
{
	struct wire wire;
	struct engine *e = wired(&wire);
	struct ibv_wc wc[3];

	wire.delivers = true;
	e->mem[WR_LOCAL] = 1;
	ck_assert_int_eq(post(e, IBV_WR_RDMA_READ, 1, IBV_SEND_SIGNALED), 0);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 2, IBV_SEND_SIGNALED |
			      IBV_SEND_FENCE), 0);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 3, IBV_SEND_SIGNALED), 0);
	usleep(20000);
	ck_assert_uint_eq(stalled(e), 1);
	allow(e, 3);
	wait_until(!stalled(e));
	ck_assert_int_eq(poll_cq(e->cq, 3, wc), 3);
	ck_assert_uint_eq(wc[0].wr_id, 1);
	ck_assert_uint_eq(wc[2].wr_id, 3);
	engine_free(e);
}
END_TEST

static _Atomic bool relayed;

/* Answers what relay_progress() says it can. */
static uint64_t relayed_progress(struct urxe_qp *qp, uint64_t now)
{
	(void)now;
	if (atomic_load(&relayed))
		wire_answer(qp, 0, IBV_WC_SUCCESS);
	return UINT64_MAX;
}

static uint64_t relay_progress(struct urxe_qp *qp, uint64_t now)
{
	(void)now;
	if (wire_of(qp)->allowed && !atomic_exchange(&relayed, true))
		service_need(qp->ctx);
	return UINT64_MAX;
}

/* One QP's progress is another's, which the service thread has passed. */
START_TEST(service_looks_again)
{
	struct urxe_carrier relay = carrier, other = carrier;
	struct wire wire, second = { .verdict = WR_IN_FLIGHT };
	struct engine *e = wired(&wire), f = *e;

	relay.progress = relay_progress;
	other.progress = relayed_progress;
	e->qp->carrier = &relay;
	f.cq = engine_cq(e->ctx, 4);
	ck_assert_ptr_eq(e->ctx->cqs, f.cq); /* the first to be looked at */
	f.qp = engine_qp(IBV_QPT_RC, f.cq, f.cq, NULL);
	engine_qp_connect(f.qp, f.qp->qpn);
	f.qp->carrier_data = &second;
	f.qp->carrier = &other;
	push(e, IBV_WR_RDMA_READ, 1, 0);
	push(&f, IBV_WR_RDMA_READ, 2, 0);
	usleep(20000); /* the service thread has seen both, and sleeps */
	allow(e, 1);
	service_wake(e->ctx->arena);
	wait_until(!stalled(&f));
	expect_wc(f.cq, 2, IBV_WC_SUCCESS);
	engine_qp_close(f.qp);
	engine_cq_close(f.cq);
	answer(e, 0, IBV_WC_SUCCESS);
	engine_free(e);
}
END_TEST

START_TEST(reverse_order)
{
	struct wire wire;
	struct engine *e = wired(&wire);
	int i;

	wire.follows = true;
	for (i = 0; i < 4; i++)
		push(e, IBV_WR_RDMA_WRITE, i, 0);
	ck_assert_uint_eq(flying(e), 4);
	for (i = 3; i > 0; i--) {
		answer(e, i, IBV_WC_SUCCESS);
		expect_none(e->cq);
	}
	answer(e, 0, IBV_WC_SUCCESS);
	for (i = 0; i < 4; i++)
		expect_wc(e->cq, i, IBV_WC_SUCCESS);
	/* and by progress() */
	urxe_lock(&e->qp->lock);
	wire.newest_first = true;
	urxe_unlock(&e->qp->lock);
	for (i = 0; i < 4; i++)
		push(e, IBV_WR_SEND, i, 0);
	allow(e, 4);
	for (i = 0; i < 4; i++)
		expect_wc(e->cq, i, IBV_WC_SUCCESS);
	expect_none(e->cq);
	ck_assert_uint_eq(stalled(e), 0);
	engine_free(e);
}
END_TEST

/* Some are served when they are begun, behind one in flight. */
START_TEST(served_at_once)
{
	struct wire wire;
	struct engine *e = wired(&wire);

	push(e, IBV_WR_RDMA_READ, 1, 0);
	verdict(e, WR_DONE, 0);
	push(e, IBV_WR_SEND, 2, 0);
	verdict(e, WR_DROPPED, 0);
	push(e, IBV_WR_SEND, 3, 0);
	verdict(e, WR_IN_FLIGHT, 0);
	push(e, IBV_WR_SEND, 4, 0);
	expect_none(e->cq);
	answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	expect_wc(e->cq, 3, IBV_WC_SUCCESS);
	expect_none(e->cq);
	answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 4, IBV_WC_SUCCESS);
	ck_assert_uint_eq(stalled(e), 0);
	engine_free(e);
}
END_TEST

/* What a carrier carries out by execute() completes alone, in its turn. */
START_TEST(executed_at_once)
{
	struct wire wire;
	struct engine *e = wired(&wire);
	pid_t pid = fork();
	int i;

	if (!pid)
		for (;;)
			pause();
	/* private memory of another process: such WRITEs are collected */
	e->ctx->arena->key[URXE_KEY_INDEX(e->key)].pid = pid;
	wire.executes = true;
	push(e, IBV_WR_RDMA_READ, 1, 0);
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
	ck_assert_uint_eq(flying(e), 1);
	answer(e, 0, IBV_WC_SUCCESS);
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
	push(e, opcodes[i], 1, 0);
	ck_assert_uint_eq(flying(e), 1);
	push(e, opcodes[j], 2, fence);
	ck_assert_msg(flying(e) == (waits && !follows ? 1 : 2),
		      "opcode %u, then %u%s%s", opcodes[i], opcodes[j], fence ? " with a fence" : "",
		      follows ? ", which the carrier orders" : "");
	answer(e, 0, IBV_WC_SUCCESS);
	ck_assert_uint_eq(flying(e), 1);
	answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
}

START_TEST(order)
{
	struct wire wire;
	struct engine *e = wired(&wire);
	unsigned int i, j, k;

	for (i = 0; i < OPCODES; i++)
		for (j = 0; j < OPCODES; j++)
			for (k = 0; k < 4; k++)
				check_pair(e, i, j, k & 1 ? IBV_SEND_FENCE : 0,
					   k & 2);
	ck_assert_uint_eq(stalled(e), 0);
	engine_free(e);
}
END_TEST

/* Also not the one before the one before; but what was answered holds nobody. */
START_TEST(order_of_three)
{
	struct wire wire;
	struct engine *e = wired(&wire);

	push(e, IBV_WR_RDMA_READ, 1, 0);
	push(e, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0);
	ck_assert_uint_eq(flying(e), 2);
	push(e, IBV_WR_SEND, 3, IBV_SEND_FENCE);
	ck_assert_uint_eq(flying(e), 2);
	answer(e, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(flying(e), 1);
	answer(e, 0, IBV_WC_SUCCESS);
	ck_assert_uint_eq(flying(e), 1);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 3, IBV_WC_SUCCESS);
	/* the atomic was answered: the next one passes the READ */
	push(e, IBV_WR_RDMA_READ, 1, 0);
	push(e, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0);
	answer(e, 1, IBV_WC_SUCCESS);
	push(e, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 0);
	ck_assert_uint_eq(flying(e), 2);
	answer(e, 1, IBV_WC_SUCCESS);
	answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	expect_wc(e->cq, 3, IBV_WC_SUCCESS);
	engine_free(e);
}
END_TEST

/* ------------------------------------------------------- errors */

START_TEST(error_answer)
{
	struct wire wire;
	struct engine *e = wired(&wire);
	int i;

	wire.follows = true;
	for (i = 1; i <= 4; i++)
		push(e, IBV_WR_SEND, i, 0);
	/* the second fails, the third succeeds, before the first is answered */
	answer(e, 1, IBV_WC_REM_OP_ERR);
	answer(e, 1, IBV_WC_SUCCESS);
	expect_none(e->cq);
	ck_assert_int_eq(qp_state(e->qp), IBV_QPS_RTS);
	/* nothing more is begun */
	push(e, IBV_WR_SEND, 5, 0);
	ck_assert_uint_eq(flying(e), 2);
	answer(e, 0, IBV_WC_SUCCESS);
	ck_assert_int_eq(qp_state(e->qp), IBV_QPS_ERR);
	ck_assert_uint_eq(look(e).cancels, 1);
	ck_assert_uint_eq(look(e).cancelled, 1);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_REM_OP_ERR);
	for (i = 3; i <= 5; i++)
		expect_wc(e->cq, i, IBV_WC_WR_FLUSH_ERR);
	expect_none(e->cq);
	ck_assert_uint_eq(stalled(e), 0);
	engine_free(e);
}
END_TEST

/* A WR fails as it is begun, behind one in flight. */
START_TEST(error_at_once)
{
	struct wire wire;
	struct engine *e = wired(&wire);

	push(e, IBV_WR_RDMA_READ, 1, 0);
	verdict(e, WR_FAILED, IBV_WC_LOC_PROT_ERR);
	push(e, IBV_WR_SEND, 2, 0);
	verdict(e, WR_IN_FLIGHT, 0);
	push(e, IBV_WR_SEND, 3, 0);
	ck_assert_uint_eq(look(e).begun, 2);
	expect_none(e->cq);
	answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_LOC_PROT_ERR);
	expect_wc(e->cq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_none(e->cq);
	ck_assert_uint_eq(stalled(e), 0);
	engine_free(e);
}
END_TEST

/* The service thread answers; nothing is in flight behind what failed. */
START_TEST(error_of_the_last)
{
	struct wire wire;
	struct engine *e = wired(&wire);

	push(e, IBV_WR_RDMA_READ, 1, 0);
	push(e, IBV_WR_RDMA_WRITE, 2, 0);
	answer(e, 1, IBV_WC_REM_ACCESS_ERR);
	allow(e, 1);
	wait_until(!stalled(e));
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_REM_ACCESS_ERR);
	expect_none(e->cq);
	ck_assert_uint_eq(look(e).cancelled, 0);
	push(e, IBV_WR_SEND, 3, 0);
	expect_wc(e->cq, 3, IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(look(e).begun, 2);
	engine_free(e);
}
END_TEST

/* An unreliable QP goes to SQE, and from there on. */
START_TEST(error_of_a_datagram)
{
	struct wire wire;
	struct engine *e = wired(&wire);
	struct urxe_qp *rc = e->qp;

	e->qp = engine_qp(IBV_QPT_UD, e->cq, e->cq, NULL);
	engine_qp_connect(e->qp, 0);
	e->qp->carrier_data = &wire;
	e->qp->carrier = &carrier;
	wire.follows = true;
	push(e, IBV_WR_SEND, 1, 0);
	push(e, IBV_WR_SEND, 2, 0);
	answer(e, 0, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(qp_state(e->qp), IBV_QPS_SQE);
	expect_wc(e->cq, 1, IBV_WC_LOC_PROT_ERR);
	expect_wc(e->cq, 2, IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(look(e).cancelled, 1);
	engine_qp_set(e->qp, IBV_QPS_RTS);
	push(e, IBV_WR_SEND, 3, 0);
	answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 3, IBV_WC_SUCCESS);
	engine_qp_close(e->qp);
	e->qp = rc;
	engine_free(e);
}
END_TEST

/* The CQ takes one completion, and three come. */
START_TEST(overrun)
{
	struct wire wire;
	struct engine *e = wired(&wire);
	struct urxe_cq *cq = e->cq;
	struct urxe_qp *qp = e->qp;
	int i;

	e->cq = engine_cq(e->ctx, 1);
	e->qp = engine_qp(IBV_QPT_RC, e->cq, e->cq, NULL);
	engine_qp_connect(e->qp, e->qp->qpn);
	e->qp->carrier_data = &wire;
	e->qp->carrier = &carrier;
	wire.follows = true;
	for (i = 1; i <= 4; i++)
		push(e, IBV_WR_SEND, i, 0);
	for (i = 0; i < 3; i++)
		answer(e, 0, IBV_WC_SUCCESS);
	ck_assert_int_eq(qp_state(e->qp), IBV_QPS_ERR);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	/* what is in flight then is flushed by the next one */
	push(e, IBV_WR_SEND, 5, 0);
	expect_none(e->cq);
	ck_assert_uint_eq(look(e).cancels, 1);
	ck_assert_uint_eq(look(e).cancelled, 1);
	ck_assert_uint_eq(stalled(e), 0);
	engine_qp_close(e->qp);
	engine_cq_close(e->cq);
	e->qp = qp;
	e->cq = cq;
	engine_free(e);
}
END_TEST

/* ERR, RESET and destroying, with WRs in flight, answered and queued. */
static struct engine *in_the_air(struct wire *wire)
{
	struct engine *e = wired(wire);
	int i;

	push(e, IBV_WR_RDMA_READ, 1, 0);
	push(e, IBV_WR_SEND, 2, 0);
	push(e, IBV_WR_SEND, 3, 0);
	answer(e, 1, IBV_WC_SUCCESS); /* so the second SEND was begun */
	for (i = 4; i < 6; i++)
		push(e, IBV_WR_SEND, i, 0);
	ck_assert_uint_eq(flying(e), 2);
	ck_assert_uint_eq(stalled(e), 1);
	return e;
}

START_TEST(to_error)
{
	struct wire wire;
	struct engine *e = in_the_air(&wire);
	int i;

	engine_qp_set(e->qp, IBV_QPS_ERR);
	for (i = 1; i < 6; i++)
		expect_wc(e->cq, i, IBV_WC_WR_FLUSH_ERR);
	expect_none(e->cq);
	ck_assert_uint_eq(look(e).cancels, 1);
	ck_assert_uint_eq(look(e).cancelled, 2);
	ck_assert_uint_eq(stalled(e), 0);
	engine_free(e);
}
END_TEST

/* A peer broke the connection: the owner finds out when it polls. */
START_TEST(broken_by_peer)
{
	struct wire wire;
	struct engine *e = wired(&wire);

	push(e, IBV_WR_RDMA_READ, 1, 0);
	conn_break(&e->qp->conn, RESP_NAK_ACCESS);
	expect_wc(e->cq, 1, IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(look(e).cancels, 1);
	ck_assert_uint_eq(stalled(e), 0);
	engine_free(e);
}
END_TEST

START_TEST(to_reset)
{
	struct wire wire;
	struct engine *e = in_the_air(&wire);

	engine_qp_set(e->qp, IBV_QPS_RESET);
	ck_assert_uint_eq(look(e).cancels, 1);
	ck_assert_uint_eq(look(e).cancelled, 2);
	ck_assert_uint_eq(stalled(e), 0);
	expect_none(e->cq);
	engine_qp_connect(e->qp, e->qp->qpn);
	push(e, IBV_WR_SEND, 9, 0);
	answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 9, IBV_WC_SUCCESS);
	engine_free(e);
}
END_TEST

START_TEST(destroyed)
{
	struct wire wire;
	struct engine *e = in_the_air(&wire);

	engine_free(e); /* it looks at stalled */
	ck_assert_uint_eq(wire.cancels, 1);
	ck_assert_uint_eq(wire.cancelled, 2);
}
END_TEST

/* The peer's slot is another connection's by the time the answer comes. */
START_TEST(peer_is_gone)
{
	struct wire wire;
	struct engine *e = wired(&wire);
	struct urxe_qp *peer = engine_qp(IBV_QPT_RC, e->cq, e->cq, NULL);

	engine_qp_set(e->qp, IBV_QPS_RESET);
	engine_qp_connect(peer, e->qp->qpn);
	engine_qp_connect(e->qp, peer->qpn);
	push(e, IBV_WR_RDMA_READ, 1, 0);
	engine_qp_set(peer, IBV_QPS_RESET);
	engine_qp_connect(peer, peer->qpn);
	atomic_store(&peer->sh->epsn, 7);
	answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(atomic_load(&peer->sh->epsn), 7);
	engine_qp_close(peer);
	engine_free(e);
}
END_TEST

/* ------------------------------------------------------- parked */

START_TEST(parked_behind)
{
	struct wire wire;
	struct engine *e = wired(&wire);

	e->qp->sh->min_rnr_timer = 31; /* half a second */
	push(e, IBV_WR_RDMA_READ, 1, 0);
	verdict(e, WR_RNR, 0);
	push(e, IBV_WR_SEND, 2, 0);
	push(e, IBV_WR_SEND, 3, 0);
	expect_none(e->cq);
	ck_assert_uint_eq(flying(e), 1);
	ck_assert_uint_eq(stalled(e), 2);
	/* those before it complete while it waits */
	answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(stalled(e), 1);
	verdict(e, WR_IN_FLIGHT, 0);
	expect_none(e->cq);
	ck_assert_uint_eq(flying(e), 1);
	ck_assert_uint_eq(stalled(e), 1); /* in flight, and not parked */
	answer(e, 0, IBV_WC_SUCCESS);
	answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	expect_wc(e->cq, 3, IBV_WC_SUCCESS);
	ck_assert_uint_eq(stalled(e), 0);
	engine_free(e);
}
END_TEST

/* It is begun at last, and the obstacle's timer is not its own any more. */
START_TEST(parked_then_slow)
{
	struct wire wire;
	struct engine *e = wired(&wire);

	e->qp->attr.rnr_retry = 1;
	e->qp->sh->min_rnr_timer = 20; /* 10 ms */
	push(e, IBV_WR_RDMA_READ, 1, 0);
	verdict(e, WR_RNR, 0);
	push(e, IBV_WR_SEND, 2, 0);
	verdict(e, WR_IN_FLIGHT, 0);
	expect_none(e->cq);
	ck_assert_uint_eq(flying(e), 2);
	usleep(50000); /* five of its periods */
	expect_none(e->cq);
	answer(e, 0, IBV_WC_SUCCESS);
	answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	expect_none(e->cq);
	ck_assert_uint_eq(stalled(e), 0);
	engine_free(e);
}
END_TEST

/* Its timer expires: it fails when those before it are done. */
static void expire(enum verdict v, enum ibv_wc_status status)
{
	struct wire wire;
	struct engine *e = wired(&wire);

	e->qp->attr.rnr_retry = 2;
	e->qp->attr.retry_cnt = 1;
	e->qp->attr.timeout = 8; /* 1 ms */
	push(e, IBV_WR_RDMA_READ, 1, 0);
	verdict(e, v, 0);
	push(e, IBV_WR_SEND, 2, 0);
	push(e, IBV_WR_SEND, 3, 0);
	/* by the service thread alone */
	wait_until(stalled(e) == 1);
	ck_assert_uint_eq(flying(e), 1);
	ck_assert_int_eq(qp_state(e->qp), IBV_QPS_RTS);
	verdict(e, WR_IN_FLIGHT, 0);
	push(e, IBV_WR_SEND, 4, 0);
	expect_none(e->cq);
	ck_assert_uint_eq(flying(e), 1);
	answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, status);
	expect_wc(e->cq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_wc(e->cq, 4, IBV_WC_WR_FLUSH_ERR);
	expect_none(e->cq);
	ck_assert_uint_eq(stalled(e), 0);
	engine_free(e);
}

START_TEST(timer_expires)
{
	expire(WR_RNR, IBV_WC_RNR_RETRY_EXC_ERR);
	expire(WR_SILENT, IBV_WC_RETRY_EXC_ERR);
}
END_TEST

/* A carrier may park a WR though no peer was looked up here. */
START_TEST(parked_without_peer)
{
	struct wire wire;
	struct engine *e = wired(&wire);

	urxe_lock(&e->qp->lock);
	conn_drop(&e->qp->conn);
	urxe_unlock(&e->qp->lock);
	verdict(e, WR_RNR, 0);
	push(e, IBV_WR_SEND, 1, 0);
	expect_none(e->cq);
	verdict(e, WR_DONE, 0);
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(stalled(e), 0);
	engine_free(e);
}
END_TEST

/* ------------------------------------------------------- the queue */

START_TEST(drained)
{
	struct wire wire;
	struct engine *e = wired(&wire);
	int i;

	for (i = 0; i < 2; i++) {
		push(e, IBV_WR_RDMA_READ, 1, 0);
		drain(e);
		if (i)
			push(e, IBV_WR_SEND, 2, 0);
		ck_assert_uint_eq(flying(e), 1); /* no more is begun */
		ck_assert(draining(e));
		answer(e, 0, IBV_WC_SUCCESS);
		ck_assert(!draining(e));
		ck_assert_uint_eq(flying(e), 0);
		expect_wc(e->cq, 1, IBV_WC_SUCCESS);
		engine_qp_set(e->qp, IBV_QPS_RTS);
		ck_assert_uint_eq(flying(e), i);
	}
	answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	engine_free(e);
}
END_TEST

/* What had been started is finished: the parked one, and no more. */
START_TEST(drained_parked)
{
	struct wire wire;
	struct engine *e = wired(&wire);

	wire.follows = true;
	e->qp->sh->min_rnr_timer = 31;
	push(e, IBV_WR_RDMA_READ, 1, 0);
	verdict(e, WR_RNR, 0);
	push(e, IBV_WR_SEND, 2, 0);
	push(e, IBV_WR_SEND, 3, 0);
	drain(e);
	verdict(e, WR_IN_FLIGHT, 0);
	expect_none(e->cq);
	ck_assert_uint_eq(flying(e), 2);
	answer(e, 0, IBV_WC_SUCCESS);
	ck_assert(draining(e));
	answer(e, 0, IBV_WC_SUCCESS);
	ck_assert(!draining(e));
	expect_wc(e->cq, 1, IBV_WC_SUCCESS);
	expect_wc(e->cq, 2, IBV_WC_SUCCESS);
	expect_none(e->cq);
	engine_qp_set(e->qp, IBV_QPS_RTS);
	answer(e, 0, IBV_WC_SUCCESS);
	expect_wc(e->cq, 3, IBV_WC_SUCCESS);
	engine_free(e);
}
END_TEST

START_TEST(full_queue)
{
	struct wire wire;
	struct engine *e = wired(&wire);
	unsigned int i;

	wire.follows = true;
	for (i = 0; i < ENGINE_DEPTH; i++)
		push(e, IBV_WR_SEND, i, 0);
	ck_assert_uint_eq(flying(e), ENGINE_DEPTH);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 0, 0), ENOMEM);
	for (i = ENGINE_DEPTH; i-- > 0;)
		answer(e, i, IBV_WC_SUCCESS);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 0, 0), ENOMEM);
	expect_wc(e->cq, 0, IBV_WC_SUCCESS);
	push(e, IBV_WR_SEND, ENGINE_DEPTH, 0);
	ck_assert_int_eq(post(e, IBV_WR_RDMA_WRITE, 0, 0), ENOMEM);
	answer(e, 0, IBV_WC_SUCCESS);
	for (i = 1; i <= ENGINE_DEPTH; i++)
		expect_wc(e->cq, i, IBV_WC_SUCCESS);
	engine_free(e);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine, WRs in flight");

	add(s, poller_answers);
	add(s, service_answers);
	add(s, service_looks_again);
	add(s, reverse_order);
	add(s, served_at_once);
	add(s, executed_at_once);
	add(s, order);
	add(s, order_of_three);
	add(s, error_answer);
	add(s, error_at_once);
	add(s, error_of_the_last);
	add(s, error_of_a_datagram);
	add(s, overrun);
	add(s, to_error);
	add(s, broken_by_peer);
	add(s, to_reset);
	add(s, destroyed);
	add(s, peer_is_gone);
	add(s, parked_behind);
	add(s, parked_then_slow);
	add(s, timer_expires);
	add(s, parked_without_peer);
	add(s, drained);
	add(s, drained_parked);
	add(s, full_queue);
	return run_suite(s);
}

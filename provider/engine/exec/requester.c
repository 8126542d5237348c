// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The requester: begins the WRs of a send queue in order, and completes them
 * in order. It runs under qp->lock in the thread that posts, in a poller, or
 * in the service thread (retry.c).
 *
 * Without a transport (qp->transport is NULL) most WRs are executed when they
 * are begun (execute.c). Consecutive RDMA WRITEs to private memory of another
 * process are collected and copied by one process_vm_writev(). Any other WR
 * flushes that batch first. flight.h describes outstanding WRs and the
 * interface of a transport.
 *
 * The queue is parked if the responder has no receive or does not respond
 * (retry.h). Any other error completes the WR, moves the QP to ERR or SQE and
 * flushes it.
 */
#include "engine/qp/comp_cntr.h"
#include "engine/qp/counters.h"
#include "execute.h"
#include "engine/qp/flight.h"
#include "engine/qp/flush.h"
#include "engine/core/log.h"
#include "engine/core/observe.h"
#include "order.h"
#include "requester.h"
#include "responder.h"
#include "engine/run/service.h"
#include "engine/qp/wait.h"
#include "engine/qp/why.h"
#include "engine/qp/wqe.h"

/* ------------------------------------------------------- completing */

/*
 * Complete the WR at `done`, the oldest not completed, with error @status.
 * Move the QP to ERR, or SQE if it is unreliable, and flush its queues; in
 * SQE only the send queue is flushed.
 */
static void requester_break(struct urxe_qp *qp, enum ibv_wc_status status)
{
	const struct urxe_wqe *w = sq_slot(&qp->sq, qp->sq.done);
	bool sqe = qp_is_unreliable(qp);

	why_failed(qp, w, status);
	qp_guard_raise(qp, GUARD_NOTHING); /* for producing into a CQ */
	comp_cntr_wr(qp, w, true);
	complete_send(qp, w, status);
	guard_lower(qp->guard);
	qp->sq.done++;
	/* IB 10.3.1.6: the receive queue of an unreliable QP keeps working */
	if (!qp_set_error(qp, sqe ? IBV_QPS_SQE : IBV_QPS_ERR))
		sqe = false; /* a NAK set ERR before */
	if (sqe)
		flush_sq(qp);
	else
		flush_qp(qp);
}

/*
 * Record the status of an outstanding WR. It completes after all WRs before
 * it.
 */
static void requester_note(struct urxe_qp *qp, uint32_t index,
			   enum ibv_wc_status status)
{
	struct urxe_wqe *w = sq_slot(&qp->sq, index);

	observe(OBSERVE_ANSWERED, qp, w, status);
	w->answer = status + 1;
}

/*
 * Decrement sq->to_restart, the number of queued WRs that were in flight
 * before: the WR at `begun` is begun.
 */
static void requester_count_restart(struct urxe_sq *sq)
{
	if (sq->to_restart)
		sq->to_restart--;
}

void requester_fail(struct urxe_qp *qp, enum ibv_wc_status status)
{
	struct urxe_sq *sq = &qp->sq;

	why_take(qp, sq->begun);
	if (likely(sq->done == sq->begun)) {
		observe(OBSERVE_ANSWERED, qp, sq_slot(sq, sq->begun), status);
		requester_break(qp, status);
		return;
	}
	/* the WRs before it complete first */
	stall_end(qp);
	requester_count_restart(sq);
	requester_note(qp, sq->begun++, status);
}

static void requester_advance(struct urxe_qp *qp, uint64_t length)
{
	requester_executed(qp, sq_packets(length, qp->mtu_shift), length);
}

/*
 * Complete @w, the oldest outstanding WR, successfully. Inline for the data
 * path.
 */
static inline void __attribute__((always_inline))
requester_retire(struct urxe_qp *qp, const struct urxe_wqe *w)
{
	if (likely(!wqe_is_local(w)))
		requester_advance(qp, wqe_wire_length(w));
	comp_cntr_wr(qp, w, false);
	if (w->flags & IBV_SEND_SIGNALED)
		complete_send(qp, w, IBV_WC_SUCCESS);
	qp->sq.done++;
}

/* The same for the WR at `done`, and report its status to observers. */
static inline void requester_retire_executed(struct urxe_qp *qp)
{
	const struct urxe_wqe *w = sq_slot(&qp->sq, qp->sq.done);

	observe(OBSERVE_ANSWERED, qp, w, IBV_WC_SUCCESS);
	requester_retire(qp, w);
}

void requester_claim(struct urxe_qp *qp, const struct urxe_wqe *w,
		     struct requester_end *end)
{
	end->turn = qp->sq.done == qp->sq.begun;
	end->claimed = end->turn && w->flags & IBV_SEND_SIGNALED &&
		       complete_begin(qp, &end->ref);
}

enum verdict requester_finish(struct urxe_qp *qp, const struct urxe_wqe *w,
			      struct requester_end *end)
{
	end->notify = false;
	if (unlikely(!end->turn))
		return WR_DONE;
	if (unlikely(qp->stall.kind != STALL_NONE))
		stall_end(qp);
	observe(OBSERVE_ANSWERED, qp, w, IBV_WC_SUCCESS);
	requester_advance(qp, w->length);
	comp_cntr_wr(qp, w, false);
	if (end->claimed) {
		qp->sq.signaled = qp->sq.done + 1;
		complete_fill(qp, w->wr_id, wc_opcode_of[w->opcode], w->length,
			      IBV_WC_SUCCESS, end->ref.slot.cqe);
		end->solicited = false;
		end->notify =
			cq_publish(&qp->scq->view, &end->ref, &end->solicited);
	}
	qp->sq.done++;
	return WR_COMPLETED;
}

/* Complete all WRs that were begun. */
static void requester_retire_begun(struct urxe_qp *qp)
{
	if (unlikely(qp->stall.kind != STALL_NONE))
		stall_end(qp);
	while (qp->sq.done != qp->sq.begun)
		requester_retire_executed(qp);
}

/*
 * Add to the responder's completion counters the WRs of which all bytes are
 * in the first @done bytes of the batch.
 */
static void requester_count_batch(const struct urxe_qp *qp, uint64_t done)
{
	const struct urxe_wqe *w;
	uint32_t i;

	for (i = qp->sq.done; i != qp->sq.begun; i++) {
		w = sq_slot(&qp->sq, i);
		if (w->length > done)
			return;
		done -= w->length;
		comp_cntr_remote(&qp->conn, w, false);
	}
}

enum verdict requester_send_batch(struct urxe_qp *qp, struct run *r)
{
	struct urxe_sq *sq = &qp->sq;
	enum transfer_status status;
	uint64_t done;

	if (likely(!r->batch.n))
		return WR_DONE;
	status = transfer_flush(&r->batch, &done);
	if (unlikely(load_relaxed(&qp->conn.sh->counts)))
		requester_count_batch(qp, status ? done : UINT64_MAX);
	if (likely(!status) ||
	    (qp->type == IBV_QPT_UC && !(status & TRANSFER_READING))) {
		requester_retire_begun(qp);
		return WR_DONE;
	}
	while (sq->done != sq->begun) {
		uint64_t len = sq_slot(sq, sq->done)->length;

		if (len > done)
			break;
		done -= len;
		stall_end(qp);
		requester_retire_executed(qp);
	}
	sq->begun = sq->done;
	return execute_answered(qp, r, sq_slot(sq, sq->begun),
				moved_to(status));
}

/* ------------------------------------------------------- in flight */

/*
 * Return whether @w must not be begun before the outstanding WRs are done: by
 * the ordering rules (order.h), or because one of them has failed.
 */
static bool requester_holds_back(const struct urxe_qp *qp,
				 const struct urxe_wqe *w)
{
	const struct urxe_sq *sq = &qp->sq;
	const struct urxe_wqe *first;
	uint32_t i;

	if (likely(!qp->transport)) /* batched WRITEs stay in order */
		return w->opcode != IBV_WR_RDMA_WRITE;
	for (i = sq->done; i != sq->begun; i++) {
		first = sq_slot(sq, i);
		if (first->answer ?
			    first->answer != IBV_WC_SUCCESS + 1 :
			    order_holds(first, w) &&
				    !qp->transport->follows(qp, first, w))
			return true;
	}
	return false;
}

static enum verdict requester_begin(struct urxe_qp *qp, struct run *r,
				    struct urxe_wqe *w)
{
	enum verdict v;

	w->answer = 0;
	v = qp->transport->begin(qp, r, w);
	if (v == WR_IN_FLIGHT)
		stall_end(qp); /* the queue is not stalled any more */
	if (v <= WR_COMPLETED)
		requester_count_restart(&qp->sq);
	return v;
}

void requester_answer(struct urxe_qp *qp, uint32_t index,
		      enum ibv_wc_status status)
{
	struct urxe_sq *sq = &qp->sq;
	const struct urxe_wqe *w;

	if (status)
		why_take(qp, index);
	requester_note(qp, index, status);
	while (sq->done != sq->begun) {
		w = sq_slot(sq, sq->done);
		if (!w->answer)
			break;
		if (w->answer != IBV_WC_SUCCESS + 1) {
			requester_break(qp, w->answer - 1);
			break;
		}
		/*
		 * for producing into a CQ and advancing the responder's PSN
		 */
		qp_guard_raise(qp, GUARD_SEND);
		conn_check(&qp->conn);
		requester_retire(qp, w);
		guard_lower(qp->guard);
	}
	flight_count(qp);
	if (qp->sqd_notify)
		qp_drained(qp);
}

/* ------------------------------------------------------- the loop */

/*
 * Park the queue. Return WR_FAILED with r->status if no retries are allowed.
 * The guard is raised: the responder's state is read.
 */
static enum verdict requester_park(struct urxe_qp *qp, struct run *r,
				   enum verdict v)
{
	bool rnr = v == WR_RNR;

	if (rnr)
		responder_note_rnr(&qp->conn, qp->attr.dest_qp_num);
	if (!stall_begin(qp, rnr ? STALL_RNR : STALL_TRANSPORT)) {
		r->status = rnr ? IBV_WC_RNR_RETRY_EXC_ERR :
				  IBV_WC_RETRY_EXC_ERR;
		return WR_FAILED;
	}
	if (!rnr || !qp->conn.sh) /* no conn.sh: on another host */
		return v;
	/*
	 * Dekker: waiter is stored and prod is loaded; post_recv stores prod
	 * and then loads waiter
	 */
	responder_wait_receive(&qp->conn, qp->ctx->slot);
	if (responder_has_receive(&qp->conn))
		service_wake(qp->ctx->arena);
	return v;
}

void requester_park_flight(struct urxe_qp *qp, struct run *r, uint32_t index,
			   enum verdict v)
{
	qp->sq.to_restart += qp->sq.begun - index;
	qp->sq.begun = index;
	v = requester_park(qp, r, v);
	guard_lower(qp->guard);
	flight_count(qp);
	if (v == WR_FAILED)
		requester_fail(qp, r->status);
}

static bool requester_may_run(const struct urxe_qp *qp)
{
	enum ibv_qp_state state = qp_state(qp);

	/* in SQD the WRs that were begun are finished */
	return likely(state == IBV_QPS_RTS) ||
	       (state == IBV_QPS_SQD && qp_is_parked(qp));
}

/*
 * Publish @uses in the guard. While a batch has not been copied, the guard
 * must cover its keys as well.
 */
static inline void requester_use(struct urxe_qp *qp, const struct run *r,
				 uint32_t uses)
{
	if (likely(guard_names(qp->guard, uses)))
		return;
	if (r->batch.n)
		uses = GUARD_SEND | GUARD_ANY_RKEY;
	if (!guard_names(qp->guard, uses))
		guard_move(qp->guard, uses);
}

/* Handle a WR that was begun and executed at once. */
static void requester_conclude_wr(struct urxe_qp *qp, const struct run *r)
{
	struct urxe_sq *sq = &qp->sq;

	/* completions are in order: only if no WR before it is outstanding */
	if (likely(sq->done + 1 == sq->begun)) {
		requester_retire_begun(qp);
	} else if (!r->batch.n) {
		stall_end(qp);
		requester_note(qp, sq->begun - 1, IBV_WC_SUCCESS);
	}
}

static enum verdict requester_run_queue(struct urxe_qp *qp, struct run *r)
{
	struct urxe_sq *sq = &qp->sq;
	enum verdict v = WR_DONE, b;
	struct urxe_wqe *w = sq_slot(sq, sq->begun);

	qp_guard_raise(qp, requester_uses(w));
	for (;;) {
		if (sq->done != sq->begun && requester_holds_back(qp, w)) {
			b = requester_send_batch(qp, r);
			if (unlikely(b != WR_DONE))
				return b;
			guard_name(qp->guard, requester_uses(w));
			if (unlikely(sq->done != sq->begun))
				return WR_IN_FLIGHT; /* until progress() */
		}
		observe(OBSERVE_LEAVES, qp, w, 0);
		v = likely(!qp->transport) ? execute(qp, r, w) :
					     requester_begin(qp, r, w);
		if (unlikely(v > WR_COMPLETED))
			break;
		sq->begun++;
		if (v < WR_IN_FLIGHT)
			requester_conclude_wr(qp, r);
		if (sq->begun == sq->prod || !requester_may_run(qp))
			break;
		w = sq_slot(sq, sq->begun);
		requester_use(qp, r, requester_uses(w));
	}
	b = requester_send_batch(qp, r);
	return v > WR_COMPLETED && b == WR_DONE ? v : b;
}

/* Handle the result of a pass over the queue. */
static void requester_conclude(struct urxe_qp *qp, const struct run *r,
			       enum verdict v)
{
	if (unlikely(qp->transport))
		flight_count(qp);
	if (unlikely(qp->count.packets >= COUNTERS_EVERY))
		counters_flush(qp);
	if (unlikely(v == WR_FAILED))
		requester_fail(qp, r->status);
	else if (unlikely(qp->sqd_notify))
		qp_drained(qp);
}

/*
 * The queue may not run: flush it in ERR and SQE; in SQD record that queued
 * WRs wait.
 */
static void requester_rest(struct urxe_qp *qp)
{
	enum ibv_qp_state state = qp_state(qp);

	if (state == IBV_QPS_ERR)
		flush_qp(qp);
	else if (state == IBV_QPS_SQE)
		flush_sq(qp);
	else
		wait_drained(qp);
}

void requester_run(struct urxe_qp *qp)
{
	struct run r;
	enum verdict v;

	if (qp->sq.begun == qp->sq.prod)
		return;
	if (unlikely(!requester_may_run(qp))) {
		requester_rest(qp);
		return;
	}
	run_begin(&r, qp);
	v = requester_run_queue(qp, &r);
	if (unlikely(v == WR_RNR || v == WR_SILENT))
		v = requester_park(qp, &r, v);
	guard_lower(qp->guard);
	requester_conclude(qp, &r, v);
}

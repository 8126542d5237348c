// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Parked send queues: retries and the RNR and ACK timers. See retry.h.
 *
 * retry_progress() is called by pollers of a CQ whose `attention` or
 * `stalled` is set, and retry_all() by the service thread. Both lock
 * ctx->lock to walk the QPs and enter each one by a trylock of qp->lock.
 * Times are ns of clock_now().
 */
#include "base/clock.h"
#include "engine/qp/counters.h"
#include "engine/cq/eager.h"
#include "engine/cq/event.h"
#include "engine/qp/flight.h"
#include "engine/qp/flush.h"
#include "engine/core/log.h"
#include "engine/core/observe.h"
#include "engine/qp/qp.h"
#include "requester.h"
#include "responder.h"
#include "retry.h"
#include "engine/qp/rq.h"
#include "engine/run/service.h"
#include "engine/qp/wait.h"
#include "engine/qp/why.h"

/*
 * Retry the WR at the head of a parked SQ. If the timer has expired, count
 * the retry, and fail the WR if none is left. qp->lock is held.
 */
static void stall_retry(struct urxe_qp *qp, uint64_t now)
{
	struct urxe_stall *s = &qp->stall;
	uint32_t head = qp->sq.begun;
	bool expired = now >= s->deadline && s->deadline;
	enum urxe_stall_kind kind = s->kind;

	requester_run(qp);
	wait_drained(qp);
	if (s->kind != kind || qp->sq.begun != head || !expired)
		return;
	s->deadline = now + s->period;
	/* the request was retransmitted without success */
	if (kind == STALL_RNR)
		counter_rnr(qp);
	else
		counter_add(qp, URXE_CNT_ACK_TIMEOUT, 1);
	observe(OBSERVE_AGAIN, qp, sq_slot(&qp->sq, head), kind);
	if (s->endless) {
		wait_tries(qp);
		return;
	}
	why_recall(&s->why);
	if (kind == STALL_RNR && !--s->left) {
		counter_add(qp, URXE_CNT_RNR_EXC, 1);
		requester_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
	} else if (kind == STALL_TRANSPORT && !s->left--) {
		counter_add(qp, URXE_CNT_RETRY_EXC, 1);
		requester_fail(qp, IBV_WC_RETRY_EXC_ERR);
	}
	wait_tries(qp);
}

/*
 * Retry interval of a queue whose peer does not respond. No notification
 * comes when the peer becomes ready.
 */
#define TRANSPORT_POLL_NS 1000000

/*
 * Retry what is parked, and let the transport progress outstanding WRs.
 * qp->lock is held. Return the time of the next call, UINT64_MAX for none.
 */
static uint64_t retry_qp(struct urxe_qp *qp, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (qp->stall.kind != STALL_NONE)
		stall_retry(qp, now);
	if (unlikely(qp->in_flight))
		next = qp->transport->progress(qp, now);
	if (qp->stall.kind == STALL_TRANSPORT && now + TRANSPORT_POLL_NS < next)
		next = now + TRANSPORT_POLL_NS;
	if (qp->stall.kind != STALL_NONE && qp->stall.deadline &&
	    qp->stall.deadline < next)
		next = qp->stall.deadline;
	return next;
}

/*
 * The same, followed by qp_leave(). It may wait for another process, so
 * ctx->lock, which is held, is released meanwhile. The pin keeps the QP and
 * its CQ from being unlinked.
 */
static uint64_t retry_qp_and_leave(struct urxe_qp *qp, uint64_t now)
{
	struct urxe_context *ctx = qp->ctx;
	uint64_t next = UINT64_MAX;

	if (qp->stall.kind == STALL_NONE && !qp->in_flight) {
		qp_leave(qp);
		return next;
	}
	qp_pin(qp);
	pthread_mutex_unlock(&ctx->lock);
	next = retry_qp(qp, now);
	qp_leave(qp);
	pthread_mutex_lock(&ctx->lock);
	qp_unpin(qp);
	return next;
}

/*
 * Return whether it is too early for the service thread to enter the QP, and
 * set *at to the time of the next call.
 */
static bool retry_is_early(const struct urxe_qp *qp, uint64_t now, uint64_t *at)
{
	uint64_t (*early)(const struct urxe_qp *, uint64_t) =
		load_acquire(&qp->early);

	if (likely(!early) || !service_is_me())
		return false;
	*at = early(qp, now);
	return *at;
}

/*
 * Progress the QPs of @cq. ctx->lock is held by the caller, and released and
 * retaken inside. Return the time of the next call, UINT64_MAX for none.
 */
static uint64_t retry_cq(struct urxe_cq *cq, uint64_t now)
{
	uint64_t next = UINT64_MAX, at;
	struct urxe_qp *qp;

	if (load_relaxed(&cq->sh->attention)) {
		/*
		 * a read-modify-write, so that all stores made before
		 * `attention` was set are visible
		 */
		exchange_seq_cst(&cq->sh->attention, 0);
		flush_cq(cq);
		rq_recover(cq->ctx);
		if (rq_needs_recovery(cq->ctx))
			flush_later(cq);
		if (unlikely(eager_is_wanted(cq)) && service_is_me())
			store_release(&cq->sh->attention, 1); /* a poller's */
	}
	if (!load_relaxed(&cq->stalled))
		return next;
	for (qp = cq->send_qps; qp; qp = qp->scq_next) {
		if (!retry_is_early(qp, now, &at)) {
			at = now + TRANSPORT_POLL_NS;
			if (qp_enter(qp))
				at = retry_qp_and_leave(qp, now);
		}
		if (at < next)
			next = at;
	}
	return next;
}

void retry_progress(struct urxe_cq *cq)
{
	pthread_mutex_lock(&cq->ctx->lock);
	retry_cq(cq, clock_now());
	pthread_mutex_unlock(&cq->ctx->lock);
	event_resend(cq->ctx);
	if (unlikely(load_relaxed(&cq->ctx->no_service_thread)))
		service_run_by_poller(cq->ctx, cq->sh);
}

uint64_t retry_all(struct urxe_context *ctx)
{
	uint64_t now = clock_now(), next = UINT64_MAX, at;
	struct urxe_cq *cq;

	pthread_mutex_lock(&ctx->lock);
	for (cq = ctx->cqs; cq; cq = cq->next) {
		at = retry_cq(cq, now);
		if (at < next)
			next = at;
	}
	pthread_mutex_unlock(&ctx->lock);
	return next;
}

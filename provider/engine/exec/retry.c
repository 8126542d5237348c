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
	uint64_t later = 0;

	if (unlikely(early) && service_is_me())
		later = early(qp, now);
	if (later)
		*at = later;
	return later;
}

/*
 * The next sweep begins with the first QP that waits for its turn: move those
 * before it to the end. ctx->lock is held, and the service thread is not in the
 * list: it would miss QPs. A poller that does visits them at its next poll.
 */
static void retry_rotate(struct urxe_cq *cq)
{
	struct urxe_qp *head = cq->send_qps, *first = head, **end;

	while (first && !load_relaxed(&first->waits_turn))
		first = first->scq_next;
	if (!first || first == head)
		return;
	*first->scq_at = NULL;
	cq->send_qps = first;
	first->scq_at = &cq->send_qps;
	for (end = &first->scq_next; *end; end = &(*end)->scq_next)
		;
	*end = head;
	head->scq_at = end;
}

/*
 * Return whether progress() would do nothing: another QP has the turn for which
 * this one waits, nothing is outstanding, and no response has arrived. This is
 * much cheaper than to enter the QP, and there may be many that wait.
 */
static bool retry_is_behind(const struct urxe_cq *cq, const struct urxe_qp *qp)
{
	const struct urxe_wire_inbox *in;

	if (likely(!load_relaxed(&cq->waits_turn)) ||
	    !load_relaxed(&qp->waits_turn))
		return false;
	in = &qp->ctx->arena->wire[qpn_index(qp->qpn)].inbox;
	return load_relaxed(&in->head) == load_relaxed(&in->tail) &&
	       load_relaxed(&in->published.una) ==
		       load_relaxed(&in->published.next);
}

/*
 * Progress the send queues of @cq. ctx->lock is held, and released and
 * retaken inside. Return the time of the next call, UINT64_MAX for none.
 */
static uint64_t retry_sweep(struct urxe_cq *cq, uint64_t now)
{
	const bool service = service_is_me();
	uint64_t next = UINT64_MAX, at;
	struct urxe_qp *qp;

	if (service)
		cq->service_sweeps = true;
	store_relaxed(&cq->sweep, load_relaxed(&cq->sweep) + 1);
	store_relaxed(&cq->waits_turn, false);
	for (qp = cq->send_qps; qp; qp = qp->scq_next) {
		at = now + TRANSPORT_POLL_NS;
		if (!retry_is_behind(cq, qp) && !retry_is_early(qp, now, &at) &&
		    qp_enter(qp)) {
			at = retry_qp_and_leave(qp, now);
			if (load_relaxed(&qp->waits_turn))
				store_relaxed(&cq->waits_turn, true);
		}
		if (at < next)
			next = at;
	}
	if (service)
		cq->service_sweeps = false;
	if (!cq->service_sweeps && load_relaxed(&cq->waits_turn))
		retry_rotate(cq);
	return next;
}

/*
 * Progress the QPs of @cq. ctx->lock is held by the caller, and released and
 * retaken inside. Return the time of the next call, UINT64_MAX for none.
 */
static uint64_t retry_cq(struct urxe_cq *cq, uint64_t now)
{
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
	return load_relaxed(&cq->stalled) ? retry_sweep(cq, now) : UINT64_MAX;
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

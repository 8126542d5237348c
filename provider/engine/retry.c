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
#include "counters.h"
#include "event.h"
#include "flight.h"
#include "flush.h"
#include "log.h"
#include "observe.h"
#include "qp.h"
#include "requester.h"
#include "responder.h"
#include "retry.h"
#include "rq.h"
#include "service.h"
#include "wait.h"
#include "why.h"

uint64_t retry_rnr_ns(uint8_t code)
{
	static const uint32_t us10[32] = {
		65536, 1,    2,	   3,	 4,    6,    8,	   12,
		16,    24,   32,   48,	 64,   96,   128,  192,
		256,   384,  512,  768,	 1024, 1536, 2048, 3072,
		4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return us10[code & 31] * 10000ull;
}

uint64_t retry_ack_ns(uint8_t code)
{
	return code ? 4096ull << (code & 31) : 0;
}

static uint64_t stall_period(const struct urxe_qp *qp,
			     enum urxe_stall_kind kind)
{
	if (kind == STALL_RNR)
		return retry_rnr_ns(qp->conn.sh ?
				      load_relaxed(&qp->conn.sh->min_rnr_timer) :
				      1);
	return retry_ack_ns(qp->attr.timeout);
}

static enum urxe_wait_for stall_waits_for(enum urxe_stall_kind kind)
{
	return kind == STALL_RNR ? URXE_WAIT_RECEIVE : URXE_WAIT_ANSWER;
}

bool stall_begin(struct urxe_qp *qp, enum urxe_stall_kind kind)
{
	struct urxe_stall *s = &qp->stall;
	bool rnr = kind == STALL_RNR;

	if (rnr)
		responder_note_rnr(&qp->conn, qp->attr.dest_qp_num);
	why_noted(&s->why);
	s->period = stall_period(qp, kind);
	if (s->kind == kind) {
		wait_begin(qp, stall_waits_for(kind), qp->sq.begun);
		why_settled();
		return true; /* the same cause: its timer continues */
	}
	if (rnr)
		counter_rnr(qp);
	observe(OBSERVE_WAITS, qp, sq_slot(&qp->sq, qp->sq.begun), kind);
	if (rnr && !qp->attr.rnr_retry)
		return false;
	if (s->kind == STALL_NONE)
		fetch_add_relaxed(&qp->scq->stalled, 1);
	s->kind = kind;
	s->left = rnr ? qp->attr.rnr_retry : qp->attr.retry_cnt;
	s->endless = rnr ? qp->attr.rnr_retry == 7 : !qp->attr.timeout;
	s->deadline = s->period ? clock_now() + s->period : 0;
	wait_begin(qp, stall_waits_for(kind), qp->sq.begun);
	wait_tries(qp);
	why_waits(qp, sq_slot(&qp->sq, qp->sq.begun));
	service_need(qp->ctx);
	return true;
}

static void stall_clear(struct urxe_qp *qp)
{
	qp->stall.kind = STALL_NONE;
	fetch_sub_relaxed(&qp->scq->stalled, 1);
}

void stall_end(struct urxe_qp *qp)
{
	if (qp->stall.kind == STALL_NONE)
		return;
	stall_clear(qp);
	wait_end(qp);
}

void stall_disown(struct urxe_qp *qp, uint32_t end)
{
	if (qp->stall.kind == STALL_NONE)
		return;
	stall_clear(qp); /* not stall_end(): the parent still waits */
	qp->sq.begun = end;
	flight_disown(qp);
}

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
	if (unlikely(qp->flying))
		next = qp->carrier->progress(qp, now);
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

	if (qp->stall.kind == STALL_NONE && !qp->flying) {
		qp_leave(qp);
		return next;
	}
	qp->pins++;
	pthread_mutex_unlock(&ctx->lock);
	next = retry_qp(qp, now);
	qp_leave(qp);
	pthread_mutex_lock(&ctx->lock);
	if (!--qp->pins)
		pthread_cond_broadcast(&ctx->unpinned);
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
		if (rq_deaths(cq->ctx))
			flush_later(cq);
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
	if (unlikely(load_relaxed(&cq->ctx->unserved)))
		service_stand_in(cq->ctx, cq->sh);
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

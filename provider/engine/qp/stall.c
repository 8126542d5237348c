// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Parked send queues: parking, and the values of the RNR and ACK timers. See
 * stall.h. Times are ns of clock_now().
 */
#include "base/clock.h"
#include "counters.h"
#include "flight.h"
#include "engine/core/observe.h"
#include "qp.h"
#include "engine/run/service.h"
#include "stall.h"
#include "wait.h"
#include "why.h"

uint64_t retry_rnr_ns(uint8_t code)
{
	static const uint32_t us10[32] = {
		65536, 1,    2,	   3,	  4,	 6,	8,     12,
		16,    24,   32,   48,	  64,	 96,	128,   192,
		256,   384,  512,  768,	  1024,	 1536,	2048,  3072,
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
		return retry_rnr_ns(
			qp->conn.sh ?
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

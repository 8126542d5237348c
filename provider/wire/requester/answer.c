// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Wire requester: processing of responses, and retransmission. */
#include "base/clock.h"
#include "engine/exec/requester.h"
#include "engine/qp/flight.h"
#include "engine/core/observe.h"
#include "engine/exec/part.h"
#include "engine/exec/retry.h"
#include "engine/copy/transfer.h"
#include "engine/qp/wait.h"
#include "engine/qp/why.h"
#include "engine/qp/wqe.h"
#include "message.h"
#include "state.h"

#define RNR_ENDLESS 7

/* ------------------------------------------------------- tries */

void requester_tries_begin(const struct urxe_qp *qp, struct wire_requester *r)
{
	r->left = qp->attr.retry_cnt;
	r->rnr_left = qp->attr.rnr_retry;
	r->gone_back = false;
	r->retransmits = 0;
	r->probes = 0;
}

static void wait_publish(struct urxe_qp *qp, struct wire_requester *r,
			 enum urxe_stall_kind kind, uint64_t until)
{
	struct urxe_wait *w = &qp->sh->wait;
	bool rnr = kind == STALL_RNR;
	uint8_t left = rnr ? r->rnr_left : r->left;

	wait_begin(qp, rnr ? URXE_WAIT_RECEIVE : URXE_WAIT_ANSWER, qp->sq.done);
	store_relaxed(&w->left, rnr && qp->attr.rnr_retry == RNR_ENDLESS ?
					URXE_WAIT_ENDLESS :
					left);
	store_relaxed(&w->until, until);
	observe(r->waits ? OBSERVE_AGAIN : OBSERVE_WAITS, qp,
		sq_slot(&qp->sq, qp->sq.done), kind);
	if (!r->waits)
		why_waits(qp, sq_slot(&qp->sq, qp->sq.done));
	r->waits = true;
}

static void wait_unpublish(struct urxe_qp *qp, struct wire_requester *r)
{
	if (!r->waits)
		return;
	r->waits = false;
	wait_end(qp);
}

static void go_back(struct urxe_qp *qp, struct wire_requester *r, bool lost)
{
	r->retransmits++;
	window_go_back(&r->window, lost);
	fetch_forget(r);
	rtt_cancel(&r->rtt);
	r->at = qp->sq.done;
	r->deadline = r->probe_at = 0;
}

/*
 * A fetch is repeated alone only if the responder is known to buffer the
 * packets behind it, or if a probe will find out: the response does not show
 * it.
 */
static bool may_recover(const struct urxe_qp *qp, struct wire_requester *r,
			bool nacked)
{
	return r->window.buffers || (nacked && requester_timeout(qp, r)) ||
	       !message_fetches(sq_slot(&qp->sq, qp->sq.done));
}

/* Retransmit what is lost from una on (window_recover). */
static void recover(struct urxe_qp *qp, struct wire_requester *r, bool nacked)
{
	r->has_gaps = r->gaps_asked = false;
	if (!may_recover(qp, r, nacked) ||
	    !window_recover(&r->window, nacked)) {
		go_back(qp, r, true);
		return;
	}
	r->retransmits++;
	r->repeated_at = clock_now();
	rtt_cancel(&r->rtt);
	r->at = qp->sq.done;
}

/*
 * Return true if an ACK is too early to be for the repeated packet.  That one
 * was only reordered, and tells nothing of those behind it.  If this is wrong,
 * a probe follows, or a NAK.
 */
static bool is_of_original(const struct urxe_qp *qp,
			   const struct wire_requester *r)
{
	return r->window.buffers && requester_timeout(qp, r) &&
	       clock_now() - r->repeated_at < r->rtt.least / 2;
}

/* Packets were acknowledged. */
static void recover_more(struct urxe_qp *qp, struct wire_requester *r)
{
	if (!r->window.recovers || !qp->in_flight || is_of_original(qp, r) ||
	    !window_recover_more(&r->window))
		return;
	r->repeated_at = clock_now();
	rtt_cancel(&r->rtt);
	r->has_gaps = r->gaps_asked = false;
	if (!r->window.recovers)
		fetch_forget(r);
	r->retransmits++;
	r->gone_back = true;
	r->at = qp->sq.done;
}

void requester_probe(struct urxe_qp *qp, struct wire_requester *r)
{
	const uint64_t deadline = r->deadline;

	r->probe_at = 0;
	if (r->rnr_until)
		return;
	if (++r->probes < PROBES) {
		recover(qp, r, false);
	} else {
		window_give_up(&r->window);
		go_back(qp, r, true);
	}
	r->deadline = deadline;
}

/*
 * Complete the oldest WR with an error, which breaks the QP.  The guard is
 * not raised.
 */
static void requester_ends(struct urxe_qp *qp, enum ibv_wc_status status)
{
	requester_answer(qp, qp->sq.done, status);
}

static void __attribute__((cold))
note_unsent(const struct urxe_qp *qp, const struct wire_requester *r)
{
	struct wire_path path;

	message_path(qp, &path);
	message_note_unsent(qp->attr.dest_qp_num, 1u << qp->mtu_shift,
			    path.sgid, r->unsent);
}

/*
 * Begin a retry.  Returns false if none is left: then the QP is in the error
 * state.
 */
static bool retry_begin(struct urxe_qp *qp, struct wire_requester *r)
{
	if (unlikely(r->unsent))
		note_unsent(qp, r);
	else
		why_note(WIRE_SILENT, qp->attr.dest_qp_num, r->window.una,
			 qp->attr.retry_cnt);
	if (!r->left) {
		counted(qp, URXE_CNT_RETRY_EXC);
		requester_ends(qp, IBV_WC_RETRY_EXC_ERR);
		return false;
	}
	r->left--;
	counted(qp, URXE_CNT_COMP_RETRY);
	return true;
}

static void retry_publish(struct urxe_qp *qp, struct wire_requester *r)
{
	r->deadline = r->probe_at = 0;
	wait_publish(qp, r, STALL_TRANSPORT,
		     clock_now() + requester_timeout(qp, r));
}

void requester_retransmit(struct urxe_qp *qp, struct wire_requester *r)
{
	if (!retry_begin(qp, r))
		return;
	go_back(qp, r, true);
	retry_publish(qp, r);
}

/* The responder misses packet una. */
static void take_sequence_nak(struct urxe_qp *qp, struct wire_requester *r)
{
	counted(qp, URXE_CNT_SEQ_NAK);
	if (r->gone_back || !retry_begin(qp, r))
		return;
	r->gone_back = true;
	recover(qp, r, true);
	retry_publish(qp, r);
}

/* ------------------------------------------------------- answers */

/*
 * Acknowledge all PSNs before psn and complete the WRs that end there.  The
 * guard is not raised.
 */
static void retire(struct urxe_qp *qp, struct wire_requester *r, uint32_t psn)
{
	const struct urxe_sq *sq = &qp->sq;

	if (!window_answered(&r->window, psn))
		return;
	wait_unpublish(qp, r);
	requester_tries_begin(qp, r);
	while (r->fetches &&
	       !wire_psn_before(psn, wire_psn_add(r->fetch[r->first].psn,
						  r->fetch[r->first].packets)))
		fetch_end(qp, r);
	requester_arm(qp, r, true);
	while (sq->done != sq->begun &&
	       !wire_psn_before(psn, message_end(r, sq->done))) {
		observe(OBSERVE_ARRIVES, qp, sq_slot(sq, sq->done),
			qp->attr.dest_qp_num);
		if (message_is_send(sq_slot(sq, sq->done)))
			counted(qp, URXE_CNT_SENDS);
		requester_answer(qp, sq->done, IBV_WC_SUCCESS);
	}
	if (!qp->in_flight)
		return; /* also if a later WR had failed and broke the QP */
	/* skip needless retransmissions */
	if ((int32_t)(r->at - sq->done) < 0)
		r->at = sq->done;
	requester_skip_sent(r);
}

/*
 * Return the PSN of the first fetch before psn, or psn if there is none.  The
 * fetch's request may have to be retransmitted; then no ACK of earlier
 * packets completes it.
 */
static uint32_t first_fetch(const struct urxe_qp *qp, struct wire_requester *r,
			    uint32_t psn)
{
	const uint32_t una = r->window.una;
	const struct urxe_sq *sq = &qp->sq;
	uint32_t slot, at;

	for (slot = sq->done; slot != sq->begun; slot++) {
		at = message_at(r, slot)->psn;
		if (!wire_psn_before(at, psn))
			break;
		if (message_fetches(sq_slot(sq, slot)))
			return wire_psn_before(at, una) ? una : at;
	}
	return psn;
}

/*
 * Like retire(), but stop at the first fetch.  Returns false if there is one
 * before psn.
 */
static bool retire_up_to(struct urxe_qp *qp, struct wire_requester *r,
			 uint32_t psn)
{
	const uint32_t at = first_fetch(qp, r, psn);

	retire(qp, r, at);
	return at == psn;
}

/*
 * A response before this one is missing: request it again, once for each una.
 * It counts as a retry (IB 9.9.2.4.1).
 */
static void missing(struct urxe_qp *qp, struct wire_requester *r)
{
	if (!qp->in_flight || fetch_more_gaps(qp, r) || r->gone_back ||
	    !retry_begin(qp, r))
		return;
	r->gone_back = true;
	if (!fetch_again(qp, r))
		go_back(qp, r, true);
	retry_publish(qp, r);
}

/*
 * Copy `bytes` of *from to the buffers of w, at offset off.  Returns false if
 * an lkey is not valid.
 */
static bool place_bytes(struct urxe_qp *qp, const struct urxe_wqe *w,
			uint64_t off, const struct urxe_seg *from,
			uint32_t bytes)
{
	struct urxe_seg seg[URXE_MAX_SGE] = { 0 };
	bool done;

	qp_guard_raise(qp, GUARD_NOTHING);
	done = part_gather(qp, w, true, seg) >= 0 &&
	       transfer(part_skip(seg, off), from, bytes, qp->ctx, true) ==
		       TRANSFER_OK;
	guard_lower(qp->guard);
	return done;
}

static bool place_answer(struct urxe_qp *qp, const struct urxe_wqe *w,
			 uint32_t i, const struct inbox_answer *a)
{
	uint64_t off = (uint64_t)i << qp->mtu_shift;
	struct urxe_seg from[2] = {
		{ .ptr = (char *)(uintptr_t)a->piece[0], .len = a->bytes[0] },
		{ .ptr = (char *)(uintptr_t)a->piece[1], .len = a->bytes[1] },
	};
	uint64_t old = a->head.original;

	if (WQE_ATOMIC_OPS & WQE_BIT(w->opcode)) {
		if (urxe_observers)
			observe_fetch(qp, w, old);
		from[0] = (struct urxe_seg){ .ptr = (char *)&old, .len = 8 };
		return place_bytes(qp, w, 0, from, 8);
	}
	if (w->opcode != IBV_WR_RDMA_READ || !a->head.length)
		return true;
	return place_bytes(qp, w, off, from, a->head.length);
}

/*
 * Return true if the response has the type and length expected for packet i
 * of w.
 */
static bool answer_fits(const struct urxe_qp *qp, const struct urxe_wqe *w,
			uint32_t i, const struct inbox_answer *a)
{
	uint64_t off = (uint64_t)i << qp->mtu_shift, left, mtu;

	if (WQE_ATOMIC_OPS & WQE_BIT(w->opcode))
		return a->head.opcode == WIRE_ATOMIC_ACKNOWLEDGE;
	if (a->head.opcode == WIRE_ATOMIC_ACKNOWLEDGE)
		return false;
	if (w->opcode != IBV_WR_RDMA_READ)
		return !a->head.length;
	mtu = 1ull << qp->mtu_shift;
	left = w->length - off;
	return a->head.length == (left < mtu ? left : mtu);
}

/*
 * Process a response with data, which must be the next packet of the oldest
 * fetch.  Returns false if an earlier response is missing.
 */
static bool take_next(struct urxe_qp *qp, struct wire_requester *r,
		      const struct inbox_answer *a)
{
	const uint32_t psn = a->head.psn;
	const struct urxe_wqe *w;
	struct fetch f;
	uint32_t i;

	if (!retire_up_to(qp, r, psn))
		return false;
	f = r->fetch[r->first];
	if (!qp->in_flight || wire_psn_before(psn, f.psn) ||
	    !wire_psn_before(psn, wire_psn_add(f.psn, f.packets)))
		return true; /* not a PSN of this fetch */
	w = sq_slot(&qp->sq, qp->sq.done);
	i = (psn - message_at(r, qp->sq.done)->psn) & WIRE_PSN_MASK;
	if (!message_fetches(w) || !answer_fits(qp, w, i, a))
		return true;
	if (place_answer(qp, w, i, a))
		retire(qp, r, wire_psn_add(psn, 1));
	else
		requester_ends(qp, IBV_WC_LOC_PROT_ERR);
	return true;
}

/* Process the stored responses that are next. */
static void take_early(struct urxe_qp *qp, struct wire_requester *r)
{
	struct inbox_answer a;
	bool taken = true;

	while (taken && qp->in_flight &&
	       early_first(&r->early, r->window.una, &a)) {
		taken = take_next(qp, r, &a);
		if (taken)
			early_drop(&r->early, a.head.psn);
	}
	if (!taken)
		missing(qp, r);
}

static void take_data(struct urxe_qp *qp, struct wire_requester *r,
		      const struct inbox_answer *a)
{
	if (!window_has(&r->window, a->head.psn))
		return; /* a duplicate */
	if (!r->fetches)
		return; /* its request is to be retransmitted */
	if (!take_next(qp, r, a)) {
		early_put(&r->early, r->window.una, a);
		missing(qp, r);
		return;
	}
	early_drop(&r->early, a->head.psn);
	if (unlikely(r->early.n))
		take_early(qp, r);
}

/* All PSNs before psn are acknowledged, behind a response that is missing. */
static void note_acked(struct wire_requester *r, uint32_t psn)
{
	if (!r->has_acked || wire_psn_before(r->acked, psn))
		r->acked = psn;
	r->has_acked = true;
}

static void take_ack(struct urxe_qp *qp, struct wire_requester *r, uint32_t psn)
{
	const uint32_t end = wire_psn_add(psn, 1);

	if (!window_has(&r->window, psn))
		return;
	if (retire_up_to(qp, r, end)) {
		recover_more(qp, r);
	} else {
		note_acked(r, end);
		missing(qp, r);
	}
}

static void take_rnr(struct urxe_qp *qp, struct wire_requester *r, uint8_t code)
{
	if (r->rnr_until)
		return; /* a duplicate */
	counted(qp, URXE_CNT_RNR_NAK);
	why_note(WIRE_RNR, qp->attr.dest_qp_num);
	if (!r->rnr_left && qp->attr.rnr_retry != RNR_ENDLESS) {
		counted(qp, URXE_CNT_RNR_EXC);
		requester_ends(qp, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	r->rnr_left--;
	go_back(qp, r, false);
	r->rnr_until = clock_now() + retry_rnr_ns(code);
	wait_publish(qp, r, STALL_RNR, r->rnr_until);
}

/* Process a NAK.  It acknowledges all earlier PSNs. */
static void take_nak(struct urxe_qp *qp, struct wire_requester *r,
		     const struct urxe_wire_answer *a)
{
	static const uint8_t status[] = { IBV_WC_REM_INV_REQ_ERR,
					  IBV_WC_REM_ACCESS_ERR,
					  IBV_WC_REM_OP_ERR };
	uint8_t syndrome = a->syndrome;
	uint32_t psn = a->psn;

	/*
	 * una may be waiting for retransmission: compare with what was ever
	 * sent
	 */
	if (!window_has(&r->window, psn))
		return;
	if (!retire_up_to(qp, r, psn)) {
		note_acked(r, psn);
		r->has_nak = true;
		r->nak = *a;
		missing(qp, r);
		return;
	}
	if (!qp->in_flight)
		return;
	if ((syndrome & 0xe0) == WIRE_RNR_NAK) {
		take_rnr(qp, r, syndrome & 0x1f);
	} else if (syndrome == WIRE_NAK_SEQUENCE) {
		take_sequence_nak(qp, r);
	} else if (syndrome >= WIRE_NAK_INVALID &&
		   syndrome <= WIRE_NAK_OPERATION) {
		why_note(WIRE_NAK, qp->attr.dest_qp_num, psn, syndrome);
		counted(qp, URXE_CNT_REM_ERR);
		requester_ends(qp, status[syndrome - WIRE_NAK_INVALID]);
	}
}

/* A missing response has arrived: process what came before it. */
static void take_stored(struct urxe_qp *qp, struct wire_requester *r)
{
	if (r->has_acked && qp->in_flight) {
		r->has_acked = wire_psn_before(r->window.una, r->acked) &&
			       !retire_up_to(qp, r, r->acked);
		if (r->has_acked)
			missing(qp, r);
	}
	if (r->has_nak && qp->in_flight &&
	    !wire_psn_before(r->window.una, r->nak.psn)) {
		r->has_nak = false;
		take_nak(qp, r, &r->nak);
	}
}

void requester_take_answer(struct urxe_qp *qp, struct wire_requester *r,
			   const struct inbox_answer *a)
{
	bool acks = (a->head.syndrome & 0xe0) == 0;

	if (a->head.qpn != qp->qpn || !qp->in_flight)
		return;
	switch (a->head.opcode) {
	case WIRE_ACKNOWLEDGE:
		if (acks)
			take_ack(qp, r, a->head.psn);
		else
			take_nak(qp, r, &a->head);
		break;
	case WIRE_READ_FIRST:
	case WIRE_READ_MIDDLE:
	case WIRE_READ_LAST:
	case WIRE_READ_ONLY:
	case WIRE_ATOMIC_ACKNOWLEDGE:
		take_data(qp, r, a);
		if (unlikely(r->has_acked || r->has_nak))
			take_stored(qp, r);
		break;
	case WIRE_CNP_OPCODE:
		counted(qp, URXE_CNT_CNP_HANDLED);
		window_go_slow(&r->window);
		break;
	}
}

void requester_take(struct urxe_qp *qp, struct wire_requester *r)
{
	struct inbox_answer a;

	while (inbox_peek(qp->ctx, r->inbox, &a)) {
		requester_take_answer(qp, r, &a);
		inbox_drop(r->inbox, &a);
	}
}

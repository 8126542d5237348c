// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The requester on the wire.  A WR is in flight from its beginning to its
 * answer, which the holder of the fabric's socket puts into the QP's inbox:
 *
 *	begin	checks this side, gives the message its PSNs, sends what the
 *		window has room for
 *	progress	takes answers, looks at the clock, sends on
 *
 * Packets go out in the order of their PSNs, from `next` on; what is lost is
 * sent again from the oldest PSN that is not answered (go-back-N), and its
 * bytes are read again then: IB leaves them to the device until the completion.
 *
 * What is answered with data (READ, atomics, and annex A19's) is a *fetch*: a
 * request, which no ACK of a later PSN answers.  A long READ is several of
 * them.
 *
 * Who polls takes the answers; only if nobody has looked for a while, or the CQ
 * is armed, the holder wakes the service thread, which does (shared/wire.h).
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/process.h"
#include "engine/requester.h"
#include "engine/service.h"
#include "engine/why.h"
#include "engine/wqe.h"
#include "message.h"
#include "requester_state.h"

/* A quarter of all PSNs may be begun: so before and behind stay apart. */
#define PSNS_MOST (1u << 22)

/* The WR in that slot is begun. */
static void message_begin(struct wire_requester *r, uint32_t slot,
			  uint32_t packets)
{
	struct message *m = message_at(r, slot);

	m->packets = packets;
	m->psn = window_extend(&r->window, packets);
	r->end = slot + 1;
}

/* ------------------------------------------------------- the carrier */

/* In the child of a fork what was in flight is the parent's. */
static void requester_disown(struct urxe_qp *qp, struct wire_requester *r)
{
	if (r->pid == urxe_pid)
		return;
	flight_disown(qp);
	r->pid = urxe_pid;
}

/* Somebody looks, and will again: he need not be woken, unless he goes to
 * sleep. */
static void requester_looks(struct urxe_qp *qp, struct wire_requester *r,
			    uint64_t now)
{
	uint64_t last = load_relaxed(&r->inbox->looked);

	if (service_is_me())
		return;
	if (load_relaxed(&qp->scq->sh->arm) != URXE_ARM_NONE) {
		store_relaxed(&r->inbox->looked, 0);
		/* we see the answer, or the holder sees this */
		atomic_thread_fence(memory_order_seq_cst);
		return;
	}
	store_relaxed(&r->inbox->looked, now);
	if (now - last > URXE_WIRE_RECENT) /* to see when that is over */
		service_need_by(qp->ctx, now + 2 * URXE_WIRE_RECENT);
}

/* At this side, and that was not said yet. */
static bool requester_has_failed(const struct urxe_qp *qp,
				 const struct wire_requester *r)
{
	return r->failed && !sq_slot(&qp->sq, r->failed_at)->answer;
}

/* When it is to be looked at again. */
static uint64_t requester_next(const struct urxe_qp *qp,
			       const struct wire_requester *r, uint64_t now)
{
	const uint64_t looked = load_relaxed(&r->inbox->looked);
	uint64_t next = UINT64_MAX;

	if (requester_has_failed(qp, r))
		return now;
	/* maybe after `now`, while we waited for a lock */
	if (looked && (int64_t)(now - looked) <= 2 * (int64_t)URXE_WIRE_RECENT)
		next = now + 2 * URXE_WIRE_RECENT;
	if (r->deadline && r->deadline < next)
		next = r->deadline;
	if (r->rnr_until && r->rnr_until < next)
		next = r->rnr_until;
	return next;
}

/* The same; who goes to sleep may not come back, and has the service thread do
 * so in time. */
static uint64_t requester_leave(struct urxe_qp *qp, struct wire_requester *r,
				uint64_t now)
{
	const uint64_t next = requester_next(qp, r, now);

	if (!load_relaxed(&r->inbox->looked) && !service_is_me())
		service_need_by(qp->ctx, next);
	return next;
}

static enum verdict requester_no_inbox(struct run *r)
{
	why_note(WIRE_MEMORY, URXE_WIRE_INBOX_BYTES);
	r->status = IBV_WC_LOC_QP_OP_ERR;
	return WR_FAILED;
}

/* For those who look on. */
static void requester_show(const struct urxe_qp *qp,
			   const struct wire_requester *r)
{
	struct urxe_wire_shown *s = &r->inbox->shown;

	store_relaxed(&s->una, r->window.una);
	store_relaxed(&s->next, r->window.next);
	store_relaxed(&s->end, r->window.end);
	store_relaxed(&s->window, r->window.size);
	store_relaxed(&s->again, r->again);
	store_relaxed(&s->left, qp->attr.timeout ? r->left : URXE_WIRE_ENDLESS);
	store_relaxed(&s->until, r->deadline);
}

/* Nothing is in flight before it. */
static void requester_start(struct urxe_qp *qp, struct wire_requester *r)
{
	inbox_clear(r->inbox);
	window_begin(&r->window, qp->psn);
	r->at = qp->sq.begun;
	fetch_forget(r);
	r->deadline = r->rnr_until = 0;
	r->failed = IBV_WC_SUCCESS;
	requester_tries_begin(qp, r);
}

/* Unreliable: nobody answers. */
static enum verdict begin_unreliable(struct urxe_qp *qp,
				     struct wire_requester *r)
{
	if (message_is_send(sq_slot(&qp->sq, r->at)))
		counted(qp, URXE_CNT_SENDS);
	while (requester_may_send(qp, r)) {
		requester_send(qp, r);
		window_answered(&r->window, r->window.next);
	}
	why_settled();
	return WR_DONE;
}

static enum verdict requester_begin(struct urxe_qp *qp, struct run *run,
				    struct urxe_wqe *w)
{
	struct wire_requester *r = qp->wire;
	enum verdict v;
	uint64_t now;

	requester_disown(qp, r);
	if (qp->sq.done == qp->sq.begun)
		requester_start(qp, r);
	message_begin(r, qp->sq.begun, 0);
	if (wqe_is_local(w))
		return execute(qp, run, w);
	v = execute_lost(qp, run, w);
	if (v != WR_DROPPED)
		return v;
	if (qp->type != IBV_QPT_UC && inbox_open(qp->ctx, r->inbox))
		return requester_no_inbox(run);
	message_begin(r, qp->sq.begun, message_packets(qp, w));
	if (qp->type == IBV_QPT_UC)
		return begin_unreliable(qp, r);
	now = clock_now();
	requester_looks(qp, r, now);
	requester_send(qp, r);
	requester_show(qp, r);
	requester_leave(qp, r, now);
	return WR_IN_FLIGHT;
}

static bool requester_follows(const struct urxe_qp *qp,
			      const struct urxe_wqe *first,
			      const struct urxe_wqe *second)
{
	const struct wire_window *w = &qp->wire->window;
	uint32_t out = (w->end - w->una) & WIRE_PSN_MASK;

	if (wqe_is_local(second) ||
	    out + message_packets(qp, second) > PSNS_MOST)
		return false;
	/* on the wire all is in order, but what fetches is done later */
	return !(second->flags & IBV_SEND_FENCE && message_fetches(first));
}

static void look_at_clock(struct urxe_qp *qp, struct wire_requester *r,
			  uint64_t now)
{
	if (requester_has_failed(qp, r)) /* those before it come first */
		flight_answer(qp, r->failed_at, r->failed);
	if (r->rnr_until && now >= r->rnr_until)
		r->rnr_until = 0;
	if (qp->flying && r->deadline && now >= r->deadline) {
		counted(qp, URXE_CNT_ACK_TIMEOUT);
		r->gone_back = false;
		requester_try_again(qp, r);
	}
}

static uint64_t requester_due(const struct urxe_qp *qp)
{
	return requester_next(qp, qp->wire, clock_now());
}

static uint64_t requester_progress(struct urxe_qp *qp, uint64_t now)
{
	struct wire_requester *r = qp->wire;

	requester_disown(qp, r);
	if (!qp->flying)
		return UINT64_MAX;
	requester_looks(qp, r, now);
	requester_take(qp, r);
	if (qp->flying)
		look_at_clock(qp, r, now);
	requester_skip_sent(r);
	if (qp->flying && requester_may_send(qp, r)) {
		qp_guard_raise(qp, GUARD_NOTHING);
		requester_send(qp, r);
		guard_lower(qp->guard);
	}
	requester_show(qp, r);
	if (qp->stall.kind == STALL_NONE)
		requester_run(qp);
	return qp->flying ? requester_leave(qp, r, now) : UINT64_MAX;
}

static void requester_cancel(struct urxe_qp *qp)
{
	struct wire_requester *r = qp->wire;

	fetch_forget(r);
	r->at = r->end = qp->sq.done;
	r->deadline = r->rnr_until = 0;
	r->failed = IBV_WC_SUCCESS;
	r->waits = false;
	window_begin(&r->window, qp->psn);
}

static const struct urxe_carrier carrier = {
	.begin = requester_begin,
	.follows = requester_follows,
	.progress = requester_progress,
	.due = requester_due,
	.cancel = requester_cancel,
};

/* ------------------------------------------------------- its life */

struct wire_requester *requester_new(const struct urxe_qp *qp)
{
	size_t slots = (size_t)qp->sq.mask + 1;
	struct wire_requester *r;

	r = calloc(1, sizeof(*r) + slots * sizeof(r->message[0]));
	if (!r)
		return NULL;
	r->mask = qp->sq.mask;
	r->pid = urxe_pid;
	r->inbox = &qp->ctx->arena->wire[qpn_index(qp->qpn)].inbox;
	return r;
}

void requester_free(struct wire_requester *r)
{
	free(r);
}

/* Where it stands: faults are asked before it. */
static const struct urxe_carrier **carrier_place(struct urxe_qp *qp)
{
	return qp->carrier_under ? qp->carrier_under : &qp->carrier;
}

void requester_attach(struct urxe_qp *qp, struct wire_requester *r)
{
	r->before = *carrier_place(qp);
	/* there may be a QP of the same number in this fabric */
	conn_drop(&qp->conn);
	qp->wire = r;
	*carrier_place(qp) = &carrier;
}

struct wire_requester *requester_detach(struct urxe_qp *qp)
{
	struct wire_requester *r = qp->wire;

	if (!r)
		return NULL;
	*carrier_place(qp) = r->before;
	qp->wire = NULL;
	return r;
}

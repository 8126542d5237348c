// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wire requester.  A WR is in flight from its first packet to its response,
 * which the socket owner puts into the QP's inbox:
 *
 *	begin		local checks; assigns the PSNs; sends what the
 *			window allows
 *	progress	processes responses, checks timers, sends
 *
 * Packets are sent in PSN order from `next` on.  After a loss, the requester
 * retransmits from the oldest PSN that is not acknowledged: what is lost
 * (window.h), or everything (go-back-N).  It reads the payload again, since IB
 * leaves the buffers to the device until the completion.
 *
 * A WR whose response carries data (READ, atomics, annex A19 operations) is a
 * *fetch*.  An ACK of a later PSN does not complete it.  A long READ consists
 * of several fetches.
 *
 * The poller processes responses.  The socket owner wakes the service thread
 * to do so only if no thread has polled recently, or if the CQ is armed
 * (shared/wire.h).
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/core/process.h"
#include "engine/exec/requester.h"
#include "engine/run/service.h"
#include "engine/qp/why.h"
#include "engine/qp/wqe.h"
#include "message.h"
#include "state.h"

/*
 * A quarter of the PSN space may be in flight, so that comparison of PSNs is
 * unambiguous.
 */
#define PSNS_MAX (1u << 22)

/* Record that the WR in a slot is begun, and assign its PSNs. */
static void message_begin(struct wire_requester *r, uint32_t slot,
			  uint32_t packets)
{
	struct message *m = message_at(r, slot);

	m->packets = packets;
	m->psn = window_extend(&r->window, packets);
	r->end = slot + 1;
}

/* ------------------------------------------------------- the transport */

/* In the child of a fork: forget the parent's WRs in flight. */
static void requester_disown(struct urxe_qp *qp, struct wire_requester *r)
{
	if (r->pid == urxe_pid)
		return;
	flight_disown(qp);
	r->pid = urxe_pid;
}

/*
 * Publish the time of this poll: the caller polls again by itself and need
 * not be woken, unless the CQ is armed.  The service thread does not publish.
 */
static void requester_note_poll(struct urxe_qp *qp, struct wire_requester *r,
				uint64_t now)
{
	uint64_t last = load_relaxed(&r->inbox->last_poll);

	if (service_is_me())
		return;
	if (load_relaxed(&qp->scq->sh->arm) != URXE_ARM_NONE) {
		store_relaxed(&r->inbox->last_poll, 0);
		/* pairs with the fence in inbox_put_to() */
		atomic_thread_fence(memory_order_seq_cst);
		return;
	}
	store_relaxed(&r->inbox->last_poll, now);
	/* the service thread polls when that is no longer recent */
	if (now - last > URXE_WIRE_RECENT)
		service_need_by(qp->ctx, now + 2 * URXE_WIRE_RECENT);
}

/* Return true if a WR failed locally and is not completed yet. */
static bool requester_has_failed(const struct urxe_qp *qp,
				 const struct wire_requester *r)
{
	return r->failed && !sq_slot(&qp->sq, r->failed_at)->answer;
}

/* Return when progress() is to be called next. */
static uint64_t requester_next(const struct urxe_qp *qp,
			       const struct wire_requester *r, uint64_t now)
{
	const uint64_t last_poll = load_relaxed(&r->inbox->last_poll);
	/* `last_poll` may be later than `now`, after a wait for the lock */
	const bool polls = last_poll && (int64_t)(now - last_poll) <=
						2 * (int64_t)URXE_WIRE_RECENT;
	uint64_t next = UINT64_MAX;

	if (requester_has_failed(qp, r))
		return now;
	if (polls || r->waits_room)
		next = now + 2 * URXE_WIRE_RECENT;
	if (r->deadline && r->deadline < next)
		next = r->deadline;
	if (r->probe_at && r->probe_at < next)
		next = r->probe_at;
	if (r->rnr_until && r->rnr_until < next)
		next = r->rnr_until;
	/* not while the program polls; 0: all is sent, and to be completed */
	if (qp->type == IBV_QPT_UC && !polls && r->paced_until < next)
		next = r->paced_until;
	return next;
}

/*
 * The same.  If the CQ is armed, the program may not poll again, so schedule
 * the service thread.
 */
static uint64_t requester_leave(struct urxe_qp *qp, struct wire_requester *r,
				uint64_t now)
{
	const uint64_t next = requester_next(qp, r, now);

	if (!load_relaxed(&r->inbox->last_poll) && !service_is_me())
		service_need_by(qp->ctx, next);
	return next;
}

/* Returns 0 or -errno. */
static int requester_open_inbox(struct wire_requester *r,
				const struct urxe_wqe *w)
{
	return w->opcode == IBV_WR_RDMA_READ ?
		       inbox_open_for_read(r->ctx, r->inbox) :
		       inbox_open(r->ctx, r->inbox);
}

static enum verdict requester_no_inbox(struct run *r)
{
	why_note(WIRE_MEMORY, 1u << URXE_INBOX_SMALL_LOG);
	r->status = IBV_WC_LOC_QP_OP_ERR;
	return WR_FAILED;
}

/* Publish the state for diagnostic tools. */
static void requester_publish(const struct urxe_qp *qp,
			      const struct wire_requester *r)
{
	struct urxe_wire_status *s = &r->inbox->published;

	store_relaxed(&s->una, r->window.una);
	store_relaxed(&s->next, r->window.next);
	store_relaxed(&s->end, r->window.end);
	store_relaxed(&s->window, r->window.size);
	store_relaxed(&s->retransmits, r->retransmits);
	store_relaxed(&s->left, qp->attr.timeout ? r->left : URXE_WIRE_ENDLESS);
	store_relaxed(&s->waits_turn, r->waits_room);
	store_relaxed(&s->until, r->deadline);
}

/* Begin with an empty flight: reset the window and the timers. */
static void requester_start(struct urxe_qp *qp, struct wire_requester *r)
{
	inbox_clear(r->inbox);
	window_begin(&r->window, qp->psn);
	r->at = qp->sq.begun;
	fetch_forget(r);
	rtt_cancel(&r->rtt);
	r->has_acked = false;
	r->deadline = r->probe_at = r->rnr_until = r->paced_until = 0;
	r->failed = IBV_WC_SUCCESS;
	requester_tries_begin(qp, r);
}

/*
 * UC: send the message.  It is in flight until its last packet is sent, and
 * needs no response.
 */
static enum verdict begin_unreliable(struct urxe_qp *qp, struct run *run,
				     struct wire_requester *r,
				     const struct urxe_wqe *w)
{
	const bool first = qp->sq.done == qp->sq.begun;

	if (message_is_send(w))
		counted(qp, URXE_CNT_SENDS);
	if (first)
		requester_send(qp, r);
	if (r->failed && r->failed_at == qp->sq.begun) {
		run->status = r->failed;
		return WR_FAILED;
	}
	why_settled();
	return first && r->window.next == r->window.end ? WR_DONE :
							  WR_IN_FLIGHT;
}

/* UC: complete the messages that are sent. */
static void unreliable_sent(struct urxe_qp *qp, struct wire_requester *r)
{
	const struct urxe_sq *sq = &qp->sq;

	while (sq->done != sq->begun &&
	       !wire_psn_before(r->window.next, message_end(r, sq->done)))
		requester_answer(qp, sq->done, IBV_WC_SUCCESS);
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
	if (qp->type != IBV_QPT_UC && requester_open_inbox(r, w))
		return requester_no_inbox(run);
	message_begin(r, qp->sq.begun, message_packets(qp, w));
	message_at(r, qp->sq.begun)->fetch = fetch_most(qp, r, w);
	now = clock_now();
	requester_note_poll(qp, r, now);
	if (qp->type == IBV_QPT_UC)
		return begin_unreliable(qp, run, r, w);
	requester_send(qp, r);
	requester_publish(qp, r);
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
	    out + message_packets(qp, second) > PSNS_MAX)
		return false;
	/*
	 * The responder executes in order, but a fetch completes later than
	 * its execution, so a fence must wait for it.
	 */
	return !(second->flags & IBV_SEND_FENCE && message_fetches(first));
}

static void requester_check_timers(struct urxe_qp *qp, struct wire_requester *r,
				   uint64_t now)
{
	if (requester_has_failed(qp, r)) /* earlier WRs complete first */
		requester_answer(qp, r->failed_at, r->failed);
	if (r->rnr_until && now >= r->rnr_until)
		r->rnr_until = 0;
	if (now >= r->paced_until)
		r->paced_until = 0;
	if (qp->in_flight && r->deadline && now >= r->deadline) {
		counted(qp, URXE_CNT_ACK_TIMEOUT);
		r->gone_back = false;
		requester_retransmit(qp, r);
	} else if (qp->in_flight && r->probe_at && now >= r->probe_at) {
		requester_probe(qp, r);
	}
}

static uint64_t requester_due(const struct urxe_qp *qp)
{
	return requester_next(qp, qp->wire, clock_now());
}

/* Send what the responses have made possible. */
static void requester_send_more(struct urxe_qp *qp, struct wire_requester *r)
{
	if (unlikely(r->has_gaps))
		fetch_next_gap(qp, r);
	requester_skip_sent(r);
	if (qp->in_flight && requester_may_send(qp, r)) {
		qp_guard_raise(qp, GUARD_NOTHING);
		requester_send(qp, r);
		guard_lower(qp->guard);
	}
}

static uint64_t requester_progress(struct urxe_qp *qp, uint64_t now)
{
	struct wire_requester *r = qp->wire;

	requester_disown(qp, r);
	if (!qp->in_flight)
		return UINT64_MAX;
	requester_note_poll(qp, r, now);
	requester_take(qp, r);
	if (qp->in_flight)
		requester_check_timers(qp, r, now);
	budget_begin_turn(qp, r, now);
	requester_send_more(qp, r);
	budget_end_send(qp, r);
	if (qp->type == IBV_QPT_UC)
		unreliable_sent(qp, r);
	requester_publish(qp, r);
	if (qp->stall.kind == STALL_NONE)
		requester_run(qp);
	return qp->in_flight ? requester_leave(qp, r, now) : UINT64_MAX;
}

static void requester_cancel(struct urxe_qp *qp)
{
	struct wire_requester *r = qp->wire;

	fetch_forget(r);
	r->has_acked = false;
	r->at = r->end = qp->sq.done;
	r->deadline = r->probe_at = r->rnr_until = r->paced_until = 0;
	r->failed = IBV_WC_SUCCESS;
	r->waits = false;
	store_relaxed(&qp->waits_turn, false);
	store_relaxed(&r->inbox->published.waits_turn, false);
	budget_leave(r);
	window_begin(&r->window, qp->psn);
}

static const struct urxe_transport transport = {
	.begin = requester_begin,
	.follows = requester_follows,
	.progress = requester_progress,
	.due = requester_due,
	.cancel = requester_cancel,
};

bool requester_is_plain(const struct urxe_qp *qp)
{
	return qp->wire && qp->transport == &transport &&
	       qp->wire->pid == urxe_pid && qp->sq.begun == qp->sq.prod;
}

void requester_proceed(struct urxe_qp *qp)
{
	struct wire_requester *r = qp->wire;
	uint64_t now, last_poll;

	budget_begin_send(r);
	requester_send_more(qp, r);
	budget_end_send(qp, r);
	requester_publish(qp, r);
	if (!qp->in_flight)
		return;
	now = clock_now();
	last_poll = load_relaxed(&r->inbox->last_poll);
	if (now - last_poll > URXE_WIRE_RECENT)
		service_need_by(qp->ctx, requester_next(qp, r, now));
}

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
	r->ctx = qp->ctx;
	r->inbox = &qp->ctx->arena->wire[qpn_index(qp->qpn)].inbox;
	return r;
}

void requester_free(struct wire_requester *r)
{
	if (!r)
		return;
	budget_leave(r);
	early_free(&r->early);
	free(r);
}

/*
 * Return where the transport is installed: below the fault injector, if there
 * is one.
 */
static const struct urxe_transport **transport_place(struct urxe_qp *qp)
{
	return qp->transport_under ? qp->transport_under : &qp->transport;
}

void requester_attach(struct urxe_qp *qp, struct wire_requester *r)
{
	r->before = *transport_place(qp);
	/* this fabric may have a QP of the same number */
	conn_drop(&qp->conn);
	qp->wire = r;
	*transport_place(qp) = &transport;
}

struct wire_requester *requester_detach(struct urxe_qp *qp)
{
	struct wire_requester *r = qp->wire;

	if (!r)
		return NULL;
	*transport_place(qp) = r->before;
	qp->wire = NULL;
	return r;
}

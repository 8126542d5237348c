// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The adversary's transport; transport.h describes it. The operations in struct
 * urxe_transport are called with qp->lock held. transport_early() is called
 * without it; transport_attach() takes it; transport_free() needs none.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/exec/order.h"
#include "transport.h"
#include "engine/qp/flight.h"
#include "engine/exec/part.h"
#include "engine/core/process.h"
#include "engine/exec/requester.h"
#include "engine/run/service.h"
#include "engine/qp/wqe.h"
#include "fill.h"
#include "met.h"
#include "pieces.h"
#include "quiet.h"

#define FLIGHT_MAX 16 /* see transport_follows() */
#define COPY_MAX (1u << 20) /* longer data is read late in any case */
#define FILL_MAX (1u << 20)
#define STEP_NS 50000 /* period of the service thread, if quiet */
#define ATOMIC_NS 20000 /* longest time between its read and write */
#define RETRY_DELAYS 16 /* delays that a retransmission takes */

enum stage {
	STAGE_NONE, /* the slot has no WR */
	STAGE_AWAY,
	STAGE_MOVING,
	STAGE_MOVED,
	STAGE_SERVED,
	STAGE_ANSWERED,
};

/*
 * The options that apply to a WR (docs/adversary.md), and its atomic delay.
 */
struct plan {
	bool gather, place, lines, overtaken, reread, deliver, complete;
	bool lost, late, reorder, fill;
	uint32_t atomic_ns;
};

/* State of a WR in flight. */
struct carried {
	enum stage stage;
	uint32_t index; /* of its send queue slot */
	struct chance chance;
	struct plan plan;
	uint64_t due;
	uint32_t fetches; /* outstanding, with this one: struct run */
	struct pieces pieces;
	uint8_t lost_after; /* pieces are copied; UC */
	enum ibv_wc_status status; /* valid in ANSWERED */
	struct urxe_wqe *copy; /* WQE with the data inline, or NULL */
};

struct transport {
	const struct adversary *a;
	struct chance chance; /* seed of the QP */
	uint64_t posted; /* number of WRs begun so far */
	uint64_t tick;
	struct quiet quiet;
	int32_t pid; /* process that began the WRs in flight */
	uint32_t mask;
	struct carried wr[]; /* indexed by slot & mask */
};

static struct transport *transport_of(const struct urxe_qp *qp)
{
	return qp->transport_data;
}

static struct carried *carried_at(const struct transport *c, uint32_t index)
{
	return (struct carried *)&c->wr[index & c->mask];
}

static struct urxe_wqe *carried_wqe(const struct urxe_qp *qp,
				    const struct carried *m)
{
	return m->copy ? m->copy : sq_slot(&qp->sq, m->index);
}

static void carried_forget(struct carried *m)
{
	free(m->copy);
	m->copy = NULL;
	m->stage = STAGE_NONE;
}

/* ------------------------------------------------------- options of a WR */

/* Purposes of the random numbers of one option and one WR. */
enum { DRAW_MEETS, DRAW_AMOUNT, DRAW_PIECES, DRAW_AGAIN };

static bool drawn(const struct transport *c, const struct carried *m,
		  enum adversary_knob knob)
{
	return adversary_meets(c->a, m->chance, knob, DRAW_MEETS);
}

static uint32_t delay(const struct transport *c, const struct carried *m,
		      enum adversary_knob knob)
{
	return 1 + chance_below(m->chance, knob, DRAW_AMOUNT,
				c->a->knob[KNOB_ticks] + 1);
}

static bool is_atomic(const struct urxe_wqe *w)
{
	return WQE_ATOMIC_OPS & WQE_BIT(w->opcode);
}

static bool is_fetch(const struct urxe_wqe *w)
{
	return WQE_FETCH_OPS & WQE_BIT(w->opcode);
}

static bool needs_resources(const struct urxe_wqe *w)
{
	return is_fetch(w) || w->opcode == URXE_WR_ATOMIC_WRITE ||
	       w->opcode == URXE_WR_FLUSH;
}

static bool takes_receive(const struct urxe_wqe *w)
{
	return WQE_RECEIVE_OPS & WQE_BIT(w->opcode);
}

static bool reads_memory(const struct urxe_wqe *w)
{
	return WQE_INLINE_OPS & WQE_BIT(w->opcode) && w->num_sge &&
	       !(w->flags & IBV_SEND_INLINE);
}

static bool can_be_divided(const struct urxe_qp *qp, const struct urxe_wqe *w)
{
	return qp->type != IBV_QPT_UD && w->length &&
	       (w->opcode == IBV_WR_RDMA_READ ||
		(WQE_INLINE_OPS & WQE_BIT(w->opcode) &&
		 w->opcode != IBV_WR_SEND_WITH_INV));
}

static void carried_plan(const struct urxe_qp *qp, struct carried *m,
			 const struct urxe_wqe *w)
{
	const struct transport *c = transport_of(qp);
	bool local = wqe_is_local(w), reads = w->opcode == IBV_WR_RDMA_READ;
	struct plan *p = &m->plan;

	m->chance = chance_part(c->chance, c->posted);
	*p = (struct plan){
		.gather = reads_memory(w) && drawn(c, m, KNOB_gather),
		.place = can_be_divided(qp, w) && drawn(c, m, KNOB_place),
		.lines = can_be_divided(qp, w) && drawn(c, m, KNOB_lines),
		.overtaken = is_fetch(w) && drawn(c, m, KNOB_overtake),
		.reread = reads && w->length && drawn(c, m, KNOB_reread),
		.deliver = takes_receive(w) && qp->type != IBV_QPT_UD &&
			   drawn(c, m, KNOB_deliver),
		/* a local operation completes when it was executed */
		.complete = !local && drawn(c, m, KNOB_complete),
		.lost = qp_is_unreliable(qp) && !local &&
			drawn(c, m, KNOB_loss),
		.late = !qp_is_unreliable(qp) && !local &&
			drawn(c, m, KNOB_retry),
		.reorder = qp->type == IBV_QPT_UD && drawn(c, m, KNOB_reorder),
		.fill = reads && w->length <= FILL_MAX &&
			drawn(c, m, KNOB_fill),
	};
	if (is_atomic(w) && drawn(c, m, KNOB_atomic))
		p->atomic_ns = 1 + chance_below(m->chance, KNOB_atomic,
						DRAW_AMOUNT, ATOMIC_NS);
}

/*
 * Return whether no step of the WR is delayed, so that it can be executed at
 * once. An atomic's atomic_ns is spent inside execute() and does not count.
 */
static bool plan_is_plain(const struct plan *p)
{
	return !p->gather && !p->place && !p->lines && !p->overtaken &&
	       !p->reread && !p->deliver && !p->complete && !p->lost &&
	       !p->late && !p->reorder && !p->fill;
}

/* Return the delay of the first step, in ticks. */
static uint64_t carried_journey(const struct transport *c,
				const struct carried *m)
{
	const struct plan *p = &m->plan;
	uint64_t ticks = 0;

	if (p->gather)
		ticks += delay(c, m, KNOB_gather);
	if (p->overtaken)
		ticks += delay(c, m, KNOB_overtake);
	if (p->late)
		ticks += RETRY_DELAYS * delay(c, m, KNOB_retry);
	if (p->reorder)
		ticks += delay(c, m, KNOB_reorder);
	return ticks;
}

/* ------------------------------------------------------- ordering */

/*
 * Return the slot of the newest fenced WR (IBV_SEND_FENCE) in flight, up to
 * and including @m; the oldest slot in flight if there is none. @m cannot
 * pass a READ or an atomic that was posted before that WR.
 */
static uint32_t carried_fence(const struct urxe_qp *qp, const struct carried *m)
{
	uint32_t i;

	for (i = m->index; i != qp->sq.done; i--)
		if (sq_slot(&qp->sq, i)->flags & IBV_SEND_FENCE)
			break;
	return i;
}

/*
 * Return whether @m may take effect before the WR in slot @i, which is in
 * flight: UD has no order (IB 9.8.3); else the table of IB 10.8.3.3 decides
 * (engine/exec/order.h).
 */
static bool carried_passes(const struct urxe_qp *qp, uint32_t i,
			   const struct carried *m)
{
	const struct plan *first = &carried_at(transport_of(qp), i)->plan;

	if (qp->type == IBV_QPT_UD)
		return first->reorder;
	return first->overtaken && (int32_t)(i - carried_fence(qp, m)) >= 0 &&
	       !order_holds(sq_slot(&qp->sq, i), sq_slot(&qp->sq, m->index));
}

/*
 * How the WRs in flight before a WR restrict it:
 *
 *	WAY_FREE	all of them are served
 *	WAY_PASSES	every WR before it that is not served may be passed;
 *			allowed only if carried_may_pass()
 *	WAY_CLOSED	it has to wait for one of them; or one has failed
 */
enum way { WAY_FREE, WAY_PASSES, WAY_CLOSED };

static enum way carried_way(const struct urxe_qp *qp, const struct carried *m)
{
	const struct transport *c = transport_of(qp);
	const struct urxe_wqe *w;
	enum way way = WAY_FREE;
	uint32_t i;

	for (i = qp->sq.done; i != m->index; i++) {
		w = sq_slot(&qp->sq, i);
		if (w->answer && w->answer != IBV_WC_SUCCESS + 1)
			return WAY_CLOSED;
		if (carried_at(c, i)->stage >= STAGE_SERVED)
			continue;
		if (!carried_passes(qp, i, m))
			return WAY_CLOSED;
		way = WAY_PASSES;
	}
	return way;
}

/*
 * Return whether a READ or an atomic in flight before @m may still write to
 * the memory that @m sends, so that this memory must not be read yet.
 */
static bool carried_reads_later(const struct urxe_qp *qp,
				const struct carried *m)
{
	const struct transport *c = transport_of(qp);
	uint32_t i;

	for (i = qp->sq.done; i != m->index; i++)
		if (is_fetch(sq_slot(&qp->sq, i)) &&
		    carried_at(c, i)->stage < STAGE_SERVED &&
		    !carried_passes(qp, i, m))
			return true;
	return false;
}

/*
 * Read the local data of @m now and keep a copy of it, unless the option
 * "gather" applies, the data is too long, or it must be read later. Without
 * memory for the copy the data is read later, too.
 */
static void carried_copy(struct urxe_qp *qp, struct carried *m,
			 const struct urxe_wqe *w)
{
	if (m->plan.gather || !reads_memory(w) || w->length > COPY_MAX ||
	    carried_reads_later(qp, m))
		return;
	m->copy = malloc(sizeof(*w) + w->length);
	if (!m->copy)
		return;
	memcpy(m->copy, w, sizeof(*w));
	m->copy->flags |= IBV_SEND_INLINE;
	m->copy->num_sge = 0;
	if (part_copy(qp, w, (char *)m->copy->sge))
		return;
	free(m->copy); /* an lkey is invalid: execute() reports it */
	m->copy = NULL;
}

/*
 * Return whether @second may be begun though the ordering rules put it behind
 * @first (flight_holds_back()). At most FLIGHT_MAX such WRs are in flight;
 * others stay queued. transport_tick() keeps the order of those in flight.
 */
static bool transport_follows(const struct urxe_qp *qp,
			      const struct urxe_wqe *first,
			      const struct urxe_wqe *second)
{
	(void)first;
	(void)second;
	return qp->sq.begun - qp->sq.done < FLIGHT_MAX;
}

static bool carried_is_served(struct urxe_qp *qp, const struct carried *m)
{
	const struct urxe_wqe *w = carried_wqe(qp, m);

	return qp->type == IBV_QPT_UD ?
		       part_check_datagram(qp, w) :
		       part_check(qp, w, m->fetches) == RESP_ACK;
}

/*
 * Return whether the WRs that @m passes will be served. A responder checks
 * requests in the order of their PSNs and serves none behind a request that
 * it refuses.
 */
static bool carried_passes_served(struct urxe_qp *qp, const struct carried *m)
{
	const struct transport *c = transport_of(qp);
	const struct carried *first;
	uint32_t i;

	for (i = qp->sq.done; i != m->index; i++) {
		first = carried_at(c, i);
		if (first->stage == STAGE_AWAY && !carried_is_served(qp, first))
			return false;
	}
	return true;
}

/* ------------------------------------------------------- steps */

static enum verdict carried_execute(struct urxe_qp *qp, struct run *r,
				    struct carried *m)
{
	struct urxe_wqe *w = carried_wqe(qp, m);
	enum verdict v;

	if (m->plan.lost)
		return execute_lost(qp, r, w);
	qp->atomic_ns = m->plan.atomic_ns;
	v = execute(qp, r, w);
	qp->atomic_ns = 0;
	return v;
}

static enum verdict carried_finish(struct urxe_qp *qp, struct run *r,
				   struct carried *m)
{
	if (m->plan.lost)
		return WR_DROPPED;
	return part_finish(qp, r, carried_wqe(qp, m));
}

/*
 * Return the destination address of the data, by which pieces_cut() aligns
 * the pieces; 0 for a SEND. Of a READ only the first SGE counts.
 */
static uint64_t carried_target(const struct urxe_wqe *w)
{
	if (w->opcode == IBV_WR_RDMA_READ)
		return w->num_sge ? w->sge[0].addr : 0;
	return WQE_WRITE_OPS & WQE_BIT(w->opcode) ? w->remote_addr : 0;
}

/*
 * Begin the transfer of @m, which part_check() has accepted. Return
 * WR_IN_FLIGHT if it is divided into pieces, else the verdict of execute().
 */
static enum verdict carried_divide(struct urxe_qp *qp, struct run *r,
				   struct carried *m)
{
	const struct plan *p = &m->plan;
	struct urxe_wqe *w = carried_wqe(qp, m);

	if (!can_be_divided(qp, w) ||
	    !(p->place || p->lines || p->reread || p->fill || p->deliver))
		return carried_execute(qp, r, m);
	if (p->fill) {
		part_fill(qp, w, FILL_BYTE);
		m->due = transport_of(qp)->tick +
			 delay(transport_of(qp), m, KNOB_fill);
	}
	pieces_cut(&m->pieces, chance_part(m->chance, DRAW_PIECES),
		   carried_target(w), w->length, !p->place);
	if (!p->place && !p->lines) {
		m->pieces.n = 1;
		m->pieces.end[0] = w->length;
		m->pieces.order[0] = 0;
	}
	m->lost_after =
		chance_below(m->chance, KNOB_loss, DRAW_AMOUNT, m->pieces.n);
	m->stage = STAGE_MOVING;
	return WR_IN_FLIGHT;
}

/*
 * Advance @m, all pieces of which are copied: a READ whose response is "lost"
 * starts over.
 */
static void carried_moved(const struct transport *c, struct carried *m)
{
	if (m->plan.reread) { /* duplicate READ: IB 9.7.5.1 */
		m->plan.reread = false;
		pieces_again(&m->pieces, chance_part(m->chance, DRAW_AGAIN));
		m->due = c->tick + delay(c, m, KNOB_reread);
		return;
	}
	m->stage = STAGE_MOVED;
	if (m->plan.deliver)
		m->due = c->tick + delay(c, m, KNOB_deliver);
}

/*
 * Copy the next piece of @m. Return WR_DONE if it was copied, else the
 * verdict that ends the WR. If a SEND cannot be copied, its other pieces are
 * skipped and part_finish() finds the error.
 */
static enum verdict carried_move(struct urxe_qp *qp, struct run *r,
				 struct carried *m)
{
	const struct urxe_wqe *w = carried_wqe(qp, m);
	enum response resp;
	uint64_t off, len;

	if (m->plan.lost && m->pieces.next == m->lost_after)
		return WR_DROPPED;
	len = pieces_at(&m->pieces, &off);
	resp = part_move(qp, w, off, len);
	if (resp == RESP_ACK) {
		m->pieces.next++;
		return WR_DONE;
	}
	if (WQE_SEND_OPS & WQE_BIT(w->opcode)) {
		m->pieces.next = m->pieces.n; /* part_finish() reports it */
		return WR_DONE;
	}
	if (resp != RESP_OTHER)
		return execute_answered(qp, r, w, resp);
	r->status = IBV_WC_LOC_PROT_ERR;
	return WR_FAILED;
}

/*
 * Return whether @m may continue before the unserved WRs in front of it. A WR
 * that will fail, or that will be retried, waits for its turn.
 */
static bool carried_may_pass(struct urxe_qp *qp, const struct carried *m)
{
	const struct urxe_wqe *w = carried_wqe(qp, m);

	return carried_passes_served(qp, m) &&
	       (wqe_is_local(w) || carried_is_served(qp, m));
}

/*
 * Carry out the next step of @m; the guard is raised. Return WR_IN_FLIGHT if
 * more steps follow, or if @m may not pass yet; else the verdict of
 * execute().
 */
static enum verdict carried_step(struct urxe_qp *qp, struct run *r,
				 struct carried *m, enum way way)
{
	enum verdict v;

	if (way == WAY_PASSES && !carried_may_pass(qp, m))
		return WR_IN_FLIGHT;
	switch (m->stage) {
	case STAGE_AWAY:
		if (part_check(qp, carried_wqe(qp, m), m->fetches) == RESP_ACK)
			return carried_divide(qp, r, m);
		return carried_execute(qp, r, m);
	case STAGE_MOVING:
		v = carried_move(qp, r, m);
		if (v != WR_DONE)
			return v;
		if (!pieces_left(&m->pieces))
			carried_moved(transport_of(qp), m);
		return WR_IN_FLIGHT;
	default:
		return carried_finish(qp, r, m);
	}
}

/* Carry out all steps that are left, at once: @m was parked between them. */
static enum verdict carried_rest(struct urxe_qp *qp, struct run *r,
				 struct carried *m)
{
	enum verdict v;

	if (m->stage == STAGE_AWAY)
		return carried_execute(qp, r, m);
	while (m->stage == STAGE_MOVING && pieces_left(&m->pieces)) {
		v = carried_move(qp, r, m);
		if (v != WR_DONE)
			return v;
	}
	m->stage = STAGE_MOVED;
	return carried_finish(qp, r, m);
}

static void carried_answer(struct urxe_qp *qp, struct carried *m,
			   enum ibv_wc_status status)
{
	free(m->copy);
	m->copy = NULL;
	m->stage = STAGE_ANSWERED;
	m->status = status;
	requester_answer(qp, m->index, status);
}

/*
 * Advance @m to SERVED. Its answer is sent at once, or late if the option
 * "complete" applies.
 */
static void carried_served(struct urxe_qp *qp, struct carried *m)
{
	struct transport *c = transport_of(qp);
	uint32_t batch;

	m->stage = STAGE_SERVED;
	if (!m->plan.complete) {
		carried_answer(qp, m, IBV_WC_SUCCESS);
		return;
	}
	/* round up, so that the answers of several WRs come at one tick */
	batch = 1u << chance_below(m->chance, KNOB_complete, DRAW_PIECES, 5);
	m->due = (c->tick + delay(c, m, KNOB_complete)) | (batch - 1);
}

/*
 * Carry out the step of @m that is due. Return false if the queue was
 * changed: @m, and the WRs behind it, are parked.
 */
static bool carried_go(struct urxe_qp *qp, struct carried *m, enum way way)
{
	enum verdict v;
	struct run r;

	if (m->stage == STAGE_SERVED) {
		carried_answer(qp, m, IBV_WC_SUCCESS);
		return true;
	}
	run_begin(&r, qp);
	r.fetches = m->fetches - 1; /* execute() counts this WR itself */
	qp_guard_raise(qp, way == WAY_PASSES ?
				   GUARD_SEND | GUARD_ANY_RKEY :
				   requester_uses(carried_wqe(qp, m)));
	v = carried_step(qp, &r, m, way);
	if (v == WR_RNR || v == WR_SILENT) {
		if (way == WAY_FREE) {
			requester_park_flight(qp, &r, m->index, v);
			return false;
		}
		v = WR_IN_FLIGHT; /* changed since carried_may_pass() */
	}
	guard_lower(qp->guard);
	if (v == WR_FAILED)
		carried_answer(qp, m, r.status);
	else if (v != WR_IN_FLIGHT)
		carried_served(qp, m);
	return true;
}

/* Advance the tick counter by one and carry out the steps that are due. */
static void transport_tick(struct urxe_qp *qp)
{
	struct transport *c = transport_of(qp);
	struct carried *m;
	enum way way;
	uint32_t i;

	c->tick++;
	for (i = qp->sq.done; i != qp->sq.begun; i++) {
		m = carried_at(c, i);
		if (m->index != i || m->stage == STAGE_NONE ||
		    m->stage == STAGE_ANSWERED || m->due > c->tick)
			continue;
		way = carried_way(qp, m);
		if (m->stage != STAGE_SERVED && way == WAY_CLOSED)
			continue;
		if (!carried_go(qp, m, way))
			return;
	}
}

/* ------------------------------------------------------- operations */

static enum verdict transport_resume(struct urxe_qp *qp, struct run *r,
				     struct carried *m)
{
	enum verdict v;

	if (m->stage == STAGE_SERVED)
		return WR_IN_FLIGHT;
	if (m->stage == STAGE_ANSWERED) {
		r->status = m->status;
		return m->status ? WR_FAILED : WR_DONE;
	}
	v = carried_rest(qp, r, m);
	if (v <= WR_COMPLETED || v == WR_FAILED)
		carried_forget(m);
	return v;
}

/*
 * Forget the WRs in flight in the child of a fork: the parent completes them.
 */
static void transport_disown(struct urxe_qp *qp)
{
	struct transport *c = transport_of(qp);

	if (c->pid == urxe_pid)
		return;
	flight_disown(qp);
	c->pid = urxe_pid;
}

static enum verdict transport_begin(struct urxe_qp *qp, struct run *r,
				    struct urxe_wqe *w)
{
	struct transport *c = transport_of(qp);
	uint32_t index = qp->sq.begun;
	struct carried *m = carried_at(c, index);
	enum verdict v;

	transport_disown(qp);
	c->tick++;
	if (m->stage != STAGE_NONE && m->index == index)
		return transport_resume(qp, r, m);
	carried_forget(m);
	m->index = index;
	carried_plan(qp, m, w);
	if (index == qp->sq.done && plan_is_plain(&m->plan)) {
		v = carried_execute(qp, r, m);
		c->posted += v <= WR_COMPLETED;
		return v;
	}
	c->posted++;
	if (needs_resources(w))
		run_count_fetch(r, qp);
	m->fetches = r->fetches;
	carried_copy(qp, m, w);
	m->stage = STAGE_AWAY;
	m->due = c->tick + carried_journey(c, m);
	if (!service_is_me())
		quiet_visit(&c->quiet, clock_now());
	return WR_IN_FLIGHT;
}

/*
 * Return 0 if the service thread may run the QP, else the time when it is to
 * check again. Called by the service thread alone, without qp->lock.
 */
static uint64_t transport_early(const struct urxe_qp *qp, uint64_t now)
{
	if (quiet_is(&transport_of(qp)->quiet, now))
		return 0;
	return now + QUIET_AGAIN_NS;
}

/*
 * Return by how many ticks the counter is to be advanced: 1 in a thread of
 * the program; in the service thread the maximum of a delay if the program is
 * quiet, else 0.
 */
static uint32_t transport_ticks(struct transport *c, uint64_t now)
{
	if (!service_is_me()) {
		quiet_visit(&c->quiet, now);
		return 1;
	}
	return quiet_is_long(&c->quiet, now) ? c->a->knob[KNOB_ticks] + 1 : 0;
}

static uint64_t transport_progress(struct urxe_qp *qp, uint64_t now)
{
	struct transport *c = transport_of(qp);
	uint32_t n;

	transport_disown(qp);
	if (!qp->flying)
		return UINT64_MAX;
	n = transport_ticks(c, now);
	if (!n)
		return now + QUIET_AGAIN_NS;
	for (; n && qp->flying; n--)
		transport_tick(qp);
	if (qp->stall.kind == STALL_NONE)
		requester_run(qp);
	if (!qp->flying)
		return UINT64_MAX;
	return service_is_me() ? now + STEP_NS : now + QUIET_NS;
}

static void transport_cancel(struct urxe_qp *qp)
{
	struct transport *c = transport_of(qp);
	uint32_t i;

	for (i = 0; i <= c->mask; i++)
		carried_forget(&c->wr[i]);
}

static const struct urxe_transport transport = {
	.begin = transport_begin,
	.follows = transport_follows,
	.progress = transport_progress,
	.cancel = transport_cancel,
};

static _Atomic uint64_t transports; /* number of transports created */

/* Seed part for the numbers of transports; differs from all enum met_kind. */
#define CHANCE_CARRIER MET_KINDS

bool transport_attach(struct urxe_qp *qp, const struct adversary *a)
{
	size_t slots = (size_t)qp->sq.mask + 1;
	struct transport *c;

	c = calloc(1, sizeof(*c) + slots * sizeof(c->wr[0]));
	if (!c)
		return false;
	c->a = a;
	c->mask = qp->sq.mask;
	c->pid = urxe_pid;
	c->chance = chance_part(chance_part(a->chance, CHANCE_CARRIER),
				fetch_add_relaxed(&transports, 1));
	if (a->knob[KNOB_atomic])
		store_seq_cst(&qp->ctx->fabric->dev->atomics_divided, 1);
	urxe_lock(&qp->lock);
	qp->transport_data = c;
	qp->transport = &transport;
	urxe_unlock(&qp->lock);
	store_release(&qp->early, transport_early);
	return true;
}

void transport_free(void *transport)
{
	free(transport);
}

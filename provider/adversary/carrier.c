// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "carrier.h"
#include "engine/flight.h"
#include "engine/part.h"
#include "engine/process.h"
#include "engine/requester.h"
#include "engine/service.h"
#include "engine/wqe.h"
#include "fill.h"
#include "met.h"
#include "pieces.h"
#include "quiet.h"

#define FLIGHT_MAX 16 /* more are queued */
#define COPY_MAX (1u << 20) /* longer ones are read late anyway */
#define FILL_MAX (1u << 20)
#define STEP_NS 50000 /* of the service thread, when the program is quiet */
#define ATOMIC_NS 20000 /* between its read and its write, at most */
#define RETRY_DELAYS 16 /* what is sent again is as late as so many delays */

enum stage {
	STAGE_NONE, /* of no WR */
	STAGE_AWAY,
	STAGE_MOVING,
	STAGE_MOVED,
	STAGE_SERVED,
	STAGE_ANSWERED,
};

/* What was drawn for a WR: is it so? */
struct plan {
	bool gather, place, lines, overtaken, reread, deliver, complete;
	bool lost, late, reorder, fill;
	uint32_t atomic_ns;
};

/* A WR in flight. */
struct carried {
	enum stage stage;
	uint32_t index; /* of its slot */
	struct chance chance;
	struct plan plan;
	uint64_t due;
	uint32_t fetches; /* at once, to this one: struct run */
	struct pieces pieces;
	uint8_t lost_after; /* pieces */
	enum ibv_wc_status status; /* if it was answered */
	struct urxe_wqe *copy; /* with what it sends inline, or NULL */
};

struct carrier {
	const struct adversary *a;
	struct chance chance; /* of the QP */
	uint64_t posted; /* WRs so far */
	uint64_t tick;
	struct quiet quiet;
	int32_t pid; /* whose flight it is */
	uint32_t mask;
	struct carried wr[]; /* by slots */
};

static struct carrier *carrier_of(const struct urxe_qp *qp)
{
	return qp->carrier_data;
}

static struct carried *carried_at(const struct carrier *c, uint32_t index)
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

/* ------------------------------------------------------- the plan */

/* For the same knob: is it so, how much, and what for its pieces? */
enum { DRAW_MEETS, DRAW_AMOUNT, DRAW_PIECES, DRAW_AGAIN };

static bool drawn(const struct carrier *c, const struct carried *m,
		  enum adversary_knob knob)
{
	return adversary_meets(c->a, m->chance, knob, DRAW_MEETS);
}

static uint32_t delay(const struct carrier *c, const struct carried *m,
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
	const struct carrier *c = carrier_of(qp);
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
		/* a local operation that was executed is complete */
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

/* Nothing of it takes time. */
static bool plan_is_plain(const struct plan *p)
{
	return !p->gather && !p->place && !p->lines && !p->overtaken &&
	       !p->reread && !p->deliver && !p->complete && !p->lost &&
	       !p->late && !p->reorder && !p->fill;
}

/* How long it is on its way. */
static uint64_t carried_journey(const struct carrier *c,
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

/* ------------------------------------------------------- order */

/*
 * The slot of the last WR up to m that has a fence: it is not begun before the
 * fetches before it are done, and m is not begun before it.
 */
static uint32_t carried_fence(const struct urxe_qp *qp, const struct carried *m)
{
	uint32_t i;

	for (i = m->index; i != qp->sq.done; i--)
		if (sq_slot(&qp->sq, i)->flags & IBV_SEND_FENCE)
			break;
	return i;
}

/* May m take effect before the WR in slot i, which is in flight? */
static bool carried_passes(const struct urxe_qp *qp, uint32_t i,
			   const struct carried *m)
{
	const struct plan *first = &carried_at(carrier_of(qp), i)->plan;

	if (qp->type == IBV_QPT_UD)
		return first->reorder;
	return first->overtaken &&
	       (int32_t)(i - carried_fence(qp, m)) >= 0 &&
	       !order_holds(sq_slot(&qp->sq, i), sq_slot(&qp->sq, m->index));
}

/*
 * What is in the way of m: nothing; something that it may overtake if nothing
 * is wrong with it; or something that it follows.
 */
enum way { WAY_FREE, WAY_PASSES, WAY_CLOSED };

static enum way carried_way(const struct urxe_qp *qp, const struct carried *m)
{
	const struct carrier *c = carrier_of(qp);
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

/* Must m's memory not be read yet: will a fetch before it write there? */
static bool carried_reads_later(const struct urxe_qp *qp,
				const struct carried *m)
{
	const struct carrier *c = carrier_of(qp);
	uint32_t i;

	for (i = qp->sq.done; i != m->index; i++)
		if (is_fetch(sq_slot(&qp->sq, i)) &&
		    carried_at(c, i)->stage < STAGE_SERVED &&
		    !carried_passes(qp, i, m))
			return true;
	return false;
}

/* Keep what is sent, because it is read now. */
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
	free(m->copy); /* a key does not hold: that is found later */
	m->copy = NULL;
}

static bool carrier_follows(const struct urxe_qp *qp,
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

	return qp->type == IBV_QPT_UD ? part_check_datagram(qp, w) :
					part_check(qp, w, m->fetches) == RESP_ACK;
}

/*
 * Will what m passes be served?  Who answers looks at a request before at those
 * behind it, and serves none of them after one that he refuses.
 */
static bool carried_passes_served(struct urxe_qp *qp, const struct carried *m)
{
	const struct carrier *c = carrier_of(qp);
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

/* Where its bytes go. */
static uint64_t carried_target(const struct urxe_wqe *w)
{
	if (w->opcode == IBV_WR_RDMA_READ)
		return w->num_sge ? w->sge[0].addr : 0;
	return WQE_WRITE_OPS & WQE_BIT(w->opcode) ? w->remote_addr : 0;
}

/* Nothing is wrong with it: what comes next? */
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
		m->due = carrier_of(qp)->tick +
			 delay(carrier_of(qp), m, KNOB_fill);
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

/* All of its pieces were moved. */
static void carried_moved(const struct carrier *c, struct carried *m)
{
	if (m->plan.reread) { /* the answer was lost: it is asked again */
		m->plan.reread = false;
		pieces_again(&m->pieces, chance_part(m->chance, DRAW_AGAIN));
		m->due = c->tick + delay(c, m, KNOB_reread);
		return;
	}
	m->stage = STAGE_MOVED;
	if (m->plan.deliver)
		m->due = c->tick + delay(c, m, KNOB_deliver);
}

/* WR_DONE: it was moved; or what stops it. */
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
		m->pieces.next = m->pieces.n; /* the whole finds it, too */
		return WR_DONE;
	}
	if (resp != RESP_OTHER)
		return execute_answered(qp, r, w, resp);
	r->status = IBV_WC_LOC_PROT_ERR;
	return WR_FAILED;
}

/*
 * May m go on, though something is before it?  What fails, or is tried again,
 * does so in order.
 */
static bool carried_may_pass(struct urxe_qp *qp, const struct carried *m)
{
	const struct urxe_wqe *w = carried_wqe(qp, m);

	return carried_passes_served(qp, m) &&
	       (wqe_is_local(w) || carried_is_served(qp, m));
}

/*
 * The next step.  WR_IN_FLIGHT: it is not the last one for the responder, or it
 * is too early; else what execute() would return.
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
			carried_moved(carrier_of(qp), m);
		return WR_IN_FLIGHT;
	default:
		return carried_finish(qp, r, m);
	}
}

/* All that is left, at once: it was parked meanwhile. */
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
	flight_answer(qp, m->index, status);
}

/* The responder is done with it. */
static void carried_served(struct urxe_qp *qp, struct carried *m)
{
	struct carrier *c = carrier_of(qp);
	uint32_t batch;

	m->stage = STAGE_SERVED;
	if (!m->plan.complete) {
		carried_answer(qp, m, IBV_WC_SUCCESS);
		return;
	}
	/* several come together */
	batch = 1u << chance_below(m->chance, KNOB_complete, DRAW_PIECES, 5);
	m->due = (c->tick + delay(c, m, KNOB_complete)) | (batch - 1);
}

/* False: the queue is not what it was. */
static bool carried_go(struct urxe_qp *qp, struct carried *m, enum way way)
{
	enum verdict v;
	struct run r;

	if (m->stage == STAGE_SERVED) {
		carried_answer(qp, m, IBV_WC_SUCCESS);
		return true;
	}
	run_begin(&r, qp);
	r.fetches = m->fetches - 1; /* execute() counts it */
	qp_guard_raise(qp, way == WAY_PASSES ?
				   GUARD_SEND | GUARD_ANY_RKEY :
				   requester_uses(carried_wqe(qp, m)));
	v = carried_step(qp, &r, m, way);
	if (v == WR_RNR || v == WR_SILENT) {
		if (way == WAY_FREE) {
			flight_park(qp, &r, m->index, v);
			return false;
		}
		v = WR_IN_FLIGHT; /* just now: see carried_may_pass() */
	}
	guard_lower(qp->guard);
	if (v == WR_FAILED)
		carried_answer(qp, m, r.status);
	else if (v != WR_IN_FLIGHT)
		carried_served(qp, m);
	return true;
}

/* What is due. */
static void carrier_tick(struct urxe_qp *qp)
{
	struct carrier *c = carrier_of(qp);
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

/* ------------------------------------------------------- the carrier */

static enum verdict carrier_resume(struct urxe_qp *qp, struct run *r,
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

/* In the child of a fork what was in flight is the parent's. */
static void carrier_disown(struct urxe_qp *qp)
{
	struct carrier *c = carrier_of(qp);

	if (c->pid == urxe_pid)
		return;
	flight_disown(qp);
	c->pid = urxe_pid;
}

static enum verdict carrier_begin(struct urxe_qp *qp, struct run *r,
				  struct urxe_wqe *w)
{
	struct carrier *c = carrier_of(qp);
	uint32_t index = qp->sq.begun;
	struct carried *m = carried_at(c, index);
	enum verdict v;

	carrier_disown(qp);
	c->tick++;
	if (m->stage != STAGE_NONE && m->index == index)
		return carrier_resume(qp, r, m);
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
	quiet_visit(&c->quiet, clock_now());
	return WR_IN_FLIGHT;
}

static uint64_t carrier_early(const struct urxe_qp *qp, uint64_t now)
{
	if (quiet_is(&carrier_of(qp)->quiet, now))
		return 0;
	return now + QUIET_AGAIN_NS;
}

/* Has time gone on, and how far? */
static uint32_t carrier_ticks(struct carrier *c, uint64_t now)
{
	if (!service_is_me()) {
		quiet_visit(&c->quiet, now);
		return 1;
	}
	return quiet_is_long(&c->quiet, now) ? c->a->knob[KNOB_ticks] + 1 : 0;
}

static uint64_t carrier_progress(struct urxe_qp *qp, uint64_t now)
{
	struct carrier *c = carrier_of(qp);
	uint32_t n;

	carrier_disown(qp);
	if (!qp->flying)
		return UINT64_MAX;
	n = carrier_ticks(c, now);
	if (!n)
		return now + QUIET_AGAIN_NS;
	for (; n && qp->flying; n--)
		carrier_tick(qp);
	if (qp->stall.kind == STALL_NONE)
		requester_run(qp);
	if (!qp->flying)
		return UINT64_MAX;
	return service_is_me() ? now + STEP_NS : now + QUIET_NS;
}

static void carrier_cancel(struct urxe_qp *qp)
{
	struct carrier *c = carrier_of(qp);
	uint32_t i;

	for (i = 0; i <= c->mask; i++)
		carried_forget(&c->wr[i]);
}

static const struct urxe_carrier carrier = {
	.begin = carrier_begin,
	.follows = carrier_follows,
	.progress = carrier_progress,
	.cancel = carrier_cancel,
};

static _Atomic uint64_t carriers; /* of this process, so far */

/* What the QP's ordinal is part of: no kind of met.h. */
#define CHANCE_CARRIER MET_KINDS

bool carrier_attach(struct urxe_qp *qp, const struct adversary *a)
{
	size_t slots = (size_t)qp->sq.mask + 1;
	struct carrier *c;

	c = calloc(1, sizeof(*c) + slots * sizeof(c->wr[0]));
	if (!c)
		return false;
	c->a = a;
	c->mask = qp->sq.mask;
	c->pid = urxe_pid;
	c->chance = chance_part(chance_part(a->chance, CHANCE_CARRIER),
				fetch_add_relaxed(&carriers, 1));
	if (a->knob[KNOB_atomic])
		store_seq_cst(&qp->ctx->fabric->dev->atomics_divided, 1);
	urxe_lock(&qp->lock);
	qp->carrier_data = c;
	qp->carrier = &carrier;
	urxe_unlock(&qp->lock);
	store_release(&qp->early, carrier_early);
	return true;
}

void carrier_free(void *carrier)
{
	free(carrier);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The adversary's transport; transport.h describes it. The operations in struct
 * urxe_transport are called with qp->lock held. transport_early() is called
 * without it; transport_attach() takes it.
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
#include "object_seed.h"
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
	STAGE_SENT,
	STAGE_MOVING,
	STAGE_MOVED,
	STAGE_EXECUTED,
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
struct adv_wr {
	enum stage stage;
	uint32_t index; /* of its send queue slot */
	struct random_stream random;
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
	struct random_stream random; /* seed of the QP */
	uint64_t posted; /* number of WRs begun so far */
	uint64_t tick;
	struct quiet quiet;
	int32_t pid; /* process that began the WRs in flight */
	uint32_t mask;
	struct adv_wr wr[]; /* indexed by slot & mask */
};

static struct transport *transport_of(const struct urxe_qp *qp)
{
	return qp->transport_data;
}

static struct adv_wr *adv_wr_at(const struct transport *c, uint32_t index)
{
	return (struct adv_wr *)&c->wr[index & c->mask];
}

static struct urxe_wqe *adv_wr_wqe(const struct urxe_qp *qp,
				   const struct adv_wr *m)
{
	return m->copy ? m->copy : sq_slot(&qp->sq, m->index);
}

static void adv_wr_forget(struct adv_wr *m)
{
	free(m->copy);
	m->copy = NULL;
	m->stage = STAGE_NONE;
}

/* ------------------------------------------------------- options of a WR */

/* Purposes of the random numbers of one option and one WR. */
enum { DRAW_APPLIES, DRAW_AMOUNT, DRAW_PIECES, DRAW_RESTART };

static bool draw_option(const struct transport *c, const struct adv_wr *m,
			enum adversary_option option)
{
	return adversary_applies(c->a, m->random, option, DRAW_APPLIES);
}

static uint32_t draw_delay(const struct transport *c, const struct adv_wr *m,
			   enum adversary_option option)
{
	return 1 + random_below(m->random, option, DRAW_AMOUNT,
				c->a->option[ADV_ticks] + 1);
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

static void adv_wr_plan(const struct urxe_qp *qp, struct adv_wr *m,
			const struct urxe_wqe *w)
{
	const struct transport *c = transport_of(qp);
	bool local = wqe_is_local(w), reads = w->opcode == IBV_WR_RDMA_READ;
	struct plan *p = &m->plan;

	m->random = random_part(c->random, c->posted);
	*p = (struct plan){
		.gather = reads_memory(w) && draw_option(c, m, ADV_gather),
		.place = can_be_divided(qp, w) && draw_option(c, m, ADV_place),
		.lines = can_be_divided(qp, w) && draw_option(c, m, ADV_lines),
		.overtaken = is_fetch(w) && draw_option(c, m, ADV_overtake),
		.reread = reads && w->length && draw_option(c, m, ADV_reread),
		.deliver = takes_receive(w) && qp->type != IBV_QPT_UD &&
			   draw_option(c, m, ADV_deliver),
		/* a local operation completes when it was executed */
		.complete = !local && draw_option(c, m, ADV_complete),
		.lost = qp_is_unreliable(qp) && !local &&
			draw_option(c, m, ADV_loss),
		.late = !qp_is_unreliable(qp) && !local &&
			draw_option(c, m, ADV_retry),
		.reorder = qp->type == IBV_QPT_UD &&
			   draw_option(c, m, ADV_reorder),
		.fill = reads && w->length <= FILL_MAX &&
			draw_option(c, m, ADV_fill),
	};
	if (is_atomic(w) && draw_option(c, m, ADV_atomic))
		p->atomic_ns = 1 + random_below(m->random, ADV_atomic,
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
static uint64_t adv_wr_first_delay(const struct transport *c,
				   const struct adv_wr *m)
{
	const struct plan *p = &m->plan;
	uint64_t ticks = 0;

	if (p->gather)
		ticks += draw_delay(c, m, ADV_gather);
	if (p->overtaken)
		ticks += draw_delay(c, m, ADV_overtake);
	if (p->late)
		ticks += RETRY_DELAYS * draw_delay(c, m, ADV_retry);
	if (p->reorder)
		ticks += draw_delay(c, m, ADV_reorder);
	return ticks;
}

/* ------------------------------------------------------- ordering */

/*
 * Return the slot of the newest fenced WR (IBV_SEND_FENCE) in flight, up to
 * and including @m; the oldest slot in flight if there is none. @m cannot
 * pass a READ or an atomic that was posted before that WR.
 */
static uint32_t adv_wr_fence(const struct urxe_qp *qp, const struct adv_wr *m)
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
static bool adv_wr_passes(const struct urxe_qp *qp, uint32_t i,
			  const struct adv_wr *m)
{
	const struct plan *first = &adv_wr_at(transport_of(qp), i)->plan;

	if (qp->type == IBV_QPT_UD)
		return first->reorder;
	return first->overtaken && (int32_t)(i - adv_wr_fence(qp, m)) >= 0 &&
	       !order_holds(sq_slot(&qp->sq, i), sq_slot(&qp->sq, m->index));
}

/*
 * How the WRs in flight before a WR restrict it:
 *
 *	MAY_START	all of them are served
 *	MAY_PASS	every WR before it that is not served may be passed;
 *			allowed only if adv_wr_may_pass()
 *	MUST_WAIT	it has to wait for one of them; or one has failed
 */
enum order_constraint { MAY_START, MAY_PASS, MUST_WAIT };

static enum order_constraint adv_wr_constraint(const struct urxe_qp *qp,
					       const struct adv_wr *m)
{
	const struct transport *c = transport_of(qp);
	const struct urxe_wqe *w;
	enum order_constraint constraint = MAY_START;
	uint32_t i;

	for (i = qp->sq.done; i != m->index; i++) {
		w = sq_slot(&qp->sq, i);
		if (w->answer && w->answer != IBV_WC_SUCCESS + 1)
			return MUST_WAIT;
		if (adv_wr_at(c, i)->stage >= STAGE_EXECUTED)
			continue;
		if (!adv_wr_passes(qp, i, m))
			return MUST_WAIT;
		constraint = MAY_PASS;
	}
	return constraint;
}

/*
 * Return whether a READ or an atomic in flight before @m may still write to
 * the memory that @m sends, so that this memory must not be read yet.
 */
static bool adv_wr_reads_later(const struct urxe_qp *qp, const struct adv_wr *m)
{
	const struct transport *c = transport_of(qp);
	uint32_t i;

	for (i = qp->sq.done; i != m->index; i++)
		if (is_fetch(sq_slot(&qp->sq, i)) &&
		    adv_wr_at(c, i)->stage < STAGE_EXECUTED &&
		    !adv_wr_passes(qp, i, m))
			return true;
	return false;
}

/*
 * Read the local data of @m now and keep a copy of it, unless the option
 * "gather" applies, the data is too long, or it must be read later. Without
 * memory for the copy the data is read later, too.
 */
static void adv_wr_copy(struct urxe_qp *qp, struct adv_wr *m,
			const struct urxe_wqe *w)
{
	if (m->plan.gather || !reads_memory(w) || w->length > COPY_MAX ||
	    adv_wr_reads_later(qp, m))
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
 * @first (requester_holds_back()). At most FLIGHT_MAX such WRs are in flight;
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

static bool adv_wr_will_succeed(struct urxe_qp *qp, const struct adv_wr *m)
{
	const struct urxe_wqe *w = adv_wr_wqe(qp, m);

	return qp->type == IBV_QPT_UD ?
		       part_check_datagram(qp, w) :
		       part_check(qp, w, m->fetches) == RESP_ACK;
}

/*
 * Return whether the WRs that @m passes will be served. A responder checks
 * requests in the order of their PSNs and serves none behind a request that
 * it refuses.
 */
static bool adv_wr_passed_will_succeed(struct urxe_qp *qp,
				       const struct adv_wr *m)
{
	const struct transport *c = transport_of(qp);
	const struct adv_wr *first;
	uint32_t i;

	for (i = qp->sq.done; i != m->index; i++) {
		first = adv_wr_at(c, i);
		if (first->stage == STAGE_SENT &&
		    !adv_wr_will_succeed(qp, first))
			return false;
	}
	return true;
}

/* ------------------------------------------------------- steps */

static enum verdict adv_wr_execute(struct urxe_qp *qp, struct run *r,
				   struct adv_wr *m)
{
	struct urxe_wqe *w = adv_wr_wqe(qp, m);
	enum verdict v;

	if (m->plan.lost)
		return execute_lost(qp, r, w);
	qp->atomic_ns = m->plan.atomic_ns;
	v = execute(qp, r, w);
	qp->atomic_ns = 0;
	return v;
}

static enum verdict adv_wr_finish(struct urxe_qp *qp, struct run *r,
				  struct adv_wr *m)
{
	if (m->plan.lost)
		return WR_DROPPED;
	return part_finish(qp, r, adv_wr_wqe(qp, m));
}

/*
 * Return the destination address of the data, by which pieces_cut() aligns
 * the pieces; 0 for a SEND. Of a READ only the first SGE counts.
 */
static uint64_t adv_wr_target(const struct urxe_wqe *w)
{
	if (w->opcode == IBV_WR_RDMA_READ)
		return w->num_sge ? w->sge[0].addr : 0;
	return WQE_WRITE_OPS & WQE_BIT(w->opcode) ? w->remote_addr : 0;
}

/*
 * Begin the transfer of @m, which part_check() has accepted. Return
 * WR_IN_FLIGHT if it is divided into pieces, else the verdict of execute().
 */
static enum verdict adv_wr_divide(struct urxe_qp *qp, struct run *r,
				  struct adv_wr *m)
{
	const struct plan *p = &m->plan;
	struct urxe_wqe *w = adv_wr_wqe(qp, m);

	if (!can_be_divided(qp, w) ||
	    !(p->place || p->lines || p->reread || p->fill || p->deliver))
		return adv_wr_execute(qp, r, m);
	if (p->fill) {
		part_fill(qp, w, FILL_BYTE);
		m->due = transport_of(qp)->tick +
			 draw_delay(transport_of(qp), m, ADV_fill);
	}
	pieces_cut(&m->pieces, random_part(m->random, DRAW_PIECES),
		   adv_wr_target(w), w->length, !p->place);
	if (!p->place && !p->lines) {
		m->pieces.n = 1;
		m->pieces.end[0] = w->length;
		m->pieces.order[0] = 0;
	}
	m->lost_after =
		random_below(m->random, ADV_loss, DRAW_AMOUNT, m->pieces.n);
	m->stage = STAGE_MOVING;
	return WR_IN_FLIGHT;
}

/*
 * Advance @m, all pieces of which are copied: a READ whose response is "lost"
 * starts over.
 */
static void adv_wr_moved(const struct transport *c, struct adv_wr *m)
{
	if (m->plan.reread) { /* duplicate READ: IB 9.7.5.1 */
		m->plan.reread = false;
		pieces_restart(&m->pieces,
			       random_part(m->random, DRAW_RESTART));
		m->due = c->tick + draw_delay(c, m, ADV_reread);
		return;
	}
	m->stage = STAGE_MOVED;
	if (m->plan.deliver)
		m->due = c->tick + draw_delay(c, m, ADV_deliver);
}

/*
 * Copy the next piece of @m. Return WR_DONE if it was copied, else the
 * verdict that ends the WR. If a SEND cannot be copied, its other pieces are
 * skipped and part_finish() finds the error.
 */
static enum verdict adv_wr_move(struct urxe_qp *qp, struct run *r,
				struct adv_wr *m)
{
	const struct urxe_wqe *w = adv_wr_wqe(qp, m);
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
static bool adv_wr_may_pass(struct urxe_qp *qp, const struct adv_wr *m)
{
	const struct urxe_wqe *w = adv_wr_wqe(qp, m);

	return adv_wr_passed_will_succeed(qp, m) &&
	       (wqe_is_local(w) || adv_wr_will_succeed(qp, m));
}

/*
 * Carry out the next step of @m; the guard is raised. Return WR_IN_FLIGHT if
 * more steps follow, or if @m may not pass yet; else the verdict of
 * execute().
 */
static enum verdict adv_wr_step(struct urxe_qp *qp, struct run *r,
				struct adv_wr *m,
				enum order_constraint constraint)
{
	enum verdict v;

	if (constraint == MAY_PASS && !adv_wr_may_pass(qp, m))
		return WR_IN_FLIGHT;
	switch (m->stage) {
	case STAGE_SENT:
		if (part_check(qp, adv_wr_wqe(qp, m), m->fetches) == RESP_ACK)
			return adv_wr_divide(qp, r, m);
		return adv_wr_execute(qp, r, m);
	case STAGE_MOVING:
		v = adv_wr_move(qp, r, m);
		if (v != WR_DONE)
			return v;
		if (!pieces_left(&m->pieces))
			adv_wr_moved(transport_of(qp), m);
		return WR_IN_FLIGHT;
	default:
		return adv_wr_finish(qp, r, m);
	}
}

/* Carry out all steps that are left, at once: @m was parked between them. */
static enum verdict adv_wr_rest(struct urxe_qp *qp, struct run *r,
				struct adv_wr *m)
{
	enum verdict v;

	if (m->stage == STAGE_SENT)
		return adv_wr_execute(qp, r, m);
	while (m->stage == STAGE_MOVING && pieces_left(&m->pieces)) {
		v = adv_wr_move(qp, r, m);
		if (v != WR_DONE)
			return v;
	}
	m->stage = STAGE_MOVED;
	return adv_wr_finish(qp, r, m);
}

static void adv_wr_answer(struct urxe_qp *qp, struct adv_wr *m,
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
static void adv_wr_executed(struct urxe_qp *qp, struct adv_wr *m)
{
	struct transport *c = transport_of(qp);
	uint32_t batch;

	m->stage = STAGE_EXECUTED;
	if (!m->plan.complete) {
		adv_wr_answer(qp, m, IBV_WC_SUCCESS);
		return;
	}
	/* round up, so that the answers of several WRs come at one tick */
	batch = 1u << random_below(m->random, ADV_complete, DRAW_PIECES, 5);
	m->due = (c->tick + draw_delay(c, m, ADV_complete)) | (batch - 1);
}

/*
 * Carry out the step of @m that is due. Return false if the queue was
 * changed: @m, and the WRs behind it, are parked.
 */
static bool adv_wr_advance(struct urxe_qp *qp, struct adv_wr *m,
			   enum order_constraint constraint)
{
	enum verdict v;
	struct run r;

	if (m->stage == STAGE_EXECUTED) {
		adv_wr_answer(qp, m, IBV_WC_SUCCESS);
		return true;
	}
	run_begin(&r, qp);
	r.fetches = m->fetches - 1; /* execute() counts this WR itself */
	qp_guard_raise(qp, constraint == MAY_PASS ?
				   GUARD_SEND | GUARD_ANY_RKEY :
				   requester_uses(adv_wr_wqe(qp, m)));
	v = adv_wr_step(qp, &r, m, constraint);
	if (v == WR_RNR || v == WR_SILENT) {
		if (constraint == MAY_START) {
			requester_park_flight(qp, &r, m->index, v);
			return false;
		}
		v = WR_IN_FLIGHT; /* changed since adv_wr_may_pass() */
	}
	guard_lower(qp->guard);
	if (v == WR_FAILED)
		adv_wr_answer(qp, m, r.status);
	else if (v != WR_IN_FLIGHT)
		adv_wr_executed(qp, m);
	return true;
}

/* Advance the tick counter by one and carry out the steps that are due. */
static void transport_tick(struct urxe_qp *qp)
{
	struct transport *c = transport_of(qp);
	struct adv_wr *m;
	enum order_constraint constraint;
	uint32_t i;

	c->tick++;
	for (i = qp->sq.done; i != qp->sq.begun; i++) {
		m = adv_wr_at(c, i);
		if (m->index != i || m->stage == STAGE_NONE ||
		    m->stage == STAGE_ANSWERED || m->due > c->tick)
			continue;
		constraint = adv_wr_constraint(qp, m);
		if (m->stage != STAGE_EXECUTED && constraint == MUST_WAIT)
			continue;
		if (!adv_wr_advance(qp, m, constraint))
			return;
	}
}

/* ------------------------------------------------------- operations */

static enum verdict transport_resume(struct urxe_qp *qp, struct run *r,
				     struct adv_wr *m)
{
	enum verdict v;

	if (m->stage == STAGE_EXECUTED)
		return WR_IN_FLIGHT;
	if (m->stage == STAGE_ANSWERED) {
		r->status = m->status;
		return m->status ? WR_FAILED : WR_DONE;
	}
	v = adv_wr_rest(qp, r, m);
	if (v <= WR_COMPLETED || v == WR_FAILED)
		adv_wr_forget(m);
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
	struct adv_wr *m = adv_wr_at(c, index);
	enum verdict v;

	transport_disown(qp);
	c->tick++;
	if (m->stage != STAGE_NONE && m->index == index)
		return transport_resume(qp, r, m);
	adv_wr_forget(m);
	m->index = index;
	adv_wr_plan(qp, m, w);
	if (index == qp->sq.done && plan_is_plain(&m->plan)) {
		v = adv_wr_execute(qp, r, m);
		c->posted += v <= WR_COMPLETED;
		return v;
	}
	c->posted++;
	if (needs_resources(w))
		run_count_fetch(r, qp);
	m->fetches = r->fetches;
	adv_wr_copy(qp, m, w);
	m->stage = STAGE_SENT;
	m->due = c->tick + adv_wr_first_delay(c, m);
	if (!service_is_me())
		quiet_note_call(&c->quiet, clock_now());
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
	return now + QUIET_RECHECK_NS;
}

/*
 * Return by how many ticks the counter is to be advanced: 1 in a thread of
 * the program; in the service thread the maximum of a delay if the program is
 * quiet, else 0.
 */
static uint32_t transport_ticks(struct transport *c, uint64_t now)
{
	if (!service_is_me()) {
		quiet_note_call(&c->quiet, now);
		return 1;
	}
	return quiet_is_long(&c->quiet, now) ? c->a->option[ADV_ticks] + 1 : 0;
}

static uint64_t transport_progress(struct urxe_qp *qp, uint64_t now)
{
	struct transport *c = transport_of(qp);
	uint32_t n;

	transport_disown(qp);
	if (!qp->in_flight)
		return UINT64_MAX;
	n = transport_ticks(c, now);
	if (!n)
		return now + QUIET_RECHECK_NS;
	for (; n && qp->in_flight; n--)
		transport_tick(qp);
	if (qp->stall.kind == STALL_NONE)
		requester_run(qp);
	if (!qp->in_flight)
		return UINT64_MAX;
	return service_is_me() ? now + STEP_NS : now + QUIET_NS;
}

static void transport_cancel(struct urxe_qp *qp)
{
	struct transport *c = transport_of(qp);
	uint32_t i;

	for (i = 0; i <= c->mask; i++)
		adv_wr_forget(&c->wr[i]);
}

static const struct urxe_transport transport = {
	.begin = transport_begin,
	.follows = transport_follows,
	.progress = transport_progress,
	.cancel = transport_cancel,
};

static _Atomic uint64_t transports; /* number of transports created */

/*
 * Seed part for the numbers of transports; differs from all enum object_kind.
 */
#define STREAM_TRANSPORT OBJECT_KINDS

bool transport_attach(struct urxe_qp *qp)
{
	const struct adversary *a = adversary_of_process();
	size_t slots = (size_t)qp->sq.mask + 1;
	struct transport *c;

	c = calloc(1, sizeof(*c) + slots * sizeof(c->wr[0]));
	if (!c)
		return false;
	c->a = a;
	c->mask = qp->sq.mask;
	c->pid = urxe_pid;
	c->random = random_part(random_part(a->random, STREAM_TRANSPORT),
				fetch_add_relaxed(&transports, 1));
	if (a->option[ADV_atomic])
		store_seq_cst(&qp->ctx->fabric->dev->atomics_divided, 1);
	urxe_lock(&qp->lock);
	qp->transport_data = c;
	qp->transport = &transport;
	urxe_unlock(&qp->lock);
	store_release(&qp->early, transport_early);
	return true;
}

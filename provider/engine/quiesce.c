// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <sched.h>

#include "base/clock.h"
#include "bounce.h"
#include "cq.h"
#include "quiesce.h"
#include "service.h"

/* A guard that is up, and for what we ask. */
struct busy {
	struct urxe_fabric *f;
	const struct urxe_guard *guard;
	uint64_t entry; /* of the QP directory */
	uint32_t own; /* whose guard it is: a context */
	const struct guard_thing *thing;
	uint32_t asked; /* whether he lives */
	uint64_t until; /* it waits; 0: for ever */
	bool late;
};

/* No id: its process had none to have, and its context's life must do. */
static bool busy_is_dead(const struct busy *b)
{
	uint32_t slot, gen, owner = load_relaxed(&b->guard->owner);

	if (owner)
		return process_is_dead(b->f, owner);
	return !qpn_lookup(b->f->dev, URXE_DIR_QPN(b->entry), &slot, &gen) ||
	       !fabric_context_alive(b->f, slot, gen);
}

/* How often one asks before it is doubted that he is inside at all. */
#define ASK_OWNER 32

/*
 * While one waits: he may have turned to something else, or died; or he is not
 * there, and somebody damaged the word.  That its process can tell (qp.c).
 */
static bool busy_is_over(void *arg)
{
	struct busy *b = arg;

	if (!guard_concerns(b->guard, b->own, b->thing) || busy_is_dead(b))
		return true;
	if (++b->asked % ASK_OWNER == 0)
		service_ask_guards(b->f, b->own);
	b->late = b->until && clock_now() > b->until;
	return b->late;
}

/* The i-th guard, if it is up and its requester may be at the thing. */
static bool quiesce_look(struct busy *b, uint32_t i)
{
	b->guard = &b->f->dev->guard[i];
	if (!presence_is_inside(&b->guard->requester))
		return false;
	/* it was written before the guard was raised */
	b->entry = load_seq_cst(&b->f->dev->qp[i]);
	b->own = URXE_DIR_CTX(b->entry);
	return b->entry && guard_concerns(b->guard, b->own, b->thing);
}

/*
 * The same of who holds the wire, or did when he was stopped: he uses nothing of
 * his own context's.
 */
static bool quiesce_look_wire(struct busy *b, uint32_t i)
{
	b->guard = &b->f->dev->wire.seat[i].guard;
	b->entry = 0;
	b->own = URXE_MAX_CTX;
	return presence_is_inside(&b->guard->requester) &&
	       guard_concerns(b->guard, b->own, b->thing);
}

static uint32_t quiesce_high(const struct urxe_dev *dev)
{
	/* seq_cst, as its entry: whose guard we do not look at looks later */
	uint32_t high = load_seq_cst(&dev->qp_high);

	return high < URXE_MAX_QP ? high : URXE_MAX_QP;
}

static enum urxe_call_kind busy_call(const struct busy *b)
{
	switch (b->thing->kind) {
	case GUARD_OF_MR:
		return URXE_CALL_QUIESCE_MR;
	case GUARD_OF_MW:
		return URXE_CALL_QUIESCE_MW;
	case GUARD_OF_CQ:
		return URXE_CALL_QUIESCE_CQ;
	case GUARD_OF_SRQ:
		return URXE_CALL_QUIESCE_SRQ;
	default:
		return URXE_CALL_QUIESCE_QP;
	}
}

/* Wait for the requester of slot i, or of the wire's seats behind them. */
static void busy_wait(struct busy *b, uint32_t i)
{
	struct urxe_call *call =
		call_begin(b->f, busy_call(b), b->thing->slot, i, 0);

	presence_wait(&b->guard->requester, busy_is_over, b);
	call_end(call);
}

static void quiesce_guard(struct busy *b, uint32_t i)
{
	if (quiesce_look(b, i))
		busy_wait(b, i);
}

/* How far the guards of a group have come; false: somebody is inside. */
static bool group_is_down(const struct urxe_dev *dev, uint32_t group,
			  uint64_t *passed)
{
	const struct urxe_guard *g = &dev->guard[group * URXE_GUARD_GROUP];
	uint32_t i, seq;

	*passed = 0;
	for (i = 0; i < URXE_GUARD_GROUP; i++) {
		seq = load_seq_cst(&g[i].requester.seq);
		if (seq & 1)
			return false;
		*passed += seq;
	}
	return true;
}

/* What this process saw last: a hint, for the doubt costs who works there. */
static _Atomic uint64_t last_passed[URXE_GUARD_GROUPS];

/* Somebody looked at a group that is busy: is it idle? */
static void group_look(struct urxe_dev *dev, uint32_t group)
{
	_Atomic uint64_t *word = &dev->guard_group[group];
	uint64_t passed, doubt;

	if (!group_is_down(dev, group, &passed))
		return;
	if (exchange_relaxed(&last_passed[group], passed) != passed)
		return;
	if (guard_group_doubt(word, &doubt) &&
	    group_is_down(dev, group, &passed))
		guard_group_idle(word, doubt);
}

/* The first guard of a group that may be busy, from that of i on, or high. */
static uint32_t quiesce_next(const struct urxe_dev *dev, uint32_t i,
			     uint32_t high)
{
	while (i < high &&
	       !guard_group_is_busy(&dev->guard_group[i / URXE_GUARD_GROUP]))
		i += URXE_GUARD_GROUP;
	return i;
}

/* The guard i, or if a group begins there the first of one that may be busy. */
static uint32_t quiesce_from(const struct urxe_dev *dev, uint32_t i,
			     uint32_t high)
{
	return i % URXE_GUARD_GROUP ? i : quiesce_next(dev, i, high);
}

static void quiesce_group(struct busy *b, uint32_t first, uint32_t high)
{
	uint32_t i, end = first + URXE_GUARD_GROUP;

	for (i = first; i < end && i < high && !b->late; i++)
		quiesce_guard(b, i);
	group_look(b->f->dev, first / URXE_GUARD_GROUP);
}

static void quiesce_wire(struct busy *b)
{
	uint32_t i;

	for (i = 0; i < URXE_WIRE_SEATS && !b->late; i++)
		if (quiesce_look_wire(b, i))
			busy_wait(b, URXE_MAX_QP + i);
}

static bool quiesce_until(struct urxe_fabric *f, struct urxe_arena *a,
			  const struct guard_thing *t, uint64_t until)
{
	struct busy b = { .f = f, .thing = t, .until = until };
	uint32_t i, high = quiesce_high(f->dev);

	for (i = quiesce_next(f->dev, 0, high); i < high && !b.late;
	     i = quiesce_next(f->dev, i + URXE_GUARD_GROUP, high))
		quiesce_group(&b, i, high);
	if (!b.late)
		quiesce_wire(&b);
	/* what the dead have asked for is done, too */
	return !b.late && bounce_quiesce(f, a, until);
}

static void quiesce_guards(struct urxe_fabric *f, struct urxe_arena *a,
			   const struct guard_thing *t)
{
	quiesce_until(f, a, t, 0);
}

void quiesce_mr(struct urxe_fabric *f, struct urxe_arena *a, uint32_t key,
		uint32_t pd)
{
	quiesce_guards(f, a,
		       &(struct guard_thing){ GUARD_OF_MR, a->slot, key, pd });
}

bool quiesce_mw(struct urxe_fabric *f, struct urxe_arena *a, uint32_t key,
		uint64_t until)
{
	const struct guard_thing t = { GUARD_OF_MW, a->slot, key, 0 };

	return quiesce_until(f, a, &t, until);
}

void quiesce_qp(struct urxe_fabric *f, struct urxe_arena *a, uint32_t qpn,
		uint32_t from)
{
	const struct guard_thing t = { GUARD_OF_QP, a->slot, qpn, 0 };
	struct busy b = { .f = f, .thing = &t };

	if (!from) {
		quiesce_guards(f, a, &t);
		return;
	}
	quiesce_guard(&b, qpn_index(from));
	bounce_quiesce(f, a, 0);
}

void quiesce_srq(struct urxe_fabric *f, struct urxe_arena *a, uint32_t index)
{
	quiesce_guards(f, a,
		       &(struct guard_thing){ GUARD_OF_SRQ, a->slot, index, 0 });
}

void quiesce_cq(struct urxe_fabric *f, struct urxe_arena *a, uint32_t index)
{
	quiesce_guards(f, a,
		       &(struct guard_thing){ GUARD_OF_CQ, a->slot, index, 0 });
}

void quiesce_pollers(struct urxe_context *ctx)
{
	struct urxe_cq *cq;

	pthread_mutex_lock(&ctx->lock);
	presence_barrier();
	for (cq = ctx->cqs; cq; cq = cq->next)
		gate_wait(&cq->gate);
	pthread_mutex_unlock(&ctx->lock);
}

bool quiesce_qp_busy(struct urxe_fabric *f, uint32_t qpn, uint32_t peer)
{
	const struct guard_thing t = { GUARD_OF_QP, 0, qpn, 0 };
	struct busy b = { .f = f, .thing = &t };
	uint32_t i;

	if (quiesce_look(&b, qpn_index(peer)) && !busy_is_dead(&b))
		return true;
	for (i = 0; i < URXE_WIRE_SEATS; i++)
		if (quiesce_look_wire(&b, i) && !busy_is_dead(&b))
			return true;
	return false;
}

/* False: he who was found inside stays. */
static bool quiesce_try_one(struct busy *b, uint64_t until)
{
	uint32_t seq = load_acquire(&b->guard->requester.seq);

	while (load_acquire(&b->guard->requester.seq) == seq &&
	       !busy_is_over(b)) {
		if (clock_now() > until)
			return false;
		sched_yield();
	}
	return true;
}

bool quiesce_try(struct urxe_fabric *f, struct urxe_arena *a,
		 const struct guard_thing *t)
{
	struct busy b = { .f = f, .thing = t };
	uint64_t until = clock_now() + QUIESCE_TRY_NS;
	uint32_t i, high = quiesce_high(f->dev);

	for (i = quiesce_next(f->dev, 0, high); i < high;
	     i = quiesce_from(f->dev, i + 1, high))
		if (quiesce_look(&b, i) && !quiesce_try_one(&b, until))
			return false;
	for (i = 0; i < URXE_WIRE_SEATS; i++)
		if (quiesce_look_wire(&b, i) && !quiesce_try_one(&b, until))
			return false;
	return bounce_quiesce_try(f, a);
}

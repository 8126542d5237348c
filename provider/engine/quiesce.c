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
	const struct guard_thing *thing;
	uint32_t asked; /* whether he lives */
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

	if (!guard_concerns(b->guard, URXE_DIR_CTX(b->entry), b->thing) ||
	    busy_is_dead(b))
		return true;
	if (++b->asked % ASK_OWNER == 0)
		service_ask_guards(b->f, URXE_DIR_CTX(b->entry));
	return false;
}

/* The i-th guard, if it is up and its requester may be at the thing. */
static bool quiesce_look(struct busy *b, uint32_t i)
{
	b->guard = &b->f->dev->guard[i];
	if (!presence_is_inside(&b->guard->requester))
		return false;
	/* it was written before the guard was raised */
	b->entry = load_seq_cst(&b->f->dev->qp[i]);
	return b->entry &&
	       guard_concerns(b->guard, URXE_DIR_CTX(b->entry), b->thing);
}

static uint32_t quiesce_high(const struct urxe_dev *dev)
{
	/* seq_cst, as its entry: whose guard we do not look at looks later */
	uint32_t high = load_seq_cst(&dev->qp_high);

	return high < URXE_MAX_QP ? high : URXE_MAX_QP;
}

static void quiesce_guard(struct busy *b, uint32_t i)
{
	if (quiesce_look(b, i))
		presence_wait(&b->guard->requester, busy_is_over, b);
}

static void quiesce_guards(struct urxe_fabric *f, struct urxe_arena *a,
			   const struct guard_thing *t)
{
	struct busy b = { .f = f, .thing = t };
	uint32_t i, high = quiesce_high(f->dev);

	for (i = 0; i < high; i++)
		quiesce_guard(&b, i);
	/* what the dead have asked for is done, too */
	bounce_quiesce(f, a);
}

void quiesce_mr(struct urxe_fabric *f, struct urxe_arena *a, uint32_t key,
		uint32_t pd)
{
	quiesce_guards(f, a,
		       &(struct guard_thing){ GUARD_OF_MR, a->slot, key, pd });
}

void quiesce_mw(struct urxe_fabric *f, struct urxe_arena *a, uint32_t key)
{
	quiesce_guards(f, a, &(struct guard_thing){ GUARD_OF_MW, a->slot, key, 0 });
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
	bounce_quiesce(f, a);
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

	return quiesce_look(&b, qpn_index(peer)) && !busy_is_dead(&b);
}

bool quiesce_try(struct urxe_fabric *f, struct urxe_arena *a,
		 const struct guard_thing *t)
{
	struct busy b = { .f = f, .thing = t };
	uint64_t until = clock_now() + QUIESCE_TRY_NS;
	uint32_t i, seq, high = quiesce_high(f->dev);

	for (i = 0; i < high; i++) {
		if (!quiesce_look(&b, i))
			continue;
		seq = load_acquire(&b.guard->requester.seq);
		while (load_acquire(&b.guard->requester.seq) == seq &&
		       !busy_is_over(&b)) {
			if (clock_now() > until)
				return false;
			sched_yield();
		}
	}
	return bounce_quiesce_try(f, a);
}

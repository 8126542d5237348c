// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <sched.h>

#include "context.h"
#include "cq_arm.h"
#include "cq_moderate.h"
#include "log.h"
#include "poll.h"
#include "service.h"

/*
 * Have a look at what was not polled.  False: another thread is in the middle
 * of a batch, which may take its time.
 */
static bool look_begin(struct urxe_cq *cq, bool *locked)
{
	*locked = !cq->single_threaded && !cq_in_batch(cq);
	while (*locked && !mutex_trylock(&cq->lock)) {
		if (load_relaxed(&cq->batch_thread))
			return false;
		sched_yield();
	}
	gate_enter(&cq->gate);
	return true;
}

static void look_end(struct urxe_cq *cq, bool locked)
{
	gate_leave(&cq->gate);
	if (locked)
		cq_unlock(cq);
}

/*
 * Of the completions that were not polled, from the i-th on: the (skip + 1)-th
 * that an arming of this kind is for.  Its index + 1; 0: there is none.
 */
static uint32_t look_for(const struct urxe_cq *cq, uint32_t i, uint32_t skip,
			 uint32_t kind)
{
	const struct urxe_cqe *e;

	for (; (e = poll_peek(cq, i)); i++)
		if ((kind == URXE_ARM_NEXT ||
		     e->wc_flags & URXE_CQE_SOLICITED) &&
		    !skip--)
			return i + 1;
	return 0;
}

/* How many of those that were not polled have been announced. */
static uint32_t look_announced(const struct urxe_cq *cq)
{
	int32_t n = (int32_t)(cq->announced - cq_polled(cq));

	return n > 0 ? (uint32_t)n : 0;
}

/* What of the ring was polled or announced: the program knows that it is there. */
static uint32_t look_known(const struct urxe_cq *cq)
{
	const struct urxe_backlog *b = cq->backlog;
	uint32_t left = b ? b->count - b->head : 0, n = look_announced(cq);

	return URXE_ARM_KNOWING(cq->head + (n > left ? n - left : 0));
}

/*
 * Is there a completion that no event stands for?  Either we see it, or its
 * producer sees that the CQ is armed.
 */
static bool look_for_unannounced(const struct urxe_cq *cq, uint32_t kind)
{
	int32_t under_way = (int32_t)(load_acquire(&cq->sh->comp_events) -
				      load_relaxed(&cq->sh->comp_fetched));

	atomic_thread_fence(memory_order_seq_cst);
	return look_for(cq, look_announced(cq),
			under_way > 0 ? (uint32_t)under_way : 0, kind);
}

/*
 * An arming for any completion is not weakened by a later one, nor does that
 * one know more: another thread may wait for the first.
 */
static enum urxe_arm cq_set_arm(struct urxe_cq *cq, enum urxe_arm want,
				uint32_t known)
{
	uint32_t arm = load_relaxed(&cq->sh->arm), word;

	if (arm == URXE_ARM_NONE)
		cq_hold_reset(cq);
	do {
		if (URXE_ARM_KIND(arm) == URXE_ARM_NEXT)
			word = arm;
		else if (arm == URXE_ARM_NONE && want == URXE_ARM_NEXT)
			word = want | known;
		else
			word = want;
	} while (!cas_seq_cst(&cq->sh->arm, &arm, word));
	return URXE_ARM_KIND(word);
}

static int cq_arm_as(struct urxe_cq *cq, enum urxe_arm want, bool kind)
{
	struct urxe_cq_sh *sh = cq->sh;
	bool looks, locked, fire;
	uint32_t known = 0;

	if (!sh->channel)
		return 0; /* nobody could hear it */
	/* who sleeps does not poll, and a forked child has no thread */
	if (unlikely(!load_relaxed(&cq->ctx->service)) &&
	    !service_need(cq->ctx)) {
		urxe_why("ibv_req_notify_cq: no thread can be made that would wake the program");
		return EAGAIN;
	}
	/* else a batch is at its end, maybe, and does not see what came */
	looks = look_begin(cq, &locked);
	if (looks)
		known = look_known(cq);
	want = cq_set_arm(cq, want, known);
	store_relaxed(&cq->closely, true);
	store_relaxed(&cq->armed_for, want);
	fire = kind && (!looks || look_for_unannounced(cq, want));
	if (looks)
		look_end(cq, locked);
	/* a peer changed a QP before we armed: nobody else will say so */
	if (load_seq_cst(&sh->attention) || (fire && !cq_hold_back(&cq->view)))
		cq_fire(&cq->view, true);
	if (unlikely(load_relaxed(&cq->stalled)))
		poll_progress(cq); /* carriers learn that we go to sleep */
	return 0;
}

int cq_arm(struct urxe_cq *cq, enum urxe_arm want)
{
	return cq_arm_as(cq, want, true);
}

int cq_arm_next(struct urxe_cq *cq, enum urxe_arm want)
{
	return cq_arm_as(cq, want, false);
}

void cq_arm_again(struct urxe_cq *cq)
{
	bool locked, left;

	if (!look_begin(cq, &locked))
		return;
	left = look_for(cq, 0, 0, load_relaxed(&cq->armed_for));
	look_end(cq, locked);
	if (left && !cq_hold_back(&cq->view))
		cq_fire(&cq->view, true);
}

void cq_arm_forget(struct urxe_cq *cq)
{
	uint32_t arm = load_relaxed(&cq->sh->arm);

	while (!cas_seq_cst(&cq->sh->arm, &arm, URXE_ARM_KIND(arm)))
		;
}

void cq_event_fetched(struct urxe_cq *cq)
{
	uint32_t end;
	bool locked;

	fetch_add_relaxed(&cq->sh->comp_fetched, 1);
	store_relaxed(&cq->closely, true);
	poll_progress(cq); /* it may be for a QP that is to be flushed */
	if (!look_begin(cq, &locked))
		return; /* one event too many, maybe */
	end = look_for(cq, look_announced(cq), 0, load_relaxed(&cq->armed_for));
	if (end)
		cq->announced = cq_polled(cq) + end;
	look_end(cq, locked);
}

void cq_batch_event(struct urxe_cq *cq)
{
	uint32_t kind = cq->batch_event;
	bool left;

	cq->batch_event = URXE_ARM_NONE;
	gate_enter(&cq->gate);
	left = look_for(cq, 0, 0, kind);
	gate_leave(&cq->gate);
	if (left && !cq_hold_back(&cq->view))
		cq_fire(&cq->view, true);
}

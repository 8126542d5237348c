// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Arming a CQ (ibv_req_notify_cq), fetching its events, and events of
 * batches.
 *
 * cq_arm.h has the rules which completion raises an event, and why;
 * shared/cq_ring.h has the memory order between arming and producing.
 *
 * Callers are the CQ's owner: ibv_req_notify_cq, ibv_get_cq_event,
 * ibv_end_poll and ibv_resize_cq.  The known completions are read inside the
 * CQ's gate.  If that is not possible, because another thread is in a batch,
 * an event may be raised needlessly; none is lost.
 */
#include <errno.h>

#include "base/thread.h"
#include "engine/core/context.h"
#include "cq_arm.h"
#include "engine/cq/cq_moderate.h"
#include "engine/core/log.h"
#include "poller.h"
#include "engine/qp/rq.h"
#include "engine/run/service.h"

/*
 * Take the poller's lock, unless this thread has it, and enter the gate, to
 * read completions that were not polled.  False: another thread is between
 * ibv_start_poll and ibv_end_poll, which may take long.
 */
static bool scan_begin(struct urxe_cq *cq, bool *locked)
{
	uint32_t turns = 0;

	*locked = !cq->single_threaded && !cq_in_batch(cq);
	while (*locked && !mutex_trylock(&cq->lock)) {
		if (load_relaxed(&cq->batch_thread))
			return false;
		thread_give_way(++turns);
	}
	gate_enter(&cq->gate);
	return true;
}

static void scan_end(struct urxe_cq *cq, bool locked)
{
	gate_leave(&cq->gate);
	if (locked)
		cq_unlock(cq);
}

/*
 * Return the position in the ring up to which the program knows the
 * completions, because they were polled or announced, in the form of an arm
 * word (URXE_ARM_KNOWING()).
 */
static uint32_t scan_known(const struct urxe_cq *cq)
{
	const struct urxe_backlog *b = cq->backlog;
	uint32_t left = b ? b->count - b->head : 0, n = cq_announced(cq);

	return URXE_ARM_KNOWING(cq->head + (n > left ? n - left : 0));
}

/*
 * Whether there is a completion that no event announced.  The CQ was armed
 * (seq_cst) before, and a producer publishes (seq_cst) before it loads the
 * arm word: either the completion is found here, or its producer finds the CQ
 * armed (Dekker handshake).
 */
static bool scan_find_unannounced(const struct urxe_cq *cq, uint32_t kind)
{
	int32_t under_way = (int32_t)(load_acquire(&cq->sh->comp_events) -
				      load_relaxed(&cq->sh->comp_fetched));

	atomic_thread_fence(memory_order_seq_cst);
	return cq_find(cq, cq_announced(cq),
		       under_way > 0 ? (uint32_t)under_way : 0, kind);
}

/*
 * Arm the CQ (seq_cst); return the kind that is in effect.  A later call
 * neither weakens an arming for any completion nor advances its known
 * position: another thread may wait for the first one.
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
	if (arm == URXE_ARM_NONE)
		fetch_add_relaxed(&cq->sh->armings, 1);
	return URXE_ARM_KIND(word);
}

/* @kind: also raise the event for completions that no event announced. */
static int cq_arm_as(struct urxe_cq *cq, enum urxe_arm want, bool kind)
{
	struct urxe_cq_sh *sh = cq->sh;
	bool looks, locked, fire;
	uint32_t known = 0;

	if (!sh->channel)
		return 0; /* no channel, no events */
	/* a sleeping program does not poll; a forked child has no thread */
	if (unlikely(!load_relaxed(&cq->ctx->service)) &&
	    !service_need(cq->ctx)) {
		urxe_why(
			"ibv_req_notify_cq: the service thread, which wakes the program, cannot be created");
		return EAGAIN;
	}
	rq_recover_waiting(cq->ctx);
	/* if that fails, a batch may end without seeing new completions */
	looks = scan_begin(cq, &locked);
	if (looks)
		known = scan_known(cq);
	want = cq_set_arm(cq, want, known);
	store_relaxed(&cq->closely, true);
	store_relaxed(&cq->armed_for, want);
	fire = kind && (!looks || scan_find_unannounced(cq, want));
	if (looks)
		scan_end(cq, locked);
	/* a peer changed a QP before: no other event reports that */
	if (load_seq_cst(&sh->attention) || (fire && !cq_hold_back(&cq->view)))
		cq_fire(&cq->view, true);
	if (unlikely(load_relaxed(&cq->stalled)))
		poll_progress(cq); /* transports may hold back packets */
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

	if (!scan_begin(cq, &locked))
		return;
	left = cq_find(cq, 0, 0, load_relaxed(&cq->armed_for));
	scan_end(cq, locked);
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
	poll_progress(cq); /* the event may be for a QP to flush */
	if (!scan_begin(cq, &locked))
		return; /* possibly one event too many later */
	end = cq_find(cq, cq_announced(cq), 0, load_relaxed(&cq->armed_for));
	if (end)
		cq->announced = cq_polled(cq) + end;
	scan_end(cq, locked);
}

void cq_batch_event(struct urxe_cq *cq)
{
	uint32_t kind = cq->batch_event;
	bool left;

	cq->batch_event = URXE_ARM_NONE;
	gate_enter(&cq->gate);
	left = cq_find(cq, 0, 0, kind);
	gate_leave(&cq->gate);
	if (left && !cq_hold_back(&cq->view))
		cq_fire(&cq->view, true);
}

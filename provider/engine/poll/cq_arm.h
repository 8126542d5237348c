/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Arming a CQ: which completions raise an event.  The owner of the CQ calls
 * these functions; producers call cq_notify() (cq.h).
 *
 * By the specification (IB 11.4.2.2) an armed CQ raises one event, for the
 * next completion.  Programs are written in two ways:
 *
 *  1. fetch the event, arm, poll, fetch the next event ...
 *  2. poll until the CQ is empty, arm, sleep.
 *
 * The manual page shows the first way.  UCX uses the second one, in which a
 * completion between the last poll and the arming raises no event.  It works
 * on ConnectX, where an arming names the poller's position.  Therefore arming
 * raises the event at once if the CQ contains a completion that no event has
 * announced, that is, one published while the CQ was not armed.  This
 * excludes the completion that a program of the first kind was just woken for
 * and is about to poll: its event would be spurious.
 *
 * An event announces one completion.  When an event is fetched, it announces
 * the first completion that is neither polled nor announced.  It announces
 * none if its own completion has been polled meanwhile.  Arming skips one
 * more unannounced completion for each event that was raised and not fetched.
 * This is also right for a program of the first kind that polls one
 * completion for each event.
 *
 * A producer may be delayed between publishing a completion and raising its
 * event.  Meanwhile the program, woken by an arming, may have polled the
 * completion and armed again.  So an arming contains the position up to which
 * completions were polled or announced, and a producer raises no event for a
 * completion before that position.
 *
 * A WR that is posted between ibv_start_poll and ibv_end_poll may complete at
 * once, unlike on a NIC, and the batch continues and polls that completion. Its
 * event is deferred to ibv_end_poll, and raised if the completion has not
 * been polled by then.
 *
 * Memory order: a Dekker handshake, see shared/cq_ring.h, "Events".
 */
#pragma once

#include "engine/cq/cq.h"

/*
 * ibv_req_notify_cq.  Returns 0, or EAGAIN if no service thread can be
 * created.
 */
int cq_arm(struct urxe_cq *cq, enum urxe_arm want);
/*
 * The same strictly by the specification: completions that are in the CQ
 * already raise no event.
 */
int cq_arm_next(struct urxe_cq *cq, enum urxe_arm want);
/*
 * After an arming: if the CQ contains completions that were not polled, raise
 * the event as if they had been published after the arming.
 */
void cq_arm_again(struct urxe_cq *cq);
/* Remove the position from the arming, before the ring is replaced. */
void cq_arm_forget(struct urxe_cq *cq);
/* Account for an event of this CQ that ibv_get_cq_event has read. */
void cq_event_fetched(struct urxe_cq *cq);

/* Begin and end a batch: ibv_start_poll, ibv_end_poll; cq_lock() is held. */
static inline void cq_batch_begin(struct urxe_cq *cq)
{
	store_relaxed(&cq->batch_thread, pthread_self());
}

/* Raise the deferred event unless its completion has been polled. */
void cq_batch_event(struct urxe_cq *cq);

static inline void cq_batch_end(struct urxe_cq *cq)
{
	store_relaxed(&cq->batch_thread, (pthread_t)0);
	if (unlikely(cq->batch_event != URXE_ARM_NONE))
		cq_batch_event(cq);
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Arming a CQ, and what its events announce.
 *
 * By the specification (IB 11.4.2.2) an armed CQ raises one event, for the next
 * completion.  Programs are written in two ways:
 *
 *  1. fetch the event, arm, poll, fetch the next event ...
 *  2. poll until there is nothing, arm, sleep.
 *
 * The first is the manual page's.  The second, which is UCX's, loses what came
 * between its last poll and the arming; it is written for ConnectX, whose
 * arming names the poller's position.  So arming raises the event at once if
 * there is a completion that no event announced: one that came while the CQ was
 * not armed. But not for the completion that a program of the first kind was
 * just woken for, and is about to poll: it would be woken for nothing.
 *
 * An event stands for one completion: when it is fetched, for the first one
 * that is not polled and that no fetched event stands for yet; none, if its own
 * was polled meanwhile.  Arming leaves out as many more as there are events
 * that were raised and not fetched.  That is also right for a program of the
 * first kind that polls one completion for each event.
 *
 * A producer may be slow between its completion and the event of it: by then the
 * program, woken by the arming, may have polled it and armed anew.  So an arming
 * says up to where the program knew what is there, polled or announced, and is
 * not for that.
 *
 * The completion of what is posted between ibv_start_poll and ibv_end_poll is
 * there at once, as no NIC's is, and the batch goes on to it.  Its event waits
 * for the batch's end and is raised if it was not polled by then.
 */
#pragma once

#include "cq.h"

/* ibv_req_notify_cq.  0 or an errno value. */
int cq_arm(struct urxe_cq *cq, enum urxe_arm want);
/* The same by the specification alone: what is there already raises no event. */
int cq_arm_next(struct urxe_cq *cq, enum urxe_arm want);
/*
 * It was armed just now: what is not polled raises the event, as if it had come
 * after the arming.
 */
void cq_arm_again(struct urxe_cq *cq);
/* Positions will be other ones: nothing is known of them. */
void cq_arm_forget(struct urxe_cq *cq);
/* ibv_get_cq_event has read one of the CQ's events. */
void cq_event_fetched(struct urxe_cq *cq);

/* ibv_start_poll and ibv_end_poll; the poller's lock is held. */
static inline void cq_batch_begin(struct urxe_cq *cq)
{
	store_relaxed(&cq->batch_thread, pthread_self());
}

void cq_batch_event(struct urxe_cq *cq);

static inline void cq_batch_end(struct urxe_cq *cq)
{
	store_relaxed(&cq->batch_thread, (pthread_t)0);
	if (unlikely(cq->batch_event != URXE_ARM_NONE))
		cq_batch_event(cq);
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * WRs in flight: begun, not yet done.
 *
 * The slots of a send queue are, from the oldest:
 *
 *	tail ... done	completed, and not polled yet
 *	done ... begun	in flight
 *	begun ... prod	queued
 *
 * WRs are begun in order and completed in order (IB 10.8.3).  What is in flight
 * may be answered in any order: a slot says whether it was, and how (wqe.answer).
 * Two things hold the next WR back: a WR in flight that the specification's
 * table of Work Request Operation Ordering has it follow (order.h), and an
 * answer that breaks the QP.
 *
 * By itself the requester carries a WR out when it begins it, and has in flight
 * what it collects for one system call, until ibv_post_send returns.  A
 * *carrier* makes it otherwise: it is asked to begin each WR, and may answer
 * later, when the program polls or the service thread runs.  A QP has none
 * unless somebody sets qp->carrier while its queue is empty.
 */
#pragma once

#include "execute.h"
#include "order.h"

/* All are called with qp->lock held. */
struct urxe_carrier {
	/*
	 * Begin w, the guard up: WR_IN_FLIGHT, or what execute() returns, which
	 * collects nothing then.  A WR that cannot be begun yet is parked by its
	 * verdict, as by execute().  Who wants to be asked earlier than
	 * progress() has said calls service_need(); also in progress(), for
	 * another QP.
	 */
	enum verdict (*begin)(struct urxe_qp *qp, struct run *r,
			      struct urxe_wqe *w);
	/* first is in flight: does the carrier keep second behind it itself? */
	bool (*follows)(const struct urxe_qp *qp, const struct urxe_wqe *first,
			const struct urxe_wqe *second);
	/*
	 * Somebody polls, or time has passed (ns of clock_now()): answer what can
	 * be.  Returns when to ask again, UINT64_MAX for never.
	 */
	uint64_t (*progress)(struct urxe_qp *qp, uint64_t now);
	/* Something is in flight, and was not: when to ask.  NULL: at once. */
	uint64_t (*due)(const struct urxe_qp *qp);
	/*
	 * What is in flight, or was and is queued again, is flushed or
	 * forgotten: it has no answer.  Also called where there is nothing, and
	 * from inside flight_answer() and requester_run().
	 */
	void (*cancel)(struct urxe_qp *qp);
};

/*
 * The answer to the WR in slot index, which is in flight.  It is completed when
 * those before it are; the guard is down.  Afterwards the carrier calls
 * requester_run() to have begun what was held back.
 */
void flight_answer(struct urxe_qp *qp, uint32_t index,
		   enum ibv_wc_status status);

/*
 * The WR in slot index, which is in flight, found no receive (WR_RNR) or nobody
 * who answers (WR_SILENT).  It, and what is in flight behind it, is queued and
 * parked, and will be begun once more; or it fails.  The guard is up, and then
 * down.
 */
void flight_park(struct urxe_qp *qp, struct run *r, uint32_t index,
		 enum verdict v);

/* After a fork: what is in flight is the parent's, who completes it. */
void flight_disown(struct urxe_qp *qp);

/* Have the carrier forget what is in flight, before the queue is emptied. */
void flight_cancel(struct urxe_qp *qp);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Outstanding WRs (in flight): begun, and not yet done.
 *
 * The slots of a send queue are, from the oldest:
 *
 *	tail ... done	completed, and not polled yet
 *	done ... begun	in flight
 *	begun ... prod	queued
 *
 * WRs are begun in order and completed in order (IB 10.8.3).  Responses to
 * WRs in flight may arrive in any order; wqe.answer records them.  The next
 * WR is held back in two cases: the specification's table of Work Request
 * Operation Ordering (order.h) has it follow a WR in flight, or a response
 * breaks the QP.
 *
 * A transport (struct urxe_carrier) sends requests and delivers responses.
 * Without one (qp->carrier is NULL, loopback) the requester executes a WR
 * when it begins it.  Then only WRITEs that are batched for one system call
 * are in flight, until ibv_post_send returns.  A transport, such as the
 * adversary or RoCE, begins each WR in its own way, and may deliver the
 * response later, when the program polls or the service thread runs.
 * qp->carrier is set while the queue is empty.
 */
#pragma once

#include "execute.h"
#include "order.h"

/* The operations of a transport, called with qp->lock held. */
struct urxe_carrier {
	/*
	 * Begin w.  The guard is raised.  Return WR_IN_FLIGHT; or, if the WR
	 * was executed at once, the verdict of execute().  With a transport
	 * execute() collects no batch.  WR_RNR and WR_SILENT park the queue.
	 * If progress() has to be called earlier than it has returned, the
	 * transport calls service_need(), also from progress() of another QP.
	 */
	enum verdict (*begin)(struct urxe_qp *qp, struct run *r,
			      struct urxe_wqe *w);
	/*
	 * Return whether the transport itself orders second after first,
	 * which is in flight.
	 */
	bool (*follows)(const struct urxe_qp *qp, const struct urxe_wqe *first,
			const struct urxe_wqe *second);
	/*
	 * Deliver responses: called by pollers and by the service thread with
	 * the time of clock_now().  Returns when to call it again, or
	 * UINT64_MAX.
	 */
	uint64_t (*progress)(struct urxe_qp *qp, uint64_t now);
	/*
	 * Return when progress() must first be called after the queue gets
	 * its first WR in flight.  NULL: at once.
	 */
	uint64_t (*due)(const struct urxe_qp *qp);
	/*
	 * Forget the WRs in flight, and those that were in flight and are
	 * queued again: they are flushed or dropped, and no response is
	 * delivered for them.  There may be none.  Also called from inside
	 * flight_answer() and requester_run().
	 */
	void (*cancel)(struct urxe_qp *qp);
};

/*
 * Deliver the response to the WR in slot index, which is in flight.  It is
 * completed when all WRs before it are.  The guard is not raised.  The
 * transport calls requester_run() afterwards, to begin WRs that were held
 * back.
 */
void flight_answer(struct urxe_qp *qp, uint32_t index,
		   enum ibv_wc_status status);

/*
 * Park the WR in slot index, which is in flight, after an RNR NAK (WR_RNR) or
 * a timeout (WR_SILENT).  The WR and those in flight after it are queued
 * again, to be begun once more; or the WR fails if no retries are left.  The
 * guard is raised on entry, and lowered on return.
 */
void flight_park(struct urxe_qp *qp, struct run *r, uint32_t index,
		 enum verdict v);

/* In the child of a fork: drop WRs in flight; the parent completes them. */
void flight_disown(struct urxe_qp *qp);

/* Call the transport's cancel(), before the queue is emptied. */
void flight_cancel(struct urxe_qp *qp);

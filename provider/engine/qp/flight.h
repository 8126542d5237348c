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
 * Operation Ordering (exec/order.h) has it follow a WR in flight, or a response
 * breaks the QP.
 *
 * A transport (struct urxe_transport) sends requests and delivers responses.
 * Without one (qp->transport is NULL, loopback) the requester executes a WR
 * when it begins it.  Then only WRITEs that are batched for one system call
 * are in flight, until ibv_post_send returns.  A transport, such as the
 * adversary or RoCE, begins each WR in its own way, and may deliver the
 * response later, when the program polls or the service thread runs.
 * qp->transport is set while the queue is empty.
 */
#pragma once

#include "qp.h"

struct run;

/* The result of an attempt to execute a WR. */
enum verdict {
	WR_DONE, /* executed; to be completed */
	WR_DROPPED, /* not received, no response expected; to be completed */
	WR_IN_FLIGHT, /* begun; the response comes later (flight.h) */
	WR_COMPLETED, /* executed and completed, along with the receive */
	WR_RNR, /* the responder has no receive: retry */
	WR_SILENT, /* no response: retry */
	WR_FAILED, /* to be completed with run.status */
};

/* The operations of a transport, called with qp->lock held. */
struct urxe_transport {
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
	 * requester_answer() and requester_run().
	 */
	void (*cancel)(struct urxe_qp *qp);
};

/* In the child of a fork: drop WRs in flight; the parent completes them. */
void flight_disown(struct urxe_qp *qp);

/* Call the transport's cancel(), before the queue is emptied. */
void flight_cancel(struct urxe_qp *qp);

/*
 * Update qp->in_flight and what the queue waits for, after done or begun moved.
 */
void flight_count(struct urxe_qp *qp);

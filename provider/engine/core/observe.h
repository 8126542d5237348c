/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Trace points of the engine.  Observers are callbacks of this process
 * (provider/recorder, provider/referee).  They are called in the thread that
 * executes a WR, with qp->lock held, and must not block.  Without observers a
 * trace point costs one test.
 *
 *	LEAVES		the WR is begun, also when it is retried
 *	ARRIVES		the requester's checks passed, and the responder (or a
 *			destination of a datagram) accepts the request
 *	ANSWERED	the result of the WR is known; once for each WR, in
 *			any order, and also if the WR is flushed later
 *	WAITS		the responder cannot accept the request now
 *	AGAIN		a timer expired and the request is retransmitted;
 *			retries between two expiries are not reported
 *
 * completes() is called when a CQE, of a send or of a receive, is published.
 */
#pragma once

#include <infiniband/verbs.h>

#include "base/compiler.h"
#include "shared/layout.h"

struct urxe_qp;
struct urxe_wqe;

enum observe_point {
	OBSERVE_LEAVES,
	OBSERVE_ARRIVES,
	OBSERVE_ANSWERED,
	OBSERVE_WAITS,
	OBSERVE_AGAIN,
};

/* An observer.  Callbacks may be NULL. */
struct urxe_observer {
	/*
	 * Argument what: for ARRIVES the QPN of the responder, for ANSWERED
	 * the enum ibv_wc_status, for WAITS and AGAIN the enum
	 * urxe_stall_kind, else 0.
	 */
	void (*request)(enum observe_point point, const struct urxe_qp *qp,
			const struct urxe_wqe *w, uint32_t what);
	/* An atomic was executed; the word had value old before. */
	void (*fetches)(const struct urxe_qp *qp, const struct urxe_wqe *w,
			uint64_t old);
	/* e is about to be published. */
	void (*completes)(const struct urxe_cqe *e);
	/* qp enters ERR, also by ibv_modify_qp, or SQE: qp_set_error(). */
	void (*breaks)(const struct urxe_qp *qp, enum ibv_qp_state state);
	struct urxe_observer *next; /* set by observer_add() */
};

/* List of observers, or NULL.  Changed only while no QP is in use. */
extern internal struct urxe_observer *urxe_observers;
void observer_add(struct urxe_observer *o);

void observe_request(enum observe_point point, const struct urxe_qp *qp,
		     const struct urxe_wqe *w, uint32_t what)
	__attribute__((cold));
void observe_fetch(const struct urxe_qp *qp, const struct urxe_wqe *w,
		   uint64_t old) __attribute__((cold));
void observe_completion(const struct urxe_cqe *e) __attribute__((cold));
void observe_break(const struct urxe_qp *qp, enum ibv_qp_state state);

static inline void observe(enum observe_point point, const struct urxe_qp *qp,
			   const struct urxe_wqe *w, uint32_t what)
{
	if (unlikely(urxe_observers != NULL))
		observe_request(point, qp, w, what);
}

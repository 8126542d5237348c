/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where the engine can be watched: by observers of the process, which are
 * called in the thread that works, with the QP's lock held, and must not block.
 * Without one it costs a test at each point.
 *
 * A request LEAVES when its WR is begun, also when it is tried again.  It
 * ARRIVES when its own side finds nothing wrong, and the responder, or a
 * destination of a datagram, listens to it.  Its WR is ANSWERED, once, when it
 * is known what became of it: in any order, and also if it is flushed later. It
 * WAITS when its responder cannot take it now, and goes out AGAIN each time a
 * timer expires; what is tried in between is no news.  A completion COMPLETES
 * when it is published, of a send or of a receive.
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

/* NULL: it does not look there. */
struct urxe_observer {
	/*
	 * what: ARRIVES, the QPN of the responder; ANSWERED, the enum
	 * ibv_wc_status; WAITS and AGAIN, the enum urxe_stall_kind; else 0.
	 */
	void (*request)(enum observe_point point, const struct urxe_qp *qp,
			const struct urxe_wqe *w, uint32_t what);
	/* An atomic was done, and found old. */
	void (*fetches)(const struct urxe_qp *qp, const struct urxe_wqe *w,
			uint64_t old);
	/* e is about to be published. */
	void (*completes)(const struct urxe_cqe *e);
	/* qp goes to ERR or SQE by itself. */
	void (*breaks)(const struct urxe_qp *qp, enum ibv_qp_state state);
	struct urxe_observer *next; /* the engine's */
};

/* Those who look; NULL: nobody.  Changed while no QP is used. */
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

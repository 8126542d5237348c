/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where the engine can be watched: one observer for the process, which is
 * called in the thread that works, with the QP's lock held, and must not block.
 * Without one it costs a test at each point.
 *
 * A request LEAVES when its WR is begun, also when it is tried again.  It
 * ARRIVES when its own side finds nothing wrong, and the responder, or a
 * destination of a datagram, listens to it.  Its WR is ANSWERED, once, when it
 * is known what became of it: in any order, and also if it is flushed later.  A
 * completion COMPLETES when it is published, of a send or of a receive.
 */
#pragma once

#include "base/compiler.h"
#include "shared/layout.h"

struct urxe_qp;
struct urxe_wqe;

enum observe_point { OBSERVE_LEAVES, OBSERVE_ARRIVES, OBSERVE_ANSWERED };

struct urxe_observer {
	/*
	 * what: ARRIVES, the QPN of the responder; ANSWERED, the enum
	 * ibv_wc_status; else 0.
	 */
	void (*request)(enum observe_point point, const struct urxe_qp *qp,
			const struct urxe_wqe *w, uint32_t what);
	/* e is about to be published. */
	void (*completes)(const struct urxe_cqe *e);
};

/* NULL: nobody looks.  Set while no QP is used. */
extern internal const struct urxe_observer *urxe_observer;

static inline void observe(enum observe_point point, const struct urxe_qp *qp,
			   const struct urxe_wqe *w, uint32_t what)
{
	if (unlikely(urxe_observer != NULL))
		urxe_observer->request(point, qp, w, what);
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Parked send queues and the IB timers.
 *
 * A WR that cannot go on (the responder has no receive, or does not answer)
 * stays at the head of its SQ.  It is tried again when somebody polls the
 * send CQ, when the peer posts a receive (it wakes our service thread), and
 * when a timer expires; only expiries count against rnr_retry and retry_cnt.
 */
#ifndef URXE_RETRY_H
#define URXE_RETRY_H

#include "urxe.h"

/* Park qp (its lock held).  False: no retries are allowed, fail at once. */
bool stall_begin(struct urxe_qp *qp, enum urxe_stall_kind kind);
void stall_end(struct urxe_qp *qp);

/* What a poller of cq does for its QPs before it looks at the ring. */
void retry_progress(struct urxe_cq *cq);

/*
 * Try every parked SQ of ctx; what the service thread does when it wakes.
 * Returns the next deadline, UINT64_MAX if nothing is parked.
 */
uint64_t retry_all(struct urxe_context *ctx);

/* service.c: a thread of ctx for the timers and for dead peers. */
void service_need(struct urxe_context *ctx);
void service_stop(struct urxe_context *ctx);
/* Wake the service threads of the context behind this arena. */
void service_wake(struct urxe_arena *arena);
void service_wake_slot(struct urxe_fabric *f, uint32_t slot);

/* In the child of a fork, where no service thread is. */
void service_after_fork(struct urxe_context *ctx);

#endif

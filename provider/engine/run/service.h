/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The service thread of a context: timers of parked QPs, delayed and kept
 * events, detection of exited peers.  It is created when it is first needed.
 * If it cannot be created, pollers do its work.
 */
#pragma once

#include "engine/core/context.h"

/*
 * Create the thread, or wake it for another round.  False if it cannot be
 * created.
 */
bool service_need(struct urxe_context *ctx);
/* The same, unless it wakes up by itself until time at of clock_now(). */
bool service_need_by(struct urxe_context *ctx, uint64_t at);
/* Is the calling thread the service thread of any context? */
bool service_is_me(void);
/* Do its work in a poller of CQ polled, if it could not be created. */
void service_run_by_poller(struct urxe_context *ctx, struct urxe_cq_sh *polled);
/* Stop the thread and wait for its end. */
void service_stop(struct urxe_context *ctx);

/*
 * Wake the service threads of the context of this arena, in all processes
 * that use it.
 */
void service_wake(struct urxe_arena *arena);
/*
 * Request that the context in slot lowers guards that are raised although no
 * requester executes (qp_check_guard()).
 */
void service_request_guard_check(struct urxe_fabric *f, uint32_t slot);
/*
 * Request that the context in slot unmaps files that it does not need; false
 * if there is no such context.
 */
bool service_request_unmap(struct urxe_fabric *f, uint32_t slot);
/* Wake the service threads of the context in slot. */
void service_wake_slot(struct urxe_fabric *f, uint32_t slot);

/* In the child of a fork, which has no service thread. */
void service_after_fork(struct urxe_context *ctx);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A context's service thread: timers, and peers that died; service.c. */
#pragma once

#include "context.h"

/* Have it run, or look again.  False: no thread can be made. */
bool service_need(struct urxe_context *ctx);
/* The same, but it is early enough at that time, of clock_now(). */
bool service_need_by(struct urxe_context *ctx, uint64_t at);
/* Is this thread one, of whichever context? */
bool service_is_me(void);
/* There is none, and somebody polls. */
void service_stand_in(struct urxe_context *ctx, struct urxe_cq_sh *polled);
void service_stop(struct urxe_context *ctx);

/* Wake the service threads of the context behind this arena. */
void service_wake(struct urxe_arena *arena);
/* Have the context in that slot lower the guards that nobody has up. */
void service_ask_guards(struct urxe_fabric *f, uint32_t slot);
/* Have it give back what files it has mapped that nobody needs; false: it is
 * gone. */
bool service_ask_back(struct urxe_fabric *f, uint32_t slot);
void service_wake_slot(struct urxe_fabric *f, uint32_t slot);

/* In the child of a fork, where no service thread is. */
void service_after_fork(struct urxe_context *ctx);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Checks of the memory of outstanding WRs.  queue.c, objects.c and leave.c
 * call these functions at the events below, under referee_lock(), except
 * memory_init() and memory_after_fork().
 */
#pragma once

#include "shadow.h"

/* The WR, the last of q, is about to be posted; sets wr->memory. */
void memory_posting(struct shadow_queue *q, struct shadow_wr *wr);
/*
 * The receive was posted.  It may have completed, but the program has not
 * seen that.
 */
void memory_posted(struct shadow_wr *wr);
/*
 * The WR is done: its completion, or that of a later WR of its send queue,
 * was polled and is about to be returned to the program.  For the WRs of a
 * send queue it is called in their order.  @wc: its own completion, or NULL.
 */
void memory_done(struct shadow_queue *q, struct shadow_wr *wr,
		 const struct ibv_wc *wc);
/* Free wr->memory.  wr is about to be freed, completed or not. */
void memory_forget(struct shadow_wr *wr);
/*
 * Called before memory_forget().  If wr is a READ or an atomic without
 * wr->memory, its result in fetch.c cannot be attributed: drop all results of
 * the queue.
 */
void memory_unknown(const struct shadow_queue *q, const struct shadow_wr *wr);
/*
 * An MR, MW or AH is about to be destroyed, or an MR to be re-registered.
 * Other types are ignored.
 */
void memory_ending(struct shadow *s);

/* A PD of the context was created; called for each PD. */
void memory_joins(struct ibv_context *context);
/* The context has no objects left, and is about to be closed. */
void memory_leaves(struct ibv_context *context);

/* Called once, before any other function. */
void memory_init(void);
/* Called in a forked child. */
void memory_after_fork(void);

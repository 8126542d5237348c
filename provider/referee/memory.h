/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The memory of WRs in flight: where the referee asks what is wrong with it.
 * All are called under referee_lock().
 */
#pragma once

#include "shadow.h"

/* The WR, the last of q, is about to be posted. */
void memory_posting(struct shadow_queue *q, struct shadow_wr *wr);
/* It was posted; it may be done, but that was not seen yet. */
void memory_posted(struct shadow_wr *wr);
/*
 * It is done, and so it is told in order of the queue: its completion, or that
 * of a later one, was polled and is about to be seen by the program.  wc is its
 * own completion, or NULL.
 */
void memory_done(struct shadow_queue *q, struct shadow_wr *wr,
		 const struct ibv_wc *wc);
/* wr is about to be freed, whatever became of it: wr->memory goes. */
void memory_forget(struct shadow_wr *wr);
/* The same, before it: if it has no memory, what it brought is nobody's. */
void memory_unknown(const struct shadow_queue *q, const struct shadow_wr *wr);
/* An MR, MW or AH is about to end, or an MR to be changed. */
void memory_ending(struct shadow *s);

/* A context has its first objects. */
void memory_joins(struct ibv_context *context);
/* It has none any more, and is about to be closed. */
void memory_leaves(struct ibv_context *context);

/* Once, before the first. */
void memory_init(void);
void memory_after_fork(void);

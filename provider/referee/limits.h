/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Checks of limits: a CQ that can be overrun, a full send queue without a
 * signaled WR, receives that are posted too late (RNR), and the memory that
 * the process may lock (RLIMIT_MEMLOCK).  Objects that were inherited by
 * fork(2) are not checked.
 */
#pragma once

#include "shadow.h"

/* A WR was added to q, or removed from it.  Under referee_lock(). */
void limits_posted(struct shadow_queue *q, const struct shadow_wr *wr);
void limits_left(struct shadow_queue *q, const struct shadow_wr *wr);

/*
 * The real post to the send queue returned @ret.  Not under referee_lock(),
 * which it takes.
 */
void limits_answered(struct shadow_qp *q, int ret);
/*
 * A WR of the send queue completed, or the QP was reset: it no longer waits
 * for a receive.  Under referee_lock().
 */
void limits_rnr_ended(struct shadow_qp *q);
/* The MR was registered or re-registered.  Under referee_lock(). */
void limits_memlock(const struct shadow_mr *m);
/*
 * Report the waits for receives, when the QP is destroyed, its context is
 * closed, or the process exits.  Under referee_lock().
 */
void limits_end(const struct shadow_qp *q);

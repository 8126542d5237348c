/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queues that are too small, or run short: a CQ that can be overrun, a send
 * queue that nothing will ever free, receives that came too late; and the
 * memory that a process may lock.
 */
#pragma once

#include "shadow.h"

/* A WR was put into q, or left it.  Under referee_lock(). */
void limits_posted(struct shadow_queue *q, const struct shadow_wr *wr);
void limits_left(struct shadow_queue *q, const struct shadow_wr *wr);

/* The post that the caller has passed on to its send queue returned ret. */
void limits_answered(struct shadow_qp *q, int ret);
/* A WR of the send queue completed.  Under referee_lock(). */
void limits_went_on(struct shadow_qp *q);
/* The MR was made, or moved.  Under referee_lock(). */
void limits_memlock(const struct shadow_mr *m);
/* The QP, or the process, ends.  Under referee_lock(). */
void limits_end(const struct shadow_qp *q);

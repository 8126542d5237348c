/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is common to ibv_post_send and the calls of struct ibv_qp_ex. */
#pragma once

#include "shadow.h"

/* NULL: it has none.  Without the lock. */
struct shadow_qp *posts_to(const struct ibv_qp *qp);
/*
 * The real post, after queue_post_begin() and queue_push(), returned ret; if it
 * failed the WR that was the nth of the queue, and those behind it, were
 * refused.
 */
void posts_done(struct shadow_qp *q, uint64_t nth, int ret);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is common to ibv_post_send and the calls of struct ibv_qp_ex. */
#pragma once

#include "shadow.h"

/* NULL: it has none.  Without the lock. */
struct shadow_qp *posts_to(const struct ibv_qp *qp);
/*
 * The real post, after queue_post_begin() and queue_push(), returned @ret.  If
 * it failed, the WR @bad of the list whose first WR was the @first of the
 * queue, and those behind it, were refused; all of them if @bad is NULL.
 */
void posts_done(struct shadow_qp *q, uint64_t first, int ret, const void *bad);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by ibv_post_send (posts.c) and struct ibv_qp_ex (posts_ex.c). */
#pragma once

#include "shadow.h"

/* Return the shadow of the QP, or NULL.  Takes referee_lock(). */
struct shadow_qp *posts_to(const struct ibv_qp *qp);
/*
 * Finish a post: the real post returned @ret, after queue_post_begin() and
 * queue_push().  The first WR of its list has number @first in the queue.  If
 * the post failed, @bad and the WRs behind it were refused; all WRs if @bad
 * is NULL.  Calls queue_post_end().  Takes referee_lock().
 */
void posts_done(struct shadow_qp *q, uint64_t first, int ret, const void *bad);

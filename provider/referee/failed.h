/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reports of WRs that fail, and of verbs that fail. */
#pragma once

#include "queue.h"

struct shadow_qp;

/*
 * Report that @wc, the completion of @wr, has an error status.  @q: the QP of
 * the completion, or NULL (not reported).  The caller has referee_lock().
 */
void failed_check(const struct shadow_qp *q, const struct shadow_queue *queue,
		  const struct shadow_wr *wr, const struct ibv_wc *wc);

/* Register with the log, to report verbs that fail.  Called once. */
void failed_watch(void);

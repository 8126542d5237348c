/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* WRs that fail, and verbs that are refused. */
#pragma once

#include "queue.h"

struct shadow_qp;

/* wc, of a WR of that queue and that QP (or NULL), has an error. */
void failed_look(const struct shadow_qp *q, const struct shadow_queue *queue,
		 const struct shadow_wr *wr, const struct ibv_wc *wc);

/* Tell what verbs refuse, too. */
void failed_watch(void);

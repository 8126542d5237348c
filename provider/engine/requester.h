/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The requester: begins and completes send work requests, in the thread that
 * posted them.
 */
#pragma once

#include "execute.h"

/* Begin what is queued, as far as it goes.  qp->lock is held. */
void requester_run(struct urxe_qp *qp);

/*
 * The WR that would be begun next failed: when those before it are done,
 * complete it with status, take the QP to the error state and flush it.
 * qp->lock is held.
 */
void requester_fail(struct urxe_qp *qp, enum ibv_wc_status status);

/* Complete w, in slot sq.done, which wants a completion or failed. */
void requester_complete(struct urxe_qp *qp, const struct urxe_wqe *w,
			enum ibv_wc_status status);

/*
 * Send the collection off and complete its WRs.  If it stops in the middle,
 * the WRs before that point are complete and the one there has failed.
 */
enum verdict requester_send_batch(struct urxe_qp *qp, struct run *r);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The requester: executes send work requests, here and on the peer, in the
 * thread that posted them.
 */
#ifndef URXE_REQUESTER_H
#define URXE_REQUESTER_H

#include "qp.h"

/* Execute what is queued, as far as it goes.  qp->lock is held. */
void requester_run(struct urxe_qp *qp);

/*
 * The WR at the head of the queue failed: complete it with status, take the
 * QP to the error state and flush it.  qp->lock is held.
 */
void requester_fail(struct urxe_qp *qp, enum ibv_wc_status status);

/* Complete the WR in slot index, which wants a completion or failed. */
void requester_complete(struct urxe_qp *qp, uint32_t index,
			enum ibv_wc_status status);

#endif

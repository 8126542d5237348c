/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Export what a send queue waits for, in shared memory (struct urxe_wait),
 * for diagnostic readers such as urxe why.  qp->lock is held.  The functions
 * are not called on the data path of a WR that does not wait.
 */
#pragma once

#include "qp.h"

/*
 * Record that the WR in slot head waits for what, or update the number of
 * queued WRs if it is recorded already.
 */
void wait_begin(struct urxe_qp *qp, enum urxe_wait_for what, uint32_t head);
/* Record the time of the next retry and the number of retries left. */
void wait_tries(struct urxe_qp *qp);
/* Record that queued WRs, if any, are not begun because the QP is in SQD. */
void wait_drained(struct urxe_qp *qp);
/* Record that the queue does not wait, except for WRs in a transport. */
void wait_end(struct urxe_qp *qp);
/* Record that a post failed because the send queue is full. */
void wait_full(struct urxe_qp *qp);
/* Clear the record, when the queue is emptied. */
void wait_forget(struct urxe_qp *qp);

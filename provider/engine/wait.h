/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a send queue waits for is told to those who look on (struct urxe_wait):
 * urxe why.  The QP's lock is held; nothing here is on the path of a WR that
 * goes on.
 */
#pragma once

#include "qp.h"

/* The WR in slot head waits; or still does, and more are queued. */
void wait_begin(struct urxe_qp *qp, enum urxe_wait_for what, uint32_t head);
/* When its next try is, and how many of them count. */
void wait_tries(struct urxe_qp *qp);
/* What is queued, if anything, is not begun: the QP is in SQD. */
void wait_drained(struct urxe_qp *qp);
/* It waits no more, but for what a carrier has. */
void wait_end(struct urxe_qp *qp);
/* A WR found no place. */
void wait_full(struct urxe_qp *qp);
/* The queue is emptied. */
void wait_forget(struct urxe_qp *qp);

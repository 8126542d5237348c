/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A receive of an SRQ that a message of another host has, of which not all
 * packets came (shared/wire.h), when its QP is at its end: it completes with
 * IBV_WC_WR_FLUSH_ERR, and so its place is free again.
 */
#pragma once

#include "peer.h"
#include "qp.h"

/* Of a QP with an SRQ; nobody is at it any more, and qp->lock is held. */
void taken_flush(struct urxe_qp *qp);

/*
 * Of an XRC target, or a further handle of one, which lives in the context p:
 * its SRQ may be any process's.  Is the holder of the wire at it, and stays,
 * it is left to him.  qp->lock is held.
 */
void taken_flush_target(struct urxe_qp *qp, struct urxe_peer *p);

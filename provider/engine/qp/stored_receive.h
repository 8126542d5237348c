/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Flush the receive of an SRQ that a message from another host has taken, if
 * not all its packets have arrived (shared/wire.h), when its QP enters ERR,
 * is reset or destroyed.  The receive completes with IBV_WC_WR_FLUSH_ERR,
 * which frees its slot.
 */
#pragma once

#include "engine/mem/peer.h"
#include "qp.h"

/*
 * For a QP with an SRQ.  The caller has waited until no requester uses the QP
 * (quiesce.h), and holds qp->lock.
 */
void stored_receive_flush(struct urxe_qp *qp);

/*
 * For an XRC target QP, or another handle of one, that lives in context p.
 * The SRQ may belong to any process.  If the socket owner uses the QP and
 * does not exit its critical section soon (quiesce_try()), nothing is done,
 * and the socket owner completes the receive.  qp->lock is held.
 */
void stored_receive_flush_target(struct urxe_qp *qp, struct urxe_peer *p);

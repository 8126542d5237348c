/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The error state.  A QP enters it because one of its own WRs failed, by
 * ibv_modify_qp, or because a peer's requester broke the connection with a
 * NAK.  The peer only changes the connection word and sets the CQ's attention
 * flag (cq_attention()).
 *
 * The flush completes each WR of both queues with IBV_WC_WR_FLUSH_ERR.  It is
 * always done by the QP's own process: when it posts, polls or modifies, and
 * in its service thread.
 */
#pragma once

#include "engine/mem/peer.h"
#include "qp.h"

/* Flush the send queue alone (SQE); qp->lock is held. */
void flush_sq(struct urxe_qp *qp);
/* Flush both queues; qp->lock is held and the QP is in ERR. */
void flush_qp(struct urxe_qp *qp);
/* The same for every QP of cq that is in ERR; ctx->lock is held. */
void flush_cq(struct urxe_cq *cq);
/*
 * Have the next poll of cq and the service thread retry a flush or a recovery
 * (rq_recover()) that could not be finished, for example because a peer's
 * requester still uses the receive queue.
 */
void flush_later(struct urxe_cq *cq);

/*
 * Raise IBV_EVENT_QP_LAST_WQE_REACHED once: a QP with an SRQ takes no more
 * receives from it.  The SRQ itself is not flushed (IB 11.2.5.2).
 */
void flush_last_wqe(struct urxe_peer *p, struct urxe_qp_sh *sh);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The error state.  A QP gets there by its own failing WR, by modify_qp, or
 * because a peer's requester broke the connection with a NAK; a peer only
 * moves the connection word and leaves a note (cq_attention).  The flush
 * itself, a completion with IBV_WC_WR_FLUSH_ERR for each WR in both queues,
 * is always done by the owner: when it posts, polls, or modifies.
 */
#pragma once

#include "peer.h"
#include "qp.h"

/* Flush the send queue alone (SQE); qp->lock is held. */
void flush_sq(struct urxe_qp *qp);
/* Flush what is queued; qp->lock is held and the QP is in ERR. */
void flush_qp(struct urxe_qp *qp);
/* The same for every QP of cq that is in ERR; ctx->lock is held. */
void flush_cq(struct urxe_cq *cq);
/* Have the next poll of cq, and the service thread, look again. */
void flush_later(struct urxe_cq *cq);

/*
 * An SRQ is not flushed (IB 11.2.5.2), but that its QP takes no more of it is
 * said, once.
 */
void flush_last_wqe(struct urxe_peer *p, struct urxe_qp_sh *sh);

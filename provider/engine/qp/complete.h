/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completions of send WRs.  The caller holds qp->lock, and the guard is
 * raised from the claim of a CQE until it is published (shared/cq_ring.h).
 */
#pragma once

#include "qp.h"
#include "wqe.h"

/* The opcode of the completion of a WR, by the opcode of the WR. */
extern const uint8_t wc_opcode_of[];

/* Fill a claimed CQ entry with the completion of the WR in slot sq.done. */
static inline void complete_fill(const struct urxe_qp *qp, uint64_t wr_id,
				 uint8_t opcode, uint32_t length,
				 enum ibv_wc_status status, struct urxe_cqe *e)
{
	cqe_fill(e, wr_id, qp->qpn, qp->sq.done, status, opcode);
	e->byte_len = length;
}

/* Claim a CQE; if the CQ is in error, move the QP to ERR and return false. */
static inline bool complete_begin(struct urxe_qp *qp, struct urxe_cqe_ref *ref)
{
	if (likely(cq_begin(&qp->scq->view, ref)))
		return true;
	qp_fatal(qp);
	return false;
}

/* Write the CQE of w in slot sq.done, which is signaled or has failed. */
void complete_send(struct urxe_qp *qp, const struct urxe_wqe *w,
		   enum ibv_wc_status status);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completions of send WRs. See complete.h. */
#include "complete.h"

const uint8_t wc_opcode_of[] = {
	[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
	[IBV_WR_SEND] = IBV_WC_SEND,
	[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
	[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
	[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
	[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
	[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
	[URXE_WR_FLUSH] = URXE_WC_FLUSH,
	[URXE_WR_ATOMIC_WRITE] = URXE_WC_ATOMIC_WRITE,
};

void complete_send(struct urxe_qp *qp, const struct urxe_wqe *w,
		   enum ibv_wc_status status)
{
	struct urxe_cqe_ref ref;

	if (unlikely(!complete_begin(qp, &ref)))
		return;
	qp->sq.signaled = qp->sq.done + 1;
	complete_fill(qp, w->wr_id, wc_opcode_of[w->opcode], w->length, status,
		      ref.slot.cqe);
	cq_end(&qp->scq->view, &ref, false);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Send queues: the layout of the ring, and the opcodes of each QP type.
 *
 * The ring is private to the process. Access is serialized by qp->lock.
 */
#include <stdlib.h>

#include "base/log2.h"
#include "qp.h"
#include "sq.h"
#include "wqe.h"

size_t sq_plan(struct urxe_sq *sq, const struct ibv_qp_cap *cap,
	       bool signal_all)
{
	uint32_t payload = cap->max_send_sge * sizeof(struct urxe_sge);
	uint32_t depth = pow2_up(cap->max_send_wr);

	if (cap->max_inline_data > payload)
		payload = cap->max_inline_data;
	sq->stride = (sizeof(struct urxe_wqe) + payload + 7) & ~7u;
	sq->mask = depth - 1;
	sq->max_wr = cap->max_send_wr;
	sq->max_sge = cap->max_send_sge;
	sq->max_inline = payload < URXE_MAX_INLINE ? payload : URXE_MAX_INLINE;
	sq->max_msg = URXE_MAX_MSG;
	sq->max_sge_rd = URXE_MAX_SGE;
	sq->signal_all = signal_all;
	return (size_t)depth * sq->stride;
}

bool sq_make_ring(struct urxe_sq *sq)
{
	sq->ring = calloc((size_t)sq->mask + 1, sq->stride);
	return sq->ring;
}

void sq_reset(struct urxe_sq *sq)
{
	sq->prod = 0;
	sq->begun = 0;
	sq->done = 0;
	sq->to_restart = 0;
	sq->signaled = 0;
	store_relaxed(&sq->tail, 0);
}

/* Opcodes allowed for each QP type; see man ibv_post_send and ibv_wr_post. */
#define RELIABLE_OPS                                                      \
	(WQE_BIT(IBV_WR_RDMA_READ) | WQE_BIT(IBV_WR_ATOMIC_CMP_AND_SWP) | \
	 WQE_BIT(IBV_WR_ATOMIC_FETCH_AND_ADD) |                           \
	 WQE_BIT(URXE_WR_ATOMIC_WRITE) | WQE_BIT(URXE_WR_FLUSH))
#define CONNECTED_OPS (WQE_SEND_OPS | WQE_WRITE_OPS | WQE_BARE_OPS)

const uint32_t sq_ops[SQ_TYPES] = {
	[IBV_QPT_RC] = CONNECTED_OPS | RELIABLE_OPS,
	[IBV_QPT_UC] = CONNECTED_OPS,
	[IBV_QPT_UD] = WQE_BIT(IBV_WR_SEND) | WQE_BIT(IBV_WR_SEND_WITH_IMM),
	[IBV_QPT_XRC_SEND] = CONNECTED_OPS | RELIABLE_OPS,
};

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Send queues: private rings of struct urxe_wqe. */
#ifndef URXE_SQ_H
#define URXE_SQ_H

#include "urxe.h"

static inline struct urxe_wqe *sq_slot(const struct urxe_sq *sq, uint32_t index)
{
	return (struct urxe_wqe *)(void *)(sq->ring + (uint64_t)(index &
								 sq->mask) *
							  sq->stride);
}

/* sq->pd says whose allocator is asked for the ring. */
int sq_create(struct urxe_sq *sq, const struct ibv_qp_cap *cap, bool signal_all);
void sq_destroy(struct urxe_sq *sq);
void sq_reset(struct urxe_sq *sq);

int urxe_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad);

#endif

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef URXE_POLL_H
#define URXE_POLL_H

#include "cq.h"

/*
 * The next completion, its queue slot already released and its inline bytes
 * placed; the caller holds cq->lock, reads the entry and releases it.
 */
bool poll_next(struct urxe_cq *cq, struct urxe_cqe **out);

static inline void poll_release(struct urxe_cq *cq, struct urxe_cqe *e)
{
	cq_ring_release(e, cq->head, cq->view.mask + 1);
	cq->head++;
}

/* Forget the completions of a QP that is destroyed or reset. */
void cq_clean(struct urxe_cq *cq, uint32_t qpn);

#endif

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qp.h"
#include "requester.h"
#include "sq.h"

static uint32_t pow2_up(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

int sq_create(struct urxe_sq *sq, const struct ibv_qp_cap *cap, bool signal_all)
{
	uint32_t payload = cap->max_send_sge * sizeof(struct urxe_sge);
	uint32_t depth = pow2_up(cap->max_send_wr ? cap->max_send_wr : 1);

	if (cap->max_inline_data > payload)
		payload = cap->max_inline_data;
	sq->stride = (sizeof(struct urxe_wqe) + payload + 7) & ~7u;
	sq->mask = depth - 1;
	sq->max_wr = cap->max_send_wr;
	sq->max_sge = cap->max_send_sge;
	sq->max_inline = cap->max_inline_data;
	sq->signal_all = signal_all;
	sq->ring = calloc(depth, sq->stride);
	return sq->ring ? 0 : -ENOMEM;
}

void sq_destroy(struct urxe_sq *sq)
{
	free(sq->ring);
}

void sq_reset(struct urxe_sq *sq)
{
	sq->prod = 0;
	sq->exec = 0;
	sq->comp = 0;
	atomic_store_explicit(&sq->tail, 0, memory_order_relaxed);
}

/* What an RC QP may be asked, and what of it may be inline. */
#define BIT(op) (1u << (op))
#define RC_OPS \
	(BIT(IBV_WR_RDMA_WRITE) | BIT(IBV_WR_RDMA_WRITE_WITH_IMM) | \
	 BIT(IBV_WR_SEND) | BIT(IBV_WR_SEND_WITH_IMM) | \
	 BIT(IBV_WR_RDMA_READ) | BIT(IBV_WR_ATOMIC_CMP_AND_SWP) | \
	 BIT(IBV_WR_ATOMIC_FETCH_AND_ADD))
#define INLINE_OPS \
	(BIT(IBV_WR_RDMA_WRITE) | BIT(IBV_WR_RDMA_WRITE_WITH_IMM) | \
	 BIT(IBV_WR_SEND) | BIT(IBV_WR_SEND_WITH_IMM))
#define SEND_FLAGS \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | \
	 IBV_SEND_INLINE)

static int put_inline(struct urxe_sq *sq, struct urxe_wqe *w,
		      const struct ibv_send_wr *wr)
{
	char *to = (char *)w->sge;
	uint64_t total = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		total += wr->sg_list[i].length;
		if (total > sq->max_inline)
			return EINVAL;
		memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
	w->length = total;
	return 0;
}

static void put_sges(struct urxe_wqe *w, const struct ibv_send_wr *wr)
{
	uint64_t total = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		w->sge[i].addr = wr->sg_list[i].addr;
		w->sge[i].length = wr->sg_list[i].length;
		w->sge[i].lkey = wr->sg_list[i].lkey;
		total += wr->sg_list[i].length;
	}
	w->length = total;
}

/* IB 11.4.1.1: what can be refused at once is refused, with nothing queued. */
static int push(struct urxe_qp *qp, const struct ibv_send_wr *wr)
{
	struct urxe_sq *sq = &qp->sq;
	struct urxe_wqe *w;

	if (unlikely((unsigned int)wr->opcode > 31 ||
		     !(RC_OPS & BIT(wr->opcode)) || wr->num_sge < 0 ||
		     (uint32_t)wr->num_sge > sq->max_sge ||
		     wr->send_flags & ~SEND_FLAGS))
		return EINVAL;
	if (unlikely(sq->prod - atomic_load_explicit(&sq->tail,
						     memory_order_acquire) >=
		     sq->max_wr))
		return ENOMEM;
	w = sq_slot(sq, sq->prod);
	w->wr_id = wr->wr_id;
	w->opcode = wr->opcode;
	w->flags = wr->send_flags;
	if (sq->signal_all)
		w->flags |= IBV_SEND_SIGNALED;
	w->num_sge = wr->num_sge;
	w->imm = wr->imm_data;
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		w->remote_addr = wr->wr.atomic.remote_addr;
		w->rkey = wr->wr.atomic.rkey;
		w->atomic.compare_add = wr->wr.atomic.compare_add;
		w->atomic.swap = wr->wr.atomic.swap;
	} else {
		w->remote_addr = wr->wr.rdma.remote_addr;
		w->rkey = wr->wr.rdma.rkey;
	}
	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		put_sges(w, wr);
	} else if (!(INLINE_OPS & BIT(wr->opcode)) || put_inline(sq, w, wr)) {
		return EINVAL;
	}
	sq->prod++;
	return 0;
}

int urxe_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad)
{
	struct urxe_qp *qp = to_uqp(ibqp);
	enum ibv_qp_state state;
	int ret = 0;

	urxe_lock(&qp->lock);
	state = qp_state(qp);
	if (unlikely(state < IBV_QPS_RTS)) {
		*bad = wr;
		ret = EINVAL;
		goto out;
	}
	for (; wr; wr = wr->next) {
		ret = push(qp, wr);
		if (unlikely(ret)) {
			*bad = wr;
			break;
		}
	}
	requester_run(qp);
out:
	urxe_unlock(&qp->lock);
	return ret;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Build a work request (WQE) in its SQ slot: the checks that ibv_post_send
 * and the ibv_wr_* calls share.  qp->lock is held.  Functions return 0 or an
 * errno value.  Errors that can be detected immediately are returned by the
 * verb (IB 11.4.1.1).
 *
 * A WR is built in the slot at sq.prod.  The caller increments sq.prod after
 * the WR is complete.
 */
#pragma once

#include <errno.h>
#include <string.h>

#include "qp.h"

#define WQE_BIT(op) (1u << (op))
#define WQE_SEND_OPS                                            \
	(WQE_BIT(IBV_WR_SEND) | WQE_BIT(IBV_WR_SEND_WITH_IMM) | \
	 WQE_BIT(IBV_WR_SEND_WITH_INV))
#define WQE_WRITE_OPS \
	(WQE_BIT(IBV_WR_RDMA_WRITE) | WQE_BIT(IBV_WR_RDMA_WRITE_WITH_IMM))
#define WQE_ATOMIC_OPS                        \
	(WQE_BIT(IBV_WR_ATOMIC_CMP_AND_SWP) | \
	 WQE_BIT(IBV_WR_ATOMIC_FETCH_AND_ADD))
/* The response is written to local memory. */
#define WQE_FETCH_OPS (WQE_BIT(IBV_WR_RDMA_READ) | WQE_ATOMIC_OPS)
/* A receive is consumed. */
#define WQE_RECEIVE_OPS (WQE_SEND_OPS | WQE_BIT(IBV_WR_RDMA_WRITE_WITH_IMM))
/* With imm_data, or the rkey that the responder invalidates */
#define WQE_IMM_OPS                                                      \
	(WQE_BIT(IBV_WR_SEND_WITH_IMM) | WQE_BIT(IBV_WR_SEND_WITH_INV) | \
	 WQE_BIT(IBV_WR_RDMA_WRITE_WITH_IMM))
/* With an rkey */
#define WQE_RKEY_OPS                                              \
	(WQE_WRITE_OPS | WQE_FETCH_OPS | WQE_BIT(URXE_WR_FLUSH) | \
	 WQE_BIT(URXE_WR_ATOMIC_WRITE))
#define WQE_INLINE_OPS (WQE_SEND_OPS | WQE_WRITE_OPS)
/* Without local data */
#define WQE_BARE_OPS (WQE_BIT(IBV_WR_LOCAL_INV) | WQE_BIT(IBV_WR_BIND_MW))
#define WQE_FLAGS                                                  \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | \
	 IBV_SEND_INLINE)

/* Opcodes that each enum ibv_qp_type supports, as WQE_BIT() masks; sq.c. */
#define SQ_TYPES 16
extern const uint32_t sq_ops[SQ_TYPES];

static inline bool sq_op_allowed(const struct urxe_sq *sq, uint32_t opcode)
{
	return opcode < 32 && sq->ops & WQE_BIT(opcode);
}

/*
 * Get the next slot and fill the common fields.  ENOMEM: the queue is full,
 * or its ring cannot be allocated.  EINVAL: opcode or flags are not
 * supported.
 */
static inline int wqe_begin(struct urxe_qp *qp, uint32_t opcode, uint32_t flags,
			    uint64_t wr_id, struct urxe_wqe **out)
{
	struct urxe_sq *sq = &qp->sq;
	struct urxe_wqe *w;

	if (unlikely(!sq_op_allowed(sq, opcode) || flags & ~WQE_FLAGS))
		return EINVAL;
	/* acquire: the poller has released the slot */
	if (unlikely(sq->prod - load_acquire(&sq->tail) >= sq->max_wr))
		return ENOMEM;
	if (unlikely(!sq->ring) && !sq_make_ring(sq))
		return ENOMEM;
	w = sq_slot(sq, sq->prod);
	w->wr_id = wr_id;
	w->opcode = opcode;
	w->flags = flags;
	if (sq->signal_all)
		w->flags |= IBV_SEND_SIGNALED;
	w->num_sge = 0;
	w->inv = URXE_INV_TO_DO;
	w->length = 0;
	*out = w;
	return 0;
}

static inline void wqe_rdma(struct urxe_wqe *w, uint32_t rkey,
			    uint64_t remote_addr)
{
	w->rkey = rkey;
	w->remote_addr = remote_addr;
}

static inline void wqe_atomic(struct urxe_wqe *w, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare_add,
			      uint64_t swap)
{
	wqe_rdma(w, rkey, remote_addr);
	w->atomic.compare_add = compare_add;
	w->atomic.swap = swap;
}

/* Set the destination of a datagram. */
static inline int wqe_ud(const struct urxe_qp *qp, struct urxe_wqe *w,
			 struct ibv_ah *ibah, uint32_t qpn, uint32_t qkey)
{
	const struct urxe_ah *ah;

	if (unlikely(!ibah))
		return EINVAL;
	ah = to_uah(ibah);
	w->foreign_ah = ah->pd != qp->sh->pd || ah->ctx->slot != qp->ctx->slot;
	w->ud.av = ah->av;
	w->dlid = ah->dlid;
	w->ud.qpn = qpn;
	w->ud.qkey = qkey;
	return 0;
}

/*
 * Fill in a bind of mw.  The consumer chooses the tag, the low bits, of rkey
 * (IB 10.6.7.2.6); the other bits are those of the window.  mw->rkey is set
 * to the resulting rkey.
 */
static inline void wqe_bind_fill(struct urxe_wqe *w, struct ibv_mw *mw,
				 uint32_t rkey,
				 const struct ibv_mw_bind_info *info)
{
	w->bind.addr = info->addr;
	w->bind.length = info->length;
	w->bind.mw_key = mw->rkey;
	mw->rkey = URXE_KEY_WITH_TAG(mw->rkey, rkey);
	w->bind.new_key = mw->rkey;
	w->bind.mr_key = info->mr ? info->mr->lkey : 0;
	w->bind.access = info->mw_access_flags;
}

/* Fill in IBV_WR_BIND_MW; type 1 windows are bound by ibv_bind_mw instead. */
static inline int wqe_bind(struct urxe_wqe *w, struct ibv_mw *mw, uint32_t rkey,
			   const struct ibv_mw_bind_info *info)
{
	if (unlikely(!mw || mw->type != IBV_MW_TYPE_2 ||
		     (info->length && !info->mr)))
		return EINVAL;
	wqe_bind_fill(w, mw, rkey, info);
	return 0;
}

static inline int wqe_sges(const struct urxe_sq *sq, struct urxe_wqe *w,
			   const struct ibv_sge *list, size_t n)
{
	uint64_t total = 0;
	size_t i;

	if (unlikely(n > sq->max_sge))
		return EINVAL;
	for (i = 0; i < n; i++) {
		w->sge[i].addr = list[i].addr;
		w->sge[i].length = list[i].length;
		w->sge[i].lkey = list[i].lkey;
		total += list[i].length;
	}
	w->num_sge = n;
	w->length = total;
	return 0;
}

/* Append bytes to the inline data of a WR. */
static inline int wqe_inline(const struct urxe_sq *sq, struct urxe_wqe *w,
			     const void *data, size_t len)
{
	if (unlikely(len > sq->max_inline - w->length))
		return EINVAL;
	if (len)
		memcpy((char *)w->sge + w->length, data, len);
	w->length += len;
	return 0;
}

/* Mark the WR as having inline data; EINVAL if its opcode cannot have it. */
static inline int wqe_inline_begin(struct urxe_wqe *w)
{
	if (unlikely(!(WQE_INLINE_OPS & WQE_BIT(w->opcode))))
		return EINVAL;
	w->flags |= IBV_SEND_INLINE;
	w->length = 0;
	w->num_sge = 0;
	return 0;
}

/*
 * Are placement type and selectivity level of a FLUSH defined?  At least one
 * of the two types has to be set, and no other (IB A19.4.2).
 */
static inline bool wqe_flush_is_defined(const struct urxe_wqe *w)
{
	const uint32_t types = URXE_FLUSH_GLOBAL | URXE_FLUSH_PERSISTENT;

	return w->flush.type && !(w->flush.type & ~types) &&
	       w->flush.level <= URXE_FLUSH_MR;
}

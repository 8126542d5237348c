// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_post_send(). A WR is first offered to the fast path (direct.h). WRs that
 * the fast path does not take are written to the ring of the send queue and
 * executed by the requester.
 */
#include <errno.h>

#include "direct.h"
#include "engine/core/log.h"
#include "engine/qp/qp.h"
#include "requester.h"
#include "sq_post.h"
#include "engine/qp/wait.h"
#include "engine/qp/wqe.h"

static int wqe_put_data(const struct urxe_sq *sq, struct urxe_wqe *w,
			const struct ibv_send_wr *wr)
{
	int i, ret;

	if (unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > sq->max_sge))
		return EINVAL;
	if (!(wr->send_flags & IBV_SEND_INLINE))
		return wqe_sges(sq, w, wr->sg_list, wr->num_sge);
	ret = wqe_inline_begin(w);
	for (i = 0; !ret && i < wr->num_sge; i++)
		ret = wqe_inline(sq, w,
				 (const void *)(uintptr_t)wr->sg_list[i].addr,
				 wr->sg_list[i].length);
	return ret;
}

/* Fill in what the opcode needs besides its data. */
static int wqe_put_op(struct urxe_qp *qp, struct urxe_wqe *w,
		      const struct ibv_send_wr *wr)
{
	w->imm = wr->imm_data; /* or the rkey to invalidate */
	switch ((unsigned int)wr->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		if (qp->type == IBV_QPT_UD)
			return wqe_ud(qp, w, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
				      wr->wr.ud.remote_qkey);
		return 0;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		return 0;
	case IBV_WR_RDMA_READ:
		if (unlikely(wr->num_sge > (int)qp->sq.max_sge_rd))
			return EINVAL;
		wqe_rdma(w, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		return 0;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case URXE_WR_ATOMIC_WRITE:
		wqe_rdma(w, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe_atomic(w, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
			   wr->wr.atomic.compare_add, wr->wr.atomic.swap);
		return 0;
	case IBV_WR_BIND_MW:
		return wqe_bind(w, wr->bind_mw.mw, wr->bind_mw.rkey,
				&wr->bind_mw.bind_info);
	}
	return EINVAL; /* struct ibv_send_wr has no fields for a FLUSH */
}

static int sq_push(struct urxe_qp *qp, const struct ibv_send_wr *wr)
{
	struct urxe_wqe *w;
	int ret;

	ret = wqe_begin(qp, wr->opcode, wr->send_flags, wr->wr_id, &w);
	if (unlikely(ret))
		return ret;
	ret = wqe_put_op(qp, w, wr);
	if (unlikely(ret))
		return ret;
	if (qp->type == IBV_QPT_XRC_SEND)
		w->srqn = wr->qp_type.xrc.remote_srqn;
	if (likely(!(WQE_BARE_OPS & WQE_BIT(w->opcode))))
		ret = wqe_put_data(&qp->sq, w, wr);
	if (likely(!ret))
		qp->sq.prod++;
	return ret;
}

/* Log why sq_push() refused a WR, if URXE_LOG is set. */
static void __attribute__((cold))
sq_log_refusal(const struct urxe_qp *qp, const struct ibv_send_wr *wr, int err)
{
	const struct urxe_sq *sq = &qp->sq;
	const unsigned int qpn = qp->qpn;

	if (err == ENOMEM && !sq->ring)
		urxe_log(
			"ibv_post_send: QP 0x%x: no memory for the %u slots of the send queue",
			qpn, sq->max_wr);
	else if (err == ENOMEM)
		urxe_log(
			"ibv_post_send: QP 0x%x: the send queue is full (max_send_wr %u): poll completions first",
			qpn, sq->max_wr);
	else if (!sq_op_allowed(sq, wr->opcode))
		urxe_log(
			"ibv_post_send: QP 0x%x: opcode %d (%s) is not supported by QPs of type %d%s%s",
			qpn, (int)wr->opcode, reason_op_name(wr->opcode),
			(int)qp->type,
			qp->ctx->profile.name[0] ? "; profile " : "",
			qp->ctx->profile.name);
	else if (wr->num_sge < 0 || (uint32_t)wr->num_sge > sq->max_sge)
		urxe_log(
			"ibv_post_send: QP 0x%x: %d SGEs, but max_send_sge is %u",
			qpn, wr->num_sge, sq->max_sge);
	else if (wr->opcode == IBV_WR_RDMA_READ &&
		 (uint32_t)wr->num_sge > sq->max_sge_rd)
		urxe_log(
			"ibv_post_send: QP 0x%x: a READ with %d SGEs, but max_sge_rd is %u",
			qpn, wr->num_sge, sq->max_sge_rd);
	else if (wr->send_flags & IBV_SEND_INLINE)
		urxe_log(
			"ibv_post_send: QP 0x%x: more inline data than max_inline_data (%u bytes), or an opcode without inline data",
			qpn, sq->max_inline);
	else
		urxe_log(
			"ibv_post_send: QP 0x%x: missing AH, window not of type 2, or unknown send_flags",
			qpn);
}

static void __attribute__((cold, noinline))
sq_refused(struct urxe_qp *qp, const struct ibv_send_wr *wr, int err)
{
	if (err == ENOMEM && qp->sq.ring)
		wait_full(qp);
	if (urxe_log_on)
		sq_log_refusal(qp, wr, err);
}

static int __attribute__((cold, noinline))
sq_post_early(const struct urxe_qp *qp, struct ibv_send_wr *wr,
	      struct ibv_send_wr **bad)
{
	urxe_why("ibv_post_send: QP 0x%x is in %s, not yet in RTS", qp->qpn,
		 reason_state_name(qp_state(qp)));
	*bad = wr;
	return errno = EINVAL;
}

/*
 * The general path. It is out of line so that the fast path saves fewer
 * registers.
 */
static int __attribute__((noinline))
sq_post_queue(struct urxe_qp *qp, struct ibv_send_wr *wr,
	      struct ibv_send_wr **bad)
{
	int ret = 0;

	for (; wr; wr = wr->next) {
		ret = sq_push(qp, wr);
		if (unlikely(ret)) {
			sq_refused(qp, wr, ret);
			*bad = wr;
			errno = ret;
			break;
		}
	}
	requester_run(qp);
	return ret;
}

static int __attribute__((noinline))
sq_post_slow(struct urxe_qp *qp, struct ibv_send_wr *wr,
	     struct ibv_send_wr **bad)
{
	return unlikely(qp_state(qp) < IBV_QPS_RTS) ?
		       sq_post_early(qp, wr, bad) :
		       sq_post_queue(qp, wr, bad);
}

int sq_post(struct urxe_qp *qp, struct ibv_send_wr *wr,
	    struct ibv_send_wr **bad)
{
	int ret = 0;

	urxe_lock(&qp->lock);
	if (likely(wr && qp_state(qp) == IBV_QPS_RTS))
		wr = direct_post(qp, wr);
	if (unlikely(wr))
		ret = sq_post_slow(qp, wr, bad);
	urxe_unlock(&qp->lock);
	return ret;
}

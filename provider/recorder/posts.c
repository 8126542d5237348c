// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Record the WRs and receives that the program posts. They are recorded
 * before the verb is called, so that POSTED precedes all other records of the
 * WR. If the verb refuses a WR, REFUSED follows.
 */
#include "engine/qp/wqe.h"
#include "recorder.h"
#include "trace/trace.h"
#include "verbs/qp.h"
#include "verbs/srq.h"

static struct pabi_ops next;

/*
 * Return the length of all SGEs; 0 if @n exceeds @max: the verb will refuse
 * the WR, and @sge may be invalid.
 */
static uint64_t sge_length(const struct ibv_sge *sge, int n, uint32_t max)
{
	uint64_t length = 0;
	int i;

	if (n < 0 || (uint32_t)n > max)
		return 0;
	for (i = 0; i < n; i++)
		length += sge[i].length;
	return length;
}

/* ------------------------------------------------------- ibv_post_* */

static void record_posted(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	uint32_t op = WQE_BIT(wr->opcode & 31);
	bool local = op & WQE_BARE_OPS, atomic = op & WQE_ATOMIC_OPS;
	bool rdma = !atomic && op & WQE_RKEY_OPS;

	trace(POSTED, qp->qp_num, wr->wr_id, wr->opcode, wr->send_flags,
	      local ? 0 : (uint64_t)wr->num_sge,
	      local ? 0 :
		      sge_length(wr->sg_list, wr->num_sge,
				 to_uqp(qp)->sq.max_sge),
	      atomic ? wr->wr.atomic.remote_addr :
	      rdma   ? wr->wr.rdma.remote_addr :
		       0,
	      atomic ? wr->wr.atomic.rkey :
	      rdma   ? wr->wr.rdma.rkey :
		       0);
}

static int recorder_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
			      struct ibv_send_wr **bad)
{
	const struct ibv_send_wr *w;
	uint32_t n = 0;
	int ret;

	/* not more than the queue has room for: the list may be circular */
	for (w = wr; w && n++ <= to_uqp(qp)->sq.max_wr; w = w->next)
		record_posted(qp, w);
	ret = next.post_send(qp, wr, bad);
	if (ret)
		trace(REFUSED, qp->qp_num, (*bad)->wr_id, (uint64_t)ret);
	return ret;
}

static void record_recv(uint32_t qpn, uint32_t srq, const struct urxe_rq *rq,
			const struct ibv_recv_wr *wr)
{
	uint32_t n = 0;

	for (; wr && n++ <= rq->max_wr; wr = wr->next)
		trace(RECV_POSTED, qpn, wr->wr_id, (uint64_t)wr->num_sge,
		      sge_length(wr->sg_list, wr->num_sge, rq->max_sge), srq);
}

static int recorder_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			      struct ibv_recv_wr **bad)
{
	int ret;

	record_recv(qp->qp_num, 0, &to_uqp(qp)->rq, wr);
	ret = next.post_recv(qp, wr, bad);
	if (ret)
		trace(REFUSED, qp->qp_num, (*bad)->wr_id, (uint64_t)ret, 1);
	return ret;
}

static int recorder_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
				  struct ibv_recv_wr **bad)
{
	uint32_t number = container_of(srq, struct pabi_srq, srq)->srq_num;
	int ret;

	record_recv(0, number, &to_usrq(srq)->rq, wr);
	ret = next.post_srq_recv(srq, wr, bad);
	if (ret)
		trace(REFUSED, 0, (*bad)->wr_id, (uint64_t)ret, 1);
	return ret;
}

/* ------------------------------------------------------- ibv_wr_* */

/*
 * The function that was replaced. It is the same for all QPs, except for a QP
 * for which another interposer had no memory; such a QP is not recorded.
 */
static int (*_Atomic next_complete)(struct ibv_qp_ex *);

static void record_built(const struct urxe_qp *qp, const struct urxe_wqe *w)
{
	bool rdma = WQE_BIT(w->opcode & 31) & WQE_RKEY_OPS;

	trace(POSTED, qp->qpn, w->wr_id, w->opcode, w->flags, w->num_sge,
	      w->length, rdma ? w->remote_addr : 0, rdma ? w->rkey : 0);
}

/*
 * Record the WRs of the batch, which are in the send queue, and post them.
 * ibv_wr_start() took qp->lock.
 */
static int recorder_wr_complete(struct ibv_qp_ex *ex)
{
	const struct urxe_vqp *vqp = to_vqp(&ex->qp_base);
	const struct urxe_sq *sq = &vqp->qp.sq;
	uint64_t first = 0;
	uint32_t i;
	int ret;

	for (i = vqp->qp.batch_first; i != sq->prod; i++)
		record_built(&vqp->qp, sq_slot(sq, i));
	if (vqp->batch.wqe)
		record_built(&vqp->qp, vqp->batch.wqe);
	if (vqp->qp.batch_first != sq->prod || vqp->batch.wqe)
		first = sq_slot(sq, vqp->qp.batch_first)->wr_id;
	ret = load_relaxed(&next_complete)(ex);
	if (ret)
		trace(REFUSED, ex->qp_base.qp_num, first, (uint64_t)ret);
	return ret;
}

void recorder_wrap_qp_ex(struct ibv_qp *qp)
{
	struct pabi_qp *v = container_of(qp, struct pabi_qp, qp);

	if (!v->qp_ex.wr_complete)
		return;
	if (!load_relaxed(&next_complete))
		store_relaxed(&next_complete, v->qp_ex.wr_complete);
	if (v->qp_ex.wr_complete == load_relaxed(&next_complete))
		v->qp_ex.wr_complete = recorder_wr_complete;
}

void recorder_wrap_posts(struct pabi_ops *ops)
{
	next = *ops;
	ops->post_send = recorder_post_send;
	ops->post_recv = recorder_post_recv;
	ops->post_srq_recv = recorder_post_srq_recv;
}

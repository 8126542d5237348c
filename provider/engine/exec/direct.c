// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fast path of RDMA WRITE, and the loop over lists of WRs; see direct.h.
 *
 * A WR on an idle send queue, whose memory is mapped here at both ends, is
 * executed and completed within ibv_post_send, without a WQE.  direct_fetch.c
 * has READs and atomics, direct_send.c has SENDs.
 *
 * The poster calls direct_post(), or direct_run() from ibv_wr_complete, with
 * qp->lock held and the QP in RTS.  Each pass sets the guard once.  A WR that
 * is not plainly in order is left to the requester, which handles all errors.
 * The only error here is an overrun of the CQ: the QP goes to ERR
 * (qp_fatal()).
 */
#include "direct_pass.h"

/*
 * Whether the fast path is open: the connection allows it (struct urxe_conn),
 * the send queue is empty, the QP has no transport of its own, and no
 * observer reads WQEs.
 */
static inline bool direct_is_free(const struct urxe_qp *qp)
{
	return qp->conn.direct && qp->sq.done == qp->sq.prod &&
	       !qp->transport && !urxe_observers;
}

/* Execute one WRITE.  False: nothing was done, the requester must do it. */
static inline bool write_one(struct urxe_qp *qp, struct direct *d,
			     const struct ibv_send_wr *wr)
{
	const uint64_t len = wr->sg_list->length;
	char *src, *dst;

	if (unlikely(len - 1 >= qp->sq.max_msg) ||
	    unlikely(!direct_source(qp, d, wr, &src) ||
		     !region_at(&qp->direct_dst, wr->wr.rdma.remote_addr, len,
				&dst)))
		return false;
	if (unlikely(!transfer_local_known(dst, src, len, d->safe)))
		return false;
	direct_count(qp, d, len);
	direct_complete(qp, d, wr, len, IBV_WC_RDMA_WRITE);
	return true;
}

/* Execute WRITEs to one rkey; return the first WR that is not done. */
static struct ibv_send_wr *write_pass(struct urxe_qp *qp,
				      struct ibv_send_wr *wr)
{
	const uint32_t rkey = wr->wr.rdma.rkey;
	struct direct d;

	direct_begin(qp, &d, GUARD_ONE_KEY(rkey));
	if (likely(d.room && direct_open(qp, rkey, IBV_ACCESS_REMOTE_WRITE))) {
		while (write_one(qp, &d, wr)) {
			wr = wr->next;
			if (!wr || !direct_is_write(wr) ||
			    wr->wr.rdma.rkey != rkey ||
			    !direct_may_continue(qp, &d))
				break;
		}
		direct_advance(qp, &d);
	}
	direct_end(qp);
	return wr;
}

void __attribute__((noinline))
direct_publish_slow(struct urxe_qp *qp, struct cq_slot slot)
{
	const struct urxe_cqe_ref ref = { .slot = slot };

	cq_end(&qp->scq->view, &ref, false);
}

void __attribute__((noinline))
direct_complete_slow(struct urxe_qp *qp, const struct ibv_send_wr *wr,
		     uint8_t opcode)
{
	struct urxe_cq_view *v = &qp->scq->view;
	struct urxe_cqe_ref ref;

	if (!cq_begin_unknown(v, &qp->direct_scq, &ref)) {
		qp_fatal(qp);
		return;
	}
	qp->sq.signaled = qp->sq.done + 1;
	complete_fill(qp, wr->wr_id, opcode, wr->sg_list->length,
		      IBV_WC_SUCCESS, ref.slot.cqe);
	cq_end(v, &ref, false);
}

void direct_after_fork(struct urxe_qp *qp)
{
	struct urxe_sq *sq = &qp->sq;

	conn_forget_direct(qp);
	/* a thread of the parent was in the middle of a pass */
	if ((int32_t)(sq->done - sq->prod) > 0)
		sq->begun = sq->prod = sq->done;
}

/*
 * Run the pass that @wr needs.  Return the first WR that is not done; @wr if
 * the fast path does not serve it.
 */
static inline struct ibv_send_wr *direct_pass(struct urxe_qp *qp,
					      struct ibv_send_wr *wr)
{
	if (likely(direct_is_write(wr)))
		return region_is_closed(&qp->direct_dst, qp->conn.peer,
					wr->wr.rdma.rkey) ?
			       wr :
			       write_pass(qp, wr);
	if (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM)
		return direct_send(qp, wr);
	return direct_fetch(qp, wr);
}

struct ibv_send_wr *direct_post(struct urxe_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *rest;

	while (direct_is_free(qp)) {
		rest = direct_pass(qp, wr);
		if (likely(!rest) || rest == wr)
			return rest;
		wr = rest;
		if (qp_state(qp) != IBV_QPS_RTS)
			break;
	}
	return wr;
}

/* ------------------------------------------------------- built WRs */

#define DIRECT_CHUNK 8

/* WQEs, converted back to a list of WRs. */
struct direct_list {
	struct ibv_send_wr wr[DIRECT_CHUNK];
	struct ibv_sge sge[DIRECT_CHUNK];
};

/* Convert the fields of the operation.  False: not a fast path operation. */
static inline bool list_set_op(struct ibv_send_wr *wr, const struct urxe_wqe *w)
{
	switch (w->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		wr->wr.rdma.rkey = w->rkey;
		wr->wr.rdma.remote_addr = w->remote_addr;
		return true;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		wr->imm_data = w->imm;
		return true;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->wr.atomic.rkey = w->rkey;
		wr->wr.atomic.remote_addr = w->remote_addr;
		wr->wr.atomic.compare_add = w->atomic.compare_add;
		wr->wr.atomic.swap = w->atomic.swap;
		return true;
	}
	return false;
}

/* Convert a WQE.  False: it is not suitable for the fast path. */
static inline bool list_set(struct ibv_send_wr *wr, struct ibv_sge *sge,
			    const struct urxe_wqe *w)
{
	if (w->flags & IBV_SEND_INLINE) {
		sge->addr = (uintptr_t)w->sge;
		sge->length = w->length;
	} else if (likely(w->num_sge == 1)) {
		sge->addr = w->sge[0].addr;
		sge->length = w->sge[0].length;
		sge->lkey = w->sge[0].lkey;
	} else {
		return false;
	}
	wr->wr_id = w->wr_id;
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->opcode = w->opcode;
	wr->send_flags = w->flags;
	return list_set_op(wr, w);
}

/*
 * Convert the WQEs from sq->prod up to @end, at most DIRECT_CHUNK, until one
 * is unsuitable.  NULL: the first one is.
 */
static struct ibv_send_wr *list_make(struct direct_list *l,
				     const struct urxe_sq *sq, uint32_t end)
{
	uint32_t i, n = end - sq->prod;

	for (i = 0; i < n && i < DIRECT_CHUNK; i++) {
		if (!list_set(&l->wr[i], &l->sge[i], sq_slot(sq, sq->prod + i)))
			break;
		l->wr[i].next = &l->wr[i + 1];
	}
	if (!i)
		return NULL;
	l->wr[i - 1].next = NULL;
	return l->wr;
}

void direct_run(struct urxe_qp *qp, uint32_t first)
{
	struct urxe_sq *sq = &qp->sq;
	const uint32_t end = sq->prod;
	struct ibv_send_wr *wr;
	struct direct_list l;

	sq->prod = first;
	while (sq->prod != end && qp_state(qp) == IBV_QPS_RTS &&
	       direct_is_free(qp)) {
		wr = list_make(&l, sq, end);
		if (!wr || direct_post(qp, wr))
			break;
	}
	sq->prod = end;
}

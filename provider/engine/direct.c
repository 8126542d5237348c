// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "direct_pass.h"

/* Nothing is before it in the queue, and nobody looks at WQEs. */
static inline bool direct_is_free(const struct urxe_qp *qp)
{
	return qp->conn.direct && qp->sq.done == qp->sq.prod && !qp->carrier &&
	       !urxe_observers;
}

/* False: it is left to the requester. */
static inline bool write_one(struct urxe_qp *qp, struct direct *d,
			     const struct ibv_send_wr *wr)
{
	const uint64_t len = wr->sg_list->length;
	char *src, *dst;

	if (unlikely(len - 1 >= URXE_MAX_MSG) ||
	    unlikely(!direct_source(qp, d, wr, &src) ||
		     !region_at(&qp->direct_dst, wr->wr.rdma.remote_addr, len,
				&dst)))
		return false;
	transfer_local(dst, src, len);
	direct_count(qp, d, len);
	direct_complete(qp, d, wr, len, IBV_WC_RDMA_WRITE);
	return true;
}

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
			    wr->wr.rdma.rkey != rkey || !direct_goes_on(qp, &d))
				break;
		}
		direct_served(qp, &d);
	}
	direct_end(qp);
	return wr;
}

void __attribute__((noinline))
direct_publish_late(struct urxe_qp *qp, struct cq_slot slot)
{
	const struct urxe_cqe_ref ref = { .slot = slot };

	cq_end(&qp->scq->view, &ref, false);
}

void __attribute__((noinline))
direct_complete_late(struct urxe_qp *qp, const struct ibv_send_wr *wr,
		     uint8_t opcode)
{
	struct urxe_cq_view *v = &qp->scq->view;
	struct urxe_cqe_ref ref;

	if (!cq_begin_unknown(v, &qp->direct_scq, &ref)) {
		qp_fatal(qp);
		return;
	}
	qp->sq.signaled = qp->sq.done + 1;
	direct_fill(qp, wr, wr->sg_list->length, opcode, ref.slot.cqe);
	cq_end(v, &ref, false);
}

bool direct_suits(const struct urxe_qp *qp)
{
	return qp->type == IBV_QPT_RC && qp->sq.max_sge && !qp->counts;
}

void direct_forget(struct urxe_qp *qp)
{
	region_forget(&qp->direct_rx);
	region_forget(&qp->direct_src);
	region_forget(&qp->direct_dst);
	cq_known_forget(&qp->direct_scq);
	cq_known_forget(&qp->direct_rcq);
}

void direct_after_fork(struct urxe_qp *qp)
{
	struct urxe_sq *sq = &qp->sq;

	direct_forget(qp);
	/* a thread that is the parent's was in the middle of a pass */
	if ((int32_t)(sq->done - sq->prod) > 0)
		sq->begun = sq->prod = sq->done;
}

/* The next pass; returns wr itself if there is none. */
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

/* Some WQEs as the WRs that they were built from. */
struct direct_list {
	struct ibv_send_wr wr[DIRECT_CHUNK];
	struct ibv_sge sge[DIRECT_CHUNK];
};

/* What the operation needs beside its data.  False: it does not go this way. */
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

/* As many as there are of it, up to end; NULL: none. */
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

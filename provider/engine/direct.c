// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "direct_pass.h"

/* Nothing is before it in the queue, and nobody looks at WQEs. */
static inline bool direct_is_free(const struct urxe_qp *qp)
{
	return qp->conn.peer && qp->sq.done == qp->sq.prod &&
	       qp->type == IBV_QPT_RC && qp->sq.max_sge && !qp->carrier &&
	       !qp->counts && !urxe_observers;
}

/* False: it is left to the requester. */
static inline bool write_one(struct urxe_qp *qp, struct direct *d,
			     const struct ibv_send_wr *wr)
{
	const uint64_t len = wr->sg_list->length;
	const char *src = direct_source(qp, d, wr);
	char *dst = region_at(&qp->direct_dst, wr->wr.rdma.remote_addr, len);

	if (unlikely(!src || !dst || !len || len > URXE_MAX_MSG))
		return false;
	transfer_local(dst, src, len);
	direct_count(qp, d, len);
	return true;
}

static struct ibv_send_wr *write_pass(struct urxe_qp *qp,
				      struct ibv_send_wr *wr)
{
	const uint32_t rkey = wr->wr.rdma.rkey;
	struct direct d;

	direct_begin(qp, &d, GUARD_ONE_KEY(rkey));
	if (likely(d.room && direct_open(qp, rkey, IBV_ACCESS_REMOTE_WRITE) &&
		   qp_state(qp) == IBV_QPS_RTS)) {
		while (write_one(qp, &d, wr)) {
			direct_complete(qp, wr);
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

void direct_forget(struct urxe_qp *qp)
{
	region_forget(&qp->direct_rx);
	region_forget(&qp->direct_src);
	region_forget(&qp->direct_dst);
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
	struct ibv_send_wr *rest = NULL;

	for (; wr && direct_is_free(qp); wr = rest) {
		rest = direct_pass(qp, wr);
		if (rest == wr)
			break;
	}
	return wr;
}

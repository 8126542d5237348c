// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Execution of a work request in parts, for the transports (flight.h); see
 * part.h. The caller holds qp->lock and has qp's guard raised.
 */
#include "engine/qp/comp_cntr.h"
#include "engine/core/observe.h"
#include "part.h"
#include "responder.h"
#include "engine/qp/wqe.h"

/* Source and destination of a message. */
struct part_ends {
	struct urxe_seg from[URXE_MAX_SGE], to[URXE_MAX_SGE];
};

/* Resolve the responder's side of an RDMA operation or atomic. */
static enum response part_remote(struct urxe_qp *qp, const struct urxe_wqe *w,
				 uint32_t access, struct urxe_seg *seg)
{
	return responder_access(&qp->conn, w->rkey, w->remote_addr, w->length,
				access, seg, NULL);
}

static enum response part_resolve(struct urxe_qp *qp, const struct urxe_wqe *w,
				  struct part_ends *e)
{
	bool reads = w->opcode == IBV_WR_RDMA_READ;
	enum response resp;

	resp = conn_ready(qp, w, false);
	if (resp)
		return resp;
	if (part_gather(qp, w, reads, reads ? e->to : e->from) < 0)
		return RESP_OTHER;
	switch (w->opcode) {
	case IBV_WR_RDMA_READ:
		return part_remote(qp, w, IBV_ACCESS_REMOTE_READ, e->from);
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return part_remote(qp, w, IBV_ACCESS_REMOTE_WRITE, e->to);
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return responder_resolve_receive(&qp->conn, w->length, e->to);
	}
	return RESP_OTHER;
}

/*
 * Check whether an atomic would be served. It is executed as a whole, by
 * part_finish().
 */
static enum response part_check_atomic(struct urxe_qp *qp,
				       const struct urxe_wqe *w)
{
	struct urxe_seg word, seg[URXE_MAX_SGE];
	enum response resp;

	if (w->length != 8 || w->remote_addr & 7)
		return RESP_OTHER;
	resp = conn_ready(qp, w, false);
	if (resp)
		return resp;
	if (part_gather(qp, w, true, seg) < 0)
		return RESP_OTHER;
	resp = part_remote(qp, w, IBV_ACCESS_REMOTE_ATOMIC, &word);
	return !resp && word.va & 7 ? RESP_OTHER : resp;
}

enum response part_check(struct urxe_qp *qp, const struct urxe_wqe *w,
			 uint32_t fetches)
{
	bool is_fetch = WQE_FETCH_OPS & WQE_BIT(w->opcode);
	struct part_ends e;
	enum response resp;

	if (wqe_is_local(w) || qp->type == IBV_QPT_UD ||
	    sq_too_long(&qp->sq, w))
		return RESP_OTHER;
	if (is_fetch && !qp->attr.max_rd_atomic)
		return RESP_OTHER;
	resp = WQE_ATOMIC_OPS & WQE_BIT(w->opcode) ? part_check_atomic(qp, w) :
						     part_resolve(qp, w, &e);
	if (resp)
		return resp;
	if (is_fetch && !part_has_resources(qp, fetches))
		return RESP_OTHER;
	if (w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM &&
	    !responder_has_receive(&qp->conn))
		return RESP_RNR;
	return RESP_ACK;
}

bool part_check_datagram(struct urxe_qp *qp, const struct urxe_wqe *w)
{
	struct urxe_seg seg[URXE_MAX_SGE];

	return w->length <= 1ull << qp->mtu_shift && !w->foreign_ah &&
	       part_gather(qp, w, false, seg) >= 0;
}

struct urxe_seg *part_skip(struct urxe_seg *seg, uint64_t off)
{
	for (; off && off >= seg->len; seg++)
		off -= seg->len;
	if (!off)
		return seg;
	if (seg->ptr)
		seg->ptr += off;
	seg->va += off;
	seg->len -= off;
	return seg;
}

enum response part_move(struct urxe_qp *qp, const struct urxe_wqe *w,
			uint64_t off, uint64_t len)
{
	struct part_ends e = { 0 };
	enum transfer_status status;
	enum response resp;

	resp = part_resolve(qp, w, &e);
	if (resp || !len)
		return resp;
	/* a READ must see all that was written before it */
	atomic_thread_fence(memory_order_seq_cst);
	status = transfer(part_skip(e.to, off), part_skip(e.from, off), len,
			  qp->ctx, false);
	return w->opcode == IBV_WR_RDMA_READ ? moved_from(status) :
					       moved_to(status);
}

enum verdict part_finish(struct urxe_qp *qp, struct run *r, struct urxe_wqe *w)
{
	enum response resp;

	if (w->opcode != IBV_WR_RDMA_READ && w->opcode != IBV_WR_RDMA_WRITE &&
	    w->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
		return execute(qp, r, w);
	resp = conn_ready(qp, w, false);
	if (resp)
		return execute_answered(qp, r, w, resp);
	observe(OBSERVE_ARRIVES, qp, w, qp->conn.qpn);
	if (w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		return execute_receive(qp, r, w, NULL, IBV_WC_SUCCESS);
	comp_cntr_remote(&qp->conn, w, false);
	return WR_DONE;
}

bool part_copy(struct urxe_qp *qp, const struct urxe_wqe *w, char *buf)
{
	struct urxe_seg dst = { .ptr = buf, .len = w->length };
	struct urxe_seg src[URXE_MAX_SGE];

	return part_gather(qp, w, false, src) >= 0 &&
	       transfer(&dst, src, w->length, qp->ctx, false) == TRANSFER_OK;
}

void part_fill(struct urxe_qp *qp, const struct urxe_wqe *w, uint8_t byte)
{
	struct urxe_seg seg[URXE_MAX_SGE];
	int i, n = part_gather(qp, w, true, seg);
	char bytes[1024];
	uint64_t off, len;

	memset(bytes, byte, sizeof(bytes));
	for (i = 0; i < n; i++)
		for (off = 0; seg[i].ptr && off < seg[i].len; off += len) {
			len = seg[i].len - off;
			if (len > sizeof(bytes))
				len = sizeof(bytes);
			if (!transfer_local(seg[i].ptr + off, bytes, len))
				break;
		}
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion counters of QPs (ibv_qp_attach_comp_cntr), see comp_cntr.h.
 *
 * The requester updates the counters of both ends, in shared memory; the
 * owner counts WRs that it flushes.  Counters are updated with release order:
 * a thread that acquires the count sees the data.  A program may read
 * counters and never poll, so reading makes progress, too
 * (verbs/comp_cntr.c).
 *
 * A QP's sh->cntr[] is in shared memory, so an index that is out of range, or
 * of no counter, is ignored.
 */
#include "comp_cntr.h"
#include "engine/mem/peer.h"
#include "shared/bitmap.h"
#include "wqe.h"

static void comp_cntr_add(struct urxe_arena *a, struct urxe_qp_sh *sh,
			  enum urxe_cntr_op op, bool failed, uint64_t bytes)
{
	uint32_t index = load_relaxed(&sh->cntr[op]);
	struct urxe_comp_cntr *c;

	if (!index || index >= URXE_MAX_COMP_CNTR ||
	    !bitmap_test(a->comp_cntr_map, index))
		return;
	c = &a->comp_cntr[index];
	if (failed)
		fetch_add_release(&c->failed, 1);
	else
		fetch_add_release(&c->done, c->bytes ? bytes : 1);
}

void comp_cntr_add_wr(const struct urxe_qp *qp, const struct urxe_wqe *w,
		      bool failed)
{
	const uint32_t op = WQE_BIT(w->opcode);
	struct urxe_arena *a = qp->ctx->arena;

	if (op & WQE_SEND_OPS)
		comp_cntr_add(a, qp->sh, URXE_CNTR_SEND, failed, w->length);
	else if (op & WQE_WRITE_OPS)
		comp_cntr_add(a, qp->sh, URXE_CNTR_WRITE, failed, w->length);
	else if (w->opcode == IBV_WR_RDMA_READ)
		comp_cntr_add(a, qp->sh, URXE_CNTR_READ, failed, w->length);
}

void comp_cntr_add_remote(const struct urxe_conn *c, const struct urxe_wqe *w,
			  bool failed)
{
	struct urxe_arena *a = c->peer->arena;

	if (WQE_BIT(w->opcode) & WQE_WRITE_OPS)
		comp_cntr_add(a, c->sh, URXE_CNTR_REMOTE_WRITE, failed,
			      w->length);
	else if (w->opcode == IBV_WR_RDMA_READ)
		comp_cntr_add(a, c->sh, URXE_CNTR_REMOTE_READ, failed,
			      w->length);
}

void comp_cntr_add_receive(const struct urxe_conn *c, const struct urxe_cqe *e)
{
	struct urxe_arena *a = c->peer->arena;

	comp_cntr_add(a, c->sh, URXE_CNTR_RECV, e->status, e->byte_len);
	/* a refused WRITE is counted where the NAK is made */
	if (e->opcode == IBV_WC_RECV_RDMA_WITH_IMM && !e->status)
		comp_cntr_add(a, c->sh, URXE_CNTR_REMOTE_WRITE, false,
			      e->byte_len);
}

void comp_cntr_add_flushed(const struct urxe_qp *qp, enum urxe_cntr_op op)
{
	comp_cntr_add(qp->ctx->arena, qp->sh, op, true, 0);
}

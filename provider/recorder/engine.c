// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the engine tells of requests (engine/observe.h), and why it refuses. */
#include "engine/log.h"
#include "engine/observe.h"
#include "engine/qp.h"
#include "engine/wqe.h"
#include "recorder.h"
#include "trace/trace.h"

/* What a parked request is begun with again and again is no news. */
static bool is_tried_again(const struct urxe_qp *qp)
{
	return qp->stall.kind != STALL_NONE;
}

/* What an opcode does not use is left over from another WR. */
static void record_left(const struct urxe_qp *qp, const struct urxe_wqe *w)
{
	uint32_t op = WQE_BIT(w->opcode & 31);
	bool rdma = op & WQE_RKEY_OPS, atomic = op & WQE_ATOMIC_OPS;

	trace(LEFT, qp->qpn, w->wr_id, w->opcode, qp->psn, w->length,
	      rdma ? w->remote_addr : 0, rdma ? w->rkey : 0,
	      op & WQE_IMM_OPS ? w->imm : 0, atomic ? w->atomic.compare_add : 0,
	      atomic ? w->atomic.swap : 0);
}

static void record_request(enum observe_point point, const struct urxe_qp *qp,
			   const struct urxe_wqe *w, uint32_t what)
{
	switch (point) {
	case OBSERVE_LEAVES:
		if (!is_tried_again(qp))
			record_left(qp, w);
		break;
	case OBSERVE_ARRIVES:
		if (!is_tried_again(qp))
			trace(ARRIVED, qp->qpn, w->wr_id, w->opcode, qp->psn,
			      what);
		break;
	case OBSERVE_ANSWERED:
		trace(ANSWERED, qp->qpn, w->wr_id, w->opcode, what);
		break;
	case OBSERVE_WAITS:
		trace(WAITS, qp->qpn, w->wr_id, w->opcode, what);
		break;
	case OBSERVE_AGAIN:
		trace(AGAIN, qp->qpn, w->wr_id, w->opcode, what);
		break;
	}
}

static void record_completion(const struct urxe_cqe *e)
{
	uint32_t flags = e->wc_flags & ~URXE_CQE_OWN_FLAGS;
	bool recv = e->opcode & IBV_WC_RECV;

	trace(COMPLETED, e->qpn, e->wr_id, e->opcode, e->status, e->byte_len,
	      flags, flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV) ? e->imm : 0,
	      recv ? e->src_qp : 0);
}

static void record_break(const struct urxe_qp *qp, enum ibv_qp_state state)
{
	trace(QP_BROKEN, qp->qpn, state);
}

static void record_why(const char *text)
{
	trace_text(TRACE_WHY, 0, text);
}

static struct urxe_observer observer = {
	.request = record_request,
	.completes = record_completion,
	.breaks = record_break,
};

void recorder_watch_engine(void)
{
	observer_add(&observer);
	urxe_log_also(record_why);
}

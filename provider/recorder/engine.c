// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Record the stages of requests in the engine, as an observer
 * (engine/core/observe.h), and why verbs and WRs fail (engine/core/log.h).
 * The functions run in the thread that executes the request or the verb,
 * those of requests with qp->lock held; they do not block.
 */
#include <string.h>

#include "engine/core/log.h"
#include "engine/core/observe.h"
#include "engine/qp/qp.h"
#include "engine/exec/ud.h"
#include "engine/qp/wqe.h"
#include "recorder.h"
#include "trace/trace.h"
#include "verbs/ah.h"

/*
 * Return true if the request was parked and is repeated: LEFT was recorded
 * for it.
 */
static bool is_begun_again(const struct urxe_qp *qp)
{
	return qp->stall.kind != STALL_NONE;
}

/*
 * Return true if an earlier attempt of the request reached its responder,
 * which had no receive. A request that was parked because the responder did
 * not respond (STALL_TRANSPORT) did not reach it.
 */
static bool arrived_before(const struct urxe_qp *qp)
{
	return qp->stall.kind == STALL_RNR;
}

/*
 * Return the PSN of the first packet of @w. The WRs in flight before @w come
 * first.
 */
static uint32_t psn_of(const struct urxe_qp *qp, const struct urxe_wqe *w)
{
	const struct urxe_sq *sq = &qp->sq;
	const struct urxe_wqe *before;
	uint64_t packets = qp->psn;
	uint32_t i;

	for (i = sq->done; i != sq->begun; i++) {
		before = sq_slot(sq, i);
		if (before == w)
			break;
		if (!wqe_is_local(before))
			packets += sq_packets(wqe_wire_length(before),
					      qp->mtu_shift);
	}
	return packets & URXE_PSN_MASK;
}

/*
 * Store the address of a datagram: the values from peer on of LEFT
 * (trace/events.h).
 */
static void left_address(const struct urxe_qp *qp, const struct urxe_wqe *w,
			 uint64_t *v)
{
	const struct urxe_dev *dev = qp->ctx->fabric->dev;
	const struct urxe_hca *hca = qp->ctx->hca;
	const struct urxe_av *av = &w->ud.av;

	v[0] = w->ud.qpn;
	v[1] = ud_qkey(qp, w);
	v[2] = av->hop_limit;
	v[3] = av->traffic_class;
	v[4] = av->flow_label;
	v[5] = hca->infiniband ?
		       (av->is_global ? URXE_IB_GLOBAL : URXE_IB_LOCAL) :
		       av_roce(av);
	if (v[5] != URXE_IB_LOCAL) {
		memcpy(v + 6, hca->gid[av->gid_row].raw, 16);
		memcpy(v + 8, av->dgid, 16);
	}
	v[10] = w->ud.qpn != URXE_MCAST_QPN && v[5] == URXE_ROCE_V2 &&
		qp->ctx->has_wire && !ah_gid_is_ours(dev, av->dgid);
	if (!hca->infiniband)
		return;
	v[11] = port_source_lid(&hca->subnet, av->device_or_bits);
	v[12] = w->dlid;
	v[13] = av->sl;
}

#define DATA_OPS (WQE_SEND_OPS | WQE_WRITE_OPS | WQE_BIT(URXE_WR_ATOMIC_WRITE))

/*
 * Record the payload of @w if its opcode is among @ops and payload is wanted.
 */
static void record_data(const struct urxe_qp *qp, const struct urxe_wqe *w,
			uint32_t ops)
{
	if (payload_is_wanted() && ops & WQE_BIT(w->opcode & 31))
		payload_record(qp, w, psn_of(qp, w));
}

/*
 * Record that @w is sent (LEFT). Fields that its opcode does not use are
 * recorded as 0: in the WQE they have the values of an earlier WR.
 */
static void record_left(const struct urxe_qp *qp, const struct urxe_wqe *w)
{
	uint32_t op = WQE_BIT(w->opcode & 31);
	bool rdma = op & WQE_RKEY_OPS, atomic = op & WQE_ATOMIC_OPS;
	bool inv = op &
		   (WQE_BIT(IBV_WR_SEND_WITH_INV) | WQE_BIT(IBV_WR_LOCAL_INV));
	bool flush = w->opcode == URXE_WR_FLUSH;
	uint64_t word = 0, v[] = {
		w->wr_id,
		w->opcode,
		psn_of(qp, w),
		w->length,
		rdma ? w->remote_addr : 0,
		rdma ? w->rkey : 0,
		op & WQE_IMM_OPS && !inv ? w->imm : 0,
		!!(w->flags & IBV_SEND_SOLICITED),
		atomic ? w->atomic.compare_add : 0,
		atomic ? w->atomic.swap : 0,
		inv ? w->imm : 0,
		0,
		flush ? w->flush.type : 0,
		flush ? w->flush.level : 0,
		qp->type == IBV_QPT_XRC_SEND ? w->srqn : 0,
		[28] = 0,
	};
	size_t n = sizeof(v) / sizeof(*v);

	if (w->opcode == URXE_WR_ATOMIC_WRITE && !w->num_sge) {
		memcpy(&word, w->write_data, sizeof(word));
		v[11] = word;
	}
	if (qp->type == IBV_QPT_UD)
		left_address(qp, w, v + 15);
	trace_at(clock_now(), TRACE_LEFT, qp->qpn, v, trace_used(v, n, 4));
	record_data(qp, w, DATA_OPS);
}

/*
 * Return the AETH syndrome of the response of a responder that has no receive
 * or expects another PSN (IB 9.7.5.2), 0 if it sends none.
 */
static uint32_t nak_of_wait(const struct urxe_qp *qp, uint32_t kind)
{
	const struct urxe_qp_sh *peer = qp->conn.sh;

	if (!peer)
		return 0;
	if (kind == STALL_RNR)
		return 0x20 | (load_relaxed(&peer->min_rnr_timer) & 31);
	return load_relaxed(&peer->epsn) != qp->psn ? 0x60 : 0;
}

/* Return the AETH syndrome that leads to @status, 0 if there is none. */
static uint32_t nak_of_status(const struct urxe_qp *qp, uint32_t status)
{
	switch (status) {
	case IBV_WC_REM_INV_REQ_ERR:
		return 0x61;
	case IBV_WC_REM_ACCESS_ERR:
		return 0x62;
	case IBV_WC_REM_OP_ERR:
		return 0x63;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return nak_of_wait(qp, STALL_RNR);
	}
	return 0;
}

static void record_request(enum observe_point point, const struct urxe_qp *qp,
			   const struct urxe_wqe *w, uint32_t what)
{
	switch (point) {
	case OBSERVE_LEAVES:
		if (!is_begun_again(qp))
			record_left(qp, w);
		break;
	case OBSERVE_ARRIVES:
		if (!arrived_before(qp))
			trace(ARRIVED, qp->qpn, w->wr_id, w->opcode,
			      psn_of(qp, w), what);
		break;
	case OBSERVE_ANSWERED:
		if (what == IBV_WC_SUCCESS)
			record_data(qp, w, WQE_BIT(IBV_WR_RDMA_READ));
		trace_short(ANSWERED, 3, qp->qpn, w->wr_id, w->opcode, what,
			    nak_of_status(qp, what));
		break;
	case OBSERVE_WAITS:
		trace_short(WAITS, 3, qp->qpn, w->wr_id, w->opcode, what,
			    nak_of_wait(qp, what));
		break;
	case OBSERVE_AGAIN:
		trace_short(AGAIN, 3, qp->qpn, w->wr_id, w->opcode, what,
			    nak_of_wait(qp, what));
		break;
	}
}

static void record_fetch(const struct urxe_qp *qp, const struct urxe_wqe *w,
			 uint64_t old)
{
	trace(FETCHED, qp->qpn, w->wr_id, w->opcode, old);
}

static void record_completion(const struct urxe_cqe *e)
{
	uint32_t flags = e->wc_flags & ~URXE_CQE_OWN_FLAGS;
	bool recv = e->opcode & IBV_WC_RECV;

	trace_short(COMPLETED, 3, e->qpn, e->wr_id, e->opcode, e->status,
		    e->byte_len, flags, flags & IBV_WC_WITH_IMM ? e->imm : 0,
		    recv ? e->src_qp : 0, flags & IBV_WC_WITH_INV ? e->imm : 0);
}

static void record_break(const struct urxe_qp *qp, enum ibv_qp_state state)
{
	trace(QP_BROKEN, qp->qpn, state);
}

static void record_why(uint32_t qpn, bool refusal, const char *text)
{
	(void)refusal;
	trace_text(TRACE_WHY, qpn, text);
}

static struct urxe_observer observer = {
	.request = record_request,
	.fetches = record_fetch,
	.completes = record_completion,
	.breaks = record_break,
};

void recorder_watch_engine(void)
{
	observer_add(&observer);
	urxe_log_also(record_why);
}

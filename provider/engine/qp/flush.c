// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Flushing the work queues of a QP in the error state (IB 10.3.1).
 *
 * A NAK or ibv_modify_qp takes a QP to ERR; the owner of the QP then
 * completes each WR with IBV_WC_WR_FLUSH_ERR, see flush.h.  flush_sq() and
 * flush_qp() run in the requester, in ibv_post_recv and in ibv_modify_qp,
 * with qp->lock held.  flush_cq() runs for the QPs of a CQ that has its
 * attention flag set, from a poll or from the service thread, with ctx->lock
 * held.
 *
 * Flushing does not wait for a peer that is using the receive queue.  If
 * there is one, flush_later() sets the attention flag again.  If the CQ
 * overruns, the remaining receives get no completion.
 */
#include "engine/copy/bounce.h"
#include "comp_cntr.h"
#include "complete.h"
#include "engine/cq/event.h"
#include "flight.h"
#include "flush.h"
#include "qp.h"
#include "engine/run/quiesce.h"
#include "engine/run/service.h"
#include "srq.h"
#include "stored_receive.h"
#include "wait.h"
#include "why.h"

void flush_sq(struct urxe_qp *qp)
{
	struct urxe_sq *sq = &qp->sq;

	stall_end(qp);
	flight_cancel(qp);
	if (sq->done != sq->prod)
		why_flushed(qp, "sends", sq->prod - sq->done,
			    sq_slot(sq, sq->done)->wr_id);
	qp_guard_raise(qp, GUARD_NOTHING); /* for the CQ */
	for (; sq->done != sq->prod; sq->done++) {
		comp_cntr_wr(qp, sq_slot(sq, sq->done), true);
		complete_send(qp, sq_slot(sq, sq->done), IBV_WC_WR_FLUSH_ERR);
	}
	guard_lower(qp->guard);
	sq->begun = sq->done;
	wait_end(qp);
}

/* Flush one receive; store its wr_id in *wr_id unless that is NULL. */
static void flush_recv(struct urxe_qp *qp, uint32_t index, uint64_t *wr_id)
{
	const struct urxe_recv *r = rq_slot(&qp->rq, index);
	struct urxe_cqe_ref ref;

	if (wr_id)
		*wr_id = load_relaxed(&r->wr_id);
	if (unlikely(qp->counts))
		comp_cntr_add_flushed(qp, URXE_CNTR_RECV);
	if (!cq_begin(&qp->rcq->view, &ref))
		return;
	cqe_fill(ref.slot.cqe, load_relaxed(&r->wr_id), qp->qpn,
		 rq_kept_set(&qp->rq) ? load_relaxed(&r->ticket) : index,
		 IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV);
	cq_end(&qp->rcq->view, &ref, false);
}

/*
 * Flush the receive queue.  False: the peer's requester or the owner of the
 * wire's socket is using it, or a bouncer is copying.  A receive may then be
 * taken and not completed yet.
 *
 * A receive that a dead peer took and never completed is between done and
 * cons, and is flushed with the rest.  A UD QP has many requesters: each
 * completes what it took (rq.h).
 */
static bool flush_rq(struct urxe_qp *qp)
{
	struct urxe_rq_sh *sh = qp->rq.sh;
	uint32_t cons, prod, done, left = qp->rq.max_wr, n = 0;
	uint64_t first = 0;

	if (!left)
		return true;
	if (qp->attr.dest_qp_num &&
	    quiesce_qp_busy(qp->ctx->fabric, qp->qpn, qp->attr.dest_qp_num))
		return false;
	prod = load_seq_cst(&sh->prod);
	cons = load_acquire(&sh->cons);
	done = load_acquire(&sh->done);
	/* a bouncer may still write to one that receive_return() returned */
	if (!bounce_quiesce_try(qp->ctx->fabric, qp->ctx->arena))
		return false;
	qp_guard_raise(qp, GUARD_NOTHING); /* for the CQ */
	if (!rq_kept_set(&qp->rq) && (int32_t)(cons - done) > 0 &&
	    cons - done <= qp->rq.max_wr)
		for (; done != cons; done++)
			flush_recv(qp, done, n++ ? NULL : &first);
	while (cons != prod && left) { /* bounded: peers can write cons */
		if (!cas_acq_rel(&sh->cons, &cons, cons + 1))
			continue;
		flush_recv(qp, cons++, n++ ? NULL : &first);
		left--;
	}
	guard_lower(qp->guard);
	store_release(&sh->done, cons);
	if (n)
		why_flushed(qp, "receives", n, first);
	return true;
}

void flush_last_wqe(struct urxe_peer *p, struct urxe_qp_sh *sh)
{
	if (!exchange_acq_rel(&sh->last_wqe, 1))
		event_raise(p, sh, IBV_EVENT_QP_LAST_WQE_REACHED);
}

/*
 * The flush has to be retried: by the next poll, and by the service thread,
 * because the program may sleep until the event of the flush.
 */
void flush_later(struct urxe_cq *cq)
{
	store_release(&cq->sh->attention, 1);
	service_need(cq->ctx);
}

/*
 * The QP has an SRQ: raise IBV_EVENT_QP_LAST_WQE_REACHED once, when no
 * message for this QP can take a receive any more.
 */
static void flush_srq(struct urxe_qp *qp)
{
	if (load_relaxed(&qp->sh->last_wqe))
		return;
	/* a peer may be about to complete a receive */
	if (quiesce_qp_busy(qp->ctx->fabric, qp->qpn, qp->attr.dest_qp_num) ||
	    !bounce_quiesce_try(qp->ctx->fabric, qp->ctx->arena)) {
		flush_later(qp->rcq);
		return;
	}
	stored_receive_flush(qp);
	flush_last_wqe(qp->ctx->self, qp->sh);
}

void flush_qp(struct urxe_qp *qp)
{
	why_log_broken(qp);
	flush_sq(qp);
	if (!qp->rq.sh) {
		if (qp->srq)
			flush_srq(qp);
		else if (qp->type == IBV_QPT_XRC_RECV)
			stored_receive_flush_target(qp, qp->ctx->self);
		return;
	}
	urxe_lock_outside(&qp->rq.lock);
	if (!flush_rq(qp))
		flush_later(qp->rcq);
	urxe_unlock_outside(&qp->rq.lock);
}

/* False: another thread has the QP; try again. */
static bool flush_if_error(struct urxe_qp *qp)
{
	if (qp_state(qp) != IBV_QPS_ERR)
		return true;
	if (!qp_enter(qp))
		return false;
	flush_qp(qp);
	qp_leave(qp);
	return true;
}

void flush_cq(struct urxe_cq *cq)
{
	struct urxe_qp *qp;
	bool all = true;

	for (qp = cq->send_qps; qp; qp = qp->scq_next)
		all &= flush_if_error(qp);
	for (qp = cq->recv_qps; qp; qp = qp->rcq_next)
		all &= flush_if_error(qp);
	if (!all)
		flush_later(cq);
}

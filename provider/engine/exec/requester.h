/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The requester: begins and completes send work requests.  It runs in the
 * thread that posts, and for retries and transports in pollers and the
 * service thread (retry.h).  The caller holds qp->lock.
 */
#pragma once

#include "engine/qp/complete.h"
#include "execute.h"
#include "engine/qp/wqe.h"

/*
 * Begin queued WRs until the queue is empty, or one has to wait or fails.
 * qp->lock is held, and the guard is not raised.
 */
void requester_run(struct urxe_qp *qp);

/*
 * Fail the WR that is to be begun next.  When all WRs before it are done,
 * complete it with status, move the QP to the error state and flush it.
 * qp->lock is held.
 */
void requester_fail(struct urxe_qp *qp, enum ibv_wc_status status);

/* Advance the PSNs of both ends, and count, for executed requests. */
static inline void requester_executed(struct urxe_qp *qp, uint64_t packets,
				      uint64_t bytes)
{
	qp->psn = (qp->psn + packets) & URXE_PSN_MASK;
	qp->count.packets += packets;
	qp->count.bytes += bytes;
	if (qp->conn.sh)
		store_relaxed(&qp->conn.sh->epsn, qp->psn);
}

/*
 * Completion of a message at both ends.  The send completion has to be
 * visible before the receive completion.  The peer may reply as soon as it
 * sees its receive completion, and the reply must not be polled before the
 * completion of the original send.  (With a NIC a packet takes more time than
 * that.) Hence the order is:
 *
 *	requester_claim()	claim the entry of the send CQ
 *	requester_finish()	publish the send completion
 *	responder_publish()	publish the receive completion
 *	requester_notify()	raise the event of the send CQ
 *	responder_notify()	raise the event of the receive CQ
 *
 * If both ends use the same CQ, the order in the CQ is the same, too.  For a
 * multicast datagram the send completion, which returns the buffer, is
 * published after the copy to the last destination.  Replies of other
 * destinations are behind it nevertheless, because its entry was claimed
 * before.
 */
struct requester_end {
	bool turn; /* no WR before it is in flight */
	bool claimed, notify, solicited;
	struct urxe_cqe_ref ref;
};

/*
 * Claim the entry for w, which is being begun.  The caller must then call
 * requester_finish().
 */
void requester_claim(struct urxe_qp *qp, const struct urxe_wqe *w,
		     struct requester_end *end);
/*
 * Complete w.  Returns WR_COMPLETED, or WR_DONE if WRs before it are in
 * flight, so that it has to be completed later.
 */
enum verdict requester_finish(struct urxe_qp *qp, const struct urxe_wqe *w,
			      struct requester_end *end);

static inline void requester_notify(struct urxe_qp *qp,
				    const struct requester_end *end)
{
	if (unlikely(end->notify))
		cq_notify(&qp->scq->view, end->ref.slot.pos, end->solicited);
}

/*
 * Deliver the response to the WR in slot index, which is in flight.  It is
 * completed when all WRs before it are.  The guard is not raised.  The
 * transport calls requester_run() afterwards, to begin WRs that were held
 * back.
 */
void requester_answer(struct urxe_qp *qp, uint32_t index,
		      enum ibv_wc_status status);

/*
 * Park the WR in slot index, which is in flight, after an RNR NAK (WR_RNR) or
 * a timeout (WR_SILENT).  The WR and those in flight after it are queued
 * again, to be begun once more; or the WR fails if no retries are left.  The
 * guard is raised on entry, and lowered on return.
 */
void requester_park_flight(struct urxe_qp *qp, struct run *r, uint32_t index,
			   enum verdict v);

/*
 * Copy the batched WRITEs and complete their WRs.  If the copy stops in the
 * middle, WRs before that point are completed, and the result is that of the
 * WR at that point.
 */
enum verdict requester_send_batch(struct urxe_qp *qp, struct run *r);

/*
 * The remote objects that w uses (GUARD_*).  The lkeys of a receive are not
 * known yet.
 */
static inline uint32_t requester_uses(const struct urxe_wqe *w)
{
	if (likely(WQE_RKEY_OPS & WQE_BIT(w->opcode)))
		return GUARD_ONE_KEY(w->rkey) |
		       (w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ?
				GUARD_RECEIVE :
				GUARD_NOTHING);
	return wqe_is_local(w) ? GUARD_NOTHING : GUARD_SEND;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The requester: begins and completes send work requests, in the thread that
 * posted them.
 */
#pragma once

#include "execute.h"
#include "wqe.h"

/* Begin what is queued, as far as it goes.  qp->lock is held. */
void requester_run(struct urxe_qp *qp);

/*
 * The WR that would be begun next failed: when those before it are done,
 * complete it with status, take the QP to the error state and flush it.
 * qp->lock is held.
 */
void requester_fail(struct urxe_qp *qp, enum ibv_wc_status status);

/* Requests were served: the PSNs of their packets are used. */
static inline void requester_served(struct urxe_qp *qp, uint64_t packets,
				    uint64_t bytes)
{
	qp->psn = (qp->psn + packets) & URXE_PSN_MASK;
	qp->count.packets += packets;
	qp->count.bytes += bytes;
	if (qp->conn.sh)
		store_relaxed(&qp->conn.sh->epsn, qp->psn);
}

/* Complete w, in slot sq.done, which wants a completion or failed. */
void requester_complete(struct urxe_qp *qp, const struct urxe_wqe *w,
			enum ibv_wc_status status);

/*
 * A message completes at both ends, and this end's completion is seen first:
 * the peer may answer as soon as it sees its own, from another CPU or because
 * its event woke it, and the answer must not be polled before the completion of
 * what it answers.  A NIC has the time that a packet takes.  So:
 *
 *	requester_claim()	our entry of our CQ
 *	requester_finish()	our completion is published
 *	responder_publish()	the peer's is
 *	requester_notify()	our event
 *	responder_notify()	the peer's event
 *
 * If both ends have one CQ it has send and receive in this order, too.  Where a
 * datagram goes to many, our completion, which gives the buffer back, has to
 * wait for the last of them; but their answers lie behind what was claimed.
 */
struct requester_end {
	bool turn; /* nothing is in flight before it */
	bool claimed, notify, solicited;
	struct urxe_cqe_ref ref;
};

/* w, which is begun now, is served: from here it must be finished. */
void requester_claim(struct urxe_qp *qp, const struct urxe_wqe *w,
		     struct requester_end *end);
/* WR_COMPLETED, or WR_DONE: its turn comes later. */
enum verdict requester_finish(struct urxe_qp *qp, const struct urxe_wqe *w,
			      struct requester_end *end);

static inline void requester_notify(struct urxe_qp *qp,
				    const struct requester_end *end)
{
	if (unlikely(end->notify))
		cq_notify(&qp->scq->view, end->ref.slot.pos, end->solicited);
}

/*
 * Send the collection off and complete its WRs.  If it stops in the middle,
 * the WRs before that point are complete and the one there has failed.
 */
enum verdict requester_send_batch(struct urxe_qp *qp, struct run *r);

/* What w uses of the other side; what a receive names is not known yet. */
static inline uint32_t requester_uses(const struct urxe_wqe *w)
{
	if (likely(WQE_RKEY_OPS & WQE_BIT(w->opcode)))
		return GUARD_ONE_KEY(w->rkey) |
		       (w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ?
				GUARD_RECEIVE :
				GUARD_NOTHING);
	return wqe_is_local(w) ? GUARD_NOTHING : GUARD_SEND;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fast path of SEND; see direct.h.
 *
 * direct_post() calls direct_send(), with qp->lock held.  A SEND takes the
 * next receive if that is of the remote QP's own queue, has one SGE and room
 * enough, and its memory is mapped here.  Otherwise nothing is taken, and the
 * requester sends it.  If the send CQ overruns, the QP goes to ERR
 * (qp_fatal()).
 */
#include "direct_pass.h"
#include "responder.h"

/*
 * Longest SEND of the fast path.  Its guard names all lkeys of the receiver's
 * PD (GUARD_SEND), so a longer copy would hold up deregistration there.
 */
#define DIRECT_SEND_MAX 4096

/* Find the address of the receive's memory.  False: no fast path. */
static inline bool direct_sink(struct urxe_qp *qp, const struct next_receive *n,
			       uint64_t len, char **at)
{
	struct urxe_region *r = &qp->direct_rx;
	struct urxe_rx *rx = &qp->conn.rx;

	if (unlikely(len - 1 >= DIRECT_SEND_MAX || len > n->sge.length))
		return false;
	if (unlikely(!region_holds(r, n->sge.lkey)) &&
	    !region_open(r, rx_peer(rx), n->sge.lkey, rx->pd,
			 IBV_ACCESS_LOCAL_WRITE, qp->conn.qpn))
		return false;
	return region_at(r, n->sge.addr, len, at);
}

/*
 * Complete a SEND at both ends, in the order that requester.h defines.  The
 * remote QP has no completion counters, or conn.allows would be 0.
 */
static inline void direct_send_complete(struct urxe_qp *qp,
					const struct direct *d,
					const struct ibv_send_wr *wr,
					struct receipt *rc)
{
	struct urxe_cq_view *ours = &qp->scq->view, *theirs = &qp->conn.rx.cq;
	const bool signaled = direct_is_signaled(qp, wr);
	const uint32_t len = wr->sg_list->length;
	bool notify = false, solicited = false, claimed;
	struct urxe_cqe_ref ref;

	claimed = signaled &&
		  cq_begin_known(ours, &qp->direct_scq, d->me, &ref);
	if (unlikely(signaled && !claimed))
		qp_fatal(qp);
	if (unlikely(claimed && theirs->sh == ours->sh))
		responder_order_after(rc, &ref);
	requester_executed(qp, sq_packets(len, qp->mtu_shift), len);
	if (claimed) {
		qp->sq.signaled = qp->sq.done + 1;
		direct_fill(qp, wr, len, IBV_WC_SEND, ref.slot.cqe);
		notify = cq_publish_known(ours, &qp->direct_scq, &ref,
					  &solicited);
	}
	qp->sq.begun = qp->sq.prod = ++qp->sq.done;
	rc->notify = cq_publish_known(theirs, &qp->direct_rcq, &rc->ref,
				      &rc->solicited);
	store_release(&qp->conn.rx.rq.sh->done, rc->index + 1);
	if (unlikely(notify))
		cq_notify(ours, ref.slot.pos, solicited);
	responder_notify(rc);
}

/* Execute one SEND.  False: it was not sent, the requester must do it. */
static bool direct_send_one(struct urxe_qp *qp, struct direct *d,
			    const struct ibv_send_wr *wr)
{
	const uint64_t len = wr->sg_list->length;
	struct next_receive n;
	struct receipt rc;
	char *src, *dst;

	if (!responder_next(&qp->conn, &n))
		return false;
	if (unlikely(!direct_source(qp, d, wr, &src) ||
		     !direct_sink(qp, &n, len, &dst)))
		return false;
	/*
	 * The receive is not taken by anything else meanwhile: a flush waits
	 * for the guard.
	 */
	if (unlikely(!transfer_local(dst, src, len) ||
		     !responder_take_next(qp, wr, &n, d->me, &rc)))
		return false;
	direct_send_complete(qp, d, wr, &rc);
	return true;
}

static inline bool direct_is_send(const struct ibv_send_wr *wr)
{
	return (wr->opcode == IBV_WR_SEND ||
		wr->opcode == IBV_WR_SEND_WITH_IMM) &&
	       direct_fits(wr);
}

/* Execute SENDs; return the first WR that is not done. */
static struct ibv_send_wr *direct_send_pass(struct urxe_qp *qp,
					    struct ibv_send_wr *wr)
{
	struct direct d;

	direct_begin(qp, &d, GUARD_SEND);
	while (d.room && direct_conn_ok(qp, CONN_ALLOWS_SEND) &&
	       direct_send_one(qp, &d, wr)) {
		wr = wr->next;
		if (!wr || !direct_is_send(wr) || qp_state(qp) != IBV_QPS_RTS)
			break;
		d.room--;
	}
	direct_end(qp);
	return wr;
}

/* SENDs for each attempt while the receives' memory is not mapped here. */
#define DIRECT_SEND_RETRY 64

/* Whether the last receive's memory was not mapped; count the SEND. */
static inline bool direct_send_backs_off(struct urxe_qp *qp)
{
	const struct urxe_region *r = &qp->direct_rx;

	return r->key && region_is_closed(r, qp->conn.peer, r->key) &&
	       ++qp->direct_send_skipped % DIRECT_SEND_RETRY;
}

struct ibv_send_wr *direct_send(struct urxe_qp *qp, struct ibv_send_wr *wr)
{
	if (!direct_is_send(wr) || direct_send_backs_off(qp))
		return wr;
	return direct_send_pass(qp, wr);
}

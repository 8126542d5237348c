// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fast path of SEND; see direct.h.
 *
 * direct_post() calls direct_send(), with qp->lock held.  A SEND takes the
 * next receive if that is of the remote QP's own queue, has one SGE and room
 * enough, and its memory is mapped here, or the completion can carry the
 * bytes.  Otherwise nothing is taken, and the requester sends it.  If the send
 * CQ overruns, the QP goes to ERR (qp_fatal()).
 */
#include "direct_pass.h"
#include "engine/cq/eager.h"
#include "responder.h"

/*
 * Longest SEND of the fast path.  Its guard names all lkeys of the receiver's
 * PD (GUARD_SEND), so a longer copy would hold up deregistration there.
 */
#define DIRECT_SEND_MAX URXE_EAGER_BYTES

/* The next receive to be taken. */
struct next_receive {
	uint64_t wr_id;
	struct urxe_sge sge;
	uint32_t index;
};

/*
 * Get the next receive without taking it.  False if the queue has other
 * requesters, no receive is posted, or the receive does not have exactly one
 * SGE.
 */
static inline bool direct_next(struct urxe_conn *c, struct next_receive *n)
{
	struct urxe_rx *rx = &c->rx;
	const struct urxe_recv *slot;

	if (unlikely(rx->shared || !rx->rq.ring))
		return false;
	n->index = load_acquire(&rx->rq.sh->cons);
	if (rx_posted(rx, n->index) - n->index - 1 > rx->rq.mask)
		return false;
	slot = rq_view_slot(&rx->rq, n->index);
	if (load_relaxed(&slot->num_sge) != 1 || unlikely(!rx->rq.max_sge))
		return false;
	n->wr_id = load_relaxed(&slot->wr_id);
	n->sge = recv_sge(&slot->sge[0]);
	return true;
}

/*
 * Take receive n for wr, a SEND that fits, claim its completion for process
 * me, and fill it.  False, with nothing changed, if this is not possible.
 */
static inline bool __attribute__((always_inline))
direct_take(struct urxe_qp *qp, const struct ibv_send_wr *wr,
	    const struct next_receive *n, uint32_t me, struct receipt *rc)
{
	struct urxe_conn *c = &qp->conn;
	struct urxe_rq_view *rq = &c->rx.rq;
	uint32_t index = n->index;
	struct received m;

	if (unlikely(!cas_acq_rel(&rq->sh->cons, &index, index + 1)))
		return false;
	if (unlikely(!cq_begin_known(&c->rx.cq, &qp->direct_rcq, me,
				     &rc->ref))) {
		/* restore cons: the general path takes the receive again */
		index = n->index + 1;
		cas_acq_rel(&rq->sh->cons, &index, n->index);
		return false;
	}
	m = (struct received){
		.opcode = IBV_WC_RECV,
		.wc_flags = responder_wc_flags(wr->opcode),
		.solicited = wr->send_flags & IBV_SEND_SOLICITED,
		.imm = wr->imm_data,
		.length = wr->sg_list->length,
	};
	responder_fill(rc, qp, c, &m, n->wr_id, n->index, n->index,
		       IBV_WC_SUCCESS);
	rc->notify = false;
	/* prefetch for the next SEND */
	__builtin_prefetch(rq_view_slot(rq, n->index + 1));
	return true;
}

/* Return it, with a completion that polling drops. */
static void __attribute__((cold, noinline)) direct_untake(struct receipt *rc)
{
	struct urxe_rq_sh *sh = rc->conn->rx.rq.sh;
	uint32_t index = rc->index + 1;

	responder_void(rc);
	cq_end(&rc->conn->rx.cq, &rc->ref, false);
	cas_acq_rel(&sh->cons, &index, rc->index);
}

/*
 * Find the address of the receive's memory, in *at; NULL: it is private to
 * another process, and the completion carries the bytes.  False: no fast
 * path.
 */
static inline bool direct_sink(struct urxe_qp *qp, const struct next_receive *n,
			       uint64_t len, char **at)
{
	struct urxe_region *r = &qp->direct_rx;
	struct urxe_rx *rx = &qp->conn.rx;

	if (unlikely(len - 1 >= DIRECT_SEND_MAX || len > n->sge.length))
		return false;
	if (unlikely(!region_holds(r, n->sge.lkey)) &&
	    !region_look_up(r, rx_peer(rx), n->sge.lkey, rx->pd,
			    IBV_ACCESS_LOCAL_WRITE, qp->conn.qpn))
		return false;
	if (likely(r->base))
		return region_at(r, n->sge.addr, len, at);
	*at = NULL;
	return region_covers(r, n->sge.addr, len) &&
	       (len <= URXE_CQE_INLINE || responder_has_slot(qp, &qp->conn));
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
		complete_fill(qp, wr->wr_id, IBV_WC_SEND, len, IBV_WC_SUCCESS,
			      ref.slot.cqe);
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

/* Copy to the memory of a receive that is private to another process. */
static bool __attribute__((cold, noinline))
direct_reach(struct urxe_qp *qp, const struct next_receive *n,
	     const struct urxe_seg *from, uint64_t len)
{
	struct urxe_seg to = { .len = len };

	mem_reach(rx_peer(&qp->conn.rx), qp->direct_rx.entry, n->sge.addr, len,
		  &to);
	return transfer(&to, from, len, qp->ctx, false) == TRANSFER_OK;
}

/*
 * Take a receive whose memory is private to another process, and let its
 * completion carry the bytes.  False: it was not sent.
 */
static bool direct_carry(struct urxe_qp *qp, const struct direct *d,
			 const struct ibv_send_wr *wr,
			 const struct next_receive *n, char *src,
			 struct receipt *rc)
{
	const uint64_t len = wr->sg_list->length;
	const struct urxe_seg from = { .ptr = src, .len = len };
	uint64_t data[URXE_CQE_INLINE / 8];
	char *slot;

	if (len <= URXE_CQE_INLINE) {
		if (unlikely(!transfer_local_known((char *)data, src, len,
						   d->safe) ||
			     !direct_take(qp, wr, n, d->me, rc)))
			return false;
		responder_carry(rc, data, len);
		return true;
	}
	/*
	 * no receive is taken for bytes that are gone; a signal must not
	 * leave a completion claimed
	 */
	if (unlikely(!d->safe || !transfer_can_read(&from, len) ||
		     !direct_take(qp, wr, n, d->me, rc)))
		return false;
	if (unlikely(rc->ref.slot.cqe == &rc->ref.lost))
		return true; /* the CQ has overrun: the message is lost */
	slot = eager_slot(&rc->conn->rx.cq, rc->ref.slot.pos);
	if (likely(slot) ? likely(transfer_local_known(slot, src, len, true)) :
			   direct_reach(qp, n, &from, len)) {
		rc->ref.slot.cqe->inline_len = slot ? URXE_CQE_EAGER : 0;
		return true;
	}
	direct_untake(rc);
	return false;
}

/* Execute one SEND.  False: it was not sent, the requester must do it. */
static bool direct_send_one(struct urxe_qp *qp, struct direct *d,
			    const struct ibv_send_wr *wr)
{
	const uint64_t len = wr->sg_list->length;
	struct next_receive n;
	struct receipt rc;
	char *src, *dst;

	if (!direct_next(&qp->conn, &n))
		return false;
	if (unlikely(!direct_source(qp, d, wr, &src) ||
		     !direct_sink(qp, &n, len, &dst)))
		return false;
	/*
	 * The receive is not taken by anything else meanwhile: a flush waits
	 * for the guard.
	 */
	if (dst ? unlikely(!transfer_local_known(dst, src, len, d->safe) ||
			   !direct_take(qp, wr, &n, d->me, &rc)) :
		  !direct_carry(qp, d, wr, &n, src, &rc))
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

/* SENDs for each attempt while the receives' memory cannot be used. */
#define DIRECT_SEND_RETRY 64

/*
 * Whether the last receive's memory could not be used for a SEND of this
 * length; count the SEND.
 */
static inline bool direct_send_backs_off(struct urxe_qp *qp,
					 const struct ibv_send_wr *wr)
{
	const struct urxe_region *r = &qp->direct_rx;

	if (likely(r->base || !r->key))
		return false;
	return (region_is_closed(r, qp->conn.peer, r->key) ||
		(wr->sg_list->length > URXE_CQE_INLINE &&
		 !responder_has_slot(qp, &qp->conn))) &&
	       ++qp->direct_send_skipped % DIRECT_SEND_RETRY;
}

struct ibv_send_wr *direct_send(struct urxe_qp *qp, struct ibv_send_wr *wr)
{
	if (!direct_is_send(wr) || direct_send_backs_off(qp, wr))
		return wr;
	return direct_send_pass(qp, wr);
}

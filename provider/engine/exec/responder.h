/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The responder: the work of the remote NIC, executed by the requester.
 *
 * These functions run in the requester's process, on the shared state of the
 * responder's QP, with qp->lock held and the requester's guard raised.  The
 * socket owner of the wire (provider/wire) calls them for requests from other
 * hosts.
 */
#pragma once

#include <string.h>

#include "engine/cq/eager.h"
#include "engine/qp/conn.h"
#include "engine/qp/qp.h"
#include "engine/mem/mem.h"
#include "engine/qp/sq.h"
#include "engine/copy/transfer.h"

#define GRH_BYTES 40

/* The response for the result of a transfer. */
static inline enum response moved(enum transfer_status status)
{
	switch ((int)status & ~TRANSFER_READING) {
	case TRANSFER_OK:
		return RESP_ACK;
	case TRANSFER_GONE:
		return RESP_SILENCE;
	case TRANSFER_REVOKED:
		return RESP_NAK_ACCESS;
	default:
		return RESP_NAK_OPERATION;
	}
}

/*
 * The same for a transfer to the responder, and from the responder.
 * RESP_OTHER: the requester's own memory could not be accessed.
 */
static inline enum response moved_to(enum transfer_status status)
{
	if (likely(!(status & TRANSFER_READING)))
		return moved(status);
	status &= ~TRANSFER_READING;
	return status == TRANSFER_GONE ? RESP_SILENCE : RESP_OTHER;
}

static inline enum response moved_from(enum transfer_status status)
{
	return moved_to(status ? status ^ TRANSFER_READING : status);
}

/*
 * Check an RDMA or atomic request and resolve its memory.  On RESP_ACK *seg
 * is the memory, and *key its entry; key may be NULL.  Without bytes the key
 * is not checked (C9-88) nor stored.
 */
enum response responder_access(struct urxe_conn *c, uint32_t rkey,
			       uint64_t addr, uint64_t len, uint32_t access,
			       struct urxe_seg *seg,
			       const struct urxe_key **key);

/*
 * Is an address naturally aligned, as an atomic requires (IB 9.4.5)?  addr is
 * that of the WR, or the virtual address it resolves to.
 */
bool responder_is_aligned(uint64_t addr);

/* Execute a FLUSH (IB A19).  The caller has checked its type and level. */
enum response responder_flush(struct urxe_qp *qp, struct urxe_conn *c,
			      const struct urxe_wqe *w);

/* Is a receive posted? */
bool responder_has_receive(const struct urxe_conn *c);
/* Note RNR at QP qpn as the reason of a failure; c may be unresolved. */
void responder_note_rnr(const struct urxe_conn *c, uint32_t qpn);
/*
 * Register context slot as a waiter for a receive.  The next post to the
 * queue wakes that context's service thread.
 */
void responder_wait_receive(struct urxe_conn *c, uint32_t slot);

/*
 * Resolve the destination of a SEND of that length, without taking the
 * receive.  RESP_OTHER: the queue has other requesters, which could take it.
 */
enum response responder_resolve_receive(struct urxe_conn *c, uint64_t length,
					struct urxe_seg dst[URXE_MAX_SGE]);

/* A receive that was taken and filled, with its claimed completion. */
struct receipt {
	struct urxe_conn *conn; /* NULL: none was taken */
	struct urxe_cqe_ref ref;
	uint32_t index;
	bool solicited, notify;
};

/*
 * Take a receive and deliver a SEND into it, or complete a WRITE WITH
 * IMMEDIATE with it.
 *
 *	src	the bytes of a SEND
 *	grh	for a datagram the wc_flags of its header: IBV_WC_GRH, and
 *		URXE_CQE_IPV4 for IPv4; the first GRH_BYTES bytes of src are
 *		the header.  Otherwise 0
 *	failed	if not 0, deliver nothing, and complete the receive with this
 *		error
 *	rc	if rc->conn is set on return, a receive was taken, and the
 *		caller must call responder_publish(), whatever the response is
 */
enum response responder_receive(struct urxe_qp *qp, struct urxe_conn *c,
				const struct urxe_wqe *w,
				const struct urxe_seg *src, uint8_t grh,
				enum ibv_wc_status failed, struct receipt *rc);

/*
 * IB 9.9.3, class D: is an unreliable message that is too long for the receive
 * dropped, and the receive stays posted?  In an SRQ it is class E: the receive
 * completes with an error.
 */
static inline bool responder_keeps_receive(const struct urxe_qp *qp,
					   const struct urxe_rx *rx)
{
	return qp_is_unreliable(qp) && !rx->srq;
}

/*
 * The same for a message whose packets arrive one after the other (wire), in
 * three steps: responder_take(), responder_place() for each packet, and
 * responder_complete().  This is the receive that was taken, copied from its
 * slot.
 */
struct stored_receive {
	uint64_t wr_id;
	uint32_t index;
	uint16_t num_sge, ticket;
	uint64_t total;
	struct urxe_sge sge[URXE_MAX_SGE];
};

/*
 * Take the next receive for a message of this length (with the GRH of a
 * datagram).
 *
 * RESP_ACK		*t is the receive
 * RESP_RNR		no receive is posted, or there is no ring
 * RESP_SILENCE		the message is too long and is dropped (class D)
 * RESP_NAK_OPERATION	the queue is damaged
 */
enum response responder_take(const struct urxe_qp *qp, struct urxe_conn *c,
			     const struct urxe_wqe *w, uint64_t length,
			     struct stored_receive *t);
/*
 * Copy src to the receive, at offset off.  Keys are looked up each time.  If
 * the response is a NAK, the caller completes the receive with *failed.
 */
enum response responder_place(struct urxe_qp *qp, struct urxe_conn *c,
			      const struct stored_receive *t, uint64_t off,
			      const struct urxe_seg *src,
			      enum ibv_wc_status *failed);
/*
 * Complete the receive, after all of w has arrived, or with error failed.
 * The caller then publishes *rc, if rc->conn is set.
 */
enum response responder_complete(struct urxe_qp *qp, struct urxe_conn *c,
				 const struct urxe_wqe *w,
				 const struct stored_receive *t,
				 enum ibv_wc_status failed, struct receipt *rc);

/*
 * Return the producer index of the receive queue.  If this requester is the
 * only one, a cached value that is ahead of cons will do: it need not fetch
 * the cache line that the receiver writes for each receive.
 */
static inline uint32_t rx_posted(struct urxe_rx *rx, uint32_t cons)
{
	struct urxe_rq_view *rq = &rx->rq;

	if (rx->shared || rq->posted - cons - 1 > rq->mask)
		rq->posted = load_acquire(&rq->sh->prod);
	return rq->posted;
}

/* The wc_flags of the receive completion of a request. */
static inline uint8_t responder_wc_flags(uint8_t opcode)
{
	static const uint8_t flags[] = {
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_WITH_IMM,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_WITH_IMM,
		[IBV_WR_SEND] = 0,
		[IBV_WR_SEND_WITH_INV] = IBV_WC_WITH_INV,
	};

	return flags[opcode];
}

/* What a receive completion has from its message. */
struct received {
	enum ibv_wc_opcode opcode;
	uint8_t wc_flags;
	bool solicited;
	__be32 imm;
	uint32_t length;
};

/*
 * Fill the completion that was claimed in rc->ref, and rc.  index is that of
 * the receive; wqe is what polling releases (urxe_cqe.wqe).
 */
static inline void __attribute__((always_inline))
responder_fill(struct receipt *rc, const struct urxe_qp *qp,
	       struct urxe_conn *c, const struct received *m, uint64_t wr_id,
	       uint32_t index, uint32_t wqe, enum ibv_wc_status status)
{
	struct urxe_cqe *e = rc->ref.slot.cqe;

	rc->conn = c;
	rc->index = index;
	rc->solicited = m->solicited;
	cqe_fill(e, wr_id, c->qpn, wqe, status, m->opcode);
	e->byte_len = m->length;
	e->imm = m->imm;
	e->src_qp = qp->qpn;
	e->wc_flags = m->wc_flags;
}

/*
 * Let the completion carry len bytes, at most URXE_CQE_INLINE; the poller
 * places them.
 */
static inline void responder_carry(struct receipt *rc, const uint64_t *data,
				   uint64_t len)
{
	struct urxe_cqe *e = rc->ref.slot.cqe;

	e->inline_len = len;
	memcpy(e->data, data, len);
}

/*
 * Make rc, whose message cannot be delivered after all, a completion that
 * polling drops.
 */
static inline void responder_void(struct receipt *rc)
{
	rc->ref.slot.cqe->qpn = 0;
	rc->ref.slot.cqe->inline_len = 0;
}

/*
 * Can the completion of a SEND of qp have an eager slot?  Not in the CQ of its
 * send completion: responder_order_after() moves it to another position.
 */
static inline bool responder_has_slot(const struct urxe_qp *qp,
				      struct urxe_conn *c)
{
	return likely(!qp->scq || qp->scq->sh != c->rx.cq.sh) &&
	       eager_is_ready(&c->rx.cq);
}

/*
 * Swap the entries of two claimed completions of the same CQ: own, the send
 * completion, was claimed later but has to precede the receive completion.
 */
void responder_order_after(struct receipt *rc, struct urxe_cqe_ref *own);
/* Publish the receive completion. */
void responder_publish(struct receipt *rc);

/* Raise the event of the receive CQ, if responder_publish() requires it. */
static inline void responder_notify(struct receipt *rc)
{
	if (unlikely(rc->notify))
		cq_notify(&rc->conn->rx.cq, rc->ref.slot.pos, rc->solicited);
}

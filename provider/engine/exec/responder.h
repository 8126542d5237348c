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

/* The next receive to be taken, for the fast path (direct_send.c). */
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
bool responder_next(struct urxe_conn *c, struct next_receive *n);
/*
 * Take receive n for wr, a SEND that fits, claim its completion for process
 * me, and fill it.  False, with nothing changed, if this is not possible.
 */
bool responder_take_next(struct urxe_qp *qp, const struct ibv_send_wr *wr,
			 const struct next_receive *n, uint32_t me,
			 struct receipt *rc);
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

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The responder: what the other end's NIC would do, done by the requester.
 *
 * These functions run in the requester's process, on the responder's shared
 * state, while the requester's guard is up.
 */
#pragma once

#include "conn.h"
#include "mem.h"
#include "sq.h"
#include "transfer.h"

#define GRH_BYTES 40

/* What a transfer's end means. */
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
 * The same of bytes that go to the responder, and of those that come from it.
 * RESP_OTHER: it is the requester's own memory that is not there.
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

/* May an RDMA or atomic request touch this?  On RESP_ACK, *seg is it. */
enum response responder_access(struct urxe_conn *c, uint32_t rkey,
			       uint64_t addr, uint64_t len, uint32_t access,
			       struct urxe_seg *seg,
			       const struct urxe_key **key);

/*
 * Is that of an atomic (IB 9.4.5: naturally aligned)?  addr is of the WR, or
 * where that leads to.
 */
bool responder_is_aligned(uint64_t addr);

/* Serve an IB A19 FLUSH.  Its type and level are for the caller to check. */
enum response responder_flush(struct urxe_qp *qp, struct urxe_conn *c,
			      const struct urxe_wqe *w);

/* Is a receive posted, for a message that consumes one? */
bool responder_has_receive(const struct urxe_conn *c);
/* Note that there is none at QP qpn; c may not be resolved. */
void responder_note_rnr(const struct urxe_conn *c, uint32_t qpn);
/* Have whoever posts the next one wake this context's service thread. */
void responder_wait_receive(struct urxe_conn *c, uint32_t slot);

/*
 * Where a SEND of that length will go, if nobody else can take the receive
 * before it; RESP_OTHER: somebody can.
 */
enum response responder_foresee(struct urxe_conn *c, uint64_t length,
				struct urxe_seg dst[URXE_MAX_SGE]);

/* A receive that was taken and filled, whose completion is claimed. */
struct receipt {
	struct urxe_conn *conn; /* NULL: none was taken */
	struct urxe_cqe_ref ref;
	uint32_t index;
	bool solicited, notify;
};

/*
 * Deliver a SEND, or complete a WRITE WITH IMMEDIATE, into a receive.  src: the
 * bytes of a SEND.  grh: of a datagram, IBV_WC_GRH and URXE_CQE_IPV4 if that is
 * what its header is; the header's 40 bytes are the first of src.
 * failed: nothing is delivered, and the receive completes with this error.
 * What was taken is in *rc, to be published whatever the answer is.
 */
enum response responder_receive(struct urxe_qp *qp, struct urxe_conn *c,
				const struct urxe_wqe *w,
				const struct urxe_seg *src, uint8_t grh,
				enum ibv_wc_status failed, struct receipt *rc);

/*
 * The same of a message whose bytes come one after the other, in three steps.
 * A receive, copied out of its slot and taken:
 */
struct taken {
	uint64_t wr_id;
	uint32_t index;
	uint16_t num_sge, ticket;
	uint64_t total;
	struct urxe_sge sge[URXE_MAX_SGE];
};

/* For w, whose length is what is known of it; as responder_receive(). */
enum response responder_take(const struct urxe_qp *qp, struct urxe_conn *c,
			     const struct urxe_wqe *w, struct taken *t);
/*
 * The bytes of src to where they belong, off bytes behind its beginning.  Keys
 * are looked up each time.  Is it a NAK, the receive is to be completed with
 * *failed.
 */
enum response responder_place(struct urxe_qp *qp, struct urxe_conn *c,
			      const struct taken *t, uint64_t off,
			      const struct urxe_seg *src,
			      enum ibv_wc_status *failed);
/* All of w is there, or it failed: *rc is to be published then. */
enum response responder_complete(struct urxe_qp *qp, struct urxe_conn *c,
				 const struct urxe_wqe *w,
				 const struct taken *t,
				 enum ibv_wc_status failed, struct receipt *rc);

/* A receive that is posted, and the next one to be taken. */
struct next_receive {
	uint64_t wr_id;
	struct urxe_sge sge;
	uint32_t index;
};

/*
 * What a SEND that comes now will be received by, if nobody else takes receives
 * there and it has one SGE.  False: it has not, or there is none.
 */
bool responder_next(struct urxe_conn *c, struct next_receive *n);
/*
 * Take it for wr, a SEND that fits, and fill its completion, which process me
 * claims.  False: that cannot be, and nothing was done.
 */
bool responder_take_next(struct urxe_qp *qp, const struct ibv_send_wr *wr,
			 const struct next_receive *n, uint32_t me,
			 struct receipt *rc);
/*
 * own, which was claimed after it, is of the same CQ and completes the send:
 * that stands before the receive.
 */
void responder_stand_behind(struct receipt *rc, struct urxe_cqe_ref *own);
/* The receiver's poller sees it ... */
void responder_publish(struct receipt *rc);

/* ... and is woken, if it sleeps. */
static inline void responder_notify(struct receipt *rc)
{
	if (unlikely(rc->notify))
		cq_notify(&rc->conn->rx.cq, rc->ref.slot.pos, rc->solicited);
}

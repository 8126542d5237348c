/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The requester's view of a remote QP: the peer of a connection, or a
 * destination of datagrams.  It is resolved when it is first needed.
 *
 * The requester calls these functions with qp->lock held and, unless stated
 * otherwise, while qp's guard is raised (shared/guard.h).  A resolved view
 * holds a reference to the peer's context.  It stays mapped when the remote
 * QP is destroyed or its number is reused: each use checks sh->conn (seq_cst,
 * after the guard was raised) and the generation in sh->path.
 */
#pragma once

#include "engine/cq/cq.h"
#include "rq.h"

struct urxe_qp;
struct urxe_wqe;

/* The response to a request; IB 9.7.5.2. */
enum response {
	RESP_ACK,
	RESP_RNR, /* no receive is posted */
	/*
	 * No response: there is no responder, it is connected to another QP,
	 * its process is dead or stopped, or it drops the message
	 */
	RESP_SILENCE,
	RESP_NAK_SEQUENCE, /* PSN error: retried like RESP_SILENCE */
	RESP_NAK_INVALID, /* remote invalid request */
	RESP_NAK_ACCESS, /* remote access error */
	RESP_NAK_OPERATION, /* remote operational error */
	/*
	 * Not a response.  From moved_to(): the requester's own memory cannot
	 * be accessed.  From conn_ready(): the connection or its SRQ has
	 * changed.  From responder_resolve_receive(): the queue has several
	 * requesters
	 */
	RESP_OTHER,
};

/*
 * Fields of a responder's entry in an arena.  A requester reads them for its
 * guard while the entry may be replaced, and verifies them afterwards
 * (conn_open()).
 */
#define hint_load(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define hint_store(field, value) \
	__atomic_store_n(&(field), value, __ATOMIC_RELAXED)

/*
 * The receive queue for messages to a QP: its own RQ, or an SRQ.  In XRC the
 * SRQ may belong to another process than the QP.
 */
struct urxe_rx {
	uint32_t pd; /* the PD of the lkeys in its receives */
	struct urxe_rq_view rq;
	struct urxe_cq_view cq;
	struct urxe_srq_sh *srq; /* NULL: the QP's own RQ is used */
	bool shared; /* several requesters take receives from it */
	uint32_t srq_index;
	uint32_t srq_live; /* value of srq->live when it was resolved */
};

/* The context of the receive queue; NULL before the first XRC request. */
static inline struct urxe_peer *rx_peer(const struct urxe_rx *rx)
{
	return rx->cq.peer;
}

/* In urxe_conn.allows, next to the IBV_ACCESS_* flags. */
#define CONN_ALLOWS_SEND (1u << 31)

struct urxe_conn {
	struct urxe_peer *peer; /* NULL: not resolved */
	struct urxe_qp_sh *sh;
	uint64_t want; /* expected sh->conn, without its state ... */
	uint64_t want_rts; /* ... and with state RTS */
	uint32_t qpn, pd;
	uint32_t srqn; /* XRC: number of the SRQ that rx is a view of */
	uint32_t made; /* generation: URXE_PATH_QPS(sh->path) when resolved */
	uint32_t path; /* value of sh->path when the two paths matched ... */
	/*
	 * ... and the requests that need no further check while it has that
	 * value: access flags and CONN_ALLOWS_SEND.  0 if a completion
	 * counter is attached there
	 */
	uint32_t allows;
	bool direct; /* the fast path may be used (direct.h) */
	/*
	 * Write to receives of this process by process_vm_writev, which fails
	 * where a store would fault: the program may have unmapped them
	 */
	bool copy_by_kernel;
	/* 0, or PSN + 1 of the message whose receive went back to an SRQ */
	uint32_t returned_psn;
	/*
	 * The path from this device to that of the peer (urxe_dev.path), and
	 * its value when the addresses of both ends matched
	 */
	const _Atomic uint32_t *link;
	uint32_t link_seen;
	struct urxe_rx rx;
};

/* Are both ports up, and does a link join them? */
static inline bool conn_has_link(const struct urxe_conn *c)
{
	return URXE_PATH_STATE(load_acquire(c->link)) == URXE_PORT_ACTIVE;
}

/*
 * Drop the regions and rings that the fast path has cached, when a connection
 * is opened or the process has forked.
 */
void conn_forget_direct(struct urxe_qp *qp);
/*
 * Resolve QP qpn.  False if there is no such QP, its type does not match, or
 * its queues are not valid.  Also makes qp's guard name it.  dest is the QP
 * that its connection has to name, 0 for datagrams: conn_ready() and
 * conn_accepts_datagram() check that.
 */
bool conn_open(struct urxe_qp *qp, struct urxe_conn *c, uint32_t qpn,
	       uint32_t dest);
/*
 * Make qp's guard, which is raised, name c, and what is used of it (GUARD_*).
 * Called where one requester has several destinations.
 */
void conn_retarget(const struct urxe_qp *qp, const struct urxe_conn *c,
		   uint32_t uses);
/* Make c unresolved, and drop its references. */
void conn_drop(struct urxe_conn *c);

/*
 * Return whether the QP number was reused for another QP since conn_open().
 * Call this after loading sh->conn, while the guard is raised and names the
 * QP: the answer then stays true until the guard is lowered.
 */
static inline bool conn_qpn_is_reused(const struct urxe_conn *c)
{
	/* acquire: see all that was initialized before the QP went live */
	return unlikely(URXE_PATH_QPS(load_acquire(&c->sh->path)) != c->made);
}

/*
 * Return whether the QP is in a state in which it receives (RTR, RTS, SQD,
 * SQE).  word is the value of its conn.  Raises IBV_EVENT_COMM_EST for the
 * first packet in RTR (IB 11.6.3.1).
 */
bool conn_can_receive(struct urxe_conn *c, uint64_t word);

/*
 * XRC: make rx a view of SRQ srqn.  The rkeys of requests are then those of
 * the SRQ's context as well.  The guard is raised.  False if the XRC domain
 * of the QP has no such SRQ.
 */
bool conn_use_srq(struct urxe_qp *qp, struct urxe_conn *c, uint32_t srqn);

/*
 * Drop c if its QP was destroyed, reused or connected to another QP.  Call it
 * first in each critical section that uses c from an earlier one.  The socket
 * owner, when idle, calls it without raising a guard (server_check_cached()).
 */
void conn_check(struct urxe_conn *c);

/* The context that the rkeys of a request belong to; XRC: the SRQ's. */
static inline struct urxe_peer *conn_key_peer(const struct urxe_conn *c)
{
	return c->srqn ? rx_peer(&c->rx) : c->peer;
}

/*
 * Check that the responder of qp is alive, connected to qp, in a state that
 * receives, on a matching path, and at the PSN of w; resolve it if necessary.
 * in_use: requests to the responder are batched and not yet sent, so that it
 * must not be dropped; RESP_OTHER is returned if it has changed.
 */
enum response conn_ready(struct urxe_qp *qp, const struct urxe_wqe *w,
			 bool in_use);
/*
 * Return whether the destination of a datagram accepts it.  Counts and logs a
 * Q_Key that does not match; drops c if the destination has changed or died.
 */
bool conn_accepts_datagram(struct urxe_conn *c, uint32_t qkey);

/*
 * Move the responder's QP to the error state because of a NAK, raise its
 * async event and notify its poller.  w of qp is the cause; both may be NULL.
 */
void conn_break(struct urxe_conn *c, enum response nak,
		const struct urxe_qp *qp, const struct urxe_wqe *w);
/*
 * The same for QP qpn, because the bytes of a receive could not be placed when
 * it was polled.  Its later receives are then flushed, whether or not their
 * messages have arrived.
 */
void conn_break_unplaced(struct urxe_fabric *f, uint32_t qpn);
bool conn_is_unplaced(struct urxe_fabric *f, uint32_t qpn);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Another QP as a requester sees it: the other end of a connection, or a
 * destination of datagrams.  Looked up when it is first needed.
 */
#pragma once

#include "cq.h"
#include "rq.h"

struct urxe_qp;
struct urxe_wqe;

/* What comes back to the requester; IB 9.7.5.2. */
enum response {
	RESP_ACK,
	RESP_RNR, /* no receive is posted */
	RESP_SILENCE, /* nobody there, or somebody else's connection */
	RESP_NAK_SEQUENCE, /* PSN error: retried like silence */
	RESP_NAK_INVALID, /* remote invalid request */
	RESP_NAK_ACCESS, /* remote access error */
	RESP_NAK_OPERATION, /* remote operational error */
	/*
	 * No answer: the requester's own memory is not there; of conn_ready(),
	 * it is another connection than before
	 */
	RESP_OTHER,
};

/*
 * Where messages for a QP are received: its own RQ, or an SRQ, which in XRC
 * may be another process's.
 */
struct urxe_rx {
	uint32_t pd; /* that its lkeys must be of */
	struct urxe_rq_view rq;
	struct urxe_cq_view cq;
	struct urxe_srq_sh *srq; /* NULL: the QP's own RQ */
	bool shared; /* others take receives, too */
	uint32_t srq_index;
	uint32_t srq_live; /* what srq->live was */
};

/* The queue's context; NULL: XRC, and no request came yet. */
static inline struct urxe_peer *rx_peer(const struct urxe_rx *rx)
{
	return rx->cq.peer;
}

#define CONN_ALLOWS_SEND (1u << 31)
struct urxe_conn {
	struct urxe_peer *peer; /* NULL: not resolved */
	struct urxe_qp_sh *sh;
	uint64_t want; /* what sh->conn must be, but for its state ... */
	uint64_t heard; /* ... and in RTS */
	uint32_t qpn, pd;
	uint32_t srqn; /* XRC: the SRQ that rx is a view of */
	uint32_t made; /* URXE_PATH_QPS(sh->path) */
	uint32_t path; /* what sh->path was when it was found to be ours ... */
	/*
	 * ... and what of requests needed no more than that: their access flags
	 * and CONN_ALLOWS_SEND, or 0 if somebody counts there
	 */
	uint32_t allows;
	bool direct; /* the short way is open (direct.h) */
	bool doubts_memory; /* receives of this process may have none any more */
	/* + 1: the PSN of the message whose receive was returned to an SRQ */
	uint32_t returned_psn;
	const _Atomic uint32_t *port_state;
	struct urxe_rx rx;
};

/*
 * Find QP qpn, which must name dest as its own destination (0: datagrams);
 * false if it is not (any more) there.
 */
bool conn_open(struct urxe_qp *qp, struct urxe_conn *c, uint32_t qpn,
	       uint32_t dest);
/* The guard is up, and of several c is used from now on, for that (GUARD_*). */
void conn_turn_to(const struct urxe_qp *qp, const struct urxe_conn *c,
		  uint32_t uses);
void conn_drop(struct urxe_conn *c);

/*
 * Numbers are used again: is it another QP than it was when c was opened?  Asked
 * after sh->conn was loaded, while the guard that names it is up: so it stays
 * what it is.
 */
static inline bool conn_is_anothers(const struct urxe_conn *c)
{
	/* acquire: whoever finds it at work finds all that it was made of */
	return unlikely(URXE_PATH_QPS(load_acquire(&c->sh->path)) != c->made);
}

/* Can that QP hear anything?  word: what its conn is. */
bool conn_hears(struct urxe_conn *c, uint64_t word);

/*
 * XRC: its receives are those of SRQ srqn from now on, and the keys that its
 * requests name are of the same context.  The guard is up.  False: there is no
 * such SRQ in the QP's domain.
 */
bool conn_turn_to_srq(struct urxe_qp *qp, struct urxe_conn *c, uint32_t srqn);

/* Time has passed: drop it if that QP is another connection's by now. */
void conn_check(struct urxe_conn *c);

/* Whose keys a request names: in XRC those of the SRQ's context. */
static inline struct urxe_peer *conn_key_peer(const struct urxe_conn *c)
{
	return c->srqn ? rx_peer(&c->rx) : c->peer;
}

/*
 * Is somebody there who listens to us, at the PSN we are at?  While requests to
 * the one there was are still collected, he is in_use and not let go of.
 */
enum response conn_ready(struct urxe_qp *qp, const struct urxe_wqe *w,
			 bool in_use);
/* The same for a datagram's destination. */
bool conn_listens(struct urxe_conn *c, uint32_t qkey);

/*
 * A NAK went out: the responder's QP goes to the error state, because of w of
 * qp if that is known.
 */
void conn_break(struct urxe_conn *c, enum response nak,
		const struct urxe_qp *qp, const struct urxe_wqe *w);
/* A message for QP qpn turned out to be undeliverable. */
void conn_break_qpn(struct urxe_fabric *f, uint32_t qpn);

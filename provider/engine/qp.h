/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queue pairs, as the engine knows them. */
#pragma once

#include <infiniband/verbs.h>

#include "conn.h"
#include "context.h"
#include "cq.h"
#include "lock.h"
#include "region.h"
#include "retry.h"
#include "rq.h"
#include "shared/guard.h"
#include "sq.h"

/* Destinations a UD QP remembers. */
#define UD_DESTS 64

/* Sent and not yet in the port's counters; counters.h */
struct urxe_qp_count {
	uint64_t packets, bytes;
	uint64_t away_packets, away_bytes; /* of them: counted on the wire */
};

struct urxe_qp {
	struct urxe_context *ctx;
	struct urxe_qp_sh *sh;
	struct urxe_guard *guard;
	_Atomic uint64_t *guard_group;
	struct urxe_cq *scq, *rcq; /* NULL: XRC, whose end has none */
	struct urxe_qp *scq_next, *rcq_next; /* in their CQs' lists ... */
	struct urxe_qp **scq_at, **rcq_at; /* ... and what leads to it there */
	unsigned int pins; /* it may not be unlinked; under ctx->lock */
	struct urxe_lock lock; /* the send queue and the state machine */
	uint32_t qpn;
	uint32_t psn; /* of the next request */
	uint8_t type; /* enum ibv_qp_type */
	uint8_t mtu_shift;
	uint8_t counts; /* struct urxe_qp_sh.counts */
	bool deaf_to_itself; /* to multicast that it sends */
	bool flying; /* the carrier has WRs in flight; the CQ counts it */
	bool sqd_notify; /* raise SQ_DRAINED when the queue comes to rest */
	struct urxe_sq sq;
	/* ibv_wr_start ... ibv_wr_complete: whose batch it is, or 0 */
	_Atomic pthread_t batch_thread;
	uint32_t batch_first; /* sq.prod as it was */
	uint32_t batch_end; /* and as it is, while qp_enter() hides it */
	uint32_t atomic_ns; /* from an atomic's read to its write; 0: it is one */
	const struct urxe_carrier *carrier; /* flight.h; NULL: none */
	void *carrier_data; /* its own */
	/*
	 * The service thread asks, without the lock, before it sees to the QP:
	 * when to ask again if it is too early, or 0.  Who polls meanwhile would
	 * find the QP locked, and pass it.  NULL: it is never too early.
	 */
	uint64_t (*_Atomic early)(const struct urxe_qp *qp, uint64_t now);
	struct urxe_stall stall;
	struct urxe_qp_count count;
	struct urxe_conn conn;
	struct urxe_region direct_src, direct_dst, direct_rx; /* direct.c */
	struct urxe_cq_known direct_scq, direct_rcq; /* ours, and theirs */
	uint32_t direct_vain; /* SENDs that did not try it */
	struct urxe_rq rq; /* without an SRQ */
	struct urxe_srq *srq;
	struct urxe_conn *dests; /* UD: destinations, by the QPN's low bits */
	struct ibv_qp_attr attr; /* as modify_qp left it */
	void *carrier_before; /* of a carrier that passes on to another one ... */
	const struct urxe_carrier **carrier_under; /* ... this one; or NULL */
	struct urxe_reason why; /* a WR failed that is not completed yet ... */
	uint32_t why_at; /* ... the one in this slot */
	_Atomic bool told; /* why_tell() did */
	struct wire_requester *wire; /* its packets go to another host; or NULL */
};

struct qp_params {
	enum ibv_qp_type type;
	struct urxe_cq *scq, *rcq;
	struct urxe_srq *srq;
	uint32_t max_recv_wr, max_recv_sge;
	uint32_t pd; /* its handle; 0: an XRC target has none */
	uint32_t xrcd; /* XRC target: its index + 1, else 0 */
	bool single_threaded;
	uint32_t async_fifo; /* number + 1, 0: none */
	uint64_t tag; /* of its events: shared/event_tag.h */
};

/* Make qp, which is zeroed but for its SQ, a QP of ctx.  -errno */
int qp_open(struct urxe_qp *qp, struct urxe_context *ctx,
	    const struct qp_params *p);
/* No poller finds it any more ... */
void qp_unlink(struct urxe_qp *qp);
/* ... and its events can be waited for, and it can be freed, with its SQ's
 * ring.  last: its number goes, too. */
void qp_close(struct urxe_qp *qp, bool last);

/* It has the guard of its number. */
void qp_find_guard(struct urxe_qp *qp);
/*
 * Its requester is about to use that of others (GUARD_*), and its own CQ.  Returns
 * the id of the process.
 */
static inline uint32_t qp_guard_raise(struct urxe_qp *qp, uint32_t uses)
{
	const uint32_t me = process_id(qp->ctx->fabric);
	struct urxe_guard *g = qp->guard;

	guard_name(g, uses);
	guard_raise(g, qp->guard_group, me);
	return me;
}

/* Lower the guard if nobody is inside; ctx->lock is held. */
void qp_check_guard(struct urxe_qp *qp);

/* Does this thread build a batch, and hold the lock? */
static inline bool qp_in_batch(const struct urxe_qp *qp)
{
	return pthread_equal(load_relaxed(&qp->batch_thread), pthread_self());
}

/*
 * For who comes by, to see to what was posted; false: another thread is inside.
 * One that builds a batch comes in, too, and finds none of its WRs.
 */
bool qp_enter(struct urxe_qp *qp);
void qp_leave(struct urxe_qp *qp);

/* The state; a peer's NAK may have made it ERR. */
static inline enum ibv_qp_state qp_state(const struct urxe_qp *qp)
{
	return URXE_CONN_STATE(load_seq_cst(&qp->sh->conn));
}

/* IB 9.8: nobody answers. */
static inline bool qp_is_unreliable(const struct urxe_qp *qp)
{
	return qp->type == IBV_QPT_UC || qp->type == IBV_QPT_UD;
}

/* In SQD: is what had been begun to be begun again? */
static inline bool qp_is_parked(const struct urxe_qp *qp)
{
	return qp->stall.kind != STALL_NONE || qp->sq.again;
}

/* In SQD: is a WR that was begun not done yet? */
static inline bool qp_is_draining(const struct urxe_qp *qp)
{
	return qp_is_parked(qp) || qp->flying;
}

static inline bool qp_is_xrc(const struct urxe_qp *qp)
{
	return qp->type == IBV_QPT_XRC_SEND || qp->type == IBV_QPT_XRC_RECV;
}

/* To ERR, or to SQE unless it is in ERR already (then false). */
bool qp_set_error(struct urxe_qp *qp, enum ibv_qp_state state);
/* The same with IBV_EVENT_QP_FATAL: its CQ takes no more completions. */
void qp_fatal(struct urxe_qp *qp);
/* The send queue came to rest in SQD: raise IBV_EVENT_SQ_DRAINED once. */
void qp_drained(struct urxe_qp *qp);
/* Empty both queues and forget the connection (RESET, destroy): what peers see
 * of it is conn from now on. */
void qp_forget(struct urxe_qp *qp, uint64_t conn);

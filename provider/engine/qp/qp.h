/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs: private state, creation and destruction, and state changes
 * that the engine makes by itself.  The part that peers access is struct
 * urxe_qp_sh in the arena.
 *
 * qp->lock protects the send queue and the state machine.  The posting thread
 * is its holder; pollers and the service thread enter by qp_enter().  Lock
 * order: ctx->lock, then a trylock of qp->lock; qp->lock, then rq.lock.
 */
#pragma once

#include <infiniband/verbs.h>

#include "conn.h"
#include "engine/core/context.h"
#include "engine/cq/cq.h"
#include "engine/core/lock.h"
#include "engine/mem/region.h"
#include "stall.h"
#include "rq.h"
#include "shared/guard.h"
#include "sq.h"

/* Number of destinations that a UD QP caches. */
#define UD_DESTS 64

/* Sent, and not yet added to the port counters; counters.h. */
struct urxe_qp_count {
	uint64_t packets, bytes;
	/* the part of them that is counted on the wire, to other hosts */
	uint64_t wire_packets, wire_bytes;
};

struct urxe_qp {
	struct urxe_context *ctx;
	struct urxe_qp_sh *sh;
	struct urxe_guard *guard;
	_Atomic uint64_t *guard_group;
	struct urxe_cq *scq, *rcq; /* NULL: XRC QP without that queue */
	struct urxe_qp *scq_next, *rcq_next; /* in the lists of the CQs ... */
	struct urxe_qp **scq_at, **rcq_at; /* ... and the pointers to it */
	/* users that qp_unlink() waits for, under ctx->lock */
	unsigned int pins;
	struct urxe_lock lock; /* the send queue and the state machine */
	uint32_t qpn;
	uint32_t psn; /* of the next request */
	uint8_t type; /* enum ibv_qp_type */
	uint8_t mtu_shift;
	uint8_t counts; /* struct urxe_qp_sh.counts */
	/* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB: no own multicast datagrams */
	bool block_own_mcast;
	/* the transport has WRs in flight; counted in scq->stalled */
	bool in_flight;
	/*
	 * The transport shares something with other QPs, and waits for it: the
	 * next sweep of the CQ (exec/retry.c) begins with the first such QP.
	 */
	_Atomic bool waits_turn;
	bool sqd_notify; /* raise SQ_DRAINED when the queue has drained */
	struct urxe_sq sq;
	/* thread between ibv_wr_start and ibv_wr_complete, or 0 */
	_Atomic pthread_t batch_thread;
	uint32_t batch_first; /* sq.prod at ibv_wr_start */
	uint32_t batch_end; /* sq.prod, while qp_enter() hides the batch */
	/* ns between read and write of an RDMA atomic; 0: at once */
	uint32_t atomic_ns;
	const struct urxe_transport *transport; /* transport, see flight.h */
	void *transport_data; /* private to the transport */
	/*
	 * Called by the service thread, without the lock, before it locks the
	 * QP: returns 0, or a later time at which to come back.  A poller
	 * that finds the QP locked would skip it.  NULL: never too early.
	 */
	uint64_t (*_Atomic early)(const struct urxe_qp *qp, uint64_t now);
	struct urxe_stall stall;
	struct urxe_qp_count count;
	struct urxe_hca *count_to; /* the device that receives its packets */
	struct urxe_conn conn;
	/* fast path (direct.c): cached regions, own and peer's CQ ring */
	struct urxe_region direct_src, direct_dst, direct_rx;
	struct urxe_cq_known direct_scq, direct_rcq;
	uint32_t direct_send_skipped; /* SENDs for which it was not tried */
	/*
	 * The fast path has executed the atomic at sq.done, but could not
	 * store the old value: execute_atomic() does, and fails
	 */
	bool fetched;
	uint64_t fetched_value;
	struct urxe_rq rq; /* not used with an SRQ */
	struct urxe_srq *srq;
	struct urxe_conn *dests; /* UD: cache indexed by low bits of QPN */
	struct ibv_qp_attr attr; /* as set by ibv_modify_qp */
	/* of a transport that is stacked on another one ... */
	void *transport_stacked;
	const struct urxe_transport *
		*transport_under; /* ... this one, or NULL */
	struct urxe_reason why; /* reason of a failed WR, not completed ... */
	uint32_t why_at; /* ... which is in this slot */
	_Atomic bool reason_logged; /* why_log_broken() has logged the reason */
	struct wire_requester *wire; /* RoCE to another host, or NULL */
};

struct qp_params {
	enum ibv_qp_type type;
	struct urxe_cq *scq, *rcq;
	struct urxe_srq *srq;
	uint32_t max_recv_wr, max_recv_sge;
	uint32_t pd; /* PD handle; 0: an XRC target has none */
	uint32_t xrcd; /* XRC target: its index + 1, else 0 */
	bool single_threaded;
	uint32_t async_fifo; /* number + 1, 0: none */
	uint64_t tag; /* of its events: shared/event_tag.h */
};

/* Create a QP of ctx in qp, which is zeroed except its SQ.  0 or -errno. */
int qp_open(struct urxe_qp *qp, struct urxe_context *ctx,
	    const struct qp_params *p);
/*
 * Destroy a QP in two steps.  qp_unlink() removes it from all look-ups and
 * waits for its pins and for pollers.  The caller then waits until the
 * program has acknowledged its events, and calls qp_close().  After that qp
 * and the ring of its SQ may be freed.  last: free the QP number as well.
 */
void qp_unlink(struct urxe_qp *qp);
void qp_close(struct urxe_qp *qp, bool last);

/* Set qp->guard, which belongs to the QP number. */
void qp_find_guard(struct urxe_qp *qp);
/*
 * Name in qp's guard the remote objects that its requester uses, `uses`
 * (GUARD_*), and its own CQ, and raise the guard (seq_cst).  qp->lock is
 * held.  Returns the ID of this process.
 */
static inline uint32_t qp_guard_raise(struct urxe_qp *qp, uint32_t uses)
{
	const uint32_t me = process_id(qp->ctx->fabric);
	struct urxe_guard *g = qp->guard;

	guard_name(g, uses);
	guard_raise(g, qp->guard_group, me);
	return me;
}

/*
 * Lower the guard if it is raised while qp->lock is free, which happens if
 * its word was damaged.  ctx->lock is held.
 */
void qp_check_guard(struct urxe_qp *qp);

/* Is this thread between ibv_wr_start and ibv_wr_complete, with the lock? */
static inline bool qp_in_batch(const struct urxe_qp *qp)
{
	return pthread_equal(load_relaxed(&qp->batch_thread), pthread_self());
}

/*
 * Try to lock qp, to make progress on posted WRs; for pollers and the service
 * thread.  False if another thread holds the lock.  A thread that builds a
 * batch holds it already: it enters too, and the WRs of its batch are hidden
 * until qp_leave().
 */
bool qp_enter(struct urxe_qp *qp);
void qp_leave(struct urxe_qp *qp);

/*
 * Keep qp_unlink() waiting, so that ctx->lock can be released; ctx->lock is
 * held.
 */
static inline void qp_pin(struct urxe_qp *qp)
{
	qp->pins++;
}

static inline void qp_unpin(struct urxe_qp *qp)
{
	if (!--qp->pins)
		pthread_cond_broadcast(&qp->ctx->unpinned);
}

/* The current state, which a peer's NAK may have changed to ERR. */
static inline enum ibv_qp_state qp_state(const struct urxe_qp *qp)
{
	return URXE_CONN_STATE(load_seq_cst(&qp->sh->conn));
}

/* Is the transport service unreliable (IB 9.8), without responses? */
static inline bool qp_is_unreliable(const struct urxe_qp *qp)
{
	return qp->type == IBV_QPT_UC || qp->type == IBV_QPT_UD;
}

/* In SQD: are there WRs that were begun and have to be begun again? */
static inline bool qp_is_parked(const struct urxe_qp *qp)
{
	return qp->stall.kind != STALL_NONE || qp->sq.to_restart;
}

/* In SQD: is there a WR that was begun and is not done? */
static inline bool qp_is_draining(const struct urxe_qp *qp)
{
	return qp_is_parked(qp) || qp->in_flight;
}

static inline bool qp_is_xrc(const struct urxe_qp *qp)
{
	return qp->type == IBV_QPT_XRC_SEND || qp->type == IBV_QPT_XRC_RECV;
}

/* Set the state to ERR or SQE; false if SQE and the state is ERR already. */
bool qp_set_error(struct urxe_qp *qp, enum ibv_qp_state state);
/*
 * Set the state to ERR and raise IBV_EVENT_QP_FATAL: the CQ accepts no more
 * completions.
 */
void qp_fatal(struct urxe_qp *qp);
/* If qp is in SQD and drained, raise IBV_EVENT_SQ_DRAINED. */
void qp_drained(struct urxe_qp *qp);
/*
 * Set the connection word to conn, wait until no peer uses the QP, then empty
 * both queues and drop the connection.  For RESET and destruction.
 */
void qp_forget(struct urxe_qp *qp, uint64_t conn);

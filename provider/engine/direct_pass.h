/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pieces of the short way (direct.h) that all its passes have.  A pass is what
 * is carried out while the guard is up once: what it names is the same for all
 * of it.
 */
#pragma once

#include "counters.h"
#include "direct.h"
#include "observe.h"
#include "requester.h"
#include "transfer.h"

struct direct {
	bool has_src; /* qp->direct_src was looked at, and holds */
	uint32_t room; /* WRs that the queue has room for */
	uint64_t bytes, packets;
};

static inline void direct_begin(struct urxe_qp *qp, struct direct *d,
				uint32_t uses)
{
	const struct urxe_sq *sq = &qp->sq;

	d->has_src = false;
	d->bytes = 0;
	d->packets = 0;
	/* acquire: the poller is done with the slots */
	d->room = sq->max_wr - (sq->prod - load_acquire(&sq->tail));
	qp_guard_raise(qp, uses);
}

static inline void direct_end(struct urxe_qp *qp)
{
	guard_lower(qp->guard);
	if (unlikely(qp->count.packets >= COUNTERS_EVERY))
		counters_flush(qp);
}

/* Has it one SGE, and no flag that is unknown? */
static inline bool direct_fits(const struct ibv_send_wr *wr)
{
	const unsigned int flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE |
				   IBV_SEND_SOLICITED | IBV_SEND_INLINE;

	return wr->num_sge == 1 && !(wr->send_flags & ~flags);
}

static inline bool direct_is_write(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_RDMA_WRITE && direct_fits(wr);
}

/* Does the responder hear us?  The guard is up. */
static inline bool __attribute__((always_inline))
direct_is_heard(struct urxe_qp *qp)
{
	const struct urxe_conn *c = &qp->conn;

	if (unlikely(peer_has_died(c->peer)))
		return false;
	/* seq_cst: after our guard went up, see presence.h */
	return likely(load_seq_cst(&c->sh->conn) == c->heard &&
		      load_relaxed(&qp->ctx->fabric->dev->port_state) ==
			      URXE_PORT_ACTIVE &&
		      load_relaxed(&c->sh->epsn) == qp->psn &&
		      load_acquire(&c->sh->path) == c->path &&
		      !load_relaxed(&c->sh->counts));
}

/* Both ends can still talk. */
static inline bool direct_goes_on(const struct urxe_qp *qp,
				  const struct direct *d)
{
	return d->room && load_seq_cst(&qp->conn.sh->conn) == qp->conn.heard &&
	       qp_state(qp) == IBV_QPS_RTS;
}

/* An RDMA or atomic request to this key?  It, or what was it, is direct_dst. */
static inline bool direct_open(struct urxe_qp *qp, uint32_t rkey,
			       uint32_t access)
{
	const struct urxe_conn *c = &qp->conn;

	if (!direct_is_heard(qp) ||
	    unlikely((load_relaxed(&c->sh->access) & access) != access))
		return false;
	return (region_holds(&qp->direct_dst, rkey) ||
		region_open(&qp->direct_dst, c->peer, rkey, c->pd, access,
			    c->qpn)) &&
	       region_allows(&qp->direct_dst, access);
}

/* Our own end of it; access: what its key must allow. */
static inline char *direct_own(struct urxe_qp *qp, struct direct *d,
			       const struct ibv_sge *s, uint32_t access)
{
	if (unlikely(!d->has_src || qp->direct_src.key != s->lkey)) {
		d->has_src = region_holds(&qp->direct_src, s->lkey) ||
			     region_open(&qp->direct_src, qp->ctx->self,
					 s->lkey, qp->sh->pd, 0, qp->qpn);
		if (unlikely(!d->has_src))
			return NULL;
	}
	if (!region_allows(&qp->direct_src, access))
		return NULL;
	return region_at(&qp->direct_src, s->addr, s->length);
}

/* The bytes that it sends. */
static inline const char *direct_source(struct urxe_qp *qp, struct direct *d,
					const struct ibv_send_wr *wr)
{
	const struct ibv_sge *s = wr->sg_list;

	if (wr->send_flags & IBV_SEND_INLINE)
		return s->length <= qp->sq.max_inline ?
			       (const char *)(uintptr_t)s->addr :
			       NULL;
	return direct_own(qp, d, s, 0);
}

/* It was served. */
static inline void direct_count(struct urxe_qp *qp, struct direct *d,
				uint64_t len)
{
	d->bytes += len;
	d->packets += sq_packets(len, qp->mtu_shift);
	d->room--;
}

static inline void direct_complete(struct urxe_qp *qp,
				   const struct ibv_send_wr *wr)
{
	struct urxe_wqe w; /* no more than a completion tells */

	if (wr->send_flags & IBV_SEND_SIGNALED || qp->sq.signal_all) {
		w.wr_id = wr->wr_id;
		w.length = wr->sg_list->length;
		w.opcode = wr->opcode;
		requester_complete(qp, &w, IBV_WC_SUCCESS);
	}
	qp->sq.done++;
}

/* What was completed is the queue's past, and the PSNs are used. */
static inline void direct_served(struct urxe_qp *qp, const struct direct *d)
{
	qp->sq.begun = qp->sq.prod = qp->sq.done;
	if (d->packets)
		requester_served(qp, d->packets, d->bytes);
}

/* READs and atomics, and SENDs; as direct_post(), without its loop. */
struct ibv_send_wr *direct_fetch(struct urxe_qp *qp, struct ibv_send_wr *wr);
struct ibv_send_wr *direct_send(struct urxe_qp *qp, struct ibv_send_wr *wr);

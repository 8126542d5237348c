/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Common parts of the passes of the fast path (direct.h), called by direct.c,
 * direct_fetch.c and direct_send.c with qp->lock held:
 *
 *	direct_begin()		raise the guard
 *	direct_open() ...	check responder, rkey and lkey
 *	direct_count(), direct_complete()	for each WR that was executed
 *	direct_advance()	advance queue positions and PSN
 *	direct_end()		lower the guard
 */
#pragma once

#include "engine/qp/counters.h"
#include "direct.h"
#include "engine/core/observe.h"
#include "requester.h"
#include "engine/copy/transfer.h"

struct direct {
	bool has_src; /* qp->direct_src is valid for this pass */
	bool safe; /* nofault_is_safe() */
	uint32_t me; /* this process, as owner of claimed CQEs */
	uint32_t room; /* free slots of the send queue */
	uint64_t bytes, packets; /* executed in this pass */
};

static inline void direct_begin(struct urxe_qp *qp, struct direct *d,
				uint32_t uses)
{
	const struct urxe_sq *sq = &qp->sq;

	d->has_src = false;
	d->safe = nofault_is_safe();
	d->bytes = 0;
	d->packets = 0;
	/* acquire: the poller has released the slots */
	d->room = sq->max_wr - (sq->prod - load_acquire(&sq->tail));
	d->me = URXE_PROCESS_BRIEF(qp_guard_raise(qp, uses));
}

static inline void direct_end(struct urxe_qp *qp)
{
	guard_lower(qp->guard);
	if (unlikely(qp->count.packets >= COUNTERS_EVERY))
		counters_flush(qp);
}

/* Does wr have one SGE, and only known flags? */
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

/*
 * Does the responder accept requests with this access right?  The guard is
 * raised.  False also if only the requester can tell.
 */
static inline bool __attribute__((always_inline))
direct_conn_ok(struct urxe_qp *qp, uint32_t access)
{
	const struct urxe_conn *c = &qp->conn;
	const struct urxe_qp_sh *sh = c->sh;

	if (unlikely(peer_has_died(c->peer)))
		return false;
	/* seq_cst: ordered after the store of the guard, see presence.h */
	return likely(load_seq_cst(&sh->conn) == c->want_rts &&
		      load_relaxed(c->link) == c->link_seen &&
		      load_relaxed(&sh->epsn) == qp->psn &&
		      load_acquire(&sh->path) == c->path &&
		      (c->allows & access) == access);
}

/* Can the pass continue: free slots, and both ends still connected? */
static inline bool direct_may_continue(const struct urxe_qp *qp,
				       const struct direct *d)
{
	return d->room &&
	       load_seq_cst(&qp->conn.sh->conn) == qp->conn.want_rts &&
	       qp_state(qp) == IBV_QPS_RTS;
}

/*
 * Make qp->direct_dst the region of rkey, or keep it if it still is.  False
 * if the responder or the key does not permit this access, or the region is
 * not mapped here.
 */
static inline bool direct_open(struct urxe_qp *qp, uint32_t rkey,
			       uint32_t access)
{
	const struct urxe_conn *c = &qp->conn;

	return direct_conn_ok(qp, access) &&
	       (region_holds(&qp->direct_dst, rkey) ||
		region_open(&qp->direct_dst, c->peer, rkey, c->pd, access,
			    c->qpn)) &&
	       region_allows(&qp->direct_dst, access);
}

/*
 * Get the local address of an SGE in *at, and make qp->direct_src its region.
 * The lkey has to permit access.  False if the fast path cannot be used.
 */
static inline bool direct_local(struct urxe_qp *qp, struct direct *d,
				const struct ibv_sge *s, uint32_t access,
				char **at)
{
	if (!d->has_src || unlikely(qp->direct_src.key != s->lkey)) {
		d->has_src = region_holds(&qp->direct_src, s->lkey) ||
			     region_open(&qp->direct_src, qp->ctx->self,
					 s->lkey, qp->sh->pd, 0, qp->qpn);
		if (unlikely(!d->has_src))
			return false;
	}
	return region_allows(&qp->direct_src, access) &&
	       region_at(&qp->direct_src, s->addr, s->length, at);
}

/* Get the address of the bytes that wr sends, an SGE or inline data. */
static inline bool direct_source(struct urxe_qp *qp, struct direct *d,
				 const struct ibv_send_wr *wr, char **at)
{
	const struct ibv_sge *s = wr->sg_list;

	if (likely(!(wr->send_flags & IBV_SEND_INLINE)))
		return direct_local(qp, d, s, 0, at);
	*at = (char *)(uintptr_t)s->addr;
	return s->length <= qp->sq.max_inline;
}

/* Account for a WR that was executed; len is not 0. */
static inline void direct_count(struct urxe_qp *qp, struct direct *d,
				uint64_t len)
{
	d->bytes += len;
	d->packets += ((len - 1) >> qp->mtu_shift) + 1;
	d->room--;
}

static inline bool direct_is_signaled(const struct urxe_qp *qp,
				      const struct ibv_send_wr *wr)
{
	return wr->send_flags & IBV_SEND_SIGNALED || qp->sq.signal_all;
}

/*
 * Slow paths of direct_complete(), in direct.c: the cached ring could not be
 * used; the CQ has a channel or timestamps.
 */
void direct_complete_slow(struct urxe_qp *qp, const struct ibv_send_wr *wr,
			  uint8_t opcode);
void direct_publish_slow(struct urxe_qp *qp, struct cq_slot slot);

static inline void direct_complete(struct urxe_qp *qp, const struct direct *d,
				   const struct ibv_send_wr *wr, uint32_t len,
				   uint8_t opcode)
{
	const struct urxe_cq_known *k = &qp->direct_scq;
	const uint32_t next = qp->sq.done + 1;
	struct cq_slot slot;

	if (!direct_is_signaled(qp, wr)) {
		/* no CQE */
	} else if (unlikely(!cq_claim_known(&qp->scq->view, k, d->me, &slot))) {
		direct_complete_slow(qp, wr, opcode);
	} else {
		qp->sq.signaled = next;
		complete_fill(qp, wr->wr_id, opcode, len, IBV_WC_SUCCESS,
			      slot.cqe);
		if (likely(!k->watched))
			cq_ring_publish(slot.cqe, slot.pos,
					memory_order_release);
		else
			direct_publish_slow(qp, slot);
	}
	qp->sq.done = next;
}

/* Advance the queue positions past the completed WRs, and the PSN. */
static inline void direct_advance(struct urxe_qp *qp, const struct direct *d)
{
	qp->sq.begun = qp->sq.prod = qp->sq.done;
	qp->psn = (qp->psn + d->packets) & URXE_PSN_MASK;
	qp->count.packets += d->packets;
	qp->count.bytes += d->bytes;
	store_relaxed(&qp->conn.sh->epsn, qp->psn);
}

/* One pass of READs or atomics, or of SENDs; returns as direct_post(). */
struct ibv_send_wr *direct_fetch(struct urxe_qp *qp, struct ibv_send_wr *wr);
struct ibv_send_wr *direct_send(struct urxe_qp *qp, struct ibv_send_wr *wr);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <string.h>

#include "counters.h"
#include "direct.h"
#include "observe.h"
#include "requester.h"
#include "responder.h"
#include "transfer.h"

/* One pass: a guard, a connection, two keys. */
struct direct {
	bool has_src; /* qp->direct_src was looked at */
	uint64_t word; /* what the responder's conn is while it hears us */
	uint32_t room; /* WRs that the queue has room for */
	uint64_t bytes, packets;
};

/* Look a key up, the guard up.  False: it is none that can be had this way. */
static bool __attribute__((noinline))
region_open(struct urxe_region *r, struct urxe_peer *p, uint32_t key,
	    uint32_t pd, uint32_t access, uint32_t qpn)
{
	const struct urxe_key *k;
	struct urxe_seg seg;

	r->entry = NULL;
	r->key = key;
	r->made = load_acquire(&p->arena->keys_made);
	k = mem_entry(p, key, pd, access);
	if (unlikely(!k || !mem_serves(k, qpn) || k->flags & URXE_MR_ODP))
		return false;
	r->iova = k->iova;
	r->length = k->length;
	mem_reach(p, k, r->iova, r->length, &seg);
	if (!seg.ptr)
		return false;
	r->base = seg.ptr;
	r->arena = p->arena;
	r->entry = k;
	return true;
}

/*
 * Was it looked up, in vain, and no key has become another one since?  Its
 * WRITEs are not tried again and again.
 */
static inline bool region_is_closed(const struct urxe_region *r,
				    const struct urxe_peer *p, uint32_t key)
{
	return !r->entry && r->key == key &&
	       load_relaxed(&p->arena->keys_made) == r->made;
}

/* Is it still what it was?  The guard is up. */
static inline bool region_holds(const struct urxe_region *r, uint32_t key)
{
	/*
	 * seq_cst: after our guard went up, see presence.h; and then acquire:
	 * who made the key live again has raised keys_made before
	 */
	return likely(r->entry && r->key == key &&
		      load_seq_cst(&r->entry->live) == URXE_MR_LIVE(key)) &&
	       likely(load_relaxed(&r->arena->keys_made) == r->made);
}

/* NULL: it does not have those bytes. */
static inline char *region_at(const struct urxe_region *r, uint64_t addr,
			      uint64_t len)
{
	uint64_t offset = addr - r->iova;

	/* an address before it is an offset behind its end */
	if (unlikely(len > r->length || offset > r->length - len))
		return NULL;
	return r->base + offset;
}

static inline bool direct_fits(const struct ibv_send_wr *wr)
{
	const unsigned int flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE |
				   IBV_SEND_SOLICITED | IBV_SEND_INLINE;

	return (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_SEND ||
		wr->opcode == IBV_WR_SEND_WITH_IMM) &&
	       wr->num_sge == 1 && !(wr->send_flags & ~flags);
}

/* Nothing is before it in the queue, and nobody looks at WQEs. */
static inline bool direct_is_free(const struct urxe_qp *qp)
{
	return qp->sq.done == qp->sq.prod && qp->type == IBV_QPT_RC &&
	       qp->sq.max_sge && !qp->carrier && !qp->counts &&
	       !urxe_observers;
}

/* Does the responder hear us?  The guard is up. */
static inline bool __attribute__((always_inline))
direct_is_heard(struct urxe_qp *qp, struct direct *d)
{
	const struct urxe_conn *c = &qp->conn;

	if (unlikely(peer_has_died(c->peer)))
		return false;
	d->word = URXE_CONN_WITH(c->want, IBV_QPS_RTS);
	/* seq_cst: after our guard went up, see presence.h */
	return likely(load_seq_cst(&c->sh->conn) == d->word &&
		      load_relaxed(&qp->ctx->fabric->dev->port_state) ==
			      URXE_PORT_ACTIVE &&
		      load_relaxed(&c->sh->epsn) == qp->psn &&
		      load_acquire(&c->sh->path) == c->path &&
		      !load_relaxed(&c->sh->counts));
}

/* A WRITE to this key? */
static inline bool direct_open(struct urxe_qp *qp, struct direct *d,
			       uint32_t rkey)
{
	const struct urxe_conn *c = &qp->conn;

	if (!direct_is_heard(qp, d) ||
	    unlikely(!(load_relaxed(&c->sh->access) & IBV_ACCESS_REMOTE_WRITE)))
		return false;
	return region_holds(&qp->direct_dst, rkey) ||
	       region_open(&qp->direct_dst, c->peer, rkey, c->pd,
			   IBV_ACCESS_REMOTE_WRITE, c->qpn);
}

static inline const char *direct_source(struct urxe_qp *qp, struct direct *d,
					const struct ibv_sge *s, bool is_inline)
{
	if (is_inline)
		return s->length <= qp->sq.max_inline ?
			       (const char *)(uintptr_t)s->addr :
			       NULL;
	if (unlikely(!d->has_src || qp->direct_src.key != s->lkey)) {
		d->has_src = region_holds(&qp->direct_src, s->lkey) ||
			     region_open(&qp->direct_src, qp->ctx->self,
					 s->lkey, qp->sh->pd, 0, qp->qpn);
		if (unlikely(!d->has_src))
			return NULL;
	}
	return region_at(&qp->direct_src, s->addr, s->length);
}

/* Both ends can still talk, and the WR is of this pass. */
static inline bool direct_goes_on(const struct urxe_qp *qp,
				  const struct direct *d,
				  const struct ibv_send_wr *wr)
{
	return direct_fits(wr) && wr->opcode == IBV_WR_RDMA_WRITE &&
	       wr->wr.rdma.rkey == qp->direct_dst.key && d->room &&
	       load_seq_cst(&qp->conn.sh->conn) == d->word &&
	       qp_state(qp) == IBV_QPS_RTS;
}

/* False: it is left to the requester. */
static inline bool direct_one(struct urxe_qp *qp, struct direct *d,
			      const struct ibv_send_wr *wr)
{
	const struct ibv_sge *s = wr->sg_list;
	const uint64_t len = s->length;
	const char *src;
	char *dst;

	src = direct_source(qp, d, s, wr->send_flags & IBV_SEND_INLINE);
	dst = region_at(&qp->direct_dst, wr->wr.rdma.remote_addr, len);
	if (unlikely(!src || !dst || !len || len > URXE_MAX_MSG))
		return false;
	transfer_local(dst, src, len);
	d->bytes += len;
	d->packets += sq_packets(len, qp->mtu_shift);
	d->room--;
	return true;
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

static struct ibv_send_wr *direct_pass(struct urxe_qp *qp,
				       struct ibv_send_wr *wr)
{
	struct urxe_sq *sq = &qp->sq;
	struct direct d;

	d.has_src = false;
	d.bytes = 0;
	d.packets = 0;
	/* acquire: the poller is done with the slots */
	d.room = sq->max_wr - (sq->prod - load_acquire(&sq->tail));
	qp_guard_raise(qp, GUARD_ONE_KEY(wr->wr.rdma.rkey));
	if (likely(d.room && direct_open(qp, &d, wr->wr.rdma.rkey) &&
		   qp_state(qp) == IBV_QPS_RTS)) {
		while (direct_one(qp, &d, wr)) {
			direct_complete(qp, wr);
			wr = wr->next;
			if (!wr || !direct_goes_on(qp, &d, wr))
				break;
		}
		sq->begun = sq->prod = sq->done;
		if (d.packets)
			requester_served(qp, d.packets, d.bytes);
	}
	guard_lower(qp->guard);
	if (unlikely(qp->count.packets >= COUNTERS_EVERY))
		counters_flush(qp);
	return wr;
}

/* ------------------------------------------------------- SENDs */

/* What is longer keeps the receiver's other keys in use for too long. */
#define DIRECT_SEND_MAX 4096

/* Where a SEND goes; NULL: not this way. */
static inline char *direct_sink(struct urxe_qp *qp,
				const struct next_receive *n, uint64_t len)
{
	struct urxe_region *r = &qp->direct_rx;
	struct urxe_rx *rx = &qp->conn.rx;

	if (unlikely(!len || len > DIRECT_SEND_MAX || len > n->sge.length))
		return NULL;
	if (unlikely(!region_holds(r, n->sge.lkey)) &&
	    !region_open(r, rx_peer(rx), n->sge.lkey, rx->pd,
			 IBV_ACCESS_LOCAL_WRITE, qp->conn.qpn))
		return NULL;
	return region_at(r, n->sge.addr, len);
}

static bool direct_send_one(struct urxe_qp *qp, struct direct *d,
			    const struct ibv_send_wr *wr)
{
	const struct ibv_sge *s = wr->sg_list;
	struct requester_end end;
	struct next_receive n;
	struct urxe_wqe w; /* no more than the completions tell */
	struct receipt rc;
	const char *src;
	char *dst;

	if (!responder_next(&qp->conn, &n))
		return false;
	src = direct_source(qp, d, s, wr->send_flags & IBV_SEND_INLINE);
	dst = direct_sink(qp, &n, s->length);
	if (unlikely(!src || !dst))
		return false;
	w.wr_id = wr->wr_id;
	w.length = s->length;
	w.imm = wr->imm_data;
	w.opcode = wr->opcode;
	w.flags = wr->send_flags;
	if (qp->sq.signal_all)
		w.flags |= IBV_SEND_SIGNALED;
	if (unlikely(!responder_take_next(qp, &w, &n, &rc)))
		return false;
	transfer_local(dst, src, w.length);
	requester_claim(qp, &w, &end);
	if (unlikely(end.claimed && rc.conn->rx.cq.sh == qp->scq->sh))
		responder_stand_behind(&rc, &end.ref);
	requester_finish(qp, &w, &end);
	qp->sq.begun = qp->sq.prod = qp->sq.done;
	responder_publish(&rc);
	requester_notify(qp, &end);
	responder_notify(&rc);
	return true;
}

static inline bool direct_is_send(const struct ibv_send_wr *wr)
{
	return direct_fits(wr) && wr->opcode != IBV_WR_RDMA_WRITE;
}

static struct ibv_send_wr *direct_send_pass(struct urxe_qp *qp,
					    struct ibv_send_wr *wr)
{
	struct urxe_sq *sq = &qp->sq;
	struct direct d;

	d.has_src = false;
	/* acquire: the poller is done with the slots */
	d.room = sq->max_wr - (sq->prod - load_acquire(&sq->tail));
	qp_guard_raise(qp, GUARD_SEND);
	while (wr && direct_is_send(wr) && d.room &&
	       direct_is_heard(qp, &d) && qp_state(qp) == IBV_QPS_RTS &&
	       direct_send_one(qp, &d, wr)) {
		wr = wr->next;
		d.room--;
	}
	guard_lower(qp->guard);
	if (unlikely(qp->count.packets >= COUNTERS_EVERY))
		counters_flush(qp);
	return wr;
}

/* How often it is looked whether receives are still where we have no mapping. */
#define DIRECT_SEND_AGAIN 64

static inline bool direct_send_is_vain(struct urxe_qp *qp)
{
	const struct urxe_region *r = &qp->direct_rx;

	return r->key && region_is_closed(r, qp->conn.peer, r->key) &&
	       ++qp->direct_vain % DIRECT_SEND_AGAIN;
}

void direct_forget(struct urxe_qp *qp)
{
	memset(&qp->direct_rx, 0, sizeof(qp->direct_rx));
	memset(&qp->direct_src, 0, sizeof(qp->direct_src));
	memset(&qp->direct_dst, 0, sizeof(qp->direct_dst));
}

void direct_after_fork(struct urxe_qp *qp)
{
	struct urxe_sq *sq = &qp->sq;

	direct_forget(qp);
	/* a thread that is the parent's was in direct_pass() */
	if ((int32_t)(sq->done - sq->prod) > 0)
		sq->begun = sq->prod = sq->done;
}

struct ibv_send_wr *direct_post(struct urxe_qp *qp, struct ibv_send_wr *wr)
{
	const struct urxe_peer *p = qp->conn.peer;
	struct ibv_send_wr *rest = NULL;

	for (; p && wr && direct_fits(wr) && direct_is_free(qp); wr = rest) {
		if (wr->opcode != IBV_WR_RDMA_WRITE)
			rest = direct_send_is_vain(qp) ?
				       wr :
				       direct_send_pass(qp, wr);
		else
			rest = region_is_closed(&qp->direct_dst, p,
						wr->wr.rdma.rkey) ?
				       wr :
				       direct_pass(qp, wr);
		if (rest == wr)
			break;
	}
	return wr;
}

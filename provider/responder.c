// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <sched.h>

#include "cq.h"
#include "event.h"
#include "peer.h"
#include "qp.h"
#include "responder.h"
#include "retry.h"
#include "rq.h"
#include "transfer.h"

/* ------------------------------------------------------- the connection */

void conn_drop(struct urxe_qp *qp)
{
	struct urxe_conn *c = &qp->conn;

	if (!c->peer)
		return;
	cq_view_fini(&c->rcq);
	peer_put(c->peer);
	c->peer = NULL;
	c->sh = NULL;
}

bool conn_resolve(struct urxe_qp *qp)
{
	struct urxe_fabric *f = qp->ctx->fabric;
	struct urxe_conn *c = &qp->conn;
	uint32_t dest = qp->attr.dest_qp_num, slot, gen;
	struct urxe_qp_sh *sh;
	struct urxe_peer *p;

	if (!qpn_lookup(f->dev, dest, &slot, &gen))
		return false;
	p = peer_get(f, slot, gen);
	if (!p)
		return false;
	sh = &p->arena->qp[qpn_index(dest)];
	if (sh->type != qp->init.qp_type ||
	    !rq_view_init(&c->rq, p->arena, &sh->rq) ||
	    !cq_view_init(&c->rcq, p, sh->recv_cq, qp->ctx->slot)) {
		peer_put(p);
		return false;
	}
	c->peer = p;
	c->sh = sh;
	c->qpn = dest;
	c->pd = sh->pd;
	c->want = URXE_CONN(dest, qp->vqp.qp.qp_num, 0);
	if (p->fd >= 0)
		service_need(qp->ctx); /* watches over the peer's life */
	return true;
}

static void establish(struct urxe_conn *c)
{
	if (!atomic_exchange_explicit(&c->sh->comm_est, 1,
				      memory_order_acq_rel))
		event_raise(c->peer, c->sh->async_fifo, c->sh->user,
			    IBV_EVENT_COMM_EST);
}

enum response responder_ready(struct urxe_qp *qp)
{
	struct urxe_conn *c = &qp->conn;
	uint64_t word;

	if (unlikely(!c->peer) && !conn_resolve(qp))
		return RESP_SILENCE;
	/* seq_cst: after our guard went up, see quiesce.h */
	word = atomic_load_explicit(&c->sh->conn, memory_order_seq_cst);
	if (unlikely((word & 0xffffffffffff) != c->want)) {
		conn_drop(qp);
		return RESP_SILENCE;
	}
	switch (URXE_CONN_STATE(word)) {
	case IBV_QPS_RTR:
		/* IB 10.3.1.4: the first packet in RTR */
		if (!atomic_load_explicit(&c->sh->comm_est,
					  memory_order_relaxed))
			establish(c);
		break;
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
	case IBV_QPS_SQE:
		break;
	default:
		return RESP_SILENCE;
	}
	if (unlikely(atomic_load_explicit(&c->sh->epsn, memory_order_relaxed) !=
		     qp->psn)) {
		urxe_why("QP 0x%x: PSN 0x%x is not the 0x%x that QP 0x%x expects (sq_psn and rq_psn must agree)",
			 qp->vqp.qp.qp_num, qp->psn,
			 atomic_load_explicit(&c->sh->epsn,
					      memory_order_relaxed),
			 c->qpn);
		return RESP_NAK_SEQUENCE;
	}
	return RESP_ACK;
}

void responder_acked(struct urxe_qp *qp, uint64_t length)
{
	uint64_t packets = 1;

	if (length)
		packets = (length + (1ull << qp->mtu_shift) - 1) >>
			  qp->mtu_shift;
	qp->psn = (qp->psn + packets) & 0xffffff;
	atomic_store_explicit(&qp->conn.sh->epsn, qp->psn,
			      memory_order_relaxed);
}

static void attention(struct urxe_conn *c, uint32_t cq)
{
	struct urxe_cq_view v;

	if (!cq_view_init(&v, c->peer, cq, 0))
		return;
	cq_attention(&v);
	cq_view_fini(&v);
}

void responder_broken(struct urxe_conn *c, enum response nak)
{
	uint64_t word = atomic_load_explicit(&c->sh->conn,
					     memory_order_relaxed);

	do {
		if ((word & 0xffffffffffff) != c->want ||
		    URXE_CONN_STATE(word) == IBV_QPS_ERR)
			return;
	} while (!atomic_compare_exchange_weak_explicit(
		&c->sh->conn, &word, c->want | (uint64_t)IBV_QPS_ERR << 48,
		memory_order_seq_cst, memory_order_relaxed));
	if (nak == RESP_NAK_INVALID)
		event_raise(c->peer, c->sh->async_fifo, c->sh->user,
			    IBV_EVENT_QP_REQ_ERR);
	else if (nak == RESP_NAK_ACCESS)
		event_raise(c->peer, c->sh->async_fifo, c->sh->user,
			    IBV_EVENT_QP_ACCESS_ERR);
	attention(c, c->sh->recv_cq);
	if (c->sh->send_cq != c->sh->recv_cq)
		attention(c, c->sh->send_cq);
}

/* ------------------------------------------------------- RDMA and atomics */

enum response responder_access(struct urxe_conn *c, uint32_t rkey,
			       uint64_t addr, uint64_t len, uint32_t access,
			       struct urxe_seg *seg, const struct urxe_key **key)
{
	const struct urxe_key *k;

	/* IB 9.7.4.1: the QP must allow the operation at all */
	if (unlikely((atomic_load_explicit(&c->sh->access,
					   memory_order_relaxed) &
		      access) != access)) {
		urxe_why("QP 0x%x does not allow this operation (qp_access_flags)",
			 c->qpn);
		return RESP_NAK_INVALID;
	}
	if (!len) { /* C9-88: the key of an empty request is not looked at */
		seg->ptr = NULL;
		seg->pid = 0;
		seg->len = 0;
		return RESP_ACK;
	}
	k = mem_lookup(c->peer, rkey, c->pd, addr, len, access);
	if (unlikely(!k)) {
		urxe_why("rkey 0x%x at QP 0x%x: not a key of its PD that allows this operation on %llu bytes at 0x%llx",
			 rkey, c->qpn, (unsigned long long)len,
			 (unsigned long long)addr);
		return RESP_NAK_ACCESS;
	}
	mem_reach(c->peer, k, addr, len, seg);
	if (key)
		*key = k;
	return RESP_ACK;
}

/*
 * Atomics on memory that not everybody can map go through a lock word in the
 * arena that owns the memory.  It names its holder's context, so that a dead
 * holder's lock can be taken over.
 */
static void atomic_lock(struct urxe_peer *p, uint32_t me)
{
	_Atomic uint32_t *lock = &p->arena->atomic_lock;
	struct urxe_dev *dev = p->fabric->dev;
	uint32_t holder = 0, spins = 0, gen;

	while (!atomic_compare_exchange_weak_explicit(lock, &holder, me + 1,
						      memory_order_acquire,
						      memory_order_relaxed)) {
		if (++spins % 1024 == 0 && holder &&
		    holder <= URXE_MAX_CTX) {
			gen = atomic_load_explicit(&dev->ctx[holder - 1].gen,
						   memory_order_relaxed);
			if (!fabric_context_alive(p->fabric, holder - 1, gen) &&
			    atomic_compare_exchange_strong_explicit(
				    lock, &holder, me + 1, memory_order_acquire,
				    memory_order_relaxed))
				return;
		}
		if (spins % 64 == 0)
			sched_yield();
		holder = 0;
	}
}

static void atomic_unlock(struct urxe_peer *p)
{
	atomic_store_explicit(&p->arena->atomic_lock, 0, memory_order_release);
}

static uint64_t cpu_atomic(char *ptr, const struct urxe_wqe *w)
{
	_Atomic uint64_t *word = (_Atomic uint64_t *)(void *)ptr;
	uint64_t old = w->atomic.compare_add;

	if (w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return atomic_fetch_add_explicit(word, w->atomic.compare_add,
						 memory_order_acq_rel);
	atomic_compare_exchange_strong_explicit(word, &old, w->atomic.swap,
						memory_order_acq_rel,
						memory_order_acquire);
	return old;
}

static enum response copied_atomic(const struct urxe_seg *seg,
				   const struct urxe_wqe *w, uint64_t *old)
{
	struct urxe_seg mine = { .len = 8 };
	uint64_t now;

	mine.ptr = (char *)old;
	if (transfer(&mine, seg, 8))
		return RESP_NAK_OPERATION;
	if (w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		now = *old + w->atomic.compare_add;
	else if (*old == w->atomic.compare_add)
		now = w->atomic.swap;
	else
		return RESP_ACK;
	mine.ptr = (char *)&now;
	return transfer(seg, &mine, 8) ? RESP_NAK_OPERATION : RESP_ACK;
}

enum response responder_atomic(struct urxe_qp *qp, const struct urxe_seg *seg,
			       const struct urxe_key *key,
			       const struct urxe_wqe *w, uint64_t *old)
{
	struct urxe_peer *p = qp->conn.peer;
	enum response resp = RESP_ACK;

	/* everybody maps device memory: the CPU's atomics are enough */
	if (key->kind == URXE_MEM_DM && seg->ptr) {
		*old = cpu_atomic(seg->ptr, w);
		return RESP_ACK;
	}
	atomic_lock(p, qp->ctx->slot);
	if (seg->ptr)
		*old = cpu_atomic(seg->ptr, w);
	else
		resp = copied_atomic(seg, w, old);
	atomic_unlock(p);
	return resp;
}

/* ------------------------------------------------------- receives */

bool responder_has_receive(const struct urxe_conn *c)
{
	uint32_t cons;

	if (!c->rq.ring)
		return false;
	cons = atomic_load_explicit(&c->rq.sh->cons, memory_order_relaxed);
	return (int32_t)(atomic_load_explicit(&c->rq.sh->prod,
					      memory_order_acquire) - cons) > 0;
}

/* A receive, copied out of its slot and taken. */
struct taken {
	uint64_t wr_id;
	uint32_t index;
	uint32_t num_sge;
	uint64_t total;
	struct urxe_sge sge[URXE_MAX_SGE];
};

static bool take_receive(struct urxe_conn *c, struct taken *t)
{
	const struct urxe_recv *slot;
	uint32_t cons, i;

	if (unlikely(!c->rq.ring))
		return false;
	cons = atomic_load_explicit(&c->rq.sh->cons, memory_order_acquire);
	do {
		if ((int32_t)(atomic_load_explicit(&c->rq.sh->prod,
						   memory_order_acquire) -
			      cons) <= 0)
			return false;
		slot = (const void *)(c->rq.ring +
				      (uint64_t)(cons & c->rq.mask) *
					      c->rq.stride);
		t->wr_id = slot->wr_id;
		t->num_sge = slot->num_sge < c->rq.max_sge ? slot->num_sge :
							     c->rq.max_sge;
		t->total = 0;
		for (i = 0; i < t->num_sge; i++) {
			t->sge[i] = slot->sge[i];
			t->total += t->sge[i].length;
		}
		t->index = cons;
	} while (!atomic_compare_exchange_weak_explicit(
		&c->rq.sh->cons, &cons, cons + 1, memory_order_acq_rel,
		memory_order_acquire));
	return true;
}

/* Where len bytes go; false: a key of the receive does not hold. */
static bool scatter(struct urxe_conn *c, const struct taken *t, uint64_t len,
		    struct urxe_seg *dst, bool *mapped)
{
	const struct urxe_key *k;
	uint64_t n;
	uint32_t i;

	*mapped = true;
	for (i = 0; len && i < t->num_sge; i++) {
		n = t->sge[i].length < len ? t->sge[i].length : len;
		dst[i].len = n;
		if (!n)
			continue;
		k = mem_lookup(c->peer, t->sge[i].lkey, c->pd, t->sge[i].addr,
			       n, IBV_ACCESS_LOCAL_WRITE);
		if (!k) {
			urxe_why("lkey 0x%x of a receive on QP 0x%x does not cover %llu bytes at 0x%llx with local write access",
				 t->sge[i].lkey, c->qpn, (unsigned long long)n,
				 (unsigned long long)t->sge[i].addr);
			return false;
		}
		mem_reach(c->peer, k, t->sge[i].addr, n, &dst[i]);
		*mapped &= dst[i].ptr != NULL;
		len -= n;
	}
	return true;
}

static bool is_send(uint8_t opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
	       opcode == IBV_WR_SEND_WITH_INV;
}

/* Bring a SEND's bytes to the receive, or into its completion. */
static enum response deliver(struct urxe_conn *c, const struct taken *t,
			     const struct request *r, struct urxe_cqe *cqe,
			     uint8_t *status, uint8_t *inline_len)
{
	struct urxe_seg dst[URXE_MAX_SGE];
	enum transfer_status moved;
	bool mapped;

	if (r->length > t->total) {
		urxe_why("a message of %llu bytes met a receive of %llu on QP 0x%x",
			 (unsigned long long)r->length,
			 (unsigned long long)t->total, c->qpn);
		*status = IBV_WC_LOC_LEN_ERR;
		return RESP_NAK_INVALID;
	}
	if (!scatter(c, t, r->length, dst, &mapped)) {
		*status = IBV_WC_LOC_PROT_ERR;
		return RESP_NAK_OPERATION;
	}
	if (!mapped && r->length <= URXE_CQE_INLINE) {
		dst[0].ptr = (char *)cqe->data;
		dst[0].len = r->length;
		*inline_len = r->length;
	}
	moved = transfer(dst, r->src, r->length);
	if (moved == TRANSFER_OK)
		return RESP_ACK;
	*inline_len = 0;
	*status = IBV_WC_LOC_PROT_ERR;
	return RESP_NAK_OPERATION;
}

enum response responder_receive(struct urxe_conn *c, const struct request *r)
{
	struct urxe_completion wc = {
		.qpn = c->qpn,
		.byte_len = r->length,
		.imm = r->imm,
		.src_qp = r->src_qp,
		.status = IBV_WC_SUCCESS,
		.opcode = IBV_WC_RECV,
		.solicited = r->solicited,
	};
	enum response resp = RESP_ACK;
	struct urxe_cqe_ref ref;
	uint8_t inline_len = 0;
	struct taken t;

	if (!take_receive(c, &t))
		return RESP_RNR;
	if (!cq_begin(&c->rcq, &ref))
		return RESP_NAK_OPERATION; /* their CQ is overrun */
	wc.wr_id = t.wr_id;
	wc.wqe = t.index;
	if (is_send(r->opcode))
		resp = deliver(c, &t, r, ref.cqe, &wc.status, &inline_len);
	else
		wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
	if (resp != RESP_ACK) {
		wc.imm = wc.status;
		wc.byte_len = 0;
	} else if (r->opcode == IBV_WR_SEND_WITH_IMM ||
		   r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		wc.wc_flags = IBV_WC_WITH_IMM;
	} else if (r->opcode == IBV_WR_SEND_WITH_INV) {
		wc.wc_flags = IBV_WC_WITH_INV;
	}
	cq_end(&c->rcq, &ref, &wc, inline_len);
	atomic_store_explicit(&c->rq.sh->done, t.index + 1,
			      memory_order_release);
	return resp;
}

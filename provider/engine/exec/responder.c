// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The responder: executed by the requester in its own process, on the shared
 * state of the remote QP, with the requester's guard raised. The socket owner
 * (provider/wire) uses the same functions for requests of other hosts.
 *
 * A message that consumes a receive takes it by compare-and-swap on the RQ's
 * consumer index (shared/rq_ring.h), copies the data, claims a CQ entry,
 * fills it and publishes it (shared/cq_ring.h). If the data cannot be copied
 * now, the receive is returned.
 *
 * Keys are looked up with seq_cst after the guard was raised; shared/guard.h
 * has the argument.
 */
#include <stddef.h>
#include <string.h>

#include "bind.h"
#include "engine/copy/bounce.h"
#include "engine/qp/comp_cntr.h"
#include "engine/cq/eager.h"
#include "engine/cq/event.h"
#include "engine/core/log.h"
#include "engine/qp/qp.h"
#include "responder.h"
#include "engine/qp/why.h"
#include "engine/qp/wqe.h"

/* ------------------------------------------------------- RDMA and atomics */

static void __attribute__((cold, noinline))
rkey_refused(struct urxe_conn *c, uint32_t rkey, uint64_t addr, uint64_t len,
	     uint32_t access)
{
	const struct mem_use use = {
		.peer = conn_key_peer(c),
		.key = rkey,
		.pd = c->pd,
		.access = access,
		.qpn = c->qpn,
		.addr = addr,
		.len = len,
	};

	mem_refused(REASON_RKEY, &use);
}

static void __attribute__((cold, noinline))
lkey_refused(struct urxe_conn *c, const struct urxe_sge *sge, uint64_t len)
{
	const struct mem_use use = {
		.peer = rx_peer(&c->rx),
		.key = sge->lkey,
		.pd = c->rx.pd,
		.access = IBV_ACCESS_LOCAL_WRITE,
		.qpn = c->qpn,
		.addr = sge->addr,
		.len = len,
	};

	mem_refused(REASON_LKEY_RECV, &use);
}

/* Note that the qp_access_flags of the QP forbid the operation. */
static void __attribute__((cold, noinline))
access_refused(const struct urxe_conn *c, uint32_t access)
{
	why_note(ACCESS, c->qpn, load_relaxed(&c->sh->access), access);
}

enum response responder_access(struct urxe_conn *c, uint32_t rkey,
			       uint64_t addr, uint64_t len, uint32_t access,
			       struct urxe_seg *seg,
			       const struct urxe_key **key)
{
	const struct urxe_key *k;
	struct urxe_peer *p;

	/* IB 9.7.4.1: the QP must allow the operation */
	if (unlikely((load_relaxed(&c->sh->access) & access) != access)) {
		access_refused(c, access);
		return RESP_NAK_INVALID;
	}
	if (!len) { /* C9-88: the key of an empty request is not checked */
		seg->ptr = NULL;
		seg->pid = 0;
		seg->len = 0;
		return RESP_ACK;
	}
	p = conn_key_peer(c);
	k = mem_lookup(p, rkey, c->pd, addr, len, access);
	if (unlikely(!k || !mem_serves(k, c->qpn))) {
		rkey_refused(c, rkey, addr, len, access);
		return RESP_NAK_ACCESS;
	}
	mem_reach(p, k, addr, len, seg);
	if (key)
		*key = k;
	return RESP_ACK;
}

bool responder_is_aligned(uint64_t addr)
{
	if (likely(!(addr & 7)))
		return true;
	why_note(ALIGNMENT, addr);
	return false;
}

enum response responder_flush(struct urxe_qp *qp, struct urxe_conn *c,
			      const struct urxe_wqe *w)
{
	bool persistent = w->flush.type & URXE_FLUSH_PERSISTENT;
	struct urxe_peer *p = conn_key_peer(c);
	const struct urxe_key *k;
	uint32_t access = 0;

	if (w->flush.type & URXE_FLUSH_GLOBAL)
		access |= URXE_ACCESS_FLUSH_GLOBAL;
	if (persistent)
		access |= URXE_ACCESS_FLUSH_PERSISTENT;
	if ((load_relaxed(&c->sh->access) & access) != access) {
		access_refused(c, access);
		return RESP_NAK_INVALID;
	}
	k = w->flush.level == URXE_FLUSH_MR ?
		    mem_entry(p, w->rkey, c->pd, access) :
		    mem_lookup(p, w->rkey, c->pd, w->remote_addr, w->length,
			       access);
	if (!k || !mem_serves(k, c->qpn)) {
		rkey_refused(c, w->rkey, w->remote_addr, w->length, access);
		return RESP_NAK_ACCESS;
	}
	/*
	 * memory is coherent: all earlier writes are visible after the fence
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (persistent && mem_persist(p, k) && !bounce_persist(qp->ctx, p, k)) {
		why_note(PERSIST, w->rkey);
		return RESP_NAK_OPERATION;
	}
	return RESP_ACK;
}

/* ------------------------------------------------------- receives */

void responder_note_rnr(const struct urxe_conn *c, uint32_t qpn)
{
	why_note(RNR, qpn,
		 c->rx.rq.ring ? load_relaxed(&c->rx.rq.sh->prod) : 0);
}

bool responder_has_receive(const struct urxe_conn *c)
{
	const struct urxe_rq_view *rq = &c->rx.rq;
	uint32_t cons;

	if (!rq->ring)
		return false;
	cons = load_relaxed(&rq->sh->cons);
	return load_seq_cst(&rq->sh->prod) != cons;
}

void responder_wait_receive(struct urxe_conn *c, uint32_t slot)
{
	uint32_t none = 0;

	if (!c->rx.srq) {
		store_seq_cst(&c->sh->rq.waiter, slot + 1);
		return;
	}
	if (!cas_seq_cst(&c->rx.srq->rq.waiter, &none, slot + 1) &&
	    none != slot + 1)
		store_seq_cst(&c->rx.srq->rq.waiter, URXE_WAIT_MANY);
}

/*
 * Raise the limit event once if the SRQ has fewer receives than its limit (IB
 * 11.2.3.3).
 */
static void receive_check_limit(struct urxe_rx *rx, uint32_t left)
{
	uint32_t limit = load_relaxed(&rx->srq->limit);

	if (left < limit && cas_acq_rel(&rx->srq->limit, &limit, 0))
		event_raise(rx_peer(rx), rx->srq, IBV_EVENT_SRQ_LIMIT_REACHED);
}

static bool is_send(uint8_t opcode)
{
	return WQE_SEND_OPS & WQE_BIT(opcode);
}

/*
 * Return whether more receives are posted than the ring has slots, and @cons
 * is current: the queue is damaged.
 */
static bool receive_is_damaged(const struct urxe_rq_view *rq, uint32_t cons,
			       uint32_t prod)
{
	if (prod - cons <= rq->mask + 1 || cons != load_acquire(&rq->sh->cons))
		return false;
	why_note(RQ_DAMAGED, prod, cons);
	return true;
}

/* Copy the receive at @cons out of its slot. */
static inline void receive_copy(const struct urxe_rq_view *rq, uint32_t cons,
				struct stored_receive *t)
{
	const struct urxe_recv *slot = rq_view_slot(rq, cons);
	uint32_t i;

	t->wr_id = load_relaxed(&slot->wr_id);
	t->ticket = load_relaxed(&slot->ticket);
	t->num_sge = load_relaxed(&slot->num_sge);
	if (unlikely(t->num_sge > rq->max_sge))
		t->num_sge = rq->max_sge;
	t->total = 0;
	for (i = 0; i < t->num_sge; i++) {
		t->sge[i] = recv_sge(&slot->sge[i]);
		t->total += t->sge[i].length;
	}
	t->index = cons;
}

enum response responder_take(const struct urxe_qp *qp, struct urxe_conn *c,
			     const struct urxe_wqe *w, uint64_t length,
			     struct stored_receive *t)
{
	struct urxe_rx *rx = &c->rx;
	struct urxe_rq_view *rq = &rx->rq;
	uint32_t cons, prod;

	if (unlikely(!rq->ring))
		return RESP_RNR;
	cons = load_acquire(&rq->sh->cons);
	do {
		prod = rx_posted(rx, cons);
		if (prod == cons)
			return RESP_RNR;
		/* seq_cst: after the guard was raised, see presence.h */
		if (unlikely(rq->ring_word != load_seq_cst(&rq->sh->ring)) &&
		    (!rq_view_load(rq, rx_peer(rx)->arena) || !rq->ring))
			return RESP_RNR;
		if (unlikely(receive_is_damaged(rq, cons, prod)))
			return RESP_NAK_OPERATION;
		receive_copy(rq, cons, t);
		if (unlikely(length > t->total && is_send(w->opcode) &&
			     responder_keeps_receive(qp, rx)) &&
		    cons == load_acquire(&rq->sh->cons)) {
			why_note(TOO_SHORT, length, t->total, c->qpn);
			return RESP_SILENCE;
		}
	} while (!cas_acq_rel(&rq->sh->cons, &cons, cons + 1));
	if (rx->srq)
		receive_check_limit(rx, prod - cons - 1);
	else if (cons + 1 != prod)
		__builtin_prefetch(rq_view_slot(rq, cons + 1));
	return RESP_ACK;
}

/*
 * Without nofault.h, do not store directly to memory of this process that the
 * program may have unmapped although it is registered. A NIC keeps such pages
 * pinned, and programs that exit rely on that. The copy is left to the
 * kernel, which returns an error instead of raising a signal.
 */
static void __attribute__((noinline))
receive_copy_by_kernel(struct urxe_peer *p, const struct urxe_key *k,
		       struct urxe_seg *seg)
{
	if (seg->ptr != (char *)(uintptr_t)seg->va || load_relaxed(&p->bounce))
		return;
	seg->ptr = NULL;
	seg->peer = p;
	seg->key = k;
}

/*
 * Resolve the destination of @len bytes. Return false if an lkey of the
 * receive is not valid. *mapped: each byte is stored through a mapping, or its
 * MR is on-demand paged, so that the completion does not carry the data.
 */
static inline bool __attribute__((always_inline))
receive_scatter(struct urxe_conn *c, const struct stored_receive *t,
		uint64_t len, struct urxe_seg *dst, bool *mapped)
{
	struct urxe_peer *p = rx_peer(&c->rx);
	const struct urxe_key *k;
	uint64_t n;
	uint32_t i;

	*mapped = true;
	for (i = 0; len && i < t->num_sge; i++) {
		n = t->sge[i].length < len ? t->sge[i].length : len;
		dst[i].len = n;
		if (!n)
			continue;
		k = mem_lookup(p, t->sge[i].lkey, c->rx.pd, t->sge[i].addr, n,
			       IBV_ACCESS_LOCAL_WRITE);
		if (!k) {
			lkey_refused(c, &t->sge[i], n);
			return false;
		}
		mem_reach(p, k, t->sge[i].addr, n, &dst[i]);
		if (unlikely(c->copy_by_kernel) && !nofault_is_safe())
			receive_copy_by_kernel(p, k, &dst[i]);
		/* a page fault must be reported by this completion */
		*mapped &= dst[i].ptr || k->flags & URXE_MR_ODP;
		len -= n;
	}
	return true;
}

enum response responder_resolve_receive(struct urxe_conn *c, uint64_t length,
					struct urxe_seg dst[URXE_MAX_SGE])
{
	struct urxe_rq_view *rq = &c->rx.rq;
	struct stored_receive t;
	bool mapped;

	if (c->rx.shared)
		return RESP_OTHER;
	if (!responder_has_receive(c))
		return RESP_RNR;
	/* the ring is not replaced: only an SRQ can be resized */
	receive_copy(rq, load_acquire(&rq->sh->cons), &t);
	if (length > t.total)
		return RESP_NAK_INVALID;
	return receive_scatter(c, &t, length, dst, &mapped) ?
		       RESP_ACK :
		       RESP_NAK_OPERATION;
}

/*
 * If a receive has one SGE, its lkey is named in the guard before a copy that
 * is not by stores to mapped memory, or that is longer than this, in bytes.
 * Then deregistering other MRs does not wait for the copy.
 */
#define RECEIVE_LONG 4096

/*
 * Return whether the completion may carry the bytes, inline or in an eager
 * slot, to be placed when it is polled.
 *
 * Not with a transport: data of a later request would be placed before them.
 * Not if the QP counts receives: the program may read the counter and the
 * data without polling. Not for UC with a stuck bouncer: it may still be
 * writing an abandoned message to the same receive. The eager slot is filled
 * when the completion is claimed already, so not if a signal could end that.
 */
static bool receive_may_be_carried(const struct urxe_qp *qp,
				   struct urxe_conn *c, uint64_t length)
{
	return length <= URXE_EAGER_BYTES && !qp->transport &&
	       !comp_cntr_has_receives(c) &&
	       !(qp->type == IBV_QPT_UC && bounce_is_stuck(rx_peer(&c->rx))) &&
	       (length <= URXE_CQE_INLINE ||
		(nofault_is_safe() && responder_has_slot(qp, c)));
}

/*
 * Map the result of a copy into a receive to a response. An invalid lkey is
 * not the requester's error. On an unreliable QP the message is dropped if
 * the memory cannot be accessed.
 */
static enum response receive_moved(const struct urxe_qp *qp,
				   enum transfer_status status)
{
	enum response resp = moved_to(status);

	if (resp == RESP_NAK_ACCESS)
		return RESP_NAK_OPERATION;
	return status == TRANSFER_DENIED && qp_is_unreliable(qp) ?
		       RESP_SILENCE :
		       resp;
}

/* The bytes of a SEND and the receive that they go to. */
struct delivery {
	const struct urxe_seg *src;
	struct urxe_seg dst[URXE_MAX_SGE];
	enum ibv_wc_status status;
	bool eager; /* the bytes are copied to the eager slot */
	uint8_t inline_len; /* bytes that the completion carries */
	uint64_t inline_data[URXE_CQE_INLINE / 8];
};

static bool bytes_are_here(const struct urxe_seg *s, uint64_t length)
{
	uint64_t n;

	for (; length; length -= n, s++) {
		n = s->len < length ? s->len : length;
		if (n && !s->ptr)
			return false;
	}
	return true;
}

/*
 * Return a receive that was taken, for another message.
 *
 * If this QP is the only requester of the queue, the old consumer index is
 * restored. If the queue has several requesters, later receives may have been
 * taken, and a bouncer may still be using this one. Then the owner posts it
 * again when that is no longer possible (rq_recover.c). cq_attention(): an
 * owner that has no receive left only polls or sleeps, so the poller must run
 * rq_recover().
 */
static void receive_return(struct urxe_conn *c, const struct stored_receive *t)
{
	uint32_t index = t->index + 1;

	if (!c->rx.shared) {
		cas_acq_rel(&c->rx.rq.sh->cons, &index, t->index);
		return;
	}
	/*
	 * dev->recover_gen also counts returned receives: make the owner run
	 * rq_recover()
	 */
	fabric_request_recovery(c->peer->fabric);
	cq_attention(&c->rx.cq);
	c->returned_psn = load_relaxed(&c->sh->epsn) + 1;
}

/*
 * Copy the bytes to the eager slot of the claimed completion, or if it has
 * none, to the receive. If they have vanished, or the target does not respond,
 * the completion is void, and the receive is returned.
 */
static enum response receive_store_eager(struct urxe_qp *qp,
					 struct urxe_conn *c,
					 const struct stored_receive *t,
					 struct delivery *d, uint64_t length,
					 struct receipt *rc)
{
	char *slot = eager_slot(&c->rx.cq, rc->ref.slot.pos);
	struct urxe_cqe *e = rc->ref.slot.cqe;
	enum response resp;

	if (unlikely(e == &rc->ref.lost))
		slot = NULL;
	if (likely(slot)) {
		d->dst[0].ptr = slot;
		d->dst[0].len = length;
	}
	resp = receive_moved(qp,
			     transfer(d->dst, d->src, length, qp->ctx, false));
	if (likely(!resp)) {
		e->inline_len = slot ? URXE_CQE_EAGER : 0;
	} else if (resp == RESP_SILENCE || resp == RESP_OTHER) {
		responder_void(rc);
		receive_return(c, t);
	} else {
		e->status = IBV_WC_LOC_PROT_ERR;
	}
	return resp;
}

/*
 * Resolve the destination and copy the bytes, or collect those that the
 * completion is to carry.
 */
static enum response receive_begin(struct urxe_qp *qp, struct urxe_conn *c,
				   const struct stored_receive *t,
				   uint64_t length, struct delivery *d)
{
	enum response resp;
	bool mapped;

	if (length > t->total) {
		why_note(TOO_SHORT, length, t->total, c->qpn);
		d->status = IBV_WC_LOC_LEN_ERR;
		return RESP_NAK_INVALID;
	}
	d->status = IBV_WC_LOC_PROT_ERR;
	if (!receive_scatter(c, t, length, d->dst, &mapped))
		return RESP_NAK_OPERATION;
	if (t->num_sge == 1 && (!mapped || length > RECEIVE_LONG))
		guard_name(qp->guard,
			   GUARD_RECEIVE | GUARD_ONE_KEY(t->sge[0].lkey));
	if (!mapped && likely(bytes_are_here(d->src, length)) &&
	    receive_may_be_carried(qp, c, length)) {
		d->eager = length > URXE_CQE_INLINE;
		if (d->eager) {
			if (!transfer_can_read(d->src, length))
				return RESP_OTHER;
			d->status = IBV_WC_SUCCESS;
			return RESP_ACK;
		}
		d->dst[0].ptr = (char *)d->inline_data;
		d->dst[0].len = length;
		d->inline_len = length;
	}
	resp = receive_moved(qp,
			     transfer(d->dst, d->src, length, qp->ctx, false));
	if (!resp)
		d->status = IBV_WC_SUCCESS;
	return resp;
}

/*
 * Return whether a receive for the message that is expected next was
 * returned. It is posted again soon, so no RNR NAK is given.
 */
static bool receive_was_returned(const struct urxe_qp *qp,
				 const struct urxe_conn *c)
{
	return !qp_is_unreliable(qp) &&
	       c->returned_psn == load_relaxed(&c->sh->epsn) + 1;
}

/* Encode the queue slot that the completion releases. */
static uint32_t receive_wqe(const struct urxe_rx *rx,
			    const struct stored_receive *t)
{
	if (rx->srq)
		return URXE_WQE_SRQ(rx->srq_index, t->ticket);
	return rx->shared ? t->ticket : t->index;
}

/*
 * Check that the bouncers respond before a receive is taken, if path 4
 * must copy, so that a receive seldom has to be returned.
 */
static bool receive_is_answered(const struct urxe_qp *qp, struct urxe_conn *c,
				uint8_t opcode, uint64_t length)
{
	struct urxe_peer *p = rx_peer(&c->rx);
	uint32_t uses;
	bool ok;

	if (!is_send(opcode) || !p || receive_may_be_carried(qp, c, length))
		return true;
	if (unlikely(!load_relaxed(&p->probed)))
		transfer_probe(p);
	if (likely(!load_relaxed(&p->bounce)))
		return true;
	uses = load_relaxed(&qp->guard->uses);
	/*
	 * The keys are looked up afterwards: a requester that is stopped
	 * meanwhile blocks no ibv_dereg_mr.  No batch is pending here.
	 */
	guard_name(qp->guard, uses & ~(GUARD_ANY_LKEY | GUARD_ANY_RKEY));
	ok = bounce_answers(qp->ctx, p);
	guard_add(qp->guard, uses);
	return ok;
}

/*
 * Claim and fill the completion of a receive that was taken, without the
 * inline bytes. Return false if the CQ is overrun, an error of class G.
 */
static inline bool __attribute__((always_inline))
receive_complete(const struct urxe_qp *qp, struct urxe_conn *c,
		 const struct urxe_wqe *w, const struct stored_receive *t,
		 uint64_t length, uint8_t grh, enum ibv_wc_status failed,
		 struct receipt *rc)
{
	const struct received m = {
		.opcode = is_send(w->opcode) ? IBV_WC_RECV :
					       IBV_WC_RECV_RDMA_WITH_IMM,
		.wc_flags = responder_wc_flags(w->opcode) | grh,
		.solicited = w->flags & IBV_SEND_SOLICITED,
		.imm = w->imm,
		.length = length,
	};

	if (!cq_begin(&c->rx.cq, &rc->ref)) {
		event_raise(c->peer, c->sh, IBV_EVENT_QP_FATAL);
		why_note(CQ_FULL, c->qpn);
		return false;
	}
	responder_fill(rc, qp, c, &m, t->wr_id, t->index,
		       receive_wqe(&c->rx, t), failed);
	return true;
}

/* Finish the fields of a completion before it is published. */
static inline void receive_settle(const struct urxe_conn *c, struct urxe_cqe *e)
{
	if (unlikely(e->status)) {
		e->byte_len = 0;
		e->wc_flags = 0;
	}
	/* a void completion (responder_void()) does not release the receive */
	if (c->rx.srq && likely(e->qpn))
		e->inline_len |= URXE_CQE_SRQ;
}

enum response responder_receive(struct urxe_qp *qp, struct urxe_conn *c,
				const struct urxe_wqe *w,
				const struct urxe_seg *src, uint8_t grh,
				enum ibv_wc_status failed, struct receipt *rc)
{
	uint64_t length = w->length + (grh ? GRH_BYTES : 0);
	struct delivery d;
	enum response resp;
	struct stored_receive t;

	d.src = src;
	d.inline_len = 0;
	d.eager = false;
	d.status = failed;
	rc->conn = NULL;
	rc->notify = false;
	if (unlikely(!receive_is_answered(qp, c, w->opcode, length))) {
		why_note(STOPPED, rx_peer(&c->rx)->arena->pid);
		return RESP_SILENCE;
	}
	resp = responder_take(qp, c, w, length, &t);
	if (unlikely(resp))
		return resp == RESP_RNR && receive_was_returned(qp, c) ?
			       RESP_SILENCE :
			       resp;
	if (is_send(w->opcode) && likely(!failed)) {
		resp = receive_begin(qp, c, &t, length, &d);
		if (unlikely(resp == RESP_SILENCE || resp == RESP_OTHER)) {
			receive_return(c, &t);
			return resp;
		}
	}
	if (!receive_complete(qp, c, w, &t, length, grh, d.status, rc))
		return RESP_NAK_OPERATION;
	if (d.inline_len)
		responder_carry(rc, d.inline_data, d.inline_len);
	else if (d.eager)
		resp = receive_store_eager(qp, c, &t, &d, length, rc);
	receive_settle(c, rc->ref.slot.cqe);
	return resp;
}

/* ------------------------------------------------------- in parts */

/* Copy @t to @rest without the first @off bytes of its SGEs. */
static void stored_receive_skip(const struct stored_receive *t, uint64_t off,
				struct stored_receive *rest)
{
	uint32_t i;

	*rest = *t;
	for (i = 0; i < t->num_sge && off; i++) {
		uint32_t n = off < t->sge[i].length ? (uint32_t)off :
						      t->sge[i].length;

		rest->sge[i].addr += n;
		rest->sge[i].length -= n;
		off -= n;
	}
}

enum response responder_place(struct urxe_qp *qp, struct urxe_conn *c,
			      const struct stored_receive *t, uint64_t off,
			      const struct urxe_seg *src,
			      enum ibv_wc_status *failed)
{
	struct urxe_seg dst[URXE_MAX_SGE];
	struct stored_receive rest;
	bool mapped;

	if (off > t->total || src->len > t->total - off) {
		why_note(TOO_SHORT, off + src->len, t->total, c->qpn);
		*failed = IBV_WC_LOC_LEN_ERR;
		return RESP_NAK_INVALID;
	}
	stored_receive_skip(t, off, &rest);
	*failed = IBV_WC_LOC_PROT_ERR;
	if (!receive_scatter(c, &rest, src->len, dst, &mapped))
		return RESP_NAK_OPERATION;
	return receive_moved(qp, transfer(dst, src, src->len, qp->ctx, false));
}

enum response responder_complete(struct urxe_qp *qp, struct urxe_conn *c,
				 const struct urxe_wqe *w,
				 const struct stored_receive *t,
				 enum ibv_wc_status failed, struct receipt *rc)
{
	rc->conn = NULL;
	rc->notify = false;
	if (!receive_complete(qp, c, w, t, w->length, 0, failed, rc))
		return RESP_NAK_OPERATION;
	receive_settle(c, rc->ref.slot.cqe);
	return RESP_ACK;
}

void responder_order_after(struct receipt *rc, struct urxe_cqe_ref *own)
{
	const size_t fields = offsetof(struct urxe_cqe, wr_id);
	struct cq_slot first = rc->ref.slot, second = own->slot;

	if (first.cqe == &rc->ref.lost || second.cqe == &own->lost)
		return; /* the CQ has overrun: nothing to swap */
	memcpy((char *)second.cqe + fields, (char *)first.cqe + fields,
	       sizeof(struct urxe_cqe) - fields);
	rc->ref.slot = second;
	own->slot = first;
}

void responder_publish(struct receipt *rc)
{
	struct urxe_rx *rx = &rc->conn->rx;
	/* the receive of a void completion was returned */
	const bool is_void = !rc->ref.slot.cqe->qpn;

	comp_cntr_receive(rc->conn, rc->ref.slot.cqe);
	rc->notify = cq_publish(&rx->cq, &rc->ref, &rc->solicited);
	if (!rx->shared && !is_void)
		store_release(&rx->rq.sh->done, rc->index + 1);
}

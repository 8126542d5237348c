// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Polling: the consumer's side of a completion queue. */
#include <stdlib.h>
#include <string.h>

#include "cq.h"
#include "mem.h"
#include "poll.h"
#include "retry.h"
#include "rq.h"
#include "transfer.h"

/* How often a claimed entry is met before its owner's life is doubted. */
#define STUCK_POLLS 4096

/* Bytes that travelled in a completion, to one SGE of a receive. */
static void place(struct urxe_context *ctx, uint32_t pd,
		  const struct urxe_sge *sge, const uint8_t *data, uint32_t n)
{
	struct urxe_seg dst, src = { .len = n };
	const struct urxe_key *k;

	/* an SGE whose MR was deregistered meanwhile is left alone */
	k = mem_lookup(ctx->self, sge->lkey, pd, sge->addr, n,
		       IBV_ACCESS_LOCAL_WRITE);
	if (!k || !n)
		return;
	mem_reach(ctx->self, k, sge->addr, n, &dst);
	src.ptr = (char *)(uintptr_t)data;
	transfer(&dst, &src, n);
}

/* A small message travelled in the completion: put it where it belongs. */
static void place_inline(struct urxe_qp *qp, const struct urxe_cqe *e)
{
	const struct urxe_recv *r = rq_slot(&qp->rq, e->wqe);
	uint32_t i, n, left = e->inline_len, off = 0;

	if (left > sizeof(e->data))
		left = sizeof(e->data);
	for (i = 0; left && i < r->num_sge && i < qp->rq.max_sge; i++) {
		n = r->sge[i].length < left ? r->sge[i].length : left;
		place(qp->ctx, qp->sh->pd, &r->sge[i], e->data + off, n);
		off += n;
		left -= n;
	}
}

/* A completion of a receive from an SRQ. */
static bool settle_srq(struct urxe_cq *cq, const struct urxe_cqe *e)
{
	struct urxe_srq *srq = cq->ctx->srq[e->wqe % URXE_MAX_SRQ];
	uint32_t n = e->inline_len & ~URXE_CQE_SRQ;
	struct urxe_sge sge;

	if (unlikely(!srq))
		return false;
	if (n && n <= URXE_CQE_INLINE - sizeof(sge)) {
		memcpy(&sge, e->data + URXE_CQE_INLINE - sizeof(sge),
		       sizeof(sge));
		place(cq->ctx, srq->sh->pd, &sge, e->data, n);
	}
	atomic_fetch_add_explicit(&srq->rq.tail, 1, memory_order_release);
	/* the target QP of XRC may be another process's */
	return srq->cq || (e->qpn && cq->ctx->qp[qpn_index(e->qpn)]);
}

/* Release the entry's queue slot; false if its QP was destroyed. */
static bool settle(struct urxe_cq *cq, const struct urxe_cqe *e)
{
	struct urxe_qp *qp;

	if (e->inline_len & URXE_CQE_SRQ)
		return settle_srq(cq, e);
	qp = cq->ctx->qp[qpn_index(e->qpn)];
	if (unlikely(!qp || qp->vqp.qp.qp_num != e->qpn))
		return false;
	if (e->opcode & IBV_WC_RECV) {
		if (e->inline_len)
			place_inline(qp, e);
		atomic_store_explicit(&qp->rq.tail, e->wqe + 1,
				      memory_order_release);
	} else {
		atomic_store_explicit(&qp->sq.tail, e->wqe + 1,
				      memory_order_release);
	}
	return true;
}

/*
 * The entry at the head is not ready.  True if it was taken out of the way
 * because the producer that claimed it is dead.
 */
static bool skip_dead(struct urxe_cq *cq, struct urxe_cqe *e, uint64_t word)
{
	struct urxe_fabric *f = cq->ctx->fabric;
	uint32_t owner = cqe_owner(word), gen;

	if (cqe_state(word) != CQE_CLAIMED || cqe_pos(word) != cq->head) {
		cq->stuck = 0;
		return false;
	}
	if (++cq->stuck < STUCK_POLLS || owner >= URXE_MAX_CTX)
		return false;
	cq->stuck = 0;
	gen = atomic_load_explicit(&f->dev->ctx[owner].gen,
				   memory_order_relaxed);
	if (fabric_context_alive(f, owner, gen) &&
	    atomic_load_explicit(&f->dev->ctx[owner].state,
				 memory_order_relaxed) == URXE_CTX_LIVE)
		return false;
	urxe_why("a producer died while it completed: entry %u skipped",
		 cq->head);
	return cq_ring_skip(e, word, cq->head, cq->mask + 1);
}

/* What a resize took out of the old ring comes first. */
static struct urxe_cqe *backlog_next(struct urxe_cq *cq)
{
	struct urxe_backlog *b = cq->backlog;

	return &b->cqe[b->head];
}

void poll_release_backlog(struct urxe_cq *cq)
{
	struct urxe_backlog *b = cq->backlog;

	if (++b->head < b->count)
		return;
	cq->backlog = NULL;
	free(b);
}

struct urxe_cqe *poll_ring(struct urxe_cq *cq)
{
	struct urxe_cqe *e;
	uint64_t w;

	for (;;) {
		e = &cq->ring[cq->head & cq->mask];
		w = atomic_load_explicit(&e->word, memory_order_acquire);
		if (likely(w == cqe_word(cq->head, 0, CQE_READY)))
			return e;
		if (!skip_dead(cq, e, w))
			return NULL;
		cq->head++;
	}
}

bool poll_next(struct urxe_cq *cq, struct urxe_cqe **out)
{
	struct urxe_cqe *e;

	for (;;) {
		e = unlikely(cq->backlog != NULL) ? backlog_next(cq) :
						    poll_ring(cq);
		if (!e)
			return false;
		if (likely(settle(cq, e))) {
			*out = e;
			return true;
		}
		poll_release(cq, e);
	}
}

static void fill_wc(const struct urxe_cqe *e, struct ibv_wc *wc)
{
	wc->wr_id = e->wr_id;
	wc->status = e->status;
	wc->opcode = e->opcode;
	wc->vendor_err = poll_vendor_err(e);
	wc->byte_len = e->byte_len;
	wc->imm_data = e->imm;
	wc->qp_num = e->qpn;
	wc->src_qp = e->src_qp;
	wc->wc_flags = e->wc_flags & ~URXE_CQE_IPV4;
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = poll_sl(e);
	wc->dlid_path_bits = 0;
}

int urxe_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct urxe_cq *cq = to_ucq(ibcq);
	struct urxe_cqe *e;
	int got = 0;

	poll_progress(cq);
	cq_lock(cq);
	gate_enter(&cq->gate);
	while (got < n && poll_next(cq, &e)) {
		fill_wc(e, &wc[got++]);
		poll_release(cq, e);
	}
	gate_leave(&cq->gate);
	cq_unlock(cq);
	return got;
}

void cq_clean(struct urxe_cq *cq, uint32_t qpn)
{
	struct urxe_backlog *b;
	uint32_t i;

	gate_lock(&cq->gate);
	b = cq->backlog;
	/* nobody's: polling drops them */
	for (i = b ? b->head : 0; b && i < b->count; i++)
		if (b->cqe[i].qpn == qpn)
			b->cqe[i].qpn = 0;
	for (i = cq->head; i - cq->head <= cq->mask; i++) {
		struct urxe_cqe *e = &cq->ring[i & cq->mask];

		if (atomic_load_explicit(&e->word, memory_order_acquire) !=
		    cqe_word(i, 0, CQE_READY))
			break;
		if (e->qpn == qpn)
			e->qpn = 0;
	}
	gate_unlock(&cq->gate);
}

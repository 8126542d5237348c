// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Polling: the consumer's side of a completion queue. */
#include <string.h>

#include "cq.h"
#include "mem.h"
#include "poll.h"
#include "retry.h"
#include "transfer.h"

/* How often a claimed entry is met before its owner's life is doubted. */
#define STUCK_POLLS 4096

/*
 * A small message travelled in the completion: put it into the receive's
 * buffers.  An SGE whose MR was deregistered meanwhile is left alone.
 */
static void place_inline(struct urxe_qp *qp, const struct urxe_cqe *e)
{
	const struct urxe_recv *r = (const struct urxe_recv *)(const void *)
		(qp->rq.ring + (uint64_t)(e->wqe & qp->rq.mask) * qp->rq.stride);
	uint32_t i, n, left = e->inline_len, off = 0;
	const struct urxe_key *k;
	struct urxe_seg dst, src;

	if (left > sizeof(e->data))
		left = sizeof(e->data);
	for (i = 0; left && i < r->num_sge && i < qp->rq.max_sge; i++) {
		n = r->sge[i].length < left ? r->sge[i].length : left;
		k = mem_lookup(qp->ctx->self, r->sge[i].lkey, qp->sh->pd,
			       r->sge[i].addr, n, IBV_ACCESS_LOCAL_WRITE);
		if (k && n) {
			mem_reach(qp->ctx->self, k, r->sge[i].addr, n, &dst);
			src.ptr = (char *)(uintptr_t)e->data + off;
			src.len = n;
			transfer(&dst, &src, n);
		}
		off += n;
		left -= n;
	}
}

/* The QP an entry belongs to, its queue slot released; NULL: destroyed. */
static struct urxe_qp *settle(struct urxe_cq *cq, const struct urxe_cqe *e)
{
	struct urxe_qp *qp = cq->ctx->qp[qpn_index(e->qpn)];

	if (unlikely(!qp || qp->vqp.qp.qp_num != e->qpn))
		return NULL;
	if (e->opcode & IBV_WC_RECV) {
		if (e->inline_len)
			place_inline(qp, e);
		atomic_store_explicit(&qp->rq.tail, e->wqe + 1,
				      memory_order_release);
	} else {
		atomic_store_explicit(&qp->sq.tail, e->wqe + 1,
				      memory_order_release);
	}
	return qp;
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
	return atomic_compare_exchange_strong_explicit(
		&e->word, &word, cqe_word(cq->head + cq->view.mask + 1, 0,
					  CQE_FREE),
		memory_order_acq_rel, memory_order_relaxed);
}

bool poll_next(struct urxe_cq *cq, struct urxe_cqe **out)
{
	struct urxe_cqe *e;
	uint64_t w;

	for (;;) {
		e = &cq->view.ring[cq->head & cq->view.mask];
		w = atomic_load_explicit(&e->word, memory_order_acquire);
		if (unlikely(w != cqe_word(cq->head, 0, CQE_READY))) {
			if (!skip_dead(cq, e, w))
				return false;
			cq->head++;
			continue;
		}
		if (likely(settle(cq, e) != NULL)) {
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
	wc->vendor_err = e->status ? e->imm : 0;
	wc->byte_len = e->byte_len;
	wc->imm_data = e->imm;
	wc->qp_num = e->qpn;
	wc->src_qp = e->src_qp;
	wc->wc_flags = e->wc_flags;
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = 0;
	wc->dlid_path_bits = 0;
}

int urxe_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct urxe_cq *cq = to_ucq(ibcq);
	struct urxe_cqe *e;
	int got = 0;

	if (unlikely(atomic_load_explicit(&cq->sh->attention,
					  memory_order_relaxed) ||
		     atomic_load_explicit(&cq->stalled,
					  memory_order_relaxed)))
		retry_progress(cq);
	urxe_lock(&cq->lock);
	while (got < n && poll_next(cq, &e)) {
		fill_wc(e, &wc[got++]);
		poll_release(cq, e);
	}
	urxe_unlock(&cq->lock);
	return got;
}

void cq_clean(struct urxe_cq *cq, uint32_t qpn)
{
	uint32_t i, head;

	urxe_lock(&cq->lock);
	head = cq->head;
	for (i = 0; i <= cq->view.mask; i++) {
		struct urxe_cqe *e = &cq->view.ring[(head + i) & cq->view.mask];

		if (atomic_load_explicit(&e->word, memory_order_acquire) !=
		    cqe_word(head + i, 0, CQE_READY))
			break;
		if (e->qpn == qpn)
			e->qpn = 0; /* nobody's: polling drops it */
	}
	urxe_unlock(&cq->lock);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completions that were not polled. See cq_scan.h. */
#include "cq_scan.h"
#include "event.h"

const struct urxe_cqe *cq_peek(const struct urxe_cq *cq, uint32_t i)
{
	const struct urxe_backlog *b = cq->backlog;
	uint32_t left = b ? b->count - b->head : 0, pos;
	const struct urxe_cqe *e;

	if (i < left)
		return &b->cqe[b->head + i];
	if (i - left > cq->ring.mask)
		return NULL;
	pos = cq->head + i - left;
	e = &cq->ring.entry[pos & cq->ring.mask];
	return cq_ring_is_ready(e, pos) && cq_is_ours(cq) ? e : NULL;
}

void cq_each(struct urxe_cq *cq, cq_each_fn *fn, void *arg)
{
	struct urxe_backlog *b = cq->backlog;
	struct urxe_cqe *e;
	uint64_t word;
	uint32_t i;

	for (i = b ? b->head : 0; b && i < b->count; i++)
		fn(&b->cqe[i], arg);
	for (i = cq->head; i - cq->head <= cq->ring.mask; i++) {
		e = &cq->ring.entry[i & cq->ring.mask];
		word = load_acquire(&cq->ring.claim[i & cq->ring.mask]);
		if (cq_ring_is_ready(e, i))
			fn(e, arg);
		else if (!cq_ring_is_claimed(word, i))
			break;
	}
}

uint32_t cq_find(const struct urxe_cq *cq, uint32_t i, uint32_t skip,
		 uint32_t kind)
{
	const struct urxe_cqe *e;

	for (; (e = cq_peek(cq, i)); i++)
		if ((kind == URXE_ARM_NEXT ||
		     e->wc_flags & URXE_CQE_SOLICITED) &&
		    !skip--)
			return i + 1;
	return 0;
}

uint32_t cq_announced(const struct urxe_cq *cq)
{
	int32_t n = (int32_t)(cq->announced - cq_polled(cq));

	return n > 0 ? (uint32_t)n : 0;
}

/*
 * The CQ is not armed.  Return whether the event of an arming was not raised.
 * That is also true while a live producer is about to raise it; the program
 * then gets one event too many.
 */
static bool cq_lacks_event(const struct urxe_cq_sh *sh)
{
	const uint32_t raised = load_acquire(&sh->comp_events) +
				load_relaxed(&sh->pending_events);

	return (int32_t)(load_relaxed(&sh->armings) - raised) > 0;
}

bool cq_announce_missed(struct urxe_cq *cq)
{
	const uint32_t kind = URXE_ARM_KIND(load_seq_cst(&cq->sh->arm));
	bool found;

	if (!cq->sh->channel)
		return true;
	if (kind == URXE_ARM_NONE) {
		if (cq_lacks_event(cq->sh))
			event_send_comp(&cq->view);
		return true;
	}
	if (!gate_trylock(&cq->gate))
		return false;
	found = cq_find(cq, cq_announced(cq), 0, kind);
	gate_unlock(&cq->gate);
	if (found)
		cq_fire(&cq->view, true);
	return true;
}

/* QPN 0: the completion has no QP any more, and polling drops it. */
static void cqe_forget(struct urxe_cqe *e, void *arg)
{
	if (e->qpn == *(uint32_t *)arg)
		e->qpn = 0;
}

void cq_forget_qp(struct urxe_cq *cq, uint32_t qpn)
{
	gate_lock(&cq->gate);
	cq_each(cq, cqe_forget, &qpn);
	gate_unlock(&cq->gate);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Export what a send queue waits for to diagnostic readers (struct urxe_wait;
 * urxe why). qp->lock is held.
 *
 * `what` and `full` are cleared before and stored with release order after
 * the fields that they describe. A concurrent reader in another process may
 * still read fields of two states.
 */
#include "base/clock.h"
#include "engine/core/tally.h"
#include "wait.h"

static void wait_name(struct urxe_qp *qp, enum urxe_wait_for what,
		      uint32_t head)
{
	struct urxe_wait *w = &qp->sh->wait;
	const struct urxe_wqe *wqe = sq_slot(&qp->sq, head);

	store_relaxed(&w->what, URXE_WAIT_NOTHING);
	atomic_thread_fence(memory_order_release);
	store_relaxed(&w->head, head);
	store_relaxed(&w->wr_id, wqe->wr_id);
	store_relaxed(&w->opcode, wqe->opcode);
	store_relaxed(&w->since, clock_now());
	store_relaxed(&w->until, 0);
	store_relaxed(&w->left, URXE_WAIT_ENDLESS);
	store_relaxed(&qp->sh->sq_psn, qp->psn);
	store_release(&w->what, what);
}

void wait_begin(struct urxe_qp *qp, enum urxe_wait_for what, uint32_t head)
{
	struct urxe_wait *w = &qp->sh->wait;
	const struct urxe_sq *sq = &qp->sq;
	bool fenced = sq->begun != sq->prod &&
		      sq_slot(sq, sq->begun)->flags & IBV_SEND_FENCE;

	if (load_relaxed(&w->what) != what || load_relaxed(&w->head) != head)
		wait_name(qp, what, head);
	store_relaxed(&w->queued, sq->prod - head);
	store_relaxed(&w->flags, fenced ? URXE_WAIT_FENCED : 0);
}

void wait_tries(struct urxe_qp *qp)
{
	const struct urxe_stall *s = &qp->stall;
	struct urxe_wait *w = &qp->sh->wait;

	store_relaxed(&w->left, s->endless ? URXE_WAIT_ENDLESS : s->left);
	store_relaxed(&w->until, s->deadline);
}

void wait_drained(struct urxe_qp *qp)
{
	if (qp_state(qp) == IBV_QPS_SQD && !qp_is_draining(qp) &&
	    qp->sq.begun != qp->sq.prod)
		wait_begin(qp, URXE_WAIT_SQD, qp->sq.begun);
}

void wait_end(struct urxe_qp *qp)
{
	if (qp->in_flight && qp->sq.done != qp->sq.prod)
		wait_begin(qp, URXE_WAIT_FLIGHT, qp->sq.done);
	else
		store_relaxed(&qp->sh->wait.what, URXE_WAIT_NOTHING);
}

/*
 * Return whether polling will free a slot, now or after the WRs in flight are
 * done. `signaled` is used because the slot of a WR that took the fast path
 * was not written (direct.h).
 */
static bool sq_is_signaled(const struct urxe_sq *sq, uint32_t tail)
{
	return sq->done != sq->prod || (int32_t)(sq->signaled - tail) > 0;
}

void wait_full(struct urxe_qp *qp)
{
	struct urxe_wait *w = &qp->sh->wait;
	const struct urxe_sq *sq = &qp->sq;
	uint32_t tail = load_acquire(&sq->tail);

	fetch_add_relaxed(&urxe_tally.full, 1);
	if (sq->prod - tail < sq->max_wr ||
	    load_relaxed(&w->full) == URXE_FULL_UNSIGNALED)
		return; /* a slot was freed meanwhile; or it is final */
	if (!load_relaxed(&w->full) || load_relaxed(&w->full_at) != sq->prod) {
		store_relaxed(&w->full, URXE_FULL_NOT);
		atomic_thread_fence(memory_order_release);
		store_relaxed(&w->full_at, sq->prod);
		store_relaxed(&w->full_since, clock_now());
		store_relaxed(&qp->sh->sq_psn, qp->psn);
	}
	store_release(&w->full, sq_is_signaled(sq, tail) ?
					URXE_FULL_UNPOLLED :
					URXE_FULL_UNSIGNALED);
}

void wait_forget(struct urxe_qp *qp)
{
	store_relaxed(&qp->sh->wait.what, URXE_WAIT_NOTHING);
	store_relaxed(&qp->sh->wait.full, URXE_FULL_NOT);
}

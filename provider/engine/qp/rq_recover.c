// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Recovery of lost receives: receives that a dead requester took from a queue
 * with several requesters, or that a live requester took and could not fill
 * (receive_return() in responder.c). They are posted again.
 *
 * With a NIC the receive stays with the QP whose message was interrupted.
 * Here it returns to its queue: nothing records which QP of an SRQ it was
 * taken for, and an interrupted datagram is not retransmitted.
 *
 * The owner runs rq_recover() if dev->recover_gen has changed: a context was
 * reaped, or a requester counted a returned receive. The callers are the
 * service thread, pollers, post verbs, and ibv_req_notify_cq; ctx->lock is
 * held. A thread that waits for receives reaps dead contexts itself. A receive
 * is lost if it was taken (its position is before cons), no requester is using
 * the queue (quiesce.h), no partly received message of another host has it,
 * and its completion is neither polled nor in any CQ.
 *
 * rq_recover() also raises events of completions that a dead process has
 * written, but not announced.
 *
 * Other locks are trylocks and all waits are bounded, because the caller may
 * be between ibv_start_poll and ibv_end_poll. What could not be checked is
 * checked in the next call.
 *
 * After a fork two processes share the queue, and each knows only the
 * receives that it posted and polled itself. If the other process has posted
 * or polled, the queue is not recovered.
 */
#include "base/clock.h"
#include "engine/copy/bounce.h"
#include "engine/core/context.h"
#include "engine/cq/cq.h"
#include "engine/core/log.h"
#include "engine/cq/cq_scan.h"
#include "qp.h"
#include "engine/run/quiesce.h"
#include "rq.h"
#include "srq.h"

/* Minimal interval, in ns, between two fabric_reap() calls of a context. */
#define REAP_NS 100000000ull
/*
 * Delay in ns before the next attempt if a lock or a requester prevented the
 * check.
 */
#define RETRY_NS 10000000ull

struct queue {
	struct urxe_rq *rq;
	struct urxe_srq *srq; /* either srq or qp */
	struct urxe_qp *qp;
	uint32_t cons; /* loaded before quiesce_try() */
	bool other_hands; /* another process has posted or polled */
};

static bool kept_is_taken(const struct urxe_kept *k, uint32_t cons)
{
	return load_acquire(&k->out) && (int32_t)(k->pos - cons) < 0;
}

static bool recover_any_taken(const struct queue *q)
{
	uint32_t i, count = rq_kept_set(q->rq)->count;
	bool any = false;

	for (i = 0; i < count; i++) {
		struct urxe_kept *k = kept_at(rq_kept_set(q->rq), i);

		k->found = false;
		any |= kept_is_taken(k, q->cons);
	}
	return any;
}

/* Mark the receive of this queue that an unpolled completion is for. */
static void recover_find(struct urxe_cqe *e, void *arg)
{
	struct queue *q = arg;
	struct urxe_kept *k = NULL;

	if (e->inline_len & URXE_CQE_SRQ) {
		if (q->srq && URXE_WQE_INDEX(e->wqe) == q->srq->index)
			k = rq_kept(q->rq, URXE_WQE_TICKET(e->wqe));
	} else if (q->qp && e->opcode & IBV_WC_RECV && e->qpn == q->qp->qpn) {
		k = rq_kept(q->rq, e->wqe);
	}
	if (k)
		k->found = true;
}

/*
 * Return whether another process has polled the CQ. The caller is inside the
 * gate.
 */
static bool polled_by_other_process(const struct urxe_cq *cq)
{
	return load_relaxed(&cq->sh->ring) != cq->ring_word ||
	       load_relaxed(cq->ring.head) != cq->head;
}

static bool recover_search(struct urxe_cq *cq, struct queue *q)
{
	if (!gate_trylock(&cq->gate))
		return false;
	if (polled_by_other_process(cq))
		q->other_hands = true;
	else
		cq_each(cq, recover_find, q);
	gate_unlock(&cq->gate);
	return true;
}

/*
 * Mark the receive that a partly received message of another host occupies at
 * QP @i of arena @a, if it is of this queue.
 */
static void recover_find_stored(struct queue *q, const struct urxe_arena *a,
				uint32_t i)
{
	const struct urxe_wire_responder *st = &a->wire[i].responder;
	const struct urxe_srq *srq = q->srq;
	struct urxe_kept *k;

	if (!load_acquire(&a->qp[i].wire) || !load_acquire(&st->receive.valid))
		return;
	if (srq->cq && (st->srqn != URXE_SRQN(srq->ctx->slot, srq->index) ||
			st->receive.srq_live != load_relaxed(&srq->sh->live)))
		return;
	k = rq_kept(q->rq, st->receive.ticket);
	if (k)
		k->found = true;
}

/*
 * The same for all XRC target QPs, in every context: their messages may
 * consume receives of an XRC SRQ.
 */
static void recover_find_targets(struct urxe_context *ctx, struct queue *q)
{
	const struct urxe_dev *dev = ctx->fabric->dev;
	uint32_t i, high = qp_slots(dev);
	struct urxe_peer *p;
	uint64_t entry;

	for (i = 0; i < high; i++) {
		entry = load_acquire(&dev->qp[i]);
		p = entry ? peer_get(ctx->fabric, URXE_DIR_CTX(entry),
				     URXE_DIR_GEN(entry)) :
			    NULL;
		if (!p)
			continue;
		if (load_relaxed(&p->arena->qp[i].type) == IBV_QPT_XRC_RECV)
			recover_find_stored(q, p->arena, i);
		peer_put(p);
	}
}

/*
 * Mark all receives of an SRQ that partly received messages of other hosts
 * occupy.
 */
static void recover_find_all_stored(struct urxe_context *ctx, struct queue *q)
{
	const struct urxe_qp *qp;
	uint32_t i;

	if (q->srq && q->srq->cq)
		recover_find_targets(ctx, q);
	for (i = 0; q->srq && !q->srq->cq && i < URXE_MAX_QP; i++) {
		qp = context_qp(ctx, i);
		if (qp && qp->srq == q->srq)
			recover_find_stored(q, ctx->arena, i);
	}
}

static bool recover_search_all(struct urxe_context *ctx, struct queue *q)
{
	struct urxe_cq *cq;

	recover_find_all_stored(ctx, q);
	if (q->qp)
		return recover_search(q->qp->rcq, q);
	for (cq = ctx->cqs; cq; cq = cq->next)
		if (!recover_search(cq, q))
			return false;
	return true;
}

static bool recover_post_lost(struct queue *q)
{
	uint32_t i, count = rq_kept_set(q->rq)->count;
	bool any = false;

	for (i = 0; i < count; i++) {
		struct urxe_kept *k = kept_at(rq_kept_set(q->rq), i);

		if (k->found || !kept_is_taken(k, q->cons))
			continue;
		urxe_note(
			"receive wr_id 0x%llx posted again: the requester that consumed it died, or could not fill it",
			(unsigned long long)load_relaxed(&kept_recv(k)->wr_id));
		rq_repost(q->rq, k);
		any = true;
	}
	return any;
}

static void recover_wake(struct queue *q)
{
	if (q->srq)
		srq_wake_waiters(q->srq);
	else if (qp_state(q->qp) == IBV_QPS_ERR)
		cq_attention(&q->qp->rcq->view); /* to flush it */
	else
		rq_wake_waiter(q->qp);
}

/* Recover one queue. Return false if it could not be checked. */
static bool recover_queue(struct urxe_context *ctx, struct queue *q)
{
	const struct guard_object t = {
		.kind = q->srq ? GUARD_OF_SRQ : GUARD_OF_QP,
		.slot = ctx->slot,
		.id = q->srq ? q->srq->index : q->qp->qpn,
	};
	bool looked = true, any = false;

	if (!rq_kept_set(q->rq))
		return true;
	if (!urxe_trylock_outside(&q->rq->lock))
		return false;
	q->cons = load_acquire(&q->rq->sh->cons);
	q->other_hands = q->rq->prod != load_relaxed(&q->rq->sh->prod);
	if (!q->other_hands && recover_any_taken(q)) {
		/*
		 * without requesters, a receive that was taken is completed
		 * or lost
		 */
		looked = quiesce_try(ctx->fabric, ctx->arena, &t) &&
			 recover_search_all(ctx, q);
		any = looked && !q->other_hands && recover_post_lost(q);
	}
	urxe_unlock_outside(&q->rq->lock);
	if (any)
		recover_wake(q);
	return looked;
}

static bool recover_qps(struct urxe_context *ctx, struct urxe_cq *cq)
{
	struct urxe_qp *qp;
	bool all = true;

	for (qp = cq->recv_qps; qp; qp = qp->rcq_next) {
		struct queue q = { .rq = &qp->rq, .qp = qp };

		if (!qp->rq.sh || !rq_kept_set(&qp->rq))
			continue;
		if (!urxe_trylock_outside(&qp->lock)) {
			all = false;
			continue;
		}
		all &= recover_queue(ctx, &q);
		urxe_unlock_outside(&qp->lock);
	}
	return all;
}

void rq_recover(struct urxe_context *ctx)
{
	uint32_t i, gen = load_acquire(&ctx->fabric->dev->recover_gen);
	uint64_t now = clock_now();
	struct urxe_cq *cq;
	bool all = true;

	if (gen == load_relaxed(&ctx->recovered_gen) ||
	    now < load_relaxed(&ctx->recover_at))
		return;
	for (i = 0; i < URXE_MAX_SRQ; i++) {
		struct queue q = { .srq = context_srq(ctx, i) };

		if (!q.srq)
			continue;
		q.rq = &q.srq->rq;
		all &= recover_queue(ctx, &q);
	}
	for (cq = ctx->cqs; cq; cq = cq->next) {
		/* a poller skips entries that a dead process claimed */
		store_relaxed(&cq->closely, true);
		all &= recover_qps(ctx, cq);
		all &= cq_announce_missed(cq);
	}
	if (all)
		store_relaxed(&ctx->recovered_gen, gen);
	else
		store_relaxed(&ctx->recover_at, clock_now() + RETRY_NS);
}

bool rq_recover_now(struct urxe_context *ctx, bool reap)
{
	uint64_t now, last = load_relaxed(&ctx->reaped);

	if (reap) {
		now = clock_now();
		if (now - last >= REAP_NS &&
		    cas_relaxed(&ctx->reaped, &last, now))
			fabric_reap(ctx->fabric);
	}
	if (!rq_needs_recovery(ctx) || pthread_mutex_trylock(&ctx->lock))
		return false;
	rq_recover(ctx);
	pthread_mutex_unlock(&ctx->lock);
	return true;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs: creation, destruction, and the state changes that the engine
 * makes by itself (to ERR, SQE, or a drained SQD).
 *
 * qp_forget() is called for RESET and at destruction. qp_unlink() and
 * qp_close() follow at destruction. Lock order: ctx->lock before a trylock of
 * qp->lock; qp->lock before rq.lock.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/cq/event.h"
#include "flight.h"
#include "engine/core/observe.h"
#include "engine/cq/cq_scan.h"
#include "engine/core/process.h"
#include "qp.h"
#include "engine/run/quiesce.h"
#include "srq.h"
#include "stored_receive.h"
#include "wait.h"
#include "why.h"

bool qp_set_error(struct urxe_qp *qp, enum ibv_qp_state state)
{
	uint64_t word = load_relaxed(&qp->sh->conn);

	do {
		if (state == IBV_QPS_SQE &&
		    URXE_CONN_STATE(word) == IBV_QPS_ERR)
			return false;
	} while (!cas_seq_cst(&qp->sh->conn, &word,
			      URXE_CONN_WITH(word, state)));
	observe_break(qp, state);
	return true;
}

bool qp_enter(struct urxe_qp *qp)
{
	if (likely(urxe_trylock_outside(&qp->lock)))
		return true;
	if (!qp_in_batch(qp))
		return false;
	qp->batch_end = qp->sq.prod;
	qp->sq.prod = qp->batch_first;
	return true;
}

void qp_leave(struct urxe_qp *qp)
{
	if (unlikely(qp_in_batch(qp)))
		qp->sq.prod = qp->batch_end;
	else
		urxe_unlock_outside(&qp->lock);
}

/* The guard belongs to the QPN. It is raised only under qp->lock. */
void qp_find_guard(struct urxe_qp *qp)
{
	struct urxe_dev *dev = qp->ctx->fabric->dev;
	uint32_t i = qpn_index(qp->qpn);

	qp->guard = &dev->guard[i];
	qp->guard_group = &dev->guard_group[i / URXE_GUARD_GROUP];
}

/*
 * If qp->lock is free and yet the guard is raised, its word is stale or
 * damaged: lower the guard.
 */
void qp_check_guard(struct urxe_qp *qp)
{
	if (!presence_is_inside(&qp->guard->requester) ||
	    !urxe_trylock_outside(&qp->lock))
		return;
	presence_clear(&qp->guard->requester);
	urxe_unlock_outside(&qp->lock);
}

void qp_fatal(struct urxe_qp *qp)
{
	if (qp_state(qp) == IBV_QPS_ERR)
		return;
	qp_set_error(qp, IBV_QPS_ERR);
	why_broken(qp, REASON_CQ_FULL);
	event_raise(qp->ctx->self, qp->sh, IBV_EVENT_QP_FATAL);
}

void qp_drained(struct urxe_qp *qp)
{
	if (qp_state(qp) != IBV_QPS_SQD || qp_is_draining(qp))
		return;
	qp->sqd_notify = false;
	event_raise(qp->ctx->self, qp->sh, IBV_EVENT_SQ_DRAINED);
}

/*
 * Return the QPN of the only QP whose requests this QP may serve, or 0 if
 * that is not known. conn_ready() lets only the connected QP in. 0 is
 * returned for datagrams, which come from any QP, for a QP that another host
 * reaches through the socket owner, and if a damaged connection word names
 * another QP.
 */
static uint32_t qp_only_requester(const struct urxe_qp *qp)
{
	uint32_t dest = URXE_CONN_DEST(load_relaxed(&qp->sh->conn));

	return dest == qp->attr.dest_qp_num && !load_relaxed(&qp->sh->wire) ?
		       dest :
		       0;
}

void qp_forget(struct urxe_qp *qp, uint64_t conn)
{
	uint32_t i, from = qp_only_requester(qp);

	store_seq_cst(&qp->sh->conn, conn);
	stall_end(qp);
	flight_cancel(qp);
	quiesce_qp(qp->ctx->fabric, qp->ctx->arena, qp->qpn, from);
	cq_wait_pollers(qp->ctx);
	if (qp->srq)
		stored_receive_flush(qp); /* its completion is dropped below */
	else if (qp->type == IBV_QPT_XRC_RECV)
		stored_receive_flush_target(qp, qp->ctx->self);
	conn_drop(&qp->conn);
	for (i = 0; qp->dests && i < UD_DESTS; i++)
		conn_drop(&qp->dests[i]);
	if (qp->scq)
		cq_forget_qp(qp->scq, qp->qpn);
	if (qp->rcq && qp->rcq != qp->scq)
		cq_forget_qp(qp->rcq, qp->qpn);
	sq_reset(&qp->sq);
	wait_forget(qp);
	if (qp->rq.sh) {
		urxe_lock_outside(&qp->rq.lock);
		rq_reset(&qp->rq);
		urxe_unlock_outside(&qp->rq.lock);
	}
	why_forget(qp);
	qp->fetched = false;
	store_relaxed(&qp->sh->last_wqe, 0);
	store_relaxed(&qp->sh->unplaced, 0);
	store_relaxed(&qp->sh->comm_est, 0);
	store_relaxed(&qp->sh->rq.waiter, 0);
}

/* ---------------------------------------------------------- life */

static void qp_publish(struct urxe_qp *qp, const struct qp_params *p)
{
	struct urxe_qp_sh *sh = qp->sh;

	sh->tag = p->tag;
	hint_store(sh->pd, p->pd);
	sh->send_cq = qp->scq ? qp->scq->index : 0;
	hint_store(sh->recv_cq, qp->rcq ? qp->rcq->index : 0);
	hint_store(sh->srq, qp->srq ? qp->srq->index + 1 : 0);
	sh->xrcd = p->xrcd;
	store_relaxed(&sh->type, qp->type);
	sh->pid = urxe_pid;
	sh->async_fifo = p->async_fifo;
	store_relaxed(&sh->handles, 1);
	store_release(&sh->conn, URXE_CONN(qp->qpn, 0, IBV_QPS_RESET));
}

/*
 * Enter the QP in its context's table and in the lists of its CQs, and count
 * it in its CQs and SRQ.
 */
static void qp_link(struct urxe_qp *qp)
{
	struct urxe_context *ctx = qp->ctx;

	pthread_mutex_lock(&ctx->lock);
	if (qp->scq) {
		qp->scq_next = qp->scq->send_qps;
		qp->scq_at = &qp->scq->send_qps;
		if (qp->scq_next)
			qp->scq_next->scq_at = &qp->scq_next;
		qp->scq->send_qps = qp;
		qp->scq->refs++;
	}
	if (qp->rcq) {
		qp->rcq_next = qp->rcq->recv_qps;
		qp->rcq_at = &qp->rcq->recv_qps;
		if (qp->rcq_next)
			qp->rcq_next->rcq_at = &qp->rcq_next;
		qp->rcq->recv_qps = qp;
		qp->rcq->refs++;
	}
	if (qp->srq)
		qp->srq->refs++;
	store_release(&ctx->qp[qpn_index(qp->qpn)], qp);
	pthread_mutex_unlock(&ctx->lock);
}

void qp_unlink(struct urxe_qp *qp)
{
	struct urxe_context *ctx = qp->ctx;
	struct urxe_cq *scq = qp->scq, *rcq = qp->rcq;

	pthread_mutex_lock(&ctx->lock);
	while (qp->pins)
		pthread_cond_wait(&ctx->unpinned, &ctx->lock);
	if (scq) {
		*qp->scq_at = qp->scq_next;
		if (qp->scq_next)
			qp->scq_next->scq_at = qp->scq_at;
		scq->refs--;
	}
	if (rcq) {
		*qp->rcq_at = qp->rcq_next;
		if (qp->rcq_next)
			qp->rcq_next->rcq_at = qp->rcq_at;
		rcq->refs--;
	}
	store_seq_cst(&ctx->qp[qpn_index(qp->qpn)], NULL);
	presence_barrier(); /* pollers look QPs up inside the gate */
	if (scq)
		gate_wait(&scq->gate);
	if (rcq)
		gate_wait(&rcq->gate);
	if (qp->srq)
		qp->srq->refs--;
	pthread_mutex_unlock(&ctx->lock);
}

/*
 * Clear the shared slot for a new QP. A requester that was connected to an
 * earlier QP with this number may load conn concurrently, to see that the
 * connection ended. So conn is stored atomically and is not touched by
 * memset().
 */
static void qp_sh_clear(struct urxe_qp_sh *sh)
{
	const size_t after =
		offsetof(struct urxe_qp_sh, conn) + sizeof(sh->conn);
	const uint32_t path = load_relaxed(&sh->path);

	static_assert(offsetof(struct urxe_qp_sh, conn) == 0, "nothing before");
	store_relaxed(&sh->conn, 0);
	memset((char *)sh + after, 0, sizeof(*sh) - after);
	/*
	 * requesters connected to the previous QP of this number see the
	 * generation change
	 */
	store_relaxed(&sh->path, path + URXE_PATH_QP);
}

/*
 * Allocate the QPN, the shared slot, the guard, the UD destinations and the
 * receive queue. Return 0 or -errno.
 */
static int qp_setup(struct urxe_qp *qp, const struct qp_params *p)
{
	struct urxe_context *ctx = qp->ctx;
	int ret;

	ret = process_publish_liveness(ctx->fabric);
	if (ret)
		return ret;
	ret = fabric_obj_get(ctx->fabric, ctx->slot, URXE_OBJ_QP);
	if (ret)
		return ret;
	ret = qpn_alloc(ctx->fabric, ctx->slot, ctx->gen, &qp->qpn);
	if (ret)
		goto err_put;
	qp->sh = &ctx->arena->qp[qpn_index(qp->qpn)];
	qp_find_guard(qp);
	guard_init(qp->guard);
	ret = arena_reserve(ctx->cmd_fd, (char *)qp->sh - (char *)ctx->arena,
			    sizeof(*qp->sh));
	if (ret)
		goto err_qpn;
	qp_sh_clear(qp->sh);
	if (qp->type == IBV_QPT_UD) {
		ret = -ENOMEM;
		qp->dests = calloc(UD_DESTS, sizeof(*qp->dests));
		if (!qp->dests)
			goto err_qpn;
	}
	if (!qp->srq && !qp_is_xrc(qp)) {
		ret = rq_create(ctx, &qp->rq, &qp->sh->rq, p->max_recv_wr,
				p->max_recv_sge, p->single_threaded,
				qp->type == IBV_QPT_UD);
		if (ret)
			goto err_dests;
	}
	return 0;

err_dests:
	free(qp->dests);
err_qpn:
	qpn_free(ctx->fabric, qp->qpn);
err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_QP);
	return ret;
}

int qp_open(struct urxe_qp *qp, struct urxe_context *ctx,
	    const struct qp_params *p)
{
	int ret;

	qp->ctx = ctx;
	qp->count_to = ctx->hca;
	qp->type = p->type;
	qp->scq = p->scq;
	qp->rcq = p->rcq;
	qp->srq = p->srq;
	ret = qp_setup(qp, p);
	if (ret)
		return ret;
	urxe_lock_init(&qp->lock, p->single_threaded);
	qp_publish(qp, p);
	qp_link(qp);
	return 0;
}

void qp_close(struct urxe_qp *qp, bool last)
{
	struct urxe_context *ctx = qp->ctx;

	if (qp->rq.sh)
		rq_destroy(ctx, &qp->rq);
	free(qp->dests);
	if (last) {
		qpn_free(ctx->fabric, qp->qpn);
		fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_QP);
	}
}

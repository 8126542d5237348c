// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs: their life.  The state machine is in qp_state.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "event.h"
#include "flush.h"
#include "pd.h"
#include "poll.h"
#include "qp.h"
#include "quiesce.h"
#include "responder.h"
#include "retry.h"
#include "rq.h"
#include "sq.h"

void qp_set_error(struct urxe_qp *qp)
{
	uint64_t word = atomic_load_explicit(&qp->sh->conn,
					     memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(
		&qp->sh->conn, &word,
		(word & 0xffffffffffff) | (uint64_t)IBV_QPS_ERR << 48,
		memory_order_seq_cst, memory_order_relaxed))
		;
}

static void raise_event(struct urxe_qp *qp, enum ibv_event_type type)
{
	event_raise(qp->ctx->self, qp->sh->async_fifo, qp->sh->user, type);
}

void qp_fatal(struct urxe_qp *qp)
{
	if (qp_state(qp) == IBV_QPS_ERR)
		return;
	qp_set_error(qp);
	raise_event(qp, IBV_EVENT_QP_FATAL);
}

void qp_drained(struct urxe_qp *qp)
{
	if (qp_state(qp) != IBV_QPS_SQD || qp->stall.kind != STALL_NONE)
		return;
	qp->sqd_notify = false;
	raise_event(qp, IBV_EVENT_SQ_DRAINED);
}

void qp_forget(struct urxe_qp *qp)
{
	stall_end(qp);
	quiesce(qp->ctx);
	conn_drop(qp);
	cq_clean(qp->scq, qp->vqp.qp.qp_num);
	if (qp->rcq != qp->scq)
		cq_clean(qp->rcq, qp->vqp.qp.qp_num);
	sq_reset(&qp->sq);
	if (qp->rq.sh)
		rq_reset(&qp->rq);
	atomic_store_explicit(&qp->sh->comm_est, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->sh->waiter, 0, memory_order_relaxed);
}

/* ---------------------------------------------------------- create */

static int check_cap(const struct ibv_qp_cap *cap)
{
	if (cap->max_send_wr > URXE_MAX_QP_WR ||
	    cap->max_recv_wr > URXE_MAX_QP_WR ||
	    cap->max_send_sge > URXE_MAX_SGE ||
	    cap->max_recv_sge > URXE_MAX_SGE ||
	    cap->max_inline_data > URXE_MAX_INLINE)
		return -EINVAL;
	return 0;
}

static void publish(struct urxe_qp *qp, uint32_t pd)
{
	struct urxe_qp_sh *sh = qp->sh;

	sh->user = (uintptr_t)&qp->vqp.qp;
	sh->pd = pd;
	sh->send_cq = qp->scq->index;
	sh->recv_cq = qp->rcq->index;
	sh->type = qp->init.qp_type;
	sh->pid = urxe_pid;
	sh->async_fifo = urxe_async_fifo(qp->ctx);
	atomic_store_explicit(&sh->conn,
			      URXE_CONN(qp->vqp.qp.qp_num, 0, IBV_QPS_RESET),
			      memory_order_release);
}

static void link_cqs(struct urxe_qp *qp)
{
	struct urxe_context *ctx = qp->ctx;

	pthread_mutex_lock(&ctx->lock);
	qp->scq_next = qp->scq->send_qps;
	qp->scq->send_qps = qp;
	qp->scq->refs++;
	qp->rcq_next = qp->rcq->recv_qps;
	qp->rcq->recv_qps = qp;
	qp->rcq->refs++;
	ctx->qp[qpn_index(qp->vqp.qp.qp_num)] = qp;
	pthread_mutex_unlock(&ctx->lock);
}

static void unlink_cqs(struct urxe_qp *qp)
{
	struct urxe_context *ctx = qp->ctx;
	struct urxe_qp **p;

	pthread_mutex_lock(&ctx->lock);
	for (p = &qp->scq->send_qps; *p != qp; p = &(*p)->scq_next)
		;
	*p = qp->scq_next;
	for (p = &qp->rcq->recv_qps; *p != qp; p = &(*p)->rcq_next)
		;
	*p = qp->rcq_next;
	/* pollers look the QP up under their CQ's lock */
	urxe_lock(&qp->scq->lock);
	if (qp->rcq != qp->scq)
		urxe_lock(&qp->rcq->lock);
	ctx->qp[qpn_index(qp->vqp.qp.qp_num)] = NULL;
	if (qp->rcq != qp->scq)
		urxe_unlock(&qp->rcq->lock);
	urxe_unlock(&qp->scq->lock);
	qp->scq->refs--;
	qp->rcq->refs--;
	pthread_mutex_unlock(&ctx->lock);
}

/* Number, shared slot and queues. */
static int setup(struct urxe_qp *qp, const struct ibv_qp_init_attr *init,
		 uint32_t *qpn)
{
	struct urxe_context *ctx = qp->ctx;
	int ret;

	ret = fabric_obj_get(ctx->fabric, ctx->slot, URXE_OBJ_QP);
	if (ret)
		return ret;
	ret = qpn_alloc(ctx->fabric, ctx->slot, ctx->gen, qpn);
	if (ret)
		goto err_put;
	qp->sh = &ctx->arena->qp[qpn_index(*qpn)];
	qp->guard = &ctx->fabric->dev->guard[qpn_index(*qpn)];
	ret = arena_reserve(ctx->cmd_fd, (char *)qp->sh - (char *)ctx->arena,
			    sizeof(*qp->sh));
	if (ret)
		goto err_qpn;
	memset(qp->sh, 0, sizeof(*qp->sh));
	ret = sq_create(&qp->sq, &init->cap, init->sq_sig_all);
	if (ret)
		goto err_qpn;
	ret = rq_create(ctx, &qp->rq, &qp->sh->rq, init->cap.max_recv_wr,
			init->cap.max_recv_sge);
	if (ret)
		goto err_sq;
	return 0;

err_sq:
	sq_destroy(&qp->sq);
err_qpn:
	qpn_free(ctx->fabric, *qpn);
err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_QP);
	return ret;
}

static void teardown(struct urxe_qp *qp)
{
	struct urxe_context *ctx = qp->ctx;

	rq_destroy(ctx, &qp->rq);
	sq_destroy(&qp->sq);
	qpn_free(ctx->fabric, qp->vqp.qp.qp_num);
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_QP);
	pthread_mutex_destroy(&qp->lock.mutex);
	free(qp);
}

struct ibv_qp *urxe_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct urxe_pd *upd = to_upd(pd);
	int ret, saved = errno;
	struct urxe_qp *qp;
	uint32_t qpn;

	if (init->qp_type != IBV_QPT_RC)
		return urxe_fail(-EOPNOTSUPP, "ibv_create_qp: this QP type");
	if (!init->send_cq || !init->recv_cq || init->srq ||
	    check_cap(&init->cap))
		return urxe_fail(-EINVAL, "ibv_create_qp: CQs, SRQ or cap");
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->ctx = upd->ctx;
	qp->scq = to_ucq(init->send_cq);
	qp->rcq = to_ucq(init->recv_cq);
	pthread_mutex_init(&qp->lock.mutex, NULL);
	ret = setup(qp, init, &qpn);
	if (ret) {
		free(qp);
		return urxe_fail(ret, "ibv_create_qp");
	}
	qp->init = *init;
	qp->vqp.qp.context = pd->context;
	qp->vqp.qp.qp_context = init->qp_context;
	qp->vqp.qp.pd = pd;
	qp->vqp.qp.send_cq = init->send_cq;
	qp->vqp.qp.recv_cq = init->recv_cq;
	qp->vqp.qp.handle = qpn_index(qpn);
	qp->vqp.qp.qp_num = qpn;
	qp->vqp.qp.state = IBV_QPS_RESET;
	qp->vqp.qp.qp_type = init->qp_type;
	pthread_mutex_init(&qp->vqp.qp.mutex, NULL);
	pthread_cond_init(&qp->vqp.qp.cond, NULL);
	publish(qp, pd->handle);
	pd_get(upd);
	link_cqs(qp);
	errno = saved;
	return &qp->vqp.qp;
}

int urxe_destroy_qp(struct ibv_qp *ibqp)
{
	struct urxe_qp *qp = to_uqp(ibqp);
	int saved = errno;

	urxe_lock(&qp->lock);
	atomic_store_explicit(&qp->sh->conn, 0, memory_order_seq_cst);
	qp_forget(qp);
	urxe_unlock(&qp->lock);
	unlink_cqs(qp);
	event_wait_qp(qp);
	pthread_mutex_destroy(&ibqp->mutex);
	pthread_cond_destroy(&ibqp->cond);
	pd_put(to_upd(ibqp->pd));
	teardown(qp);
	errno = saved;
	return 0;
}

int urxe_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init)
{
	struct urxe_qp *qp = to_uqp(ibqp);

	(void)mask; /* all of it is at hand */
	urxe_lock(&qp->lock);
	*attr = qp->attr;
	attr->qp_state = qp_state(qp);
	attr->cur_qp_state = attr->qp_state;
	attr->sq_psn = qp->psn;
	if (attr->qp_state == IBV_QPS_RTR || attr->qp_state == IBV_QPS_RTS ||
	    attr->qp_state == IBV_QPS_SQD)
		attr->rq_psn = atomic_load_explicit(&qp->sh->epsn,
						    memory_order_relaxed);
	attr->sq_draining = attr->qp_state == IBV_QPS_SQD &&
			    qp->stall.kind != STALL_NONE;
	attr->cap = qp->init.cap;
	*init = qp->init;
	urxe_unlock(&qp->lock);
	return 0;
}

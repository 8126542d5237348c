// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs: their life.  The state machine is in qp_state.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/context.h"
#include "engine/counters.h"
#include "event.h"
#include "engine/flush.h"
#include "parent_domain.h"
#include "pd.h"
#include "engine/poll.h"
#include "qp.h"
#include "engine/quiesce.h"
#include "engine/responder.h"
#include "engine/retry.h"
#include "engine/rq.h"
#include "engine/sq.h"
#include "engine/ud.h"
#include "xrc.h"

bool qp_set_error(struct urxe_qp *qp, enum ibv_qp_state state)
{
	uint64_t word = atomic_load_explicit(&qp->sh->conn,
					     memory_order_relaxed);

	do {
		if (state == IBV_QPS_SQE &&
		    URXE_CONN_STATE(word) == IBV_QPS_ERR)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&qp->sh->conn, &word,
		(word & 0xffffffffffff) | (uint64_t)state << 48,
		memory_order_seq_cst, memory_order_relaxed));
	return true;
}

static void raise_event(struct urxe_qp *qp, enum ibv_event_type type)
{
	event_raise_qp(qp->ctx->self, qp->sh, type);
}

void qp_fatal(struct urxe_qp *qp)
{
	if (qp_state(qp) == IBV_QPS_ERR)
		return;
	qp_set_error(qp, IBV_QPS_ERR);
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
	uint32_t i;

	stall_end(qp);
	quiesce(qp->ctx);
	conn_drop(&qp->conn);
	for (i = 0; qp->dests && i < UD_DESTS; i++)
		conn_drop(&qp->dests[i]);
	if (qp->scq)
		cq_clean(qp->scq, qp->vqp.qp.qp_num);
	if (qp->rcq && qp->rcq != qp->scq)
		cq_clean(qp->rcq, qp->vqp.qp.qp_num);
	sq_reset(&qp->sq);
	if (qp->rq.sh)
		rq_reset(&qp->rq);
	atomic_store_explicit(&qp->sh->last_wqe, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->sh->comm_est, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->sh->waiter, 0, memory_order_relaxed);
}

/* ---------------------------------------------------------- create */

static bool is_xrc(enum ibv_qp_type type)
{
	return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

/* Handles of another context mean nothing here. */
static bool all_of(const struct ibv_context *ctx,
		   const struct ibv_qp_init_attr_ex *init)
{
	return (!init->pd || init->pd->context == ctx) &&
	       (!init->send_cq || init->send_cq->context == ctx) &&
	       (!init->recv_cq || init->recv_cq->context == ctx) &&
	       (!init->srq || init->srq->context == ctx);
}

/* What each type needs, and what it must not have; man ibv_create_qp_ex. */
static int check_init(const struct ibv_context *ctx,
		      const struct ibv_qp_init_attr_ex *init)
{
	const struct ibv_qp_cap *cap = &init->cap;
	bool xrc_recv = init->qp_type == IBV_QPT_XRC_RECV;

	switch (init->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		break;
	default:
		return fabric_fail(EOPNOTSUPP, "no QPs of type %d",
				   (int)init->qp_type);
	}
	if (xrc_recv)
		return init->comp_mask & IBV_QP_INIT_ATTR_XRCD && init->xrcd ?
			       0 : -EINVAL;
	if (!(init->comp_mask & IBV_QP_INIT_ATTR_PD) || !init->pd ||
	    !init->send_cq || !all_of(ctx, init))
		return -EINVAL;
	if (!is_xrc(init->qp_type) && !init->recv_cq)
		return -EINVAL;
	if (is_xrc(init->qp_type) && init->srq)
		return -EINVAL;
	if (cap->max_send_wr > URXE_MAX_QP_WR ||
	    cap->max_recv_wr > URXE_MAX_QP_WR ||
	    cap->max_send_sge > URXE_MAX_SGE ||
	    cap->max_recv_sge > URXE_MAX_SGE ||
	    cap->max_inline_data > URXE_MAX_INLINE)
		return fabric_fail(EINVAL, "cap is over the device's limits");
	return 0;
}

static void publish(struct urxe_qp *qp)
{
	struct urxe_qp_sh *sh = qp->sh;

	sh->user = (uintptr_t)&qp->vqp.qp;
	sh->pd = qp->sq.pd ? qp->vqp.qp.pd->handle : 0;
	sh->send_cq = qp->scq ? qp->scq->index : 0;
	sh->recv_cq = qp->rcq ? qp->rcq->index : 0;
	sh->srq = qp->srq ? qp->srq->index + 1 : 0;
	sh->xrcd = qp->xrcd ? qp->xrcd->index + 1 : 0;
	sh->type = qp->init.qp_type;
	sh->pid = urxe_pid;
	sh->async_fifo = urxe_async_fifo(qp->ctx);
	atomic_store_explicit(&sh->events, 0, memory_order_relaxed);
	atomic_store_explicit(&sh->handles, 1, memory_order_relaxed);
	atomic_store_explicit(&sh->conn,
			      URXE_CONN(qp->vqp.qp.qp_num, 0, IBV_QPS_RESET),
			      memory_order_release);
}

/* Everything the QP stands on now knows of it. */
static void link_objects(struct urxe_qp *qp)
{
	struct urxe_context *ctx = qp->ctx;

	pthread_mutex_lock(&ctx->lock);
	if (qp->scq) {
		qp->scq_next = qp->scq->send_qps;
		qp->scq->send_qps = qp;
		qp->scq->refs++;
	}
	if (qp->rcq) {
		qp->rcq_next = qp->rcq->recv_qps;
		qp->rcq->recv_qps = qp;
		qp->rcq->refs++;
	}
	if (qp->srq)
		qp->srq->refs++;
	atomic_store_explicit(&ctx->qp[qpn_index(qp->vqp.qp.qp_num)], qp,
			      memory_order_release);
	pthread_mutex_unlock(&ctx->lock);
	if (qp->xrcd)
		atomic_fetch_add_explicit(&qp->xrcd->refs, 1,
					  memory_order_relaxed);
	if (qp->sq.pd)
		pd_get(qp->sq.pd);
}

static void unlink_objects(struct urxe_qp *qp)
{
	struct urxe_context *ctx = qp->ctx;
	struct urxe_cq *scq = qp->scq, *rcq = qp->rcq;
	struct urxe_qp **p;

	pthread_mutex_lock(&ctx->lock);
	if (scq) {
		for (p = &scq->send_qps; *p != qp; p = &(*p)->scq_next)
			;
		*p = qp->scq_next;
		scq->refs--;
	}
	if (rcq) {
		for (p = &rcq->recv_qps; *p != qp; p = &(*p)->rcq_next)
			;
		*p = qp->rcq_next;
		rcq->refs--;
	}
	atomic_store_explicit(&ctx->qp[qpn_index(qp->vqp.qp.qp_num)], NULL,
			      memory_order_seq_cst);
	gate_barrier(); /* pollers look it up inside their gates */
	if (scq)
		gate_wait(&scq->gate);
	if (rcq)
		gate_wait(&rcq->gate);
	if (qp->srq)
		qp->srq->refs--;
	pthread_mutex_unlock(&ctx->lock);
	if (qp->xrcd)
		atomic_fetch_sub_explicit(&qp->xrcd->refs, 1,
					  memory_order_relaxed);
	if (qp->sq.pd)
		pd_put(qp->sq.pd);
}

/* Number, shared slot and queues. */
static int setup(struct urxe_qp *qp, uint32_t *qpn)
{
	const struct ibv_qp_cap *cap = &qp->init.cap;
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
	ret = -ENOMEM;
	if (qp->init.qp_type == IBV_QPT_UD) {
		qp->dests = calloc(UD_DESTS, sizeof(*qp->dests));
		if (!qp->dests)
			goto err_qpn;
	}
	ret = sq_create(&qp->sq, cap, qp->init.sq_sig_all);
	if (ret)
		goto err_dests;
	qp->init.cap.max_inline_data = qp->sq.max_inline;
	if (!qp->srq && !is_xrc(qp->init.qp_type))
		ret = rq_create(ctx, &qp->rq, &qp->sh->rq, cap->max_recv_wr,
				cap->max_recv_sge,
				pd_single_threaded(qp->sq.pd),
				qp->init.qp_type == IBV_QPT_UD);
	if (ret)
		goto err_sq;
	return 0;

err_sq:
	sq_destroy(&qp->sq);
err_dests:
	free(qp->dests);
err_qpn:
	qpn_free(ctx->fabric, *qpn);
err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_QP);
	return ret;
}

/* Unless a target lives on in opened handles, its number goes, too. */
static void teardown(struct urxe_qp *qp, bool last)
{
	struct urxe_context *ctx = qp->ctx;

	if (qp->rq.sh)
		rq_destroy(ctx, &qp->rq);
	sq_destroy(&qp->sq);
	free(qp->dests);
	if (last) {
		qpn_free(ctx->fabric, qp->vqp.qp.qp_num);
		fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_QP);
	}
	urxe_lock_destroy(&qp->lock);
	free(qp);
}

/* The public half: core initialises none of it for QPs. */
static void fill_ibv_qp(struct urxe_qp *qp, const struct ibv_qp_init_attr_ex *a,
			uint32_t qpn)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	ibqp->context = qp->ctx->ibv;
	ibqp->qp_context = a->qp_context;
	/* an XRC target has none, but librdmacm reads what it gave from here */
	ibqp->pd = a->comp_mask & IBV_QP_INIT_ATTR_PD ? a->pd : NULL;
	ibqp->send_cq = qp->scq ? a->send_cq : NULL;
	ibqp->recv_cq = qp->rcq ? a->recv_cq : NULL;
	ibqp->srq = qp->srq ? a->srq : NULL;
	ibqp->handle = qpn_index(qpn);
	ibqp->qp_num = qpn;
	ibqp->state = IBV_QPS_RESET;
	ibqp->qp_type = a->qp_type;
	pthread_mutex_init(&ibqp->mutex, NULL);
	pthread_cond_init(&ibqp->cond, NULL);
	if (qp->xrcd) {
		pabi_qp_tail(&qp->vqp)->comp_mask |= PABI_QP_HAS_XRCD;
		pabi_qp_tail(&qp->vqp)->xrcd = a->xrcd;
	}
}

static void take_init(struct urxe_qp *qp, const struct ibv_qp_init_attr_ex *a)
{
	bool xrc_recv = a->qp_type == IBV_QPT_XRC_RECV;

	qp->init.qp_context = a->qp_context;
	qp->init.qp_type = a->qp_type;
	if (xrc_recv) { /* all it has is its domain */
		qp->xrcd = to_uxrcd(a->xrcd);
		return;
	}
	qp->sq.pd = to_upd(a->pd);
	qp->init.sq_sig_all = a->sq_sig_all;
	qp->init.cap = a->cap;
	qp->init.send_cq = a->send_cq;
	qp->scq = to_ucq(a->send_cq);
	if (a->qp_type == IBV_QPT_XRC_SEND) {
		qp->init.cap.max_recv_wr = 0;
		qp->init.cap.max_recv_sge = 0;
		return;
	}
	qp->init.recv_cq = a->recv_cq;
	qp->rcq = to_ucq(a->recv_cq);
	if (a->srq) {
		qp->init.srq = a->srq;
		qp->srq = to_usrq(a->srq);
		qp->init.cap.max_recv_wr = 0;
		qp->init.cap.max_recv_sge = 0;
	}
}

struct ibv_qp *qp_create(struct ibv_context *ibctx,
			 struct ibv_qp_init_attr_ex *a)
{
	int ret, saved = errno;
	struct urxe_qp *qp;
	uint32_t qpn;

	ret = check_init(ibctx, a);
	if (ret)
		return urxe_fail(ret, "ibv_create_qp");
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->ctx = to_uctx(ibctx);
	take_init(qp, a);
	urxe_lock_init(&qp->lock, pd_single_threaded(qp->sq.pd));
	ret = setup(qp, &qpn);
	if (ret) {
		urxe_lock_destroy(&qp->lock);
		free(qp);
		return urxe_fail(ret, "ibv_create_qp");
	}
	fill_ibv_qp(qp, a, qpn);
	publish(qp);
	link_objects(qp);
	a->cap = qp->init.cap;
	errno = saved;
	return &qp->vqp.qp;
}

struct ibv_qp *urxe_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex a = {
		.qp_context = init->qp_context,
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.srq = init->srq,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.sq_sig_all = init->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = qp_create(pd->context, &a);

	if (qp)
		init->cap = a.cap;
	return qp;
}

int urxe_destroy_qp(struct ibv_qp *ibqp)
{
	struct urxe_qp *qp = to_uqp(ibqp);
	int saved = errno;
	bool last;

	if (qp->mcast_groups)
		return EBUSY; /* man ibv_destroy_qp */
	if (qp->opened) {
		xrc_close_qp(qp);
		return 0;
	}
	urxe_lock(&qp->lock);
	counters_flush(qp);
	last = xrc_put_handle(qp);
	if (last) {
		atomic_store_explicit(&qp->sh->conn, 0, memory_order_seq_cst);
		qp_forget(qp);
	} else {
		quiesce(qp->ctx); /* no more events for this handle */
	}
	urxe_unlock(&qp->lock);
	unlink_objects(qp);
	event_wait_qp(qp);
	pthread_mutex_destroy(&ibqp->mutex);
	pthread_cond_destroy(&ibqp->cond);
	teardown(qp, last);
	errno = saved;
	return 0;
}

int urxe_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init)
{
	struct urxe_qp *qp = to_uqp(ibqp);

	(void)mask; /* all of it is at hand */
	urxe_lock(&qp->lock);
	counters_flush(qp);
	*attr = qp->attr;
	attr->qp_state = qp_state(qp);
	attr->cur_qp_state = attr->qp_state;
	attr->sq_psn = qp->psn;
	if (attr->qp_state == IBV_QPS_RTR || attr->qp_state == IBV_QPS_RTS ||
	    attr->qp_state == IBV_QPS_SQD)
		attr->rq_psn = atomic_load_explicit(&qp->sh->epsn,
						    memory_order_relaxed);
	if (qp->opened)
		xrc_query_qp(qp, attr);
	attr->sq_draining = attr->qp_state == IBV_QPS_SQD &&
			    qp->stall.kind != STALL_NONE;
	attr->cap = qp->init.cap;
	*init = qp->init;
	urxe_unlock(&qp->lock);
	return 0;
}

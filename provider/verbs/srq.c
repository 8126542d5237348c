// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues: an RQ ring (rq.h) that the requesters of many QPs,
 * in many processes, take receives from.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/bounce.h"
#include "abi/context.h"
#include "cq.h"
#include "event.h"
#include "pd.h"
#include "engine/peer.h"
#include "engine/quiesce.h"
#include "engine/retry.h"
#include "engine/rq.h"
#include "srq.h"

#define SRQ_MASKS \
	(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | \
	 IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ)

static int check_attr(const struct ibv_context *ctx,
		      const struct ibv_srq_init_attr_ex *a)
{
	bool xrc = a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE &&
		   a->srq_type == IBV_SRQT_XRC;

	if (a->comp_mask & ~SRQ_MASKS ||
	    (a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE &&
	     a->srq_type != IBV_SRQT_BASIC && !xrc))
		return -EOPNOTSUPP;
	/* handles of another context mean nothing here */
	if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !a->pd ||
	    a->pd->context != ctx)
		return -EINVAL;
	if (xrc && (!(a->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) ||
		    !(a->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !a->xrcd ||
		    a->xrcd->context != ctx || !a->cq ||
		    a->cq->context != ctx))
		return -EINVAL;
	if (!a->attr.max_wr || a->attr.max_wr > URXE_MAX_SRQ_WR ||
	    a->attr.max_sge > URXE_MAX_SGE)
		return fabric_fail(EINVAL, "max_wr or max_sge");
	return 0;
}

static int setup(struct urxe_srq *srq, const struct ibv_srq_attr *attr)
{
	struct urxe_context *ctx = srq->ctx;
	uint32_t made;
	int ret;

	ret = fabric_obj_get(ctx->fabric, ctx->slot, URXE_OBJ_SRQ);
	if (ret)
		return ret;
	ret = arena_index_take(ctx->arena, ctx->arena->srq_map, URXE_MAX_SRQ);
	if (ret < 0)
		goto err_put;
	srq->index = ret;
	srq->sh = &ctx->arena->srq[srq->index];
	ret = arena_reserve(ctx->cmd_fd, (char *)srq->sh - (char *)ctx->arena,
			    sizeof(*srq->sh));
	if (ret)
		goto err_index;
	made = srq->sh->made + 1;
	memset(srq->sh, 0, sizeof(*srq->sh));
	srq->sh->made = made ? made : 1;
	ret = rq_create(ctx, &srq->rq, &srq->sh->rq, attr->max_wr,
			attr->max_sge, false, true);
	if (ret)
		goto err_index;
	return 0;

err_index:
	arena_index_drop(ctx->arena, ctx->arena->srq_map, srq->index);
err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_SRQ);
	return ret;
}

static void publish(struct urxe_srq *srq, const struct ibv_srq_init_attr_ex *a)
{
	struct urxe_context *ctx = srq->ctx;
	struct urxe_srq_sh *sh = srq->sh;

	sh->pd = a->pd->handle;
	sh->type = srq->cq ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	sh->xrcd = srq->xrcd ? srq->xrcd->index + 1 : 0;
	sh->cq = srq->cq ? srq->cq->index : 0;
	sh->async_fifo = urxe_async_fifo(ctx);
	atomic_store_explicit(&sh->events, 0, memory_order_relaxed);
	sh->pid = urxe_pid;
	sh->user = (uintptr_t)&srq->vsrq.srq;
	atomic_store_explicit(&sh->limit, a->attr.srq_limit,
			      memory_order_relaxed);
	pd_get(to_upd(a->pd));
	pthread_mutex_lock(&ctx->lock);
	atomic_store_explicit(&ctx->srq[srq->index], srq, memory_order_release);
	if (srq->cq)
		srq->cq->refs++;
	pthread_mutex_unlock(&ctx->lock);
	if (srq->xrcd)
		atomic_fetch_add_explicit(&srq->xrcd->refs, 1,
					  memory_order_relaxed);
	atomic_store_explicit(&sh->live, sh->made, memory_order_release);
}

static void fill_ibv_srq(struct urxe_srq *srq,
			 const struct ibv_srq_init_attr_ex *a)
{
	struct pabi_srq *v = &srq->vsrq;

	v->srq.context = srq->ctx->ibv;
	v->srq.srq_context = a->srq_context;
	v->srq.pd = a->pd;
	v->srq.handle = srq->index;
	pthread_mutex_init(&v->srq.mutex, NULL);
	pthread_cond_init(&v->srq.cond, NULL);
	v->srq_type = srq->cq ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	v->xrcd = srq->xrcd ? a->xrcd : NULL;
	v->cq = srq->cq ? a->cq : NULL;
	v->srq_num = URXE_SRQN(srq->ctx->slot, srq->index);
}

struct ibv_srq *urxe_create_srq_ex(struct ibv_context *ibctx,
				   struct ibv_srq_init_attr_ex *a)
{
	int ret, saved = errno;
	struct urxe_srq *srq;

	ret = check_attr(ibctx, a);
	if (ret)
		return urxe_fail(ret, "ibv_create_srq");
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	srq->ctx = to_uctx(ibctx);
	if (a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE &&
	    a->srq_type == IBV_SRQT_XRC) {
		srq->cq = to_ucq(a->cq);
		srq->xrcd = to_uxrcd(a->xrcd);
	}
	ret = setup(srq, &a->attr);
	if (ret) {
		free(srq);
		return urxe_fail(ret, "ibv_create_srq");
	}
	fill_ibv_srq(srq, a);
	if (srq->cq) /* XRC: whoever names it */
		bounce_expose(srq->ctx);
	publish(srq, a);
	errno = saved;
	return &srq->vsrq.srq;
}

struct ibv_srq *urxe_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *init)
{
	struct ibv_srq_init_attr_ex a = {
		.srq_context = init->srq_context,
		.attr = init->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};

	/* IB 11.2.3.1: the limit is armed by modify only */
	a.attr.srq_limit = 0;
	return urxe_create_srq_ex(pd->context, &a);
}

int urxe_destroy_srq(struct ibv_srq *ibsrq)
{
	struct urxe_srq *srq = to_usrq(ibsrq);
	struct urxe_context *ctx = srq->ctx;
	int saved = errno;
	bool busy;

	pthread_mutex_lock(&ctx->lock);
	busy = srq->refs;
	pthread_mutex_unlock(&ctx->lock);
	if (busy)
		return EBUSY;
	atomic_store_explicit(&srq->sh->live, 0, memory_order_seq_cst);
	atomic_store_explicit(&ctx->srq[srq->index], NULL,
			      memory_order_seq_cst);
	quiesce(ctx);
	event_wait_srq(srq);
	pthread_mutex_lock(&ctx->lock);
	if (srq->cq)
		srq->cq->refs--;
	pthread_mutex_unlock(&ctx->lock);
	if (srq->xrcd)
		atomic_fetch_sub_explicit(&srq->xrcd->refs, 1,
					  memory_order_relaxed);
	pd_put(to_upd(ibsrq->pd));
	rq_destroy(ctx, &srq->rq);
	arena_index_drop(ctx->arena, ctx->arena->srq_map, srq->index);
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_SRQ);
	pthread_mutex_destroy(&ibsrq->mutex);
	pthread_cond_destroy(&ibsrq->cond);
	free(srq);
	errno = saved;
	return 0;
}

int urxe_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct urxe_srq *srq = to_usrq(ibsrq);
	uint32_t max_wr;
	int ret = 0;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	urxe_lock(&srq->rq.lock);
	max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->rq.max_wr;
	/* if anything is invalid, nothing is modified */
	if (mask & IBV_SRQ_LIMIT && attr->srq_limit > max_wr) {
		urxe_why("ibv_modify_srq: srq_limit %u is above max_wr %u",
			 attr->srq_limit, max_wr);
		ret = EINVAL;
	}
	if (!ret && mask & IBV_SRQ_MAX_WR)
		ret = rq_resize(srq->ctx, &srq->rq, max_wr);
	if (!ret && mask & IBV_SRQ_LIMIT)
		atomic_store_explicit(&srq->sh->limit, attr->srq_limit,
				      memory_order_release);
	urxe_unlock(&srq->rq.lock);
	return ret;
}

int urxe_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct urxe_srq *srq = to_usrq(ibsrq);

	attr->max_wr = srq->rq.max_wr;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = atomic_load_explicit(&srq->sh->limit,
					       memory_order_acquire);
	return 0;
}

int urxe_get_srq_num(struct ibv_srq *ibsrq, uint32_t *num)
{
	struct urxe_srq *srq = to_usrq(ibsrq);

	if (!srq->cq)
		return EINVAL; /* only an XRC SRQ is addressed by number */
	*num = srq->vsrq.srq_num;
	return 0;
}

void srq_wake_waiters(struct urxe_srq *srq)
{
	struct urxe_dev *dev = srq->ctx->fabric->dev;
	uint32_t slot, who;

	who = atomic_exchange_explicit(&srq->sh->waiter, 0,
				       memory_order_seq_cst);
	if (who != URXE_WAIT_MANY) {
		if (who)
			service_wake_slot(srq->ctx->fabric, who - 1);
		return;
	}
	for (slot = 0; slot < URXE_MAX_CTX; slot++)
		if (atomic_load_explicit(&dev->ctx[slot].state,
					 memory_order_relaxed) == URXE_CTX_LIVE)
			service_wake_slot(srq->ctx->fabric, slot);
}

int urxe_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad)
{
	struct urxe_srq *srq = to_usrq(ibsrq);
	int ret;

	ret = rq_post(srq->ctx, &srq->rq, wr, bad);
	if (unlikely(atomic_load_explicit(&srq->sh->waiter,
					  memory_order_seq_cst)))
		srq_wake_waiters(srq);
	return ret;
}

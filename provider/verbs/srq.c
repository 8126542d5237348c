// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues: creation, modification, queries, destruction. */
#include <errno.h>
#include <stdlib.h>

#include "context.h"
#include "cq.h"
#include "engine/core/log.h"
#include "event.h"
#include "pd.h"
#include "profile.h"
#include "srq.h"
#include "verbs.h"
#include "xrc.h"

#define SRQ_MASKS \
	(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | \
	 IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ)

static bool srq_attr_is_xrc(const struct ibv_srq_init_attr_ex *a)
{
	return a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE &&
	       a->srq_type == IBV_SRQT_XRC;
}

static int srq_check_wr(const struct urxe_context *ctx, uint32_t max_wr)
{
	const uint32_t most = (uint32_t)profile_limit(ctx, max_srq_wr);

	if (max_wr && max_wr <= most)
		return 0;
	return profile_refuse(ctx, PROFILE_max_srq_wr, EINVAL,
			      "max_wr is %u, and must be 1 to %u", max_wr,
			      most);
}

/* Check the attributes, and return the PD that they name in *@pd.  -errno */
static int srq_check_attr(struct ibv_context *ctx,
			  const struct ibv_srq_init_attr_ex *a,
			  struct urxe_pd **pd)
{
	const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	const struct urxe_context *uctx = to_uctx(ctx);
	const uint32_t max_sge = (uint32_t)profile_limit(uctx, max_srq_sge);
	int ret;

	if (a->comp_mask & ~SRQ_MASKS ||
	    (a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE &&
	     a->srq_type != IBV_SRQT_BASIC && a->srq_type != IBV_SRQT_XRC))
		return fabric_fail(
			EOPNOTSUPP,
			"comp_mask 0x%x or srq_type %d is not supported",
			a->comp_mask, (int)a->srq_type);
	/* objects of another context are refused */
	if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !a->pd ||
	    a->pd->context != ctx)
		return fabric_fail(
			EINVAL,
			"the PD is missing or of another ibv_open_device");
	*pd = pd_find(a->pd);
	if (!*pd)
		return fabric_fail(ENOENT, "the PD was destroyed");
	if (srq_attr_is_xrc(a) &&
	    ((a->comp_mask & xrc) != xrc || !a->xrcd ||
	     a->xrcd->context != ctx || !a->cq || a->cq->context != ctx))
		return fabric_fail(
			EINVAL,
			"XRC needs an XRCD and a CQ of this ibv_open_device");
	if (srq_attr_is_xrc(a) && !cq_is_named(a->cq))
		return fabric_fail(ENOENT, "the CQ was destroyed");
	ret = srq_check_wr(uctx, a->attr.max_wr);
	if (ret)
		return ret;
	if (a->attr.max_sge > max_sge)
		return profile_refuse(uctx, PROFILE_max_srq_sge, EINVAL,
				      "max_sge is %u, and must be at most %u",
				      a->attr.max_sge, max_sge);
	if (a->attr.srq_limit > a->attr.max_wr)
		return fabric_fail(EINVAL, "srq_limit %u is above max_wr %u",
				   a->attr.srq_limit, a->attr.max_wr);
	return 0;
}

/* Set the public members, none of which libibverbs initialises for SRQs. */
static void srq_fill_ibv(struct urxe_vsrq *vsrq,
			 const struct ibv_srq_init_attr_ex *a)
{
	const struct urxe_srq *srq = &vsrq->srq;
	struct pabi_srq *v = &vsrq->v;

	v->srq.context = a->pd->context;
	v->srq.srq_context = a->srq_context;
	v->srq.pd = a->pd;
	v->srq.handle = srq->index;
	pthread_mutex_init(&v->srq.mutex, NULL);
	pthread_cond_init(&v->srq.cond, NULL);
	v->srq_type = srq->cq ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	v->xrcd = srq->cq ? a->xrcd : NULL;
	v->cq = srq->cq ? a->cq : NULL;
	v->srq_num = URXE_SRQN(srq->ctx->slot, srq->index);
}

struct ibv_srq *urxe_create_srq_ex(struct ibv_context *ibctx,
				   struct ibv_srq_init_attr_ex *a)
{
	struct srq_params p = {
		.max_wr = a->attr.max_wr,
		.max_sge = a->attr.max_sge,
		.limit = a->attr.srq_limit,
	};
	int ret;
	struct urxe_vsrq *vsrq;
	struct urxe_pd *pd = NULL;

	ret = srq_check_attr(ibctx, a, &pd);
	if (ret)
		return urxe_fail(ret, "ibv_create_srq");
	vsrq = calloc(1, sizeof(*vsrq));
	if (!vsrq)
		return NULL;
	vsrq->pd = pd;
	p.pd = pd->index;
	p.async_fifo = event_async_fifo(ibctx);
	if (srq_attr_is_xrc(a)) {
		p.cq = to_ucq(a->cq);
		vsrq->xrcd = to_uxrcd(a->xrcd);
		p.xrcd = vsrq->xrcd->index + 1;
	}
	ret = event_watch(ibctx, &vsrq->v.srq, EVENT_SRQ, &vsrq->tag);
	if (ret)
		goto err_free;
	p.tag = vsrq->tag;
	ret = srq_open(&vsrq->srq, to_uctx(ibctx), &p);
	if (ret)
		goto err_tag;
	srq_fill_ibv(vsrq, a);
	pd_get(pd);
	if (vsrq->xrcd)
		fetch_add_relaxed(&vsrq->xrcd->refs, 1);
	return &vsrq->v.srq;

err_tag:
	event_forget(ibctx, vsrq->tag);
err_free:
	free(vsrq);
	return urxe_fail(ret, "ibv_create_srq");
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

	/*
	 * ibv_create_srq(3) ignores srq_limit; ibv_create_srq_ex(3) does not
	 */
	a.attr.srq_limit = 0;
	return urxe_create_srq_ex(pd->context, &a);
}

int urxe_destroy_srq(struct ibv_srq *ibsrq)
{
	struct urxe_vsrq *vsrq = to_vsrq(ibsrq);

	if (!srq_is_named(ibsrq))
		return ENOENT;
	if (!srq_unlink(&vsrq->srq)) {
		urxe_why("ibv_destroy_srq: the SRQ is still used by QPs");
		return EBUSY;
	}
	event_wait_srq(ibsrq);
	srq_close(&vsrq->srq);
	if (vsrq->xrcd)
		fetch_sub_relaxed(&vsrq->xrcd->refs, 1);
	pd_put(vsrq->pd);
	pthread_mutex_destroy(&ibsrq->mutex);
	pthread_cond_destroy(&ibsrq->cond);
	free(vsrq);
	return 0;
}

int urxe_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct urxe_srq *srq = to_usrq(ibsrq);
	uint32_t max_wr, limit;
	int ret = 0;

	if (!srq_is_named(ibsrq))
		return ENOENT;
	if (mask & IBV_SRQ_MAX_WR) {
		ret = profile_need(srq->ctx, PROFILE_HAS(SRQ_RESIZE),
				   "a change of max_wr");
		if (!ret)
			ret = srq_check_wr(srq->ctx, attr->max_wr);
		if (ret) {
			urxe_fail(ret, "ibv_modify_srq");
			return -ret;
		}
	}
	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) {
		urxe_why(
			"ibv_modify_srq: mask 0x%x has bits other than IBV_SRQ_MAX_WR and IBV_SRQ_LIMIT",
			mask);
		return EINVAL;
	}
	urxe_lock(&srq->rq.lock);
	max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->rq.max_wr;
	/* if anything is invalid, nothing is modified */
	limit = mask & IBV_SRQ_LIMIT ? attr->srq_limit :
				       load_relaxed(&srq->sh->limit);
	if (limit > max_wr) {
		urxe_why("ibv_modify_srq: srq_limit %u is above max_wr %u",
			 limit, max_wr);
		ret = EINVAL;
	}
	if (!ret && mask & IBV_SRQ_MAX_WR)
		ret = rq_resize(srq->ctx, &srq->rq, srq->index, max_wr);
	if (!ret && mask & IBV_SRQ_LIMIT)
		store_release(&srq->sh->limit, attr->srq_limit);
	urxe_unlock(&srq->rq.lock);
	return ret;
}

int urxe_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct urxe_srq *srq = to_usrq(ibsrq);

	if (!srq_is_named(ibsrq))
		return ENOENT;
	attr->max_wr = srq->rq.max_wr;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = load_acquire(&srq->sh->limit);
	return 0;
}

int urxe_get_srq_num(struct ibv_srq *ibsrq, uint32_t *num)
{
	struct urxe_vsrq *vsrq = to_vsrq(ibsrq);

	if (!vsrq->xrcd)
		return EINVAL; /* only an XRC SRQ is addressed by number */
	*num = vsrq->v.srq_num;
	return 0;
}

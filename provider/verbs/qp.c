// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs: creation, queries, destruction, ECE.  ibv_modify_qp is in
 * qp_state.c, ibv_create_qp_ex in qp_ex.c, ibv_open_qp in xrc.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "comp_cntr.h"
#include "context.h"
#include "cq.h"
#include "engine/qp/counters.h"
#include "engine/core/log.h"
#include "engine/run/quiesce.h"
#include "engine/qp/why.h"
#include "engine/qp/wqe.h"
#include "event.h"
#include "parent_domain.h"
#include "pd.h"
#include "profile.h"
#include "qp.h"
#include "srq.h"
#include "verbs.h"
#include "xrc.h"

/* Return whether all objects in @init belong to context @ctx. */
static bool qp_all_of(const struct ibv_context *ctx,
		      const struct ibv_qp_init_attr_ex *init)
{
	return (!init->pd || init->pd->context == ctx) &&
	       (!init->send_cq || init->send_cq->context == ctx) &&
	       (!init->recv_cq || init->recv_cq->context == ctx) &&
	       (!init->srq || init->srq->context == ctx);
}

/*
 * Return whether a QP may be attached to @srq.  An XRC SRQ is addressed by
 * each message, and cannot be attached to a QP.
 */
static bool qp_srq_suits(const struct ibv_srq *srq)
{
	return container_of(srq, struct urxe_vsrq, v.srq)->v.srq_type ==
	       IBV_SRQT_BASIC;
}

static enum profile_key qp_inline_key(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UC:
		return PROFILE_max_inline_uc;
	case IBV_QPT_UD:
		return PROFILE_max_inline_ud;
	case IBV_QPT_XRC_SEND:
		return PROFILE_max_inline_xrc;
	default:
		return PROFILE_max_inline_rc;
	}
}

/*
 * Return -EINVAL, or the errno value of the device's profile, if a capability
 * exceeds its limit.  The receive sizes are ignored if the QP has no receive
 * queue (ibv_create_qp(3)).
 */
static int qp_check_cap(const struct urxe_context *ctx,
			const struct ibv_qp_cap *cap, enum ibv_qp_type type,
			bool has_rq)
{
	const struct {
		const char *name;
		uint32_t value;
		enum profile_key key;
	} limit[] = {
		{ "max_send_wr", cap->max_send_wr, PROFILE_max_qp_wr },
		{ "max_recv_wr", has_rq ? cap->max_recv_wr : 0,
		  PROFILE_max_qp_wr },
		{ "max_send_sge", cap->max_send_sge, PROFILE_max_sge },
		{ "max_recv_sge", has_rq ? cap->max_recv_sge : 0,
		  PROFILE_max_recv_sge },
		{ "max_inline_data", cap->max_inline_data,
		  qp_inline_key(type) },
	};
	uint32_t max;
	size_t i;

	for (i = 0; i < sizeof(limit) / sizeof(*limit); i++) {
		max = (uint32_t)ctx->profile.value[limit[i].key];
		if (limit[i].value > max)
			return profile_refuse(
				ctx, limit[i].key, EINVAL,
				"cap.%s is %u, and must be at most %u",
				limit[i].name, limit[i].value, max);
	}
	return 0;
}

/*
 * Check the attributes that each QP type requires and excludes
 * (ibv_create_qp_ex(3)).  @pd is the PD of @init, or NULL.  0 or -errno
 */
static int qp_check_init(struct ibv_context *ctx,
			 const struct ibv_qp_init_attr_ex *init,
			 const struct urxe_pd *pd)
{
	bool initiator = init->qp_type == IBV_QPT_XRC_SEND;
	const struct urxe_context *uctx = to_uctx(ctx);

	if (init->qp_type <= IBV_QPT_XRC_RECV &&
	    !(profile_limit(uctx, qp_types) & 1ull << init->qp_type))
		return profile_refuse(uctx, PROFILE_qp_types, EOPNOTSUPP,
				      "QP type %d is not supported",
				      (int)init->qp_type);
	switch (init->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_XRC_SEND:
		break;
	case IBV_QPT_XRC_RECV:
		if (!(init->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !init->xrcd)
			return fabric_fail(EINVAL,
					   "an XRC target needs an XRCD");
		if (init->xrcd->context != ctx)
			return fabric_fail(EINVAL,
					   "the XRCD is of another context");
		return 0;
	default:
		return fabric_fail(EOPNOTSUPP, "QP type %d is not supported",
				   (int)init->qp_type);
	}
	if (!(init->comp_mask & IBV_QP_INIT_ATTR_PD) || !init->pd ||
	    !init->send_cq || (!initiator && !init->recv_cq))
		return fabric_fail(EINVAL, "the QP needs a PD and CQs");
	if (initiator && init->srq)
		return fabric_fail(EINVAL,
				   "an XRC initiator cannot have an SRQ");
	if (!qp_all_of(ctx, init))
		return fabric_fail(
			EINVAL,
			"the PD, a CQ or the SRQ is of another ibv_open_device");
	if (!pd)
		return fabric_fail(ENOENT, "the PD was destroyed");
	if (!cq_is_named(init->send_cq) ||
	    (!initiator && !cq_is_named(init->recv_cq)))
		return fabric_fail(ENOENT, "a CQ was destroyed");
	if (init->srq && !srq_is_named(init->srq))
		return fabric_fail(ENOENT, "the SRQ was destroyed");
	if (init->srq && !qp_srq_suits(init->srq))
		return fabric_fail(EINVAL, "the SRQ is an XRC SRQ");
	return qp_check_cap(uctx, &init->cap, init->qp_type,
			    !init->srq && !initiator);
}

void vqp_fill(struct urxe_vqp *vqp, struct ibv_context *ibv,
		   void *qp_context, uint32_t qpn)
{
	struct ibv_qp *ibqp = &vqp->v.qp;

	ibqp->context = ibv;
	ibqp->qp_context = qp_context;
	ibqp->handle = qpn_index(qpn);
	ibqp->qp_num = qpn;
	ibqp->state = qp_state(&vqp->qp);
	ibqp->qp_type = vqp->qp.type;
	pthread_mutex_init(&ibqp->mutex, NULL);
	pthread_cond_init(&ibqp->cond, NULL);
	if (vqp->xrcd) {
		pabi_qp_tail(&vqp->v)->comp_mask |= PABI_QP_HAS_XRCD;
		pabi_qp_tail(&vqp->v)->xrcd = &vqp->xrcd->vxrcd.xrcd;
	}
}

/* Copy those attributes that apply to the QP's type. */
static void qp_take_init(struct urxe_vqp *vqp,
			 const struct ibv_qp_init_attr_ex *a,
			 struct urxe_pd *pd)
{
	struct ibv_qp_init_attr *init = &vqp->init;

	init->qp_context = a->qp_context;
	init->qp_type = a->qp_type;
	if (a->qp_type == IBV_QPT_XRC_RECV) { /* it has only a domain */
		vqp->xrcd = to_uxrcd(a->xrcd);
		return;
	}
	vqp->pd = pd;
	init->sq_sig_all = a->sq_sig_all;
	init->cap = a->cap;
	init->send_cq = a->send_cq;
	if (a->qp_type != IBV_QPT_XRC_SEND) {
		init->recv_cq = a->recv_cq;
		init->srq = a->srq;
	}
	if (a->qp_type == IBV_QPT_XRC_SEND || a->srq) {
		init->cap.max_recv_wr = 0;
		init->cap.max_recv_sge = 0;
	}
}

uint32_t qp_ops(const struct urxe_context *ctx, enum ibv_qp_type type)
{
	return sq_ops[type & (SQ_TYPES - 1)] &
	       (uint32_t)profile_limit(ctx, send_ops);
}

/* Set the limits of the device for a send queue. */
static void vqp_limit_sq(struct urxe_sq *sq, const struct urxe_context *ctx,
			 enum ibv_qp_type type)
{
	const uint64_t most = ctx->profile.value[qp_inline_key(type)];

	sq->ops = qp_ops(ctx, type);
	sq->max_msg = (uint32_t)profile_limit(ctx, max_msg_sz);
	sq->max_sge_rd = (uint32_t)profile_limit(ctx, max_sge_rd);
	if (sq->max_inline > most)
		sq->max_inline = (uint32_t)most;
}

/*
 * Create the engine's part of the QP, and its event tag.  The ring of the
 * send queue is allocated by the parent domain's allocator if there is one.
 * -errno
 */
static int vqp_setup(struct urxe_vqp *vqp, struct urxe_context *ctx)
{
	struct ibv_qp_init_attr *init = &vqp->init;
	struct urxe_sq *sq = &vqp->qp.sq;
	struct qp_params p = {
		.type = init->qp_type,
		.scq = init->send_cq ? to_ucq(init->send_cq) : NULL,
		.rcq = init->recv_cq ? to_ucq(init->recv_cq) : NULL,
		.srq = init->srq ? to_usrq(init->srq) : NULL,
		.max_recv_wr = init->cap.max_recv_wr,
		.max_recv_sge = init->cap.max_recv_sge,
		.pd = vqp->pd ? vqp->pd->index : 0,
		.xrcd = vqp->xrcd ? vqp->xrcd->index + 1 : 0,
		.single_threaded = pd_single_threaded(vqp->pd),
		.async_fifo = event_async_fifo(to_ibv(ctx)),
	};
	size_t bytes = sq_plan(sq, &init->cap, init->sq_sig_all);
	int ret;

	vqp_limit_sq(sq, ctx, init->qp_type);
	sq->ring = pd_alloc_sq(vqp->pd, bytes, &vqp->custom_sq);
	if (!sq->ring && vqp->custom_sq)
		return -ENOMEM;
	init->cap.max_inline_data = sq->max_inline;
	ret = event_watch(to_ibv(ctx), &vqp->v.qp, EVENT_QP, &vqp->tag);
	if (ret)
		goto err_sq;
	p.tag = vqp->tag;
	ret = qp_open(&vqp->qp, ctx, &p);
	if (ret)
		goto err_tag;
	return 0;

err_tag:
	event_forget(to_ibv(ctx), vqp->tag);
err_sq:
	pd_free_sq(vqp->pd, sq->ring, vqp->custom_sq);
	return ret;
}

struct ibv_qp *vqp_create(struct ibv_context *ibctx,
			  struct ibv_qp_init_attr_ex *a)
{
	int ret;
	struct urxe_vqp *vqp;
	struct urxe_pd *pd = NULL;

	/* pd_find() must not follow a context of another driver */
	if (a->comp_mask & IBV_QP_INIT_ATTR_PD && a->pd &&
	    a->pd->context == ibctx && a->qp_type != IBV_QPT_XRC_RECV)
		pd = pd_find(a->pd);
	ret = qp_check_init(ibctx, a, pd);
	if (ret)
		return urxe_fail(ret, "ibv_create_qp");
	vqp = calloc(1, sizeof(*vqp));
	if (!vqp)
		return NULL;
	qp_take_init(vqp, a, pd);
	ret = vqp_setup(vqp, to_uctx(ibctx));
	if (ret) {
		free(vqp);
		return urxe_fail(ret, "ibv_create_qp");
	}
	vqp_fill(vqp, ibctx, a->qp_context, vqp->qp.qpn);
	/*
	 * an XRC target has no PD, but librdmacm reads here the one it passed
	 */
	vqp->v.qp.pd = a->comp_mask & IBV_QP_INIT_ATTR_PD ? a->pd : NULL;
	vqp->v.qp.send_cq = vqp->init.send_cq;
	vqp->v.qp.recv_cq = vqp->init.recv_cq;
	vqp->v.qp.srq = vqp->init.srq;
	if (vqp->xrcd)
		fetch_add_relaxed(&vqp->xrcd->refs, 1);
	if (vqp->pd)
		pd_get(vqp->pd);
	a->cap = vqp->init.cap;
	return &vqp->v.qp;
}

struct ibv_qp *urxe_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex a = { .pd = pd };
	struct ibv_qp *qp;

	/* verbs.h: struct ibv_qp_init_attr is a prefix of the _ex struct */
	memcpy(&a, init, sizeof(*init));
	a.comp_mask = IBV_QP_INIT_ATTR_PD;
	qp = vqp_create(pd->context, &a);
	if (qp)
		init->cap = a.cap;
	return qp;
}

int urxe_destroy_qp(struct ibv_qp *ibqp)
{
	struct urxe_vqp *vqp = to_vqp(ibqp);
	struct urxe_qp *qp = &vqp->qp;
	bool last;

	if (!qp_is_named(ibqp))
		return ENOENT;
	if (load_relaxed(&vqp->mcast_groups)) {
		urxe_why(
			"ibv_destroy_qp: QP 0x%x is still attached to %u multicast groups",
			qp->qpn, load_relaxed(&vqp->mcast_groups));
		return EBUSY; /* man ibv_destroy_qp */
	}
	if (vqp->opened) {
		xrc_close_qp(vqp);
		return 0;
	}
	urxe_lock(&qp->lock);
	why_log_broken(qp);
	counters_flush(qp);
	vqp_stop_counting(vqp);
	last = xrc_put_handle(vqp);
	if (last) {
		qp_forget(qp, 0);
	} else {
		/*
		 * The QP continues.  Wait until no requester and no poller
		 * can raise another event for this handle.
		 */
		quiesce_qp(qp->ctx->fabric, qp->ctx->arena, qp->qpn, 0);
		cq_wait_pollers(qp->ctx);
	}
	urxe_unlock(&qp->lock);
	qp_unlink(qp);
	vqp_detach_counters(vqp);
	if (vqp->xrcd)
		fetch_sub_relaxed(&vqp->xrcd->refs, 1);
	event_wait_qp(ibqp);
	pthread_mutex_destroy(&ibqp->mutex);
	pthread_cond_destroy(&ibqp->cond);
	qp_close(qp, last);
	pd_free_sq(vqp->pd, qp->sq.ring, vqp->custom_sq);
	if (vqp->pd)
		pd_put(vqp->pd);
	free(vqp);
	return 0;
}

int urxe_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init)
{
	struct urxe_vqp *vqp = to_vqp(ibqp);
	struct urxe_qp *qp = &vqp->qp;

	(void)mask; /* all attributes are returned */
	if (!qp_is_named(ibqp))
		return ENOENT;
	urxe_lock(&qp->lock);
	counters_flush(qp);
	*attr = qp->attr;
	attr->qp_state = qp_state(qp);
	attr->cur_qp_state = attr->qp_state;
	attr->sq_psn = qp->psn;
	if (attr->qp_state == IBV_QPS_RTR || attr->qp_state == IBV_QPS_RTS ||
	    attr->qp_state == IBV_QPS_SQD)
		attr->rq_psn = load_relaxed(&qp->sh->epsn) & URXE_PSN_MASK;
	if (vqp->opened)
		xrc_query_qp(vqp, attr);
	attr->sq_draining = attr->qp_state == IBV_QPS_SQD &&
			    qp_is_draining(qp);
	attr->cap = vqp->init.cap;
	*init = vqp->init;
	urxe_unlock(&qp->lock);
	return 0;
}

int urxe_query_ece(struct ibv_qp *ibqp, struct ibv_ece *ece)
{
	const struct urxe_context *ctx = to_uqp(ibqp)->ctx;

	*ece = (struct ibv_ece){
		.vendor_id = (uint32_t)profile_limit(ctx, vendor_id),
	};
	return 0;
}

/* Negotiate the ECE options: urxe has none, whatever the peer requests. */
int urxe_set_ece(struct ibv_qp *ibqp, struct ibv_ece *ece)
{
	if (ece->comp_mask) {
		urxe_why("ibv_set_ece: comp_mask must be 0");
		return EINVAL;
	}
	return urxe_query_ece(ibqp, ece);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Record the creation of objects with the numbers and keys that the verbs
 * return, changes of QPs, and events that the program fetches.
 */
#include <string.h>

#include "engine/qp/qp.h"
#include "recorder.h"
#include "trace/trace.h"
#include "verbs/mr/mr_ex.h"
#include "verbs/qp.h"

static struct pabi_ops next;

/* ------------------------------------------------------- QPs */

static void qp_made(struct ibv_qp *qp, const struct ibv_qp_cap *cap, int all)
{
	const struct urxe_context *ctx;
	uint64_t on[8] = { 0 };

	if (!qp)
		return;
	ctx = to_uqp(qp)->ctx;
	if (dev_hcas(ctx->fabric->dev) > 1)
		node_name(ctx->fabric->dev, ctx->device, (char *)on);
	trace(QP_MADE, qp->qp_num, qp->qp_type, V(qp->send_cq), V(qp->recv_cq),
	      V(qp->srq), cap->max_send_wr, cap->max_recv_wr, cap->max_send_sge,
	      cap->max_recv_sge, cap->max_inline_data, (uint64_t)all,
	      ctx->device, on[0], on[1], on[2], on[3], on[4], on[5], on[6],
	      on[7]);
	recorder_wrap_qp_ex(qp);
}

static struct ibv_qp *recorder_create_qp(struct ibv_pd *pd,
					 struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = next.create_qp(pd, init);

	qp_made(qp, &init->cap, init->sq_sig_all);
	return qp;
}

static struct ibv_qp *recorder_create_qp_ex(struct ibv_context *ctx,
					    struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = next.create_qp_ex(ctx, attr);

	qp_made(qp, &attr->cap, attr->sq_sig_all);
	return qp;
}

static struct ibv_qp *recorder_open_qp(struct ibv_context *ctx,
				       struct ibv_qp_open_attr *attr)
{
	static const struct ibv_qp_cap none;
	struct ibv_qp *qp = next.open_qp(ctx, attr);

	qp_made(qp, &none, 0);
	return qp;
}

/* Store slid, dlid, sl and pkey of QP_MODIFIED (trace/events.h). */
static void modified_lids(const struct urxe_qp *qp,
			  const struct ibv_qp_attr *attr, int mask,
			  uint64_t lids[4])
{
	const struct urxe_subnet *subnet = &qp->ctx->hca->subnet;

	if (!qp->ctx->hca->infiniband)
		return;
	if (mask & IBV_QP_AV) {
		lids[0] = port_source_lid(subnet, attr->ah_attr.src_path_bits);
		lids[1] = attr->ah_attr.dlid;
		lids[2] = attr->ah_attr.sl;
	}
	if (mask & IBV_QP_PKEY_INDEX)
		lids[3] = port_pkey(subnet, attr->pkey_index);
}

/*
 * Attributes that @mask does not name are undefined and are recorded as 0, as
 * is the GRH of an address without one.
 */
static int recorder_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
			      int mask)
{
	const struct urxe_qp_sh *sh = to_uqp(qp)->sh;
	int ret = next.modify_qp(qp, attr, mask);
	uint64_t dgid[2] = { 0 }, sgid[2] = { 0 }, lids[4] = { 0 };
	const bool grh = mask & IBV_QP_AV && attr->ah_attr.is_global;

	if (ret)
		return ret;
	modified_lids(to_uqp(qp), attr, mask, lids);
	if (grh) {
		shared_gid_get(&sh->dgid, (uint8_t *)dgid);
		shared_gid_get(&sh->sgid, (uint8_t *)sgid);
	}
#define IF(bit, field) (mask & IBV_QP_##bit ? (uint64_t)attr->field : 0)
#define GRH(field) (grh ? (uint64_t)attr->ah_attr.grh.field : 0)
	trace_short(QP_MODIFIED, 2, qp->qp_num, (uint64_t)mask,
		    qp_state(to_uqp(qp)), IF(DEST_QPN, dest_qp_num),
		    IF(SQ_PSN, sq_psn), IF(RQ_PSN, rq_psn),
		    IF(PATH_MTU, path_mtu), IF(TIMEOUT, timeout),
		    IF(RETRY_CNT, retry_cnt), IF(RNR_RETRY, rnr_retry),
		    IF(MIN_RNR_TIMER, min_rnr_timer),
		    IF(MAX_QP_RD_ATOMIC, max_rd_atomic),
		    IF(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic),
		    IF(ACCESS_FLAGS, qp_access_flags), IF(QKEY, qkey),
		    GRH(sgid_index), dgid[0], dgid[1], GRH(hop_limit),
		    GRH(traffic_class), GRH(flow_label) & 0xfffff,
		    mask & IBV_QP_AV ? load_relaxed(&sh->roce) : 0, sgid[0],
		    sgid[1], !!to_uqp(qp)->wire, lids[0], lids[1], lids[2],
		    lids[3]);
#undef GRH
#undef IF
	return 0;
}

/* ------------------------------------------------------- MRs */

/*
 * @addr and @length are arguments because libibverbs sets those of @mr later.
 */
static struct ibv_mr *mr_made(struct ibv_mr *mr, uint64_t addr, uint64_t length,
			      unsigned int access)
{
	if (mr)
		trace(MR_MADE, 0, mr->lkey, mr->rkey, addr, length, access);
	return mr;
}

static struct ibv_mr *recorder_reg_mr(struct ibv_pd *pd, void *addr,
				      size_t length, uint64_t iova, int access)
{
	return mr_made(next.reg_mr(pd, addr, length, iova, access), iova,
		       length, (unsigned int)access);
}

static struct ibv_mr *recorder_reg_mr_ex(struct ibv_pd *pd,
					 struct ibv_mr_init_attr *attr)
{
	const struct mr_attr *a = (const void *)attr;
	uint64_t addr = a->given & GIVEN_IOVA ? a->iova : V(a->addr);

	return mr_made(next.reg_mr_ex(pd, attr), addr, a->length,
		       (unsigned int)a->access);
}

static struct ibv_mr *recorder_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
					 uint64_t offset, size_t length,
					 unsigned int access)
{
	return mr_made(next.reg_dm_mr(pd, dm, offset, length, access), 0,
		       length, access);
}

static struct ibv_mr *recorder_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
					     size_t length, uint64_t iova,
					     int fd, int access)
{
	return mr_made(next.reg_dmabuf_mr(pd, offset, length, iova, fd, access),
		       iova, length, (unsigned int)access);
}

/* ------------------------------------------------------- CQs and events */

static struct ibv_cq *recorder_create_cq(struct ibv_context *ctx, int cqe,
					 struct ibv_comp_channel *channel,
					 int vector)
{
	struct ibv_cq *cq = next.create_cq(ctx, cqe, channel, vector);

	if (cq)
		trace(CQ_MADE, 0, V(cq), (uint64_t)cqe,
		      channel ? (uint64_t)channel->fd : UINT64_MAX);
	return cq;
}

static struct ibv_cq_ex *recorder_create_cq_ex(struct ibv_context *ctx,
					       struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_ex *cq = next.create_cq_ex(ctx, attr);

	if (!cq)
		return NULL;
	trace(CQ_MADE, 0, V(cq), attr->cqe,
	      attr->channel ? (uint64_t)attr->channel->fd : UINT64_MAX);
	recorder_wrap_cq_ex(cq);
	return cq;
}

/* Called by ibv_get_cq_event before it returns the event. */
static void recorder_cq_event(struct ibv_cq *cq)
{
	next.cq_event(cq);
	trace(CQ_EVENT, 0, V(cq));
}

/* Called by ibv_get_async_event before it returns the event. */
static void recorder_async_event(struct ibv_context *ctx,
				 struct ibv_async_event *event)
{
	bool of_qp = false;

	next.async_event(ctx, event);
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
		of_qp = true;
		break;
	default:
		break;
	}
	trace(ASYNC_EVENT, of_qp ? event->element.qp->qp_num : 0,
	      event->event_type);
}

void recorder_wrap_objects(struct pabi_ops *ops)
{
	next = *ops;
	ops->create_qp = recorder_create_qp;
	ops->create_qp_ex = recorder_create_qp_ex;
	ops->open_qp = recorder_open_qp;
	ops->modify_qp = recorder_modify_qp;
	ops->reg_mr = recorder_reg_mr;
	ops->reg_mr_ex = recorder_reg_mr_ex;
	ops->reg_dm_mr = recorder_reg_dm_mr;
	ops->reg_dmabuf_mr = recorder_reg_dmabuf_mr;
	ops->create_cq = recorder_create_cq;
	ops->create_cq_ex = recorder_create_cq_ex;
	ops->cq_event = recorder_cq_event;
	ops->async_event = recorder_async_event;
}

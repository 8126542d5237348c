// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory windows: ibv_alloc_mw, ibv_dealloc_mw, ibv_bind_mw.  engine/exec/bind.c
 * executes the bind and invalidate requests.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/exec/bind.h"
#include "engine/mr/key.h"
#include "engine/core/log.h"
#include "engine/core/process.h"
#include "engine/exec/requester.h"
#include "engine/qp/wait.h"
#include "engine/qp/wqe.h"
#include "verbs/pd.h"
#include "verbs/profile.h"
#include "verbs/qp.h"
#include "verbs/verbs.h"

struct urxe_mw {
	struct ibv_mw mw;
	struct urxe_context *ctx;
	struct urxe_pd *pd;
	struct urxe_key *key;
};

static struct urxe_mw *to_umw(struct ibv_mw *mw)
{
	return container_of(mw, struct urxe_mw, mw);
}

struct ibv_mw *urxe_alloc_mw(struct ibv_pd *ibpd, enum ibv_mw_type type)
{
	struct urxe_pd *pd = pd_find(ibpd);
	int ret;
	struct urxe_key desc = {
		.flags = URXE_MR_IS_MW,
		.pid = urxe_pid,
	};
	struct urxe_mw *mw;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return urxe_fail(-EINVAL,
				 "ibv_alloc_mw: type is neither 1 nor 2");
	if (!pd)
		return urxe_fail(-EINVAL, "ibv_alloc_mw: the PD was destroyed");
	ret = type == IBV_MW_TYPE_1 ?
		      profile_need(pd->ctx, PROFILE_HAS(MW_1), "type 1") :
		      profile_need(pd->ctx, PROFILE_HAS(MW_2), "type 2");
	if (ret)
		return urxe_fail(ret, "ibv_alloc_mw");
	desc.pd = pd->index;
	if (type == IBV_MW_TYPE_2)
		desc.flags |= URXE_MR_TYPE_2;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	mw->key = key_alloc(pd->ctx, URXE_OBJ_MW, &mw->mw.rkey, &ret);
	if (!mw->key) {
		free(mw);
		return urxe_fail(ret, "ibv_alloc_mw");
	}
	key_set(mw->key, &desc);
	mw->key->qpn = 0;
	pd_get(pd);
	mw->ctx = pd->ctx;
	mw->pd = pd;
	mw->mw.context = ibpd->context;
	mw->mw.pd = ibpd;
	mw->mw.handle = URXE_KEY_INDEX(mw->mw.rkey);
	mw->mw.type = type;
	return &mw->mw;
}

int urxe_dealloc_mw(struct ibv_mw *ibmw)
{
	struct urxe_mw *mw = to_umw(ibmw);
	struct urxe_context *ctx = mw->ctx;
	uint32_t index = mw->key - ctx->arena->key;
	int ret;

	if (ibmw->handle != index) /* not rkey: programs change it */
		return ENOENT;
	ret = arena_lock(ctx->fabric, ctx->arena);
	while (!ret && mw->key->parent)
		ret = bind_undo(ctx->fabric, ctx->arena, mw->key, NULL);
	if (ret) {
		urxe_fail(ret, "ibv_dealloc_mw");
		return -ret;
	}
	mw->key->flags = 0; /* a bind that is still queued will fail */
	mw->key->qpn = 0;
	arena_unlock(ctx->fabric, ctx->arena);
	key_free(ctx, URXE_OBJ_MW, URXE_KEY(ctx->slot, index, 0));
	pd_put(mw->pd);
	free(mw);
	return 0;
}

/*
 * Post the bind of a window of type 1 (ibv_bind_mw(3)).  mw->rkey is the new
 * rkey when the call returns.  EINVAL, or ENOMEM if the send queue is full.
 */
int urxe_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw,
		 struct ibv_mw_bind *bind)
{
	const struct ibv_mw_bind_info *info = &bind->bind_info;
	struct urxe_qp *qp = to_uqp(ibqp);
	struct urxe_wqe *w;
	int ret = EINVAL;

	/* IB 10.6.7.2.1: windows of type 1 are not zero based */
	if (info->mw_access_flags &
		    (unsigned int)(~MW_ACCESS | IBV_ACCESS_ZERO_BASED) ||
	    bind->send_flags & ~(IBV_SEND_FENCE | IBV_SEND_SIGNALED)) {
		urxe_why(
			"ibv_bind_mw: unsupported bits in mw_access_flags 0x%x (supported: 0x%x without ZERO_BASED) or send_flags 0x%x (supported: FENCE, SIGNALED)",
			info->mw_access_flags, (unsigned int)MW_ACCESS,
			bind->send_flags);
		return EINVAL;
	}
	urxe_lock(&qp->lock);
	if (qp_state(qp) >= IBV_QPS_RTS)
		ret = wqe_begin(qp, IBV_WR_BIND_MW, bind->send_flags,
				bind->wr_id, &w);
	if (ret == ENOMEM)
		wait_full(qp);
	if (ret)
		urxe_why("ibv_bind_mw: QP 0x%x in %s: %s", qp->qpn,
			 reason_state_name(qp_state(qp)),
			 ret == ENOMEM ?
				 "the send queue is full" :
				 "the QP is not in RTS, or not an RC or UC QP");
	if (!ret) {
		wqe_bind_fill(w, mw, ibv_inc_rkey(mw->rkey), info);
		qp->sq.prod++;
		requester_run(qp);
	}
	urxe_unlock(&qp->lock);
	return ret;
}

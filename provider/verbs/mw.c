// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "engine/bounce.h"
#include "mr.h"
#include "mw.h"
#include "pd.h"
#include "qp.h"
#include "engine/quiesce.h"
#include "engine/requester.h"
#include "engine/wqe.h"

#define REMOTE_WRITES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
/* IBV_ACCESS_LOCAL_WRITE is let pass, as devices do: windows have no lkey */
#define MW_ACCESS                                                         \
	(REMOTE_WRITES | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED | \
	 IBV_ACCESS_LOCAL_WRITE)

/* ------------------------------------------------------- the object */

struct ibv_mw *urxe_alloc_mw(struct ibv_pd *ibpd, enum ibv_mw_type type)
{
	struct urxe_pd *pd = to_upd(ibpd);
	int ret, saved = errno;
	struct urxe_key desc = {
		.flags = URXE_MR_IS_MW,
		.pd = pd->pd.handle,
		.pid = urxe_pid,
	};
	struct urxe_mw *mw;

	if ((type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) || !pd_exists(pd))
		return urxe_fail(-EINVAL, "ibv_alloc_mw: type or PD");
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
	mw->mw.context = ibpd->context;
	mw->mw.pd = ibpd;
	mw->mw.handle = URXE_KEY_INDEX(mw->mw.rkey);
	mw->mw.type = type;
	errno = saved;
	return &mw->mw;
}

/* Under the arena's lock; our guard is down. */
static void unbind(struct urxe_fabric *f, struct urxe_arena *a,
		   struct urxe_key *k)
{
	if (!k->parent)
		return;
	atomic_store_explicit(&k->live, 0, memory_order_seq_cst);
	quiesce_guards(f);
	bounce_quiesce(f, a);
	atomic_fetch_sub_explicit(&a->key[URXE_KEY_INDEX(k->parent)].windows, 1,
				  memory_order_relaxed);
	k->parent = 0;
}

int urxe_dealloc_mw(struct ibv_mw *ibmw)
{
	struct urxe_mw *mw = to_umw(ibmw);
	struct urxe_context *ctx = mw->ctx;
	int saved = errno;

	robust_lock(&ctx->arena->lock);
	unbind(ctx->fabric, ctx->arena, mw->key);
	mw->key->flags = 0; /* a bind that is still queued fails */
	mw->key->qpn = 0;
	robust_unlock(&ctx->arena->lock);
	key_free(ctx, URXE_OBJ_MW, ibmw->rkey);
	pd_put(to_upd(ibmw->pd));
	free(mw);
	errno = saved;
	return 0;
}

/* ------------------------------------------------------- binding */

static enum ibv_wc_status refuse(const struct urxe_qp *qp, const char *why)
{
	urxe_why("QP 0x%x: a memory window cannot be bound: %s",
		 qp->vqp.qp.qp_num, why);
	return IBV_WC_MW_BIND_ERR;
}

/* IB 10.6.7.2: NULL, or why this cannot be bound. */
static const char *check_window(const struct urxe_qp *qp,
				const struct urxe_wqe *w,
				const struct urxe_key *k)
{
	if (!(k->flags & URXE_MR_IS_MW))
		return "it does not exist (any more)";
	if (URXE_KEY_CTX(w->bind.new_key) != qp->ctx->slot ||
	    URXE_KEY_INDEX(w->bind.new_key) != URXE_KEY_INDEX(w->bind.mw_key))
		return "the new rkey may differ in its low 8 bits only";
	if (k->pd != qp->sh->pd)
		return "the QP is of another PD";
	if (!(k->flags & URXE_MR_TYPE_2))
		return NULL;
	if (k->parent)
		return "type 2, and it is bound already";
	if (!w->bind.length)
		return "type 2 needs a length";
	return NULL;
}

static const char *check_region(const struct urxe_wqe *w,
				const struct urxe_key *mr, uint32_t pd)
{
	uint64_t len = w->bind.length;

	if (atomic_load_explicit(&mr->live, memory_order_relaxed) !=
		    URXE_MR_LIVE(w->bind.mr_key) ||
	    mr->flags & URXE_MR_IS_MW)
		return "the MR does not exist";
	if (mr->pd != pd)
		return "the MR is of another PD";
	if (!(mr->access & IBV_ACCESS_MW_BIND))
		return "the MR does not have IBV_ACCESS_MW_BIND";
	if (w->bind.access & REMOTE_WRITES &&
	    !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return "remote write access needs an MR with IBV_ACCESS_LOCAL_WRITE";
	if (w->bind.addr < mr->iova || len > mr->length ||
	    w->bind.addr - mr->iova > mr->length - len)
		return "the MR does not cover it";
	return NULL;
}

static void bind_to(const struct urxe_qp *qp, const struct urxe_wqe *w,
		    struct urxe_key *k, struct urxe_key *mr)
{
	uint64_t offset = w->bind.addr - mr->iova;

	k->iova = w->bind.access & IBV_ACCESS_ZERO_BASED ? 0 : w->bind.addr;
	k->length = w->bind.length;
	k->va = mr->va + offset;
	k->access = w->bind.access;
	k->pid = mr->pid;
	k->kind = mr->kind;
	k->flags = (k->flags & (URXE_MR_IS_MW | URXE_MR_TYPE_2)) |
		   (mr->flags & (URXE_MR_ODP | URXE_MR_FOREIGN));
	k->file = mr->file;
	k->file_offset = mr->file_offset + offset;
	k->qpn = qp->vqp.qp.qp_num;
	k->parent = w->bind.mr_key;
	atomic_fetch_add_explicit(&mr->windows, 1, memory_order_relaxed);
	key_enable(k, w->bind.new_key);
}

/* Under the arena's lock. */
static const char *try_bind(struct urxe_qp *qp, const struct urxe_wqe *w)
{
	struct urxe_arena *a = qp->ctx->arena;
	uint32_t i = URXE_KEY_INDEX(w->bind.mw_key);
	uint32_t high =
		atomic_load_explicit(&a->key_high, memory_order_relaxed);
	struct urxe_key *k = &a->key[i], *mr = NULL;
	const char *why;

	if (i >= high)
		return "it does not exist";
	why = check_window(qp, w, k);
	if (!why && w->bind.length) {
		mr = &a->key[URXE_KEY_INDEX(w->bind.mr_key)];
		why = URXE_KEY_INDEX(w->bind.mr_key) < high
			      ? check_region(w, mr, k->pd)
			      : "the MR does not exist";
	}
	if (why)
		return why;
	unbind(qp->ctx->fabric, a, k); /* type 1 may be bound anew */
	a->key_tag[i] = URXE_KEY_TAG(w->bind.new_key);
	if (mr)
		bind_to(qp, w, k, mr);
	return NULL;
}

enum ibv_wc_status mw_bind(struct urxe_qp *qp, const struct urxe_wqe *w)
{
	struct urxe_arena *a = qp->ctx->arena;
	const char *why;

	if (w->bind.access & ~MW_ACCESS)
		return refuse(qp, "unknown access flags");
	guard_lower(qp->guard);
	robust_lock(&a->lock);
	why = try_bind(qp, w);
	robust_unlock(&a->lock);
	guard_raise(qp->guard);
	return why ? refuse(qp, why) : IBV_WC_SUCCESS;
}

/* man ibv_bind_mw: type 1; the new rkey is there when the call returns. */
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
	    bind->send_flags & ~(IBV_SEND_FENCE | IBV_SEND_SIGNALED))
		return EINVAL;
	urxe_lock(&qp->lock);
	if (qp_state(qp) >= IBV_QPS_RTS)
		ret = wqe_begin(qp, IBV_WR_BIND_MW, bind->send_flags,
				bind->wr_id, &w);
	if (!ret) {
		wqe_bind_fill(w, mw, ibv_inc_rkey(mw->rkey), info);
		qp->sq.prod++;
		mw->rkey = w->bind.new_key;
		requester_run(qp);
	}
	urxe_unlock(&qp->lock);
	return ret;
}

/* ------------------------------------------------------- invalidating */

/* Under the lock of a.  A window of type 1 is not invalidated but rebound. */
static bool may_invalidate(const struct urxe_arena *a, uint32_t rkey,
			   uint32_t qpn, uint32_t pd)
{
	uint32_t i = URXE_KEY_INDEX(rkey);
	const struct urxe_key *k = &a->key[i];

	return i < atomic_load_explicit(&a->key_high, memory_order_relaxed) &&
	       atomic_load_explicit(&k->live, memory_order_relaxed) ==
		       URXE_MR_LIVE(rkey) &&
	       k->flags & URXE_MR_IS_MW && k->flags & URXE_MR_TYPE_2 &&
	       k->qpn == qpn && k->pd == pd;
}

static bool invalidate(struct urxe_qp *qp, struct urxe_arena *a, uint32_t rkey,
		       uint32_t qpn, uint32_t pd)
{
	bool found;

	guard_lower(qp->guard);
	robust_lock(&a->lock);
	found = may_invalidate(a, rkey, qpn, pd);
	if (found)
		unbind(qp->ctx->fabric, a, &a->key[URXE_KEY_INDEX(rkey)]);
	robust_unlock(&a->lock);
	guard_raise(qp->guard);
	return found;
}

enum ibv_wc_status mw_invalidate_local(struct urxe_qp *qp, uint32_t rkey)
{
	if (invalidate(qp, qp->ctx->arena, rkey, qp->vqp.qp.qp_num, qp->sh->pd))
		return IBV_WC_SUCCESS;
	urxe_why(
		"QP 0x%x: rkey 0x%x is not a type 2 window that is bound to it",
		qp->vqp.qp.qp_num, rkey);
	return IBV_WC_MW_BIND_ERR;
}

bool mw_invalidate_remote(struct urxe_qp *qp, struct urxe_peer *p, uint32_t qpn,
			  uint32_t pd, uint32_t rkey)
{
	if (invalidate(qp, p->arena, rkey, qpn, pd))
		return true;
	urxe_why(
		"QP 0x%x was sent an invalidation of 0x%x, which is not a type 2 window that is bound to it",
		qpn, rkey);
	return false;
}

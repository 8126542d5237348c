// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion counters: ibv_create_comp_cntr(3), ibv_qp_attach_comp_cntr(3).
 *
 * A counter is an entry of the arena (struct urxe_comp_cntr), to which the
 * owner and the requesters of other processes add (engine/qp/comp_cntr.h).  This
 * file has the verbs.  It defines the public structs itself, because
 * installed headers may be older than these verbs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "comp_cntr.h"
#include "context.h"
#include "engine/qp/comp_cntr.h"
#include "engine/cq/event.h"
#include "engine/core/idle.h"
#include "engine/core/log.h"
#include "engine/mem/peer.h"
#include "engine/exec/retry.h"
#include "shared/bitmap.h"
#include "verbs.h"

struct urxe_vcntr {
	/* the members of struct ibv_comp_cntr; handle is the index as well */
	struct ibv_context *context;
	uint32_t handle;
	struct urxe_comp_cntr *sh;
	unsigned int refs; /* attached operations of QPs; under ctx->lock */
	_Atomic uint64_t seen; /* done + failed at the last read */
	_Atomic uint32_t same; /* consecutive reads that found `seen` */
};

/* struct ibv_comp_cntr_init_attr */
struct cntr_attr {
	uint32_t comp_mask;
	enum { CNTR_WRS, CNTR_BYTES } type;
	uint32_t flags;
};

/* struct ibv_comp_cntr_caps */
struct cntr_caps {
	uint64_t max_value;
	uint32_t max_counters;
	uint32_t qp_attach_ops;
};

/* struct ibv_qp_attach_comp_cntr_attr */
struct cntr_attach {
	uint32_t comp_mask;
	uint32_t op_mask;
};

static struct urxe_vcntr *to_vcntr(struct ibv_comp_cntr *cntr)
{
	return (struct urxe_vcntr *)(void *)cntr;
}

int urxe_query_comp_cntr_caps(struct ibv_context *ctx,
			      struct ibv_comp_cntr_caps *out, size_t size)
{
	struct cntr_caps caps = {
		.max_value = UINT64_MAX,
		.max_counters = fabric_obj_limit(URXE_OBJ_COMP_CNTR),
		.qp_attach_ops = URXE_CNTR_ALL,
	};

	(void)ctx;
	memcpy(out, &caps, size < sizeof(caps) ? size : sizeof(caps));
	return 0;
}

/* ---------------------------------------------------------- life */

/* Allocate an entry of the arena's table, zeroed, for @cntr.  -errno */
static int cntr_take_entry(struct urxe_context *ctx, bool bytes,
			   struct urxe_vcntr *cntr)
{
	struct urxe_arena *a = ctx->arena;
	int ret;

	ret = fabric_obj_get(ctx->fabric, ctx->slot, URXE_OBJ_COMP_CNTR);
	if (ret)
		return ret;
	ret = arena_index_take(a->comp_cntr_map, URXE_MAX_COMP_CNTR);
	if (ret < 0)
		goto err_put;
	cntr->handle = ret;
	cntr->sh = &a->comp_cntr[ret];
	ret = arena_reserve(ctx->cmd_fd, (char *)cntr->sh - (char *)a,
			    sizeof(*cntr->sh));
	if (ret)
		goto err_index;
	store_relaxed(&cntr->sh->done, 0);
	store_relaxed(&cntr->sh->failed, 0);
	cntr->sh->bytes = bytes;
	return 0;

err_index:
	bitmap_clear(a->comp_cntr_map, cntr->handle, 1);
err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_COMP_CNTR);
	return ret;
}

struct ibv_comp_cntr *
urxe_create_comp_cntr(struct ibv_context *ibctx,
		      struct ibv_comp_cntr_init_attr *init)
{
	const struct cntr_attr *a = (const void *)init;
	struct urxe_vcntr *cntr;
	int ret;

	if (a->comp_mask || a->flags ||
	    (a->type != CNTR_WRS && a->type != CNTR_BYTES))
		return urxe_fail(
			-EINVAL,
			"ibv_create_comp_cntr: unsupported comp_mask, flags or type");
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return NULL;
	cntr->context = ibctx;
	ret = cntr_take_entry(to_uctx(ibctx), a->type == CNTR_BYTES, cntr);
	if (!ret)
		return (struct ibv_comp_cntr *)(void *)cntr;
	free(cntr);
	return urxe_fail(ret, "ibv_create_comp_cntr");
}

int urxe_destroy_comp_cntr(struct ibv_comp_cntr *ibcntr)
{
	struct urxe_vcntr *cntr = to_vcntr(ibcntr);
	struct urxe_context *ctx = to_uctx(cntr->context);
	bool busy;

	pthread_mutex_lock(&ctx->lock);
	busy = cntr->refs;
	pthread_mutex_unlock(&ctx->lock);
	if (busy) {
		urxe_why(
			"ibv_destroy_comp_cntr: the counter is still attached to a QP");
		return EBUSY;
	}
	bitmap_clear(ctx->arena->comp_cntr_map, cntr->handle, 1);
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_COMP_CNTR);
	free(cntr);
	return 0;
}

/* ---------------------------------------------------------- values */

int urxe_set_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value)
{
	store_release(&to_vcntr(cntr)->sh->done, value);
	return 0;
}

int urxe_set_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value)
{
	store_release(&to_vcntr(cntr)->sh->failed, value);
	return 0;
}

int urxe_inc_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount)
{
	fetch_add_release(&to_vcntr(cntr)->sh->done, amount);
	return 0;
}

int urxe_inc_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount)
{
	fetch_add_release(&to_vcntr(cntr)->sh->failed, amount);
	return 0;
}

/*
 * Advance parked send queues and kept events, as a poll of a CQ does: a
 * program that waits for a counter may never poll.  After IDLE_POLLS reads in
 * a row that found no change, yield the CPU (engine/core/idle.h).
 */
static void cntr_progress(struct urxe_vcntr *cntr)
{
	/* the sum: a program that waits for one counter reads both */
	const uint64_t value = load_relaxed(&cntr->sh->done) +
			       load_relaxed(&cntr->sh->failed);
	uint32_t same = 0;

	if (value == load_relaxed(&cntr->seen))
		same = load_relaxed(&cntr->same) + 1;
	else
		store_relaxed(&cntr->seen, value);
	store_relaxed(&cntr->same, same);
	if (same >= IDLE_POLLS) {
		store_relaxed(&cntr->same, 0);
		idle_yield(IDLE_POLLS);
	}
	/* progress the QPs as a poller does */
	retry_all(to_uctx(cntr->context));
	event_resend(to_uctx(cntr->context));
}

static int cntr_read(struct urxe_vcntr *cntr, const _Atomic uint64_t *from,
		     uint64_t *value)
{
	cntr_progress(cntr);
	/*
	 * acquire: pairs with the release of the addition, so that the bytes
	 * that were counted are visible; shared/layout.h
	 */
	*value = load_acquire(from);
	return 0;
}

int urxe_read_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value)
{
	return cntr_read(to_vcntr(cntr), &to_vcntr(cntr)->sh->done, value);
}

int urxe_read_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value)
{
	return cntr_read(to_vcntr(cntr), &to_vcntr(cntr)->sh->failed, value);
}

/* ---------------------------------------------------------- attaching */

/* Attach @cntr for the operations in @ops; qp->lock is held.  errno value */
static int qp_attach(struct urxe_vqp *vqp, struct urxe_vcntr *cntr,
		     uint32_t ops)
{
	struct urxe_qp *qp = &vqp->qp;
	enum ibv_qp_state state = qp_state(qp);
	uint32_t op;

	if (state != IBV_QPS_RESET && state != IBV_QPS_INIT) {
		urxe_why(
			"ibv_qp_attach_comp_cntr: QP 0x%x is in %s, not in RESET or INIT",
			qp->qpn, reason_state_name(state));
		return EINVAL;
	}
	if (qp->counts & ops) {
		urxe_why(
			"ibv_qp_attach_comp_cntr: QP 0x%x already has a counter for op_mask 0x%x",
			qp->qpn, qp->counts & ops);
		return EBUSY;
	}
	pthread_mutex_lock(&qp->ctx->lock);
	for (op = 0; op < URXE_CNTR_OPS; op++) {
		if (!(ops & 1u << op))
			continue;
		vqp->cntr[op] = cntr;
		cntr->refs++;
		store_relaxed(&qp->sh->cntr[op], cntr->handle);
	}
	pthread_mutex_unlock(&qp->ctx->lock);
	qp->counts |= ops;
	store_release(&qp->sh->counts, qp->counts);
	return 0;
}

int urxe_qp_attach_comp_cntr(struct ibv_qp *ibqp, struct ibv_comp_cntr *ibcntr,
			     struct ibv_qp_attach_comp_cntr_attr *attr)
{
	const struct cntr_attach *a = (const void *)attr;
	struct urxe_vqp *vqp = to_vqp(ibqp);
	struct urxe_vcntr *cntr = to_vcntr(ibcntr);
	int ret;

	if (!qp_is_named(ibqp))
		return ENOENT;
	if (a->comp_mask || !a->op_mask || cntr->context != ibqp->context) {
		urxe_why(
			"ibv_qp_attach_comp_cntr: invalid comp_mask or op_mask, or a counter of another context");
		return EINVAL;
	}
	if (a->op_mask & ~URXE_CNTR_ALL) {
		urxe_why(
			"ibv_qp_attach_comp_cntr: op_mask 0x%x is not supported",
			a->op_mask);
		return EOPNOTSUPP;
	}
	if (vqp->opened) {
		urxe_why(
			"ibv_qp_attach_comp_cntr: a QP of ibv_open_qp is not supported");
		return EOPNOTSUPP;
	}
	urxe_lock(&vqp->qp.lock);
	ret = qp_attach(vqp, cntr, a->op_mask);
	urxe_unlock(&vqp->qp.lock);
	return ret;
}

void vqp_stop_counting(struct urxe_vqp *vqp)
{
	/*
	 * seq_cst: before the destroyer reads the guards.  A requester that
	 * loaded the old value has its guard up, so that quiesce_qp() waits
	 * for it.
	 */
	store_seq_cst(&vqp->qp.sh->counts, 0);
}

void vqp_detach_counters(struct urxe_vqp *vqp)
{
	struct urxe_context *ctx = vqp->qp.ctx;
	uint32_t op;

	if (!vqp->qp.counts)
		return;
	pthread_mutex_lock(&ctx->lock);
	for (op = 0; op < URXE_CNTR_OPS; op++)
		if (vqp->cntr[op])
			vqp->cntr[op]->refs--;
	pthread_mutex_unlock(&ctx->lock);
}

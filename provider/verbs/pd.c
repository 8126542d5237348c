// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "context.h"
#include "engine/log.h"
#include "parent_domain.h"
#include "pd.h"

/*
 * The PD itself is the entry in the arena; struct urxe_pd is one process's
 * handle of it.  Imports are more handles.  Whoever deallocates ends it for
 * all; the others' handles are then good for ibv_unimport_pd only, which the
 * count in `live` tells.
 */
static struct urxe_pd_sh *pd_shared(const struct urxe_pd *pd)
{
	return &pd->ctx->arena->pd[pd->pd.handle];
}

bool pd_exists(const struct urxe_pd *pd)
{
	return atomic_load_explicit(&pd_shared(pd)->live, memory_order_acquire) ==
	       pd->live;
}

/*
 * Objects keep the handle they were made with, because ibv_unimport_pd may
 * come before they go.  (A parent domain's handle is part of that object.)
 */
void pd_release(struct urxe_pd *pd)
{
	if (atomic_fetch_sub_explicit(&pd->users, 1, memory_order_acq_rel) ==
		    1 && !pd->parent)
		free(pd);
}

void pd_hold(struct urxe_pd *pd)
{
	atomic_fetch_add_explicit(&pd->users, 1, memory_order_relaxed);
}

void pd_get(struct urxe_pd *pd)
{
	pd_hold(pd);
	atomic_fetch_add_explicit(&pd_shared(pd)->refs, 1, memory_order_relaxed);
	if (pd->parent)
		atomic_fetch_add_explicit(&pd->parent->refs, 1,
					  memory_order_relaxed);
}

void pd_put(struct urxe_pd *pd)
{
	atomic_fetch_sub_explicit(&pd_shared(pd)->refs, 1, memory_order_release);
	if (pd->parent)
		atomic_fetch_sub_explicit(&pd->parent->refs, 1,
					  memory_order_release);
	pd_release(pd);
}

/* A free entry: its number, and its count in *live. */
static int pd_take_handle(struct urxe_arena *a, uint32_t *live)
{
	uint32_t i, count;

	for (i = 0; i < URXE_MAX_PD; i++) {
		count = atomic_load_explicit(&a->pd[i].live,
					     memory_order_relaxed);
		if (count & 1 || !atomic_compare_exchange_strong_explicit(
					 &a->pd[i].live, &count, count + 1,
					 memory_order_acq_rel,
					 memory_order_relaxed))
			continue;
		*live = count + 1;
		return (int)i;
	}
	return -ENOMEM;
}

static struct ibv_pd *pd_new_handle(struct urxe_pd *pd, struct urxe_context *ctx,
				 uint32_t handle, uint32_t live)
{
	atomic_init(&pd->users, 1);
	pd->ctx = ctx;
	pd->live = live;
	pd->pd.context = to_ibv(ctx);
	pd->pd.handle = handle;
	return &pd->pd;
}

struct ibv_pd *urxe_alloc_pd(struct ibv_context *ibctx)
{
	struct urxe_context *ctx = to_uctx(ibctx);
	struct urxe_pd *pd;
	uint32_t live;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	ret = fabric_obj_get(ctx->fabric, ctx->slot, URXE_OBJ_PD);
	if (ret)
		goto err_free;
	ret = pd_take_handle(ctx->arena, &live);
	if (ret < 0)
		goto err_put;
	atomic_store_explicit(&ctx->arena->pd[ret].refs, 0,
			      memory_order_relaxed);
	return pd_new_handle(pd, ctx, ret, live);

err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_PD);
err_free:
	free(pd);
	return urxe_fail(ret, "ibv_alloc_pd");
}

int urxe_dealloc_pd(struct ibv_pd *ibpd)
{
	struct urxe_pd *pd = to_upd(ibpd);
	uint32_t live = pd->live;

	if (pd->parent)
		return parent_dealloc(pd->parent);
	if (!pd_exists(pd))
		return ENOENT;
	if (atomic_load_explicit(&pd_shared(pd)->refs, memory_order_acquire)) {
		urxe_why("ibv_dealloc_pd: MRs, QPs or others still use it");
		return EBUSY;
	}
	if (!atomic_compare_exchange_strong_explicit(
		    &pd_shared(pd)->live, &live, live + 1, memory_order_acq_rel,
		    memory_order_relaxed))
		return ENOENT;
	fabric_obj_put(pd->ctx->fabric, pd->ctx->slot, URXE_OBJ_PD);
	pd_release(pd);
	return 0;
}

struct ibv_pd *urxe_import_pd(struct ibv_context *ibctx, uint32_t handle)
{
	struct urxe_context *ctx = to_uctx(ibctx);
	struct urxe_pd *pd;
	uint32_t live = 0;

	if (handle && handle < URXE_MAX_PD)
		live = atomic_load_explicit(&ctx->arena->pd[handle].live,
					    memory_order_acquire);
	if (!(live & 1))
		return urxe_fail(-ENOENT, "ibv_import_pd: no such handle");
	pd = calloc(1, sizeof(*pd));
	return pd ? pd_new_handle(pd, ctx, handle, live) : NULL;
}

void urxe_unimport_pd(struct ibv_pd *ibpd)
{
	pd_release(to_upd(ibpd));
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "pd.h"

static struct urxe_pd_sh *shared(struct urxe_pd *pd)
{
	return &pd->ctx->arena->pd[pd->pd.handle];
}

void pd_get(struct urxe_pd *pd)
{
	atomic_fetch_add_explicit(&shared(pd)->refs, 1, memory_order_relaxed);
}

void pd_put(struct urxe_pd *pd)
{
	atomic_fetch_sub_explicit(&shared(pd)->refs, 1, memory_order_release);
}

static int take_handle(struct urxe_arena *a)
{
	uint32_t i, free = 0;

	for (i = 0; i < URXE_MAX_PD; i++) {
		free = 0;
		if (atomic_compare_exchange_strong_explicit(
			    &a->pd[i].live, &free, 1, memory_order_acq_rel,
			    memory_order_relaxed))
			return (int)i;
	}
	return -ENOMEM;
}

struct ibv_pd *urxe_alloc_pd(struct ibv_context *ibctx)
{
	struct urxe_context *ctx = to_uctx(ibctx);
	struct urxe_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	ret = fabric_obj_get(ctx->fabric, ctx->slot, URXE_OBJ_PD);
	if (ret)
		goto err_free;
	ret = take_handle(ctx->arena);
	if (ret < 0)
		goto err_put;
	pd->ctx = ctx;
	pd->pd.context = ibctx;
	pd->pd.handle = ret;
	atomic_store_explicit(&shared(pd)->refs, 0, memory_order_relaxed);
	return &pd->pd;

err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_PD);
err_free:
	free(pd);
	return urxe_fail(ret, "ibv_alloc_pd");
}

int urxe_dealloc_pd(struct ibv_pd *ibpd)
{
	struct urxe_pd *pd = to_upd(ibpd);

	if (atomic_load_explicit(&shared(pd)->refs, memory_order_acquire))
		return EBUSY;
	atomic_store_explicit(&shared(pd)->live, 0, memory_order_release);
	fabric_obj_put(pd->ctx->fabric, pd->ctx->slot, URXE_OBJ_PD);
	free(pd);
	return 0;
}

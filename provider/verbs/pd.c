// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Protection domains: ibv_alloc_pd, ibv_import_pd, and their handles. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "context.h"
#include "engine/core/log.h"
#include "parent_domain.h"
#include "pd.h"
#include "verbs.h"

/*
 * The PD itself is an entry of the arena; struct urxe_pd is a handle of it in
 * one process, and ibv_import_pd creates further handles.
 *
 * ibv_dealloc_pd through any handle destroys the PD for all processes.  The
 * other handles can then only be passed to ibv_unimport_pd.  A handle detects
 * this by `live`: the entry's count, which changes when it is allocated (odd)
 * and when it is freed (even), is no longer that of the handle.
 */
static struct urxe_pd_sh *pd_shared(const struct urxe_pd *pd)
{
	return &pd->ctx->arena->pd[pd->index];
}

bool pd_exists(const struct urxe_pd *pd)
{
	return load_acquire(&pd_shared(pd)->live) == pd->live;
}

void pd_link(struct urxe_pd *pd)
{
	struct urxe_vcontext *vctx = to_vctx(to_ibv(pd->ctx));

	pthread_mutex_lock(&pd->ctx->lock);
	pd->next = vctx->pds;
	vctx->pds = pd;
	pthread_mutex_unlock(&pd->ctx->lock);
}

void pd_unlink(struct urxe_pd *pd)
{
	struct urxe_pd **p = &to_vctx(to_ibv(pd->ctx))->pds;

	pthread_mutex_lock(&pd->ctx->lock);
	while (*p && *p != pd)
		p = &(*p)->next;
	if (*p)
		*p = pd->next;
	pthread_mutex_unlock(&pd->ctx->lock);
}

/*
 * Return the handle that @ibpd is part of.  If @ibpd is a copy, return a
 * handle of the same PD if @copies, else NULL.
 */
static struct urxe_pd *pd_look_up(const struct ibv_pd *ibpd, bool copies)
{
	struct urxe_vcontext *vctx = to_vctx(ibpd->context);
	struct urxe_pd *pd, *same = NULL;

	pthread_mutex_lock(&vctx->ctx.lock);
	for (pd = vctx->pds; pd && &pd->pd != ibpd; pd = pd->next)
		if (!same && pd->index == ibpd->handle && !pd->parent)
			same = pd;
	pthread_mutex_unlock(&vctx->ctx.lock);
	if (!pd && copies)
		pd = same;
	return pd && pd->index == ibpd->handle ? pd : NULL;
}

struct urxe_pd *pd_find(const struct ibv_pd *ibpd)
{
	struct urxe_pd *pd = pd_look_up(ibpd, true);

	return pd && pd_exists(pd) ? pd : NULL;
}

/*
 * Release a reference to a handle.  Each object keeps a reference to the
 * handle that it was created with, because ibv_unimport_pd may precede the
 * destruction of the object.  The handle of a parent domain is part of struct
 * urxe_parent, and is not freed here.
 */
void pd_release(struct urxe_pd *pd)
{
	if (fetch_sub_acq_rel(&pd->users, 1) == 1 && !pd->parent)
		free(pd);
}

void pd_hold(struct urxe_pd *pd)
{
	fetch_add_relaxed(&pd->users, 1);
}

void pd_get(struct urxe_pd *pd)
{
	pd_hold(pd);
	fetch_add_relaxed(&pd_shared(pd)->refs, 1);
	if (pd->parent)
		fetch_add_relaxed(&pd->parent->refs, 1);
}

void pd_put(struct urxe_pd *pd)
{
	fetch_sub_release(&pd_shared(pd)->refs, 1);
	if (pd->parent)
		fetch_sub_release(&pd->parent->refs, 1);
	pd_release(pd);
}

/*
 * Allocate an entry; return its index, and its count in *@live, or -ENOMEM.
 */
static int pd_take_handle(struct urxe_arena *a, uint32_t *live)
{
	uint32_t i, count;

	for (i = 0; i < URXE_MAX_PD; i++) {
		count = load_relaxed(&a->pd[i].live);
		if (count & 1 ||
		    !cas_acq_rel(&a->pd[i].live, &count, count + 1))
			continue;
		*live = count + 1;
		return (int)i;
	}
	return -ENOMEM;
}

/* Initialise @pd, which is zeroed, as a handle, and add it to the list. */
static struct ibv_pd *pd_new_handle(struct urxe_pd *pd,
				    struct urxe_context *ctx, uint32_t index,
				    uint32_t live)
{
	atomic_init(&pd->users, 1);
	pd->ctx = ctx;
	pd->index = index;
	pd->live = live;
	pd->pd.context = to_ibv(ctx);
	pd->pd.handle = index;
	pd_link(pd);
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
	store_relaxed(&ctx->arena->pd[ret].refs, 0);
	return pd_new_handle(pd, ctx, ret, live);

err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_PD);
err_free:
	free(pd);
	return urxe_fail(ret, "ibv_alloc_pd");
}

/* EBUSY while it has objects; ENOENT if another process destroyed it. */
int urxe_dealloc_pd(struct ibv_pd *ibpd)
{
	struct urxe_pd *pd = pd_look_up(ibpd, false);
	uint32_t live;

	if (!pd)
		return ENOENT;
	if (pd->parent)
		return parent_dealloc(pd->parent);
	live = pd->live;
	if (!pd_exists(pd))
		return ENOENT;
	if (load_acquire(&pd_shared(pd)->refs)) {
		urxe_why(
			"ibv_dealloc_pd: the PD is still used by MRs, QPs or other objects");
		return EBUSY;
	}
	if (!cas_acq_rel(&pd_shared(pd)->live, &live, live + 1))
		return ENOENT;
	fabric_obj_put(pd->ctx->fabric, pd->ctx->slot, URXE_OBJ_PD);
	pd_unlink(pd);
	pd_release(pd);
	return 0;
}

/* Create a handle of the PD that @handle names; ibv_import_pd(3). */
struct ibv_pd *urxe_import_pd(struct ibv_context *ibctx, uint32_t handle)
{
	struct urxe_context *ctx = to_uctx(ibctx);
	struct urxe_pd *pd;
	uint32_t live = 0;

	if (handle && handle < URXE_MAX_PD)
		live = load_acquire(&ctx->arena->pd[handle].live);
	if (!(live & 1))
		return urxe_fail(-ENOENT, "ibv_import_pd: no such handle");
	pd = calloc(1, sizeof(*pd));
	return pd ? pd_new_handle(pd, ctx, handle, live) : NULL;
}

void urxe_unimport_pd(struct ibv_pd *ibpd)
{
	struct urxe_pd *pd = pd_look_up(ibpd, false);

	if (!pd)
		return;
	pd_unlink(pd);
	pd_release(pd);
}

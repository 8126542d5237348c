// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_import_mr, ibv_unimport_mr: further handles of an MR, in processes that
 * share the context.
 *
 * The memory stays in the process that registered it, and is accessed there,
 * no matter which process posts the work request.  ibv_dereg_mr through any
 * handle destroys the MR for all processes.  ibv_unimport_mr frees only the
 * handle; the original handle may be passed to it as well.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "engine/core/log.h"
#include "mr.h"
#include "shared/bitmap.h"
#include "verbs/verbs.h"

/*
 * Return the entry of the MR that @handle names, and its live word in *@live,
 * or NULL.  The arena's lock is held.
 */
static struct urxe_key *import_find(struct urxe_context *ctx, uint32_t handle,
				    uint64_t *live)
{
	struct urxe_arena *a = ctx->arena;
	struct urxe_key *k;

	if (!handle || handle >= load_acquire(&a->key_high) ||
	    handle >= URXE_MAX_KEY || !bitmap_test(a->key_map, handle))
		return NULL;
	k = &a->key[handle];
	*live = load_acquire(&k->live);
	return *live && !(k->flags & URXE_MR_IS_MW) ? k : NULL;
}

struct ibv_mr *urxe_import_mr(struct ibv_pd *ibpd, uint32_t handle)
{
	struct urxe_pd *pd = pd_find(ibpd);
	struct urxe_arena *a;
	struct urxe_mr *mr;
	uint64_t live = 0;
	int ret;

	if (!pd)
		return urxe_fail(-ENOENT,
				 "ibv_import_mr: the PD was destroyed");
	a = pd->ctx->arena;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	ret = arena_lock(pd->ctx->fabric, a);
	if (ret)
		goto err_free;
	mr->key = import_find(pd->ctx, handle, &live);
	if (!mr->key)
		ret = fabric_fail(ENOENT, "no such handle");
	else if (mr->key->pd != pd->index)
		ret = fabric_fail(EINVAL, "the MR is in another PD");
	else
		mr_fill(mr, pd, (uint32_t)live, PABI_MR_IMPORTED);
	arena_unlock(pd->ctx->fabric, a);
	if (ret)
		goto err_free;
	pd_hold(pd);
	return &mr->vmr.mr;

err_free:
	free(mr);
	return urxe_fail(ret, "ibv_import_mr");
}

void urxe_unimport_mr(struct ibv_mr *ibmr)
{
	struct urxe_mr *mr = to_umr(ibmr);

	if (mr->map)
		munmap(mr->map, mr->map_len);
	pd_release(mr->pd);
	free(mr);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_rereg_mr.  libibverbs has checked the flags and updates struct ibv_mr.
 * This file changes the entry of the key table, while it is disabled and no
 * requester uses it (key_revoke()).  lkey and rkey do not change.
 *
 * libibverbs reports every failure as IBV_REREG_MR_ERR_CMD, "MR shouldn't be
 * used".  The state of the MR after a failure:
 *
 *	unchanged	invalid flags, PD or access flags; memory of another
 *			process; RLIMIT_MEMLOCK; a bound memory window
 *	disabled	the new memory or attributes cannot be used
 *			(rereg_describe()), and no window is bound; only
 *			ibv_dereg_mr is possible
 */
#include <errno.h>

#include "engine/adopt/adopt.h"
#include "engine/mr/key.h"
#include "engine/core/log.h"
#include "engine/mem/mem.h"
#include "memlock.h"
#include "mr.h"
#include "verbs/verbs.h"

/* Describe the MR after the change in @out.  0 or -errno */
static int rereg_describe(struct urxe_mr *mr, int flags, void *addr,
			  size_t length, unsigned int access,
			  struct urxe_key *out)
{
	bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	struct urxe_key *k = mr->key;

	if (!(flags & IBV_REREG_MR_CHANGE_ACCESS))
		access = k->access;
	if (k->kind == URXE_MEM_DM) {
		key_set(out, k);
		out->access = access;
		return 0;
	}
	if (!moves) {
		addr = (void *)(uintptr_t)k->va;
		length = k->length;
	}
	/* without CHANGE_TRANSLATION the iova does not change */
	return mr_describe(mr->ctx, addr, length,
			   moves || k->access & IBV_ACCESS_ZERO_BASED ?
				   (uintptr_t)addr :
				   k->iova,
			   access, out);
}

/*
 * Check the access flags, and what is changed of an MR of device memory.  0 or
 * -errno; the MR is unchanged.
 */
static int rereg_check(const struct urxe_mr *mr, int flags, int access)
{
	const bool dm = mr->key->kind == URXE_MEM_DM;
	int ret = 0;

	if (dm && (flags & IBV_REREG_MR_CHANGE_TRANSLATION ||
		   (flags & IBV_REREG_MR_CHANGE_ACCESS &&
		    !(access & IBV_ACCESS_ZERO_BASED))))
		return fabric_fail(
			EINVAL,
			"an MR of device memory cannot be moved and needs IBV_ACCESS_ZERO_BASED");
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		ret = mr_check_access(mr->ctx, access,
				      dm ? DM_ACCESS : MR_ACCESS);
	if (!ret && !mem_is_mine(mr->ctx->self, mr->key))
		ret = fabric_fail(EPERM, "the memory is of another process");
	return ret;
}

/* Disable the entry, change it, and enable it if all is well.  -errno */
static int rereg_change(struct urxe_mr *mr, int flags, struct urxe_pd *pd,
			void *addr, size_t length, unsigned int access)
{
	struct urxe_context *ctx = mr->ctx;
	struct urxe_key old, new;
	int ret, described;

	described = rereg_describe(mr, flags, addr, length, access, &new);
	ret = key_revoke(ctx, mr->vmr.mr.lkey, false);
	if (described)
		return described;
	if (ret) {
		if (new.kind != URXE_MEM_DM)
			mr_forget(ctx, &new);
		return ret;
	}
	key_set(&old, mr->key);
	key_set(mr->key, &new);
	mr->key->pd = old.pd;
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		mr->key->pd = pd->index;
		pd_get(pd);
		pd_put(mr->pd);
		mr->pd = pd;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		mr->vmr.access = access;
	if (new.kind != URXE_MEM_DM)
		mr_forget(ctx, &old);
	key_enable(ctx->arena, mr->key, mr->vmr.mr.lkey);
	return 0;
}

/*
 * As rereg_change(), with the accounting of pinned pages: the new memory is
 * charged before the old memory is released, as in the kernel.
 */
static int rereg_pinned(struct urxe_mr *mr, int flags, struct urxe_pd *pd,
			void *addr, size_t length, unsigned int access)
{
	uint64_t pages;
	int ret;

	if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION) ||
	    mr->key->access & IBV_ACCESS_ON_DEMAND)
		return rereg_change(mr, flags, pd, addr, length, access);
	ret = memlock_charge(mr->ctx, (uintptr_t)addr, length, &pages);
	if (ret)
		return ret;
	ret = rereg_change(mr, flags, pd, addr, length, access);
	memlock_release(ret ? pages : mr->pinned);
	if (!ret)
		mr->pinned = pages;
	return ret;
}

int urxe_rereg_mr(struct pabi_mr *vmr, int flags, struct ibv_pd *ibpd,
		  void *addr, size_t length, int access)
{
	struct urxe_mr *mr = to_umr(&vmr->mr);
	struct urxe_pd *pd = NULL;
	int ret;

	if (!flags)
		return EINVAL;
	if (!mr_is_named(mr))
		return ENOENT;
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		if (ibpd && ibpd->context == vmr->mr.context)
			pd = pd_find(ibpd);
		if (!pd)
			return EINVAL;
	}
	ret = rereg_check(mr, flags, access);
	adopt_begin();
	if (!ret)
		ret = rereg_pinned(mr, flags, pd, addr, length, access);
	adopt_end();
	if (ret)
		urxe_fail(ret, "ibv_rereg_mr");
	return -ret;
}

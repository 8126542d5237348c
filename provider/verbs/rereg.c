// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_rereg_mr.  Core has checked the flags and keeps the ibv_mr; here the
 * entry of the key table changes while nobody is inside.  The keys stay what
 * they are.
 *
 * Any failure is IBV_REREG_MR_ERR_CMD, "MR shouldn't be used", to the
 * application.  What is wrong with the arguments leaves the MR alone; if the
 * memory turns out not to be usable the MR is disabled and waits for
 * ibv_dereg_mr.
 */
#include <errno.h>

#include "engine/adopt.h"
#include "engine/key.h"
#include "engine/log.h"
#include "engine/mem.h"
#include "memlock.h"
#include "mr.h"
#include "verbs.h"

/* The entry as it shall be. */
static int rereg_describe(struct urxe_mr *mr, int flags, void *addr,
			  size_t length, unsigned int access,
			  struct urxe_key *out)
{
	bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	struct urxe_key *k = mr->key;

	if (!(flags & IBV_REREG_MR_CHANGE_ACCESS))
		access = k->access;
	if (k->kind == URXE_MEM_DM) {
		if (moves || !(access & IBV_ACCESS_ZERO_BASED))
			return fabric_fail(
				EINVAL,
				"device memory stays where it is, addressed from 0");
		key_set(out, k);
		out->access = access;
		return 0;
	}
	if (!moves) {
		addr = (void *)(uintptr_t)k->va;
		length = k->length;
	}
	/* an MR with an iova of its own keeps it until it moves */
	return mr_describe(mr->ctx, addr, length,
			   moves || k->access & IBV_ACCESS_ZERO_BASED
				   ? (uintptr_t)addr
				   : k->iova,
			   access, out);
}

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

/* The new memory is pinned before the old one is not any more. */
static int rereg_pinned(struct urxe_mr *mr, int flags, struct urxe_pd *pd,
			void *addr, size_t length, unsigned int access)
{
	uint64_t pages;
	int ret;

	if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION) ||
	    mr->key->access & IBV_ACCESS_ON_DEMAND)
		return rereg_change(mr, flags, pd, addr, length, access);
	ret = memlock_charge((uintptr_t)addr, length, &pages);
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
	int ret = 0;

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
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		ret = mr_check_access(access, mr->key->kind == URXE_MEM_DM ?
						      DM_ACCESS :
						      MR_ACCESS);
	if (!ret && !mem_is_mine(mr->ctx->self, mr->key))
		ret = fabric_fail(EPERM, "the memory is another process's");
	adopt_begin();
	if (!ret)
		ret = rereg_pinned(mr, flags, pd, addr, length, access);
	adopt_end();
	if (ret)
		urxe_fail(ret, "ibv_rereg_mr");
	return -ret;
}

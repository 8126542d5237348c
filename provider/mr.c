// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Registering memory, "in software": a look at the mappings and an entry. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dm.h"
#include "mr.h"
#include "pd.h"
#include "vma.h"

#define BASIC_ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define MR_ACCESS \
	(BASIC_ACCESS | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_RELAXED_ORDERING)
#define WRITE_ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* man ibv_reg_mr: remote write and atomic need local write. */
static int check_access(unsigned int access, unsigned int known)
{
	if (access & ~(known | IBV_ACCESS_OPTIONAL_RANGE))
		return -EINVAL;
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return fabric_fail(EINVAL,
				   "remote write and atomic access need IBV_ACCESS_LOCAL_WRITE");
	return 0;
}

/* The bytes, and how peers reach them. */
static int describe(struct urxe_context *ctx, struct urxe_key *k, void *addr,
		    size_t length, unsigned int access)
{
	uint64_t va = (uintptr_t)addr;
	struct vma file;
	int ret, index;

	if (va + length < va)
		return -EINVAL;
	ret = vma_check(va, length, access & WRITE_ACCESS, &file);
	if (ret)
		return fabric_fail(-ret,
				   "not all of it is mapped%s",
				   access & WRITE_ACCESS ? " and writable" : "");
	memset((char *)k + sizeof(k->live), 0, sizeof(*k) - sizeof(k->live));
	k->kind = URXE_MEM_PRIVATE;
	k->va = va;
	k->length = length;
	k->pid = urxe_pid;
	if (!file.ino)
		return 0;
	index = file_get(ctx, &file);
	if (index >= 0) {
		k->kind = URXE_MEM_FILE;
		k->file = index;
		k->file_offset = file.offset;
	}
	return 0;
}

static struct urxe_mr *new_mr(struct urxe_pd *pd, uint32_t *key, int *err)
{
	struct urxe_mr *mr = calloc(1, sizeof(*mr));

	if (!mr) {
		*err = -ENOMEM;
		return NULL;
	}
	mr->ctx = pd->ctx;
	mr->key = key_alloc(pd->ctx, URXE_OBJ_MR, key, err);
	if (!mr->key) {
		free(mr);
		return NULL;
	}
	return mr;
}

/* Hand it out: from here on peers may use it. */
static struct ibv_mr *enable(struct urxe_mr *mr, struct urxe_pd *pd,
			     uint32_t key, uint64_t iova, unsigned int access)
{
	struct urxe_key *k = mr->key;

	k->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	k->pd = pd->pd.handle;
	k->access = access;
	pd_get(pd);
	atomic_store_explicit(&k->live, URXE_MR_LIVE(key),
			      memory_order_seq_cst);
	mr->vmr.mr.context = pd->pd.context;
	mr->vmr.mr.pd = &pd->pd;
	mr->vmr.mr.lkey = key;
	mr->vmr.mr.rkey = key;
	mr->vmr.mr.handle = URXE_KEY_INDEX(key);
	mr->vmr.type = PABI_MR;
	mr->vmr.access = access;
	return &mr->vmr.mr;
}

struct ibv_mr *urxe_reg_mr(struct ibv_pd *ibpd, void *addr, size_t length,
			   uint64_t iova, int access)
{
	struct urxe_pd *pd = to_upd(ibpd);
	int ret, saved = errno;
	struct urxe_mr *mr;
	uint32_t key;

	ret = check_access(access, MR_ACCESS);
	if (ret)
		return urxe_fail(ret, "ibv_reg_mr: access flags");
	mr = new_mr(pd, &key, &ret);
	if (!mr)
		return urxe_fail(ret, "ibv_reg_mr");
	ret = describe(pd->ctx, mr->key, addr, length, access);
	if (ret) {
		key_free(pd->ctx, URXE_OBJ_MR, key);
		free(mr);
		return urxe_fail(ret, "ibv_reg_mr");
	}
	errno = saved;
	return enable(mr, pd, key, iova, access);
}

int urxe_dereg_mr(struct pabi_mr *vmr)
{
	struct urxe_mr *mr = to_umr(&vmr->mr);
	struct urxe_context *ctx = mr->ctx;
	struct urxe_key *k = mr->key;
	int saved = errno;

	if (atomic_load_explicit(&k->windows, memory_order_acquire))
		return EBUSY;
	key_revoke(ctx, k);
	if (k->kind == URXE_MEM_FILE)
		file_put(ctx, k->file);
	else if (k->kind == URXE_MEM_DM && k->dm)
		atomic_fetch_sub_explicit(&ctx->fabric->dev->dm[k->dm - 1].mrs,
					  1, memory_order_release);
	key_free(ctx, URXE_OBJ_MR, vmr->mr.lkey);
	pd_put(to_upd(vmr->mr.pd));
	free(mr);
	errno = saved;
	return 0;
}

/* ---------------------------------------------------------- device memory */

#define DM_ACCESS (BASIC_ACCESS | IBV_ACCESS_ZERO_BASED)

struct ibv_mr *urxe_reg_dm_mr(struct ibv_pd *ibpd, struct ibv_dm *ibdm,
			      uint64_t offset, size_t length,
			      unsigned int access)
{
	struct urxe_pd *pd = to_upd(ibpd);
	struct urxe_dm *dm = to_udm(ibdm);
	struct urxe_dm_slot *slot = &pd->ctx->fabric->dev->dm[dm->slot];
	struct urxe_mr *mr;
	struct urxe_key *k;
	uint32_t key;
	int ret;

	ret = check_access(access, DM_ACCESS);
	if (ret || !(access & IBV_ACCESS_ZERO_BASED) ||
	    ibdm->context != ibpd->context || offset > dm->length ||
	    length > dm->length - offset)
		return urxe_fail(-EINVAL, "ibv_reg_dm_mr: access or range");
	mr = new_mr(pd, &key, &ret);
	if (!mr)
		return urxe_fail(ret, "ibv_reg_dm_mr");
	k = mr->key;
	memset((char *)k + sizeof(k->live), 0, sizeof(*k) - sizeof(k->live));
	k->kind = URXE_MEM_DM;
	k->va = slot->offset + offset;
	k->length = length;
	k->pid = urxe_pid;
	k->dm = dm->slot + 1;
	atomic_fetch_add_explicit(&slot->mrs, 1, memory_order_acq_rel);
	/* this MR is handed out inline: core fills nothing in */
	mr->vmr.mr.length = length;
	return enable(mr, pd, key, 0, access);
}

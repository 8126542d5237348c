// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory registration: ibv_reg_mr, ibv_dereg_mr, ibv_alloc_null_mr.
 *
 * Nothing is pinned.  Registration checks the mappings of the range, records
 * how peers can reach the pages (struct urxe_key), and enables an entry of
 * the context's key table.  Deregistration disables the entry, and waits for
 * the requesters that are using it (key_revoke()).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/context.h"
#include "verbs/context.h"
#include "engine/adopt/adopt.h"
#include "engine/copy/bounce.h"
#include "engine/copy/nofault.h"
#include "engine/mr/file.h"
#include "engine/mr/key.h"
#include "engine/core/log.h"
#include "engine/mr/odp.h"
#include "engine/core/process.h"
#include "engine/mem/vma.h"
#include "memlock.h"
#include "mr.h"
#include "odp.h"
#include "verbs/profile.h"
#include "verbs/verbs.h"

#define WRITE_ACCESS                                        \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_ATOMIC)

int mr_check_access(const struct urxe_context *ctx, unsigned int access,
		    unsigned int known)
{
	const unsigned int has = (unsigned int)profile_limit(ctx, access);

	if (access & known & ~has)
		return profile_refuse(ctx, PROFILE_access, EOPNOTSUPP,
				      "access flags 0x%x are not supported",
				      access & known & ~has);
	if (access & ~(known | IBV_ACCESS_OPTIONAL_RANGE))
		return fabric_fail(EINVAL,
				   "access flags 0x%x are not supported",
				   access & ~known);
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return fabric_fail(
			EINVAL,
			"remote write and atomic access need IBV_ACCESS_LOCAL_WRITE");
	return 0;
}

int mr_check_range(uint64_t at, uint64_t length, uint64_t iova)
{
	const uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;

	if ((at ^ iova) & mask)
		return fabric_fail(
			EINVAL,
			"iova and the memory must have the same offset within a page");
	if (!length && !(at & mask))
		return fabric_fail(
			EINVAL,
			"length 0 is not permitted at the start of a page");
	return 0;
}

/*
 * If the range is a shared mapping of one file, record the file and the
 * offset in @out, so that peers can map it (copy path 2).
 *
 * The pages of such a file are populated, as a NIC pins them.  If the file
 * system had no room for one of them, the peer that first accessed it would
 * get SIGBUS.
 *
 * Return 0 or -errno.  Other memory is not an error, unless
 * IBV_ACCESS_FLUSH_PERSISTENT requires a file.
 */
static int mr_describe_file(struct urxe_context *ctx, const struct vma *file,
			    unsigned int access, struct urxe_key *out)
{
	bool persistent = access & URXE_ACCESS_FLUSH_PERSISTENT;
	bool in_memory = false;
	int index = -ENOENT;

	if (file->ino && !(persistent && adopt_has(file->dev, file->ino)))
		index = file_get(ctx, file, persistent, &in_memory);
	if (index < 0 && !persistent)
		return 0;
	if (index == -ENOENT)
		return fabric_fail(
			EINVAL,
			"IBV_ACCESS_FLUSH_PERSISTENT needs a shared mapping of one file");
	if (index < 0)
		return fabric_fail(
			-index,
			"the file cannot be added to the file table of the context");
	out->flags |= URXE_MR_FILE;
	out->file = index;
	out->file_offset = file->offset;
	adopt_hold(file->dev, file->ino);
	if (!in_memory)
		return 0;
	out->kind = URXE_MEM_FILE;
	if (!odp_populate(out->va, out->length, access & WRITE_ACCESS))
		return 0;
	mr_forget(ctx, out);
	return fabric_fail(ENOMEM,
			   "not all pages of the file can be allocated");
}

/*
 * Return whether the pages may be adopted (engine/adopt/adopt.h): private memory
 * that peers access, and that need not be persistent, which no memfd is.
 */
static bool mr_may_adopt(const struct vma *file, unsigned int access)
{
	return !file->shared && !(access & URXE_ACCESS_FLUSH_PERSISTENT) &&
	       access & (WRITE_ACCESS | IBV_ACCESS_REMOTE_READ);
}

/*
 * Adopt the pages of the MR and describe them in @out.  If peers cannot map
 * them, restore @out and return the pages to private memory, if no other MR
 * uses them.
 */
static void mr_adopt(struct urxe_context *ctx, unsigned int access,
		     struct urxe_key *out)
{
	const struct urxe_key plain = *out;
	struct vma file;
	int ret;

	if (!adopt_range(out->va, out->length))
		return;
	out->flags |= URXE_MR_SHARED;
	ret = vma_check(out->va, out->length, true, &file);
	if (!ret)
		ret = mr_describe_file(ctx, &file, access, out);
	if (ret) {
		key_set(out, &plain);
		/* in case that adopt_settle() cannot return them now */
		out->flags |= URXE_MR_SHARED;
	}
	adopt_settle();
}

/* -EINVAL, or the errno value of the profile: it is longer than an MR may be */
static int mr_check_length(const struct urxe_context *ctx, uint64_t length,
			   unsigned int access)
{
	const bool implicit = access & IBV_ACCESS_ON_DEMAND &&
			      length == SIZE_MAX;

	if (implicit)
		return profile_need(ctx, PROFILE_HAS(ODP_IMPLICIT),
				    "an implicit MR");
	if (length > profile_limit(ctx, max_mr_size))
		return profile_refuse(
			ctx, PROFILE_max_mr_size, EINVAL,
			"the length is %llu, and must be at most %llu",
			(unsigned long long)length,
			(unsigned long long)profile_limit(ctx, max_mr_size));
	return 0;
}

int mr_describe(struct urxe_context *ctx, void *addr, size_t length,
		uint64_t iova, unsigned int access, struct urxe_key *out)
{
	uint64_t va = (uintptr_t)addr;
	struct vma file;
	int ret;

	memset(out, 0, sizeof(*out));
	out->kind = URXE_MEM_PRIVATE;
	out->va = va;
	out->length = length;
	out->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	out->access = access;
	out->pid = urxe_pid;
	out->flags = ctx->self->my_flag;
	if (va + length < va || out->iova + length < out->iova)
		return fabric_fail(EINVAL, "the range wraps around");
	ret = mr_check_length(ctx, length, access);
	if (!ret)
		ret = context_join(ctx);
	if (ret)
		return ret;
	if (access & IBV_ACCESS_ON_DEMAND)
		return odp_describe(out);
	/* with length 0 the page at va must be mapped as well */
	ret = vma_check_ends(va, length + !length, access & WRITE_ACCESS,
			     &file);
	if (ret)
		return fabric_fail(
			-ret,
			"not all of the range is mapped%s, or pages cannot be allocated (end of the file, full file system)",
			access & WRITE_ACCESS ? " and writable" : "");
	if (file.shared)
		out->flags |= URXE_MR_SHARED;
	if (mr_may_adopt(&file, access))
		mr_adopt(ctx, access, out);
	if (out->flags & URXE_MR_FILE)
		return 0;
	return mr_describe_file(ctx, &file, access, out);
}

/*
 * Release the reference that an MR has to file @index, and to its adoption.
 */
static void mr_leave_file(struct urxe_context *ctx, uint32_t index)
{
	const struct urxe_file *f;
	uint64_t dev, ino;

	if (index >= URXE_MAX_FILES)
		return;
	f = &ctx->arena->file[index];
	dev = f->dev;
	ino = f->ino;
	file_put(ctx, index);
	adopt_put(dev, ino);
}

void mr_forget(struct urxe_context *ctx, const struct urxe_key *k)
{
	if (k->flags & URXE_MR_FILE)
		mr_leave_file(ctx, k->file);
	if (k->kind == URXE_MEM_DM && k->dm)
		dm_heap_put(ctx->fabric, k->dm - 1);
	adopt_settle();
}

void mr_fill(struct urxe_mr *mr, struct urxe_pd *pd, uint32_t key,
	     enum pabi_mr_type type)
{
	const struct urxe_key *k = mr->key;

	mr->ctx = pd->ctx;
	mr->pd = pd;
	mr->vmr.mr.context = to_ibv(pd->ctx);
	mr->vmr.mr.pd = &pd->pd;
	mr->vmr.mr.length = k->length;
	mr->vmr.mr.handle = URXE_KEY_INDEX(key);
	mr->vmr.mr.lkey = key;
	mr->vmr.mr.rkey = k->kind == URXE_MEM_NULL ? 0 : key;
	mr->vmr.type = type;
	mr->vmr.access = k->access;
}

int mr_create(struct urxe_pd *pd, const struct urxe_key *desc,
	      enum pabi_mr_type type, struct urxe_mr **out)
{
	struct urxe_mr *mr = NULL;
	int ret = -ENOENT;
	uint32_t key;

	if (!pd_exists(pd))
		goto err;
	if (desc->kind == URXE_MEM_PRIVATE || desc->kind == URXE_MEM_FILE) {
		nofault_install(); /* again, if the program replaced a handler
				    */
		ret = bounce_private(pd->ctx);
		if (ret)
			goto err;
	}
	ret = -ENOMEM;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		goto err;
	mr->key = key_alloc(pd->ctx, URXE_OBJ_MR, &key, &ret);
	if (!mr->key)
		goto err;
	key_set(mr->key, desc);
	mr->key->pd = pd->index;
	store_relaxed(&mr->key->windows, 0);
	pd_get(pd);
	mr_fill(mr, pd, key, type);
	key_enable(pd->ctx->arena, mr->key, key);
	*out = mr;
	return 0;

err:
	free(mr);
	mr_forget(pd->ctx, desc);
	return ret;
}

struct ibv_mr *urxe_reg_mr(struct ibv_pd *ibpd, void *addr, size_t length,
			   uint64_t iova, int access)
{
	struct urxe_pd *pd = pd_find(ibpd);
	uint64_t pinned = 0;
	int ret;
	struct urxe_key desc;
	struct urxe_mr *mr;

	if (!pd)
		return urxe_fail(-ENOENT, "ibv_reg_mr: the PD was destroyed");
	ret = mr_check_access(pd->ctx, access, MR_ACCESS);
	if (!ret)
		ret = mr_check_range((uintptr_t)addr, length, iova);
	if (!ret && !(access & IBV_ACCESS_ON_DEMAND))
		ret = memlock_charge(pd->ctx, (uintptr_t)addr, length, &pinned);
	adopt_begin();
	if (!ret)
		ret = mr_describe(pd->ctx, addr, length, iova, access, &desc);
	if (!ret)
		ret = mr_create(pd, &desc, PABI_MR, &mr);
	adopt_end();
	if (ret) {
		memlock_release(pinned);
		return urxe_fail(ret, "ibv_reg_mr");
	}
	mr->pinned = pinned;
	return &mr->vmr.mr;
}

/*
 * EBUSY while a window is bound; ENOENT if another process destroyed the MR.
 */
int urxe_dereg_mr(struct pabi_mr *vmr)
{
	struct urxe_mr *mr = to_umr(&vmr->mr);
	struct urxe_context *ctx = mr->ctx;
	int ret;

	if (!mr_is_named(mr))
		return ENOENT;
	ret = key_revoke(ctx, vmr->mr.lkey, true);
	if (ret) {
		urxe_why(
			"ibv_dereg_mr: %s",
			ret == -EBUSY ?
				"a memory window is bound to the MR" :
				"another process of this context destroyed the MR");
		return -ret;
	}
	mr_forget(ctx, mr->key);
	if (mr->key->pid == urxe_pid)
		memlock_release(mr->pinned);
	key_free(ctx, URXE_OBJ_MR, vmr->mr.lkey);
	pd_put(mr->pd);
	if (mr->map)
		munmap(mr->map, mr->map_len);
	free(mr);
	return 0;
}

/*
 * ibv_alloc_null_mr: an MR that discards writes and reads as zero, at any
 * address.  It has no remote access and no rkey.
 */
struct ibv_mr *urxe_alloc_null_mr(struct ibv_pd *ibpd)
{
	struct urxe_pd *pd = pd_find(ibpd);
	struct urxe_key desc = {
		.kind = URXE_MEM_NULL,
		.length = UINT64_MAX,
		.access = IBV_ACCESS_LOCAL_WRITE,
		.pid = urxe_pid,
	};
	struct urxe_mr *mr;
	int ret;

	if (!pd)
		return urxe_fail(-ENOENT,
				 "ibv_alloc_null_mr: the PD was destroyed");
	desc.flags = pd->ctx->self->my_flag;
	ret = mr_create(pd, &desc, PABI_MR_NULL, &mr);
	return ret ? urxe_fail(ret, "ibv_alloc_null_mr") : &mr->vmr.mr;
}

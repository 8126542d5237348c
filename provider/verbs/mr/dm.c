// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Device memory: ibv_alloc_dm(3), ibv_import_dm(3), ibv_reg_dm_mr(3).
 *
 * Device memory is a piece of the fabric's heap (dm_heap_*() in
 * fabric/fabric.h), which every process maps.  struct urxe_dm is the handle
 * that one process has of it.  ibv_free_dm through any handle frees the
 * memory for all processes of the context; the others' handles then fail with
 * ENOENT.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/context.h"
#include "engine/core/log.h"
#include "engine/mem/peer.h"
#include "engine/core/process.h"
#include "mr.h"
#include "verbs/profile.h"
#include "verbs/verbs.h"

struct urxe_dm {
	struct pabi_dm vdm;
	struct urxe_context *ctx;
	char *ptr;
	uint64_t length;
	uint64_t offset; /* in the heap, bytes */
	uint32_t slot;
	uint32_t made; /* generation of the slot, which may be reused */
};

static struct urxe_dm *to_udm(struct ibv_dm *dm)
{
	return container_of(dm, struct urxe_dm, vdm.dm);
}

/* Granularity of copies, bytes: NICs require this alignment. */
#define DM_UNIT 4

static const _Atomic uint64_t *dm_refs(const struct urxe_context *ctx,
				       uint32_t slot)
{
	return &ctx->fabric->dev->dm[slot].refs;
}

/* Return false if the memory was freed, perhaps by another process. */
static bool dm_exists(const struct urxe_dm *dm)
{
	uint64_t refs = load_acquire(dm_refs(dm->ctx, dm->slot));

	return URXE_DM_MADE(refs) == dm->made && URXE_DM_COUNT(refs);
}

/* 0, or an errno value, in errno as well: ENOENT, EINVAL. */
static int dm_check_range(const struct urxe_dm *dm, uint64_t offset,
			  size_t length)
{
	int ret = 0;

	if (!dm_exists(dm))
		ret = ENOENT;
	else if (offset % DM_UNIT || length % DM_UNIT || offset > dm->length ||
		 length > dm->length - offset)
		ret = EINVAL;
	if (ret)
		errno = ret;
	return ret;
}

static int memcpy_to_dm(struct ibv_dm *ibdm, uint64_t offset, const void *host,
			size_t length)
{
	struct urxe_dm *dm = to_udm(ibdm);
	int ret = dm_check_range(dm, offset, length);

	if (!ret)
		memcpy(dm->ptr + offset, host, length);
	return ret;
}

static int memcpy_from_dm(void *host, struct ibv_dm *ibdm, uint64_t offset,
			  size_t length)
{
	struct urxe_dm *dm = to_udm(ibdm);
	int ret = dm_check_range(dm, offset, length);

	if (!ret) {
		/*
		 * acquire: if the program has learnt that a peer has written,
		 * the copy contains what was written
		 */
		atomic_thread_fence(memory_order_acquire);
		memcpy(host, dm->ptr + offset, length);
	}
	return ret;
}

/*
 * Fill in @dm, a handle of the device memory in @slot.  NULL if the slot's
 * range exceeds the heap: it is corrupt.
 */
static struct ibv_dm *dm_new_handle(struct urxe_dm *dm,
				    struct urxe_context *ctx, uint32_t slot,
				    uint32_t made, uint64_t length)
{
	const uint64_t offset = ctx->fabric->dev->dm[slot].offset;

	if (offset > ctx->fabric->dm_bytes ||
	    length > ctx->fabric->dm_bytes - offset)
		return NULL;
	dm->ctx = ctx;
	dm->slot = slot;
	dm->made = made;
	dm->length = length;
	dm->offset = offset;
	dm->ptr = ctx->fabric->dm + offset;
	dm->vdm.handle = slot;
	dm->vdm.dm.handle = slot;
	dm->vdm.dm.context = to_ibv(ctx);
	dm->vdm.dm.memcpy_to_dm = memcpy_to_dm;
	dm->vdm.dm.memcpy_from_dm = memcpy_from_dm;
	return &dm->vdm.dm;
}

static uint64_t round_to(uint64_t length, uint64_t unit)
{
	return (length + unit - 1) / unit * unit;
}

/*
 * Check that the device has room for @length bytes, by its profile: its
 * contexts may have max_dm_size bytes in all.  0, or -ENOMEM or the errno
 * value of the profile.
 */
static int dm_check_room(const struct urxe_context *ctx, uint64_t length)
{
	const uint64_t most = profile_limit(ctx, max_dm_size);
	struct urxe_dev *dev = ctx->fabric->dev;
	const uint64_t unit =
		profile_limit(ctx, dm_unit) ? profile_limit(ctx, dm_unit) : 1;
	uint64_t used = 0;
	uint32_t i, owner;

	if (most >= ctx->fabric->dm_bytes)
		return 0;
	for (i = 0; i < dm_slots(dev); i++) {
		owner = load_relaxed(&dev->dm[i].used);
		/* the pages of an exported allocation count once */
		if (owner && owner <= URXE_MAX_CTX &&
		    dev->dm[i].share != URXE_DM_OF_MR &&
		    hca_of_ctx(dev, owner - 1) == ctx->hca)
			used += round_to(dev->dm[i].length, unit);
	}
	if (length <= most && round_to(length, unit) <= most &&
	    used <= most - round_to(length, unit))
		return 0;
	return profile_refuse(ctx, PROFILE_max_dm_size, ENOMEM,
			      "%llu of %llu bytes of device memory are in use",
			      (unsigned long long)used,
			      (unsigned long long)most);
}

struct ibv_dm *urxe_alloc_dm(struct ibv_context *ibctx,
			     struct ibv_alloc_dm_attr *attr)
{
	struct urxe_context *ctx = to_uctx(ibctx);
	struct ibv_dm *ibdm;
	struct urxe_dm *dm;
	int ret;

	if (attr->comp_mask || !attr->length || attr->log_align_req > 63)
		return urxe_fail(
			-EINVAL,
			"ibv_alloc_dm: invalid comp_mask, length or log_align_req");
	ret = dm_check_room(ctx, attr->length);
	if (ret)
		return urxe_fail(ret, "ibv_alloc_dm");
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	ret = fabric_obj_get(ctx->fabric, ctx->slot, URXE_OBJ_DM);
	if (ret)
		goto err_free;
	ret = dm_heap_alloc(ctx->fabric, ctx->slot, ctx->gen, attr->length,
			    attr->log_align_req);
	if (ret < 0)
		goto err_put;
	ibdm = dm_new_handle(dm, ctx, ret,
			     URXE_DM_MADE(load_relaxed(dm_refs(ctx, ret))),
			     attr->length);
	if (ibdm)
		return ibdm;
	ret = -EPROTO;

err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_DM);
err_free:
	free(dm);
	return urxe_fail(ret, "ibv_alloc_dm");
}

/* EBUSY while an MR uses it; ENOENT if another process freed it. */
int urxe_free_dm(struct ibv_dm *ibdm)
{
	struct urxe_dm *dm = to_udm(ibdm);
	int ret;

	if (ibdm->handle != dm->slot)
		return ENOENT;
	ret = dm_heap_free(dm->ctx->fabric, dm->slot, dm->made);
	if (ret)
		return -ret;
	fabric_obj_put(dm->ctx->fabric, dm->ctx->slot, URXE_OBJ_DM);
	free(dm);
	return 0;
}

struct ibv_dm *urxe_import_dm(struct ibv_context *ibctx, uint32_t handle)
{
	struct urxe_context *ctx = to_uctx(ibctx);
	struct urxe_dm_slot *slot;
	uint64_t refs, length;
	struct ibv_dm *ibdm;
	struct urxe_dm *dm;

	if (handle >= dm_slots(ctx->fabric->dev))
		return urxe_fail(-ENOENT, "ibv_import_dm: no such handle");
	slot = &ctx->fabric->dev->dm[handle];
	/*
	 * acquire: read before the other members.  If the slot is reused
	 * meanwhile, dm_exists() finds another generation in refs.
	 */
	refs = load_acquire(&slot->refs);
	if (!URXE_DM_COUNT(refs) || slot->share == URXE_DM_OF_MR ||
	    load_relaxed(&slot->used) != ctx->slot + 1 ||
	    slot->ctx_gen != ctx->gen)
		return urxe_fail(-ENOENT, "ibv_import_dm: no such handle");
	length = slot->length;
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	ibdm = dm_new_handle(dm, ctx, handle, URXE_DM_MADE(refs), length);
	if (ibdm)
		return ibdm;
	free(dm);
	return urxe_fail(-EPROTO, "ibv_import_dm: invalid handle");
}

void urxe_unimport_dm(struct ibv_dm *ibdm)
{
	free(to_udm(ibdm));
}

/* Return a file descriptor, which the caller owns, or -1 and errno. */
int urxe_dm_export_dmabuf_fd(struct ibv_dm *ibdm)
{
	struct urxe_dm *dm = to_udm(ibdm);
	int fd, saved = errno;

	fd = dm_exists(dm) ? dm_export(dm->ctx->fabric, dm->slot, dm->made) :
			     fabric_fail(ENOENT, "the device memory was freed");
	if (fd < 0) {
		urxe_fail(fd, "ibv_dm_export_dmabuf_fd");
		return -1;
	}
	errno = saved;
	return fd;
}

/* ---------------------------------------------------------- registering */

struct ibv_mr *urxe_reg_dm_mr(struct ibv_pd *ibpd, struct ibv_dm *ibdm,
			      uint64_t offset, size_t length,
			      unsigned int access)
{
	struct urxe_pd *pd = pd_find(ibpd);
	struct urxe_dm *dm = to_udm(ibdm);
	struct urxe_key desc;
	struct urxe_mr *mr;
	int ret;

	if (!pd)
		return urxe_fail(-ENOENT,
				 "ibv_reg_dm_mr: the PD was destroyed");
	ret = mr_check_access(pd->ctx, access, DM_ACCESS);
	if (!ret && !(access & IBV_ACCESS_ZERO_BASED))
		ret = fabric_fail(EINVAL,
				  "device memory needs IBV_ACCESS_ZERO_BASED");
	if (!ret && ibdm->context != ibpd->context)
		ret = fabric_fail(EINVAL,
				  "the PD is of another ibv_open_device");
	if (!ret && (offset > dm->length || length > dm->length - offset))
		ret = fabric_fail(
			EINVAL,
			"%zu bytes at offset %llu exceed the device memory of %llu bytes",
			length, (unsigned long long)offset,
			(unsigned long long)dm->length);
	if (ret)
		return urxe_fail(ret, "ibv_reg_dm_mr");
	desc = (struct urxe_key){
		.kind = URXE_MEM_DM,
		.va = dm->offset + offset,
		.length = length,
		.access = access,
		.pid = urxe_pid,
		.flags = pd->ctx->self->my_flag,
		.dm = dm->slot + 1,
	};
	ret = dm_heap_hold(pd->ctx->fabric, dm->slot, dm->made);
	if (!ret)
		ret = mr_create(pd, &desc, PABI_MR, &mr);
	return ret ? urxe_fail(ret, "ibv_reg_dm_mr") : &mr->vmr.mr;
}

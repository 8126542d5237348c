/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Device memory: man ibv_alloc_dm. */
#ifndef URXE_DM_H
#define URXE_DM_H

#include "abi/pabi/pabi.h"
#include "engine/context.h"

struct urxe_dm {
	struct pabi_dm vdm;
	struct urxe_context *ctx;
	char *ptr;
	uint64_t length;
	uint64_t offset; /* in the heap */
	uint32_t slot;
};

static inline struct urxe_dm *to_udm(struct ibv_dm *dm)
{
	return container_of(dm, struct urxe_dm, vdm.dm);
}

struct ibv_dm *urxe_alloc_dm(struct ibv_context *ctx,
			     struct ibv_alloc_dm_attr *attr);
/* EBUSY while an MR is on it; ENOENT: another process freed it. */
int urxe_free_dm(struct ibv_dm *dm);
/* man ibv_import_dm */
struct ibv_dm *urxe_import_dm(struct ibv_context *ctx, uint32_t handle);
void urxe_unimport_dm(struct ibv_dm *dm);
struct ibv_mr *urxe_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
			      uint64_t offset, size_t length,
			      unsigned int access);

/* Is it there, or did another process of this context free it? */
bool dm_exists(const struct urxe_dm *dm);

#endif

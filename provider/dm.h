/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Device memory: man ibv_alloc_dm. */
#ifndef URXE_DM_H
#define URXE_DM_H

#include "urxe.h"

struct ibv_dm *urxe_alloc_dm(struct ibv_context *ctx,
			     struct ibv_alloc_dm_attr *attr);
int urxe_free_dm(struct ibv_dm *dm);
struct ibv_mr *urxe_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
			      uint64_t offset, size_t length,
			      unsigned int access);

#endif

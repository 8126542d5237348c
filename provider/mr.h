/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory regions. */
#ifndef URXE_MR_H
#define URXE_MR_H

#include "urxe.h"

struct ibv_mr *urxe_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   uint64_t iova, int access);
int urxe_dereg_mr(struct pabi_mr *vmr);

/* key.c: entries of the context's key table. */

/* A new entry, not yet live; its key in *key.  NULL and -errno in *err. */
struct urxe_key *key_alloc(struct urxe_context *ctx, enum urxe_obj obj,
			   uint32_t *key, int *err);
/* Nobody may use it any more; waits for those who do. */
void key_revoke(struct urxe_context *ctx, struct urxe_key *k);
void key_free(struct urxe_context *ctx, enum urxe_obj obj, uint32_t key);

/* Note the shared file an MR lies in; its index, or -1 (then path 3). */
struct vma;
int file_get(struct urxe_context *ctx, const struct vma *v);
void file_put(struct urxe_context *ctx, uint32_t index);

#endif

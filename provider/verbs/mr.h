/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory regions. */
#ifndef URXE_MR_H
#define URXE_MR_H

#include "engine/urxe.h"

struct ibv_mr *urxe_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   uint64_t iova, int access);
struct ibv_mr *urxe_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				  size_t length, uint64_t iova, int fd,
				  int access);
struct ibv_mr *urxe_alloc_null_mr(struct ibv_pd *pd);
/* mr_ex.c; the struct is in newer headers */
struct ibv_mr_init_attr;
struct ibv_mr *urxe_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *init);
/* rereg.c */
int urxe_rereg_mr(struct pabi_mr *vmr, int flags, struct ibv_pd *pd, void *addr,
		  size_t length, int access);
/* EBUSY while a window is bound; ENOENT: another process destroyed it. */
int urxe_dereg_mr(struct pabi_mr *vmr);

#define MR_BASIC_ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define MR_ACCESS \
	(MR_BASIC_ACCESS | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | URXE_ACCESS_FLUSH_GLOBAL | \
	 URXE_ACCESS_FLUSH_PERSISTENT)

/* man ibv_reg_mr: -EINVAL for flags beside known and combinations. */
int mr_check_access(unsigned int access, unsigned int known);

/*
 * Describe length bytes at addr of this process in out, all but its live
 * word, windows and pd.  -EFAULT, -EINVAL.  mr_forget() takes back what it
 * holds.
 */
int mr_describe(struct urxe_context *ctx, void *addr, size_t length,
		uint64_t iova, unsigned int access, struct urxe_key *out);
void mr_forget(struct urxe_context *ctx, const struct urxe_key *k);

/* The MR that desc describes, enabled.  On failure NULL and -errno in err. */
struct urxe_mr *mr_create(struct urxe_pd *pd, const struct urxe_key *desc,
			  int *err);

/* key.c: entries of the context's key table. */

/* A new entry, not yet live; its key in *key.  NULL and -errno in *err. */
struct urxe_key *key_alloc(struct urxe_context *ctx, enum urxe_obj obj,
			   uint32_t *key, int *err);
/* Copy all but live and windows. */
void key_set(struct urxe_key *k, const struct urxe_key *desc);
/* Here it comes: peers may use it. */
void key_enable(struct urxe_key *k, uint32_t key);
/*
 * Nobody may use it any more; waits for those who do.  -EBUSY while windows
 * are bound to it, -ENOENT if key is not what the entry holds.
 */
int key_revoke(struct urxe_context *ctx, uint32_t key);
/* The same, and no other process can name it from here on. */
int key_retire(struct urxe_context *ctx, uint32_t key);
void key_free(struct urxe_context *ctx, enum urxe_obj obj, uint32_t key);

/*
 * Note the shared file an MR lies in; its index, or -1 (then path 3).  Peers
 * may map it if it is in memory, else it must be wanted for another reason.
 */
struct vma;
int file_get(struct urxe_context *ctx, const struct vma *v, bool any,
	     bool *in_memory);
void file_put(struct urxe_context *ctx, uint32_t index);

#endif

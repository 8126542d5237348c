/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory regions. */
#pragma once

#include "abi/pabi/pabi.h"
#include "pd.h"

struct urxe_mr {
	struct pabi_mr vmr;
	struct urxe_context *ctx;
	struct urxe_pd *pd; /* the handle that it was made with */
	struct urxe_key *key;
	void *map; /* ibv_reg_dmabuf_mr's own mapping, or NULL */
	size_t map_len;
	uint64_t pinned; /* pages, of this process; memlock.h */
};

static inline struct urxe_mr *to_umr(struct ibv_mr *mr)
{
	return container_of(mr, struct urxe_mr, vmr.mr);
}

/* Are its numbers, which the program can write to, those of its entry? */
static inline bool mr_is_named(const struct urxe_mr *mr)
{
	uint32_t index = mr->key - mr->ctx->arena->key;

	return mr->vmr.mr.handle == index &&
	       URXE_KEY_INDEX(mr->vmr.mr.lkey) == index;
}

#define MR_BASIC_ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define MR_ACCESS \
	(MR_BASIC_ACCESS | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB |                    \
	 URXE_ACCESS_FLUSH_GLOBAL | URXE_ACCESS_FLUSH_PERSISTENT)
/* of device memory, where IBV_ACCESS_ZERO_BASED must be */
#define DM_ACCESS \
	(MR_BASIC_ACCESS | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
	 URXE_ACCESS_FLUSH_GLOBAL)

/* man ibv_reg_mr: -EINVAL for flags beside known and combinations. */
int mr_check_access(unsigned int access, unsigned int known);

/*
 * What the kernel refuses of any range at an address or an offset in a file
 * (ib_uverbs_reg_mr(), ib_umem_num_pages()): an iova with another page offset,
 * and a range without a page.  -EINVAL.
 */
int mr_check_range(uint64_t at, uint64_t length, uint64_t iova);

/*
 * Describe length bytes at addr of this process in out, all but its live
 * word, windows and pd.  -EFAULT, -EINVAL.  mr_forget() takes back what it
 * holds.
 */
int mr_describe(struct urxe_context *ctx, void *addr, size_t length,
		uint64_t iova, unsigned int access, struct urxe_key *out);
void mr_forget(struct urxe_context *ctx, const struct urxe_key *k);

/* Fill in what the application sees of the MR that mr->key is. */
void mr_fill(struct urxe_mr *mr, struct urxe_pd *pd, uint32_t key,
	     enum pabi_mr_type type);

/*
 * The MR that desc describes, enabled, in *out.  On failure -errno, and desc
 * is forgotten.
 */
int mr_create(struct urxe_pd *pd, const struct urxe_key *desc,
	      enum pabi_mr_type type, struct urxe_mr **out);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory regions. */
#pragma once

#include "abi/pabi/pabi.h"
#include "verbs/access.h"
#include "verbs/pd.h"

struct urxe_mr {
	struct pabi_mr vmr;
	struct urxe_context *ctx;
	struct urxe_pd *pd; /* the handle that it was created with */
	struct urxe_key *key; /* its entry in the arena */
	void *map; /* mapping that ibv_reg_dmabuf_mr made, or NULL */
	size_t map_len;
	uint64_t pinned; /* pages charged to this process; memlock.h */
};

static inline struct urxe_mr *to_umr(struct ibv_mr *mr)
{
	return container_of(mr, struct urxe_mr, vmr.mr);
}

/*
 * Return whether handle and lkey, which the program can write, are unchanged.
 */
static inline bool mr_is_named(const struct urxe_mr *mr)
{
	uint32_t index = mr->key - mr->ctx->arena->key;

	return mr->vmr.mr.handle == index &&
	       URXE_KEY_INDEX(mr->vmr.mr.lkey) == index;
}

/*
 * Return 0, or -EINVAL if @access has flags outside @known (optional flags
 * excepted), or a combination that ibv_reg_mr(3) excludes.  -EOPNOTSUPP, or
 * the errno value of the profile: the device lacks a flag.
 */
int mr_check_access(const struct urxe_context *ctx, unsigned int access,
		    unsigned int known);

/*
 * Check a range at @at, an address or an offset in a file, as the kernel does
 * (ib_uverbs_reg_mr(), ib_umem_num_pages()).  -EINVAL if the page offset of
 * @iova differs from that of @at, or if the range has no page.
 */
int mr_check_range(uint64_t at, uint64_t length, uint64_t iova);

/*
 * Describe @length bytes at @addr of this process in @out, except for the
 * members live, windows and pd.  For private memory the caller is between
 * adopt_begin() and adopt_end().
 *
 * Return 0 or -errno, such as -EFAULT if not all of the range can be
 * accessed, -EINVAL or -ENOMEM; fabric_why() has the reason.
 *
 * A description holds references (file, device memory, adopted pages).
 * mr_forget() releases them.
 */
int mr_describe(struct urxe_context *ctx, void *addr, size_t length,
		uint64_t iova, unsigned int access, struct urxe_key *out);
void mr_forget(struct urxe_context *ctx, const struct urxe_key *k);

/* Set the public members of @mr from its entry mr->key. */
void mr_fill(struct urxe_mr *mr, struct urxe_pd *pd, uint32_t key,
	     enum pabi_mr_type type);

/*
 * Create an MR from @desc, enable it, and return it in *@out.  On success the
 * MR owns the references of @desc; on failure they are released.  0 or -errno
 */
int mr_create(struct urxe_pd *pd, const struct urxe_key *desc,
	      enum pabi_mr_type type, struct urxe_mr **out);

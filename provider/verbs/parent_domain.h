/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Parent domains and thread domains.
 *
 * A parent domain is one more handle of its protection domain: same number
 * in keys and QPs, and so interchangeable with it.  Objects made through it
 * count on both.
 */
#pragma once

#include "pd.h"

struct urxe_td {
	struct ibv_td td;
	_Atomic uint32_t refs; /* parent domains */
};

struct urxe_parent {
	struct urxe_pd upd; /* what the application has */
	struct urxe_pd *of;
	struct urxe_td *td; /* or NULL */
	_Atomic uint32_t refs; /* objects made through it */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size,
		       size_t alignment, uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr,
		     uint64_t resource_type);
	void *pd_context;
};

/*
 * Memory of a send queue, by the parent domain's allocator if pd is one that
 * has it: then *custom, and pd_free_sq wants that back.  Else NULL: it is from
 * the heap, when it is needed (sq.h).
 */
void *pd_alloc_sq(struct urxe_pd *pd, size_t size, bool *custom);
void pd_free_sq(struct urxe_pd *pd, void *ptr, bool custom);

/* Does a thread domain promise that one thread uses what is made in pd? */
static inline bool pd_single_threaded(const struct urxe_pd *pd)
{
	return pd && pd->parent && pd->parent->td;
}

/* EBUSY while there are objects made through it. */
int parent_dealloc(struct urxe_parent *parent);

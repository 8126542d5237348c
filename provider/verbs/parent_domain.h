/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Parent domains and thread domains.
 *
 * A parent domain is a further handle of its protection domain.  Both have
 * the same number in keys and QPs, so that they are interchangeable.  An
 * object that is created through a parent domain is counted in both.
 */
#pragma once

#include "pd.h"

struct urxe_td {
	struct ibv_td td;
	_Atomic uint32_t refs; /* parent domains that use it */
};

struct urxe_parent {
	struct urxe_pd upd; /* the handle that the application has */
	struct urxe_pd *of; /* the protection domain */
	struct urxe_td *td; /* or NULL */
	_Atomic uint32_t refs; /* objects created through it */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size,
		       size_t alignment, uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr,
		     uint64_t resource_type);
	void *pd_context;
};

/*
 * Allocate @size bytes for a send queue with the allocator of parent domain
 * @pd.
 *
 * *@custom is set if the allocator was used; it is to be passed to
 * pd_free_sq().  NULL with *@custom: the allocator failed.  NULL without: @pd
 * has no allocator, or it returned IBV_ALLOCATOR_USE_DEFAULT; the engine then
 * allocates the ring from the heap when it is needed (engine/qp/sq.h).
 */
void *pd_alloc_sq(struct urxe_pd *pd, size_t size, bool *custom);
void pd_free_sq(struct urxe_pd *pd, void *ptr, bool custom);

/*
 * Return whether @pd has a thread domain, by which the application promises
 * that only one thread uses the objects in it.
 */
static inline bool pd_single_threaded(const struct urxe_pd *pd)
{
	return pd && pd->parent && pd->parent->td;
}

/*
 * Deallocate @parent; EBUSY while objects that were created through it exist.
 */
int parent_dealloc(struct urxe_parent *parent);

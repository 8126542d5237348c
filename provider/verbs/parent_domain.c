// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Parent domains and thread domains: ibv_alloc_parent_domain, ibv_alloc_td.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/core/log.h"
#include "parent_domain.h"
#include "verbs.h"

/* resource_type for the allocators; the upper 32 bits are the driver id, 0 */
#define RESOURCE_SQ 1

void *pd_alloc_sq(struct urxe_pd *pd, size_t size, bool *custom)
{
	struct urxe_parent *p = pd ? pd->parent : NULL;
	void *ptr = IBV_ALLOCATOR_USE_DEFAULT;

	if (p && p->alloc)
		ptr = p->alloc(&p->upd.pd, p->pd_context, size, URXE_LINE,
			       RESOURCE_SQ);
	*custom = ptr != IBV_ALLOCATOR_USE_DEFAULT;
	return *custom ? ptr : NULL;
}

void pd_free_sq(struct urxe_pd *pd, void *ptr, bool custom)
{
	struct urxe_parent *p;

	if (!custom) {
		free(ptr);
		return;
	}
	p = pd->parent;
	p->free(&p->upd.pd, p->pd_context, ptr, RESOURCE_SQ);
}

/* ------------------------------------------------------- thread domains */

struct ibv_td *urxe_alloc_td(struct ibv_context *ibctx,
			     struct ibv_td_init_attr *attr)
{
	struct urxe_td *td;

	if (attr->comp_mask)
		return urxe_fail(-EINVAL, "ibv_alloc_td: comp_mask must be 0");
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->td.context = ibctx;
	return &td->td;
}

/* EBUSY while a parent domain uses it. */
int urxe_dealloc_td(struct ibv_td *ibtd)
{
	struct urxe_td *td = container_of(ibtd, struct urxe_td, td);

	if (load_acquire(&td->refs))
		return EBUSY;
	free(td);
	return 0;
}

/* ------------------------------------------------------- parent domains */

/*
 * ALLOW_CC_UNPROTECTED_ALLOC of rdma-core 64, for guests with encrypted
 * memory.  It is accepted and has no effect.
 */
#define PARENT_ALLOW_CC_UNPROTECTED (1u << 2)
#define PARENT_MASKS                              \
	(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | \
	 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | PARENT_ALLOW_CC_UNPROTECTED)

struct ibv_pd *
urxe_alloc_parent_domain(struct ibv_context *ibctx,
			 struct ibv_parent_domain_init_attr *attr)
{
	struct urxe_parent *p;
	struct urxe_pd *of;

	if (attr->comp_mask & ~PARENT_MASKS)
		return urxe_fail(
			-EINVAL,
			"ibv_alloc_parent_domain: unknown bits in comp_mask");
	if (!attr->pd || attr->pd->context != ibctx ||
	    (attr->td && attr->td->context != ibctx))
		return urxe_fail(
			-EINVAL,
			"ibv_alloc_parent_domain: the PD or TD is not of this context");
	of = pd_find(attr->pd);
	if (!of)
		return urxe_fail(
			-ENOENT,
			"ibv_alloc_parent_domain: the PD was destroyed");
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS &&
	    (!attr->alloc || !attr->free))
		return urxe_fail(-EINVAL,
				 "ibv_alloc_parent_domain: alloc or free is missing");
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->of = of;
	p->upd.pd.context = ibctx;
	p->upd.pd.handle = of->index;
	p->upd.ctx = of->ctx;
	p->upd.index = of->index;
	p->upd.live = of->live;
	p->upd.parent = p;
	atomic_init(&p->upd.users, 1);
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		p->alloc = attr->alloc;
		p->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		p->pd_context = attr->pd_context;
	if (attr->td) {
		p->td = container_of(attr->td, struct urxe_td, td);
		fetch_add_relaxed(&p->td->refs, 1);
	}
	pd_get(of);
	pd_link(&p->upd);
	return &p->upd.pd;
}

int parent_dealloc(struct urxe_parent *p)
{
	if (load_acquire(&p->refs))
		return EBUSY;
	if (p->td)
		fetch_sub_release(&p->td->refs, 1);
	pd_unlink(&p->upd);
	pd_put(p->of);
	free(p);
	return 0;
}

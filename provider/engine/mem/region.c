// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Cache of one mapped MR or window, for the fast path (direct.h). A region is
 * valid while its key is live and the arena's keys_made has not changed; see
 * region.h.
 */
#include "region.h"

const struct urxe_key region_none;

static void region_close(struct urxe_region *r, uint32_t key, uint32_t made)
{
	region_forget(r);
	r->closed = true;
	r->key = key;
	r->made = made;
}

bool region_look_up(struct urxe_region *r, struct urxe_peer *p, uint32_t key,
		    uint32_t pd, uint32_t access, uint32_t qpn)
{
	const struct urxe_key *k;
	struct urxe_seg seg;

	region_close(r, key, load_acquire(&p->arena->keys_made));
	k = mem_entry(p, key, pd, access);
	if (unlikely(!k || !mem_serves(k, qpn) || k->flags & URXE_MR_ODP))
		return false;
	r->iova = k->iova;
	r->length = k->length;
	mem_reach(p, k, r->iova, r->length, &seg);
	if (!seg.ptr && !seg.pid)
		return false;
	r->base = seg.ptr;
	r->arena = p->arena;
	r->access = k->access;
	r->entry = k;
	r->is_live = URXE_MR_LIVE(key);
	r->closed = false;
	return true;
}

bool region_open(struct urxe_region *r, struct urxe_peer *p, uint32_t key,
		 uint32_t pd, uint32_t access, uint32_t qpn)
{
	if (!region_look_up(r, p, key, pd, access, qpn))
		return false;
	if (!r->base)
		region_close(r, key, r->made);
	return r->base;
}

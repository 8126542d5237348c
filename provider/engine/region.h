/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A whole MR, or window, that is mapped here, kept from one use to the next: it
 * is what it was while its key is live and no other key has become so.
 */
#pragma once

#include "mem.h"

/* The key table's entry of a region that is none: it is never live. */
extern internal const struct urxe_key region_none;

struct urxe_region {
	const struct urxe_key *entry; /* or &region_none */
	uint64_t is_live; /* what its word is while it is */
	const struct urxe_arena *arena;
	char *base;
	uint64_t iova, length;
	uint32_t key;
	uint32_t made; /* arena.keys_made, from before the key was looked up */
	uint32_t access; /* what the key allows */
	bool closed; /* it was looked up, in vain */
};

static inline void region_forget(struct urxe_region *r)
{
	*r = (struct urxe_region){ .entry = &region_none, .is_live = 1 };
}

/*
 * Look a key up, as mem_entry() does; the guard is up.  False: there is none
 * that serves QP qpn and is mapped here.
 */
bool region_open(struct urxe_region *r, struct urxe_peer *p, uint32_t key,
		 uint32_t pd, uint32_t access, uint32_t qpn)
	__attribute__((cold));

/*
 * Was it looked up, in vain, and no key has become another one since?  It is
 * not tried again and again.
 */
static inline bool region_is_closed(const struct urxe_region *r,
				    const struct urxe_peer *p, uint32_t key)
{
	return unlikely(r->closed) && r->key == key &&
	       load_relaxed(&p->arena->keys_made) == r->made;
}

/* Is it still what it was?  The guard is up. */
static inline bool region_holds(const struct urxe_region *r, uint32_t key)
{
	/*
	 * seq_cst: after our guard went up, see presence.h; and then acquire:
	 * who made the key live again has raised keys_made before
	 */
	return likely(r->key == key &&
		      load_seq_cst(&r->entry->live) == r->is_live) &&
	       likely(load_relaxed(&r->arena->keys_made) == r->made);
}

/* It holds.  For that, too? */
static inline bool region_allows(const struct urxe_region *r, uint32_t access)
{
	return likely((r->access & access) == access);
}

/* False: it does not have those bytes. */
static inline bool region_at(const struct urxe_region *r, uint64_t addr,
			     uint64_t len, char **at)
{
	const uint64_t offset = addr - r->iova, length = r->length;

	/* an address before it is an offset behind its end */
	if (unlikely(len > length || offset > length - len))
		return false;
	*at = r->base + offset;
	return true;
}

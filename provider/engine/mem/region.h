/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A region: a cached look-up of a whole MR or memory window that is mapped in
 * this process, for the fast path (direct.h).  It is protected by qp->lock.
 *
 * The cached values are valid while the key is live and the arena's keys_made
 * has not changed.  key_enable() increments keys_made before it stores live,
 * so a key that was revoked and enabled again is detected.
 */
#pragma once

#include "mem.h"

/* The entry of an empty region; its live word never equals is_live. */
extern internal const struct urxe_key region_none;

struct urxe_region {
	const struct urxe_key *entry; /* or &region_none */
	uint64_t is_live; /* value of entry->live while the key is valid */
	const struct urxe_arena *arena;
	char *base; /* NULL: not mapped here, see region_look_up() */
	uint64_t iova, length;
	uint32_t key;
	uint32_t made; /* arena.keys_made, loaded before the look-up */
	uint32_t access; /* rights of the key */
	bool closed; /* the look-up failed */
};

/* Make the region empty. */
static inline void region_forget(struct urxe_region *r)
{
	*r = (struct urxe_region){ .entry = &region_none, .is_live = 1 };
}

/*
 * Look up a key as mem_entry() does; the guard is raised.  False if there is
 * no such key for QP qpn, or it is ODP.  If its memory is not mapped in this
 * process, base is NULL.
 */
bool region_look_up(struct urxe_region *r, struct urxe_peer *p, uint32_t key,
		    uint32_t pd, uint32_t access, uint32_t qpn)
	__attribute__((cold));
/* The same; false also if the memory is not mapped in this process. */
bool region_open(struct urxe_region *r, struct urxe_peer *p, uint32_t key,
		 uint32_t pd, uint32_t access, uint32_t qpn)
	__attribute__((cold));

/*
 * Did a look-up of key fail, and was no key enabled since?  Then another
 * look-up is pointless.
 */
static inline bool region_is_closed(const struct urxe_region *r,
				    const struct urxe_peer *p, uint32_t key)
{
	return unlikely(r->closed) && r->key == key &&
	       load_relaxed(&p->arena->keys_made) == r->made;
}

/* Is r a valid look-up of key?  The guard is raised. */
static inline bool region_holds(const struct urxe_region *r, uint32_t key)
{
	/*
	 * seq_cst: ordered after the store of the guard, see presence.h.  It
	 * is also an acquire: a key that was enabled again has incremented
	 * keys_made before
	 */
	return likely(r->key == key &&
		      load_seq_cst(&r->entry->live) == r->is_live) &&
	       likely(load_relaxed(&r->arena->keys_made) == r->made);
}

/* Does the key of r, which is valid, have all rights of access? */
static inline bool region_allows(const struct urxe_region *r, uint32_t access)
{
	return likely((r->access & access) == access);
}

/* Is [addr, addr + len) in r? */
static inline bool region_covers(const struct urxe_region *r, uint64_t addr,
				 uint64_t len)
{
	const uint64_t length = r->length;

	/* an address below iova wraps to an offset beyond length */
	return likely(len <= length && addr - r->iova <= length - len);
}

/* Get the address of [addr, addr + len); false if it is not in r. */
static inline bool region_at(const struct urxe_region *r, uint64_t addr,
			     uint64_t len, char **at)
{
	if (unlikely(!region_covers(r, addr, len)))
		return false;
	*at = r->base + (addr - r->iova);
	return true;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory of work requests: resolve (key, address, length) to bytes that can
 * be copied.  The requester calls this for both ends, pollers for inline
 * data.
 *
 * Lifetime: an entry of the key table is valid while its live word contains
 * the key.  A requester reads the entry while its guard is raised (a hazard
 * pointer, shared/guard.h).  The destroyer of an MR or MW clears live and
 * then waits for the guards that name the key (quiesce.c).  So what the
 * requester has read stays true until it lowers its guard.
 */
#pragma once

#include <infiniband/verbs.h>

#include "base/compiler.h"
#include "shared/opcode.h"
#include "peer.h"
#include "engine/core/process.h"

/*
 * A segment: len contiguous bytes.  If ptr is set they are mapped in this
 * process.  Otherwise they are at va in process pid (copy paths 3 and 4), in
 * the memory that key of peer describes.  pid 0 without ptr: the null MR.
 */
struct urxe_seg {
	char *ptr;
	uint64_t va;
	uint64_t len;
	int32_t pid;
	/* set if pid is not 0 and ptr is NULL */
	struct urxe_peer *peer;
	const struct urxe_key *key;
};

#define MEM_REMOTE_ACCESS                                      \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |    \
	 IBV_ACCESS_REMOTE_ATOMIC | URXE_ACCESS_FLUSH_GLOBAL | \
	 URXE_ACCESS_FLUSH_PERSISTENT)

/*
 * Return the entry of key in peer's context, or NULL if it is not live or
 * does not permit access to a request of protection domain pd.  If access has
 * no remote right the key is an lkey, and a memory window does not match.
 * The guard is raised.
 */
static inline const struct urxe_key *mem_entry(const struct urxe_peer *peer,
					       uint32_t key, uint32_t pd,
					       uint32_t access)
{
	struct urxe_arena *a = peer->arena;
	uint32_t i = URXE_KEY_INDEX(key);
	const struct urxe_key *k = &a->key[i];

	/* entries above key_high have no memory */
	if (unlikely(i >= load_acquire(&a->key_high)))
		return NULL;
	/* seq_cst: ordered after the store of the guard, see presence.h */
	if (unlikely(load_seq_cst(&k->live) != URXE_MR_LIVE(key)))
		return NULL;
	if (unlikely(k->pd != pd || (k->access & access) != access))
		return NULL;
	if (!(access & MEM_REMOTE_ACCESS) && unlikely(k->flags & URXE_MR_IS_MW))
		return NULL;
	return k;
}

/* The same if it covers [addr, addr + len). */
static inline const struct urxe_key *mem_lookup(const struct urxe_peer *peer,
						uint32_t key, uint32_t pd,
						uint64_t addr, uint64_t len,
						uint32_t access)
{
	const struct urxe_key *k = mem_entry(peer, key, pd, access);

	if (unlikely(!k || addr < k->iova || len > k->length ||
		     addr - k->iova > k->length - len))
		return NULL;
	return k;
}

/* May QP qpn use k?  A type 2 window is bound to one QP (IB 10.6.7). */
static inline bool mem_serves(const struct urxe_key *k, uint32_t qpn)
{
	return likely(!(k->flags & URXE_MR_TYPE_2)) || k->qpn == qpn;
}

/* A use of a key that was refused. */
struct mem_use {
	const struct urxe_peer *peer; /* context of the key */
	uint32_t key, pd, access, qpn;
	uint64_t addr, len;
};

/*
 * Note, as the reason of a failure (why.h), which check of u fails, and the
 * two values that differ.  kind: enum reason_key.
 */
void mem_refused(uint32_t kind, const struct mem_use *u) __attribute__((cold));

/* The part of mem_reach() for shared files: map the file on first use. */
void mem_reach_file(struct urxe_peer *peer, const struct urxe_key *k,
		    uint64_t offset, struct urxe_seg *seg);
/* Unmap all files of a peer that is freed. */
void mem_unmap_files(struct urxe_peer *peer);
/* Unmap files of peer that contain no MR any more. */
void mem_unmap_unused(struct urxe_peer *peer);
/*
 * Write k's file to stable storage (fdatasync()).  0, -ENXIO if k is not in a
 * file, -EIO if the file cannot be opened here, or -errno.
 */
int mem_persist(struct urxe_peer *peer, const struct urxe_key *k);

/*
 * Is it memory of this process?  k->pid alone does not tell: it may be of
 * another PID namespace.
 */
static inline bool mem_is_mine(const struct urxe_peer *peer,
			       const struct urxe_key *k)
{
	return k->pid == urxe_pid &&
	       (k->flags & URXE_MR_FOREIGN) == peer->my_flag;
}

/*
 * Set seg to len bytes at addr of an entry that mem_lookup() has returned.
 * seg->peer and seg->key are valid only if seg->ptr is NULL and seg->pid is
 * not 0.
 */
static inline void mem_reach(struct urxe_peer *peer, const struct urxe_key *k,
			     uint64_t addr, uint64_t len, struct urxe_seg *seg)
{
	uint64_t offset = addr - k->iova;

	seg->len = len;
	seg->ptr = NULL;
	seg->pid = k->pid;
	seg->va = k->va + offset;
	if (k->kind == URXE_MEM_DM) {
		uint64_t size = peer->fabric->dm_bytes;

		seg->pid = 0;
		if (likely(peer->fabric->dm && seg->va <= size &&
			   len <= size - seg->va))
			seg->ptr = peer->fabric->dm + seg->va;
	} else if (k->kind == URXE_MEM_NULL) {
		seg->pid = 0;
	} else if (k->pid == urxe_pid &&
		   likely((k->flags & (URXE_MR_FOREIGN | URXE_MR_ODP)) ==
			  peer->my_flag)) { /* mem_is_mine() and not ODP */
		seg->ptr = (char *)(uintptr_t)seg->va;
	} else {
		seg->peer = peer;
		seg->key = k;
		if (k->kind == URXE_MEM_FILE)
			mem_reach_file(peer, k, offset, seg);
	}
}

/* Reinitialize locks in the child of a fork. */
void mem_after_fork(void);

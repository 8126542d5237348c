/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory as work requests name it: from (key, address, length) to bytes that
 * can be copied.
 *
 * The rule of life: an entry of the key table is valid while its `live` word
 * carries the key.  A requester reads it between raising and lowering its
 * guard (quiesce.c), and whoever clears it waits for the guards, so what was
 * read stays true until the guard falls.
 */
#pragma once

#include <infiniband/verbs.h>

#include "base/compiler.h"
#include "opcode.h"
#include "peer.h"
#include "process.h"

/*
 * A run of bytes.  With ptr it is mapped here; without, it is memory of
 * process pid at va (copy paths 3 and 4), which key of peer names.  pid 0: the
 * null MR.
 */
struct urxe_seg {
	char *ptr;
	uint64_t va;
	uint64_t len;
	int32_t pid;
	/* set if there is a pid and no ptr */
	struct urxe_peer *peer;
	const struct urxe_key *key;
};

#define MEM_REMOTE_ACCESS \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | URXE_ACCESS_FLUSH_GLOBAL | \
	 URXE_ACCESS_FLUSH_PERSISTENT)

/*
 * The entry that key names in peer's context, if a request of protection
 * domain pd may use it with these access rights, else NULL.  Without a
 * remote one it is used as an lkey, which windows do not have.
 */
static inline const struct urxe_key *
mem_entry(const struct urxe_peer *peer, uint32_t key, uint32_t pd,
	  uint32_t access)
{
	struct urxe_arena *a = peer->arena;
	uint32_t i = URXE_KEY_INDEX(key);
	const struct urxe_key *k = &a->key[i];

	/* entries above have no memory behind them */
	if (unlikely(i >= load_acquire(&a->key_high)))
		return NULL;
	/* seq_cst: after our guard went up, see presence.h */
	if (unlikely(load_seq_cst(&k->live) != URXE_MR_LIVE(key)))
		return NULL;
	if (unlikely(k->pd != pd || (k->access & access) != access))
		return NULL;
	if (!(access & MEM_REMOTE_ACCESS) &&
	    unlikely(k->flags & URXE_MR_IS_MW))
		return NULL;
	return k;
}

/* The same if it covers [addr, addr + len). */
static inline const struct urxe_key *
mem_lookup(const struct urxe_peer *peer, uint32_t key, uint32_t pd,
	   uint64_t addr, uint64_t len, uint32_t access)
{
	const struct urxe_key *k = mem_entry(peer, key, pd, access);

	if (unlikely(!k || addr < k->iova || len > k->length ||
		     addr - k->iova > k->length - len))
		return NULL;
	return k;
}

/* IB 10.6.7: a window of type 2 serves the QP it was bound on. */
static inline bool mem_serves(const struct urxe_key *k, uint32_t qpn)
{
	return likely(!(k->flags & URXE_MR_TYPE_2)) || k->qpn == qpn;
}

/* What was asked of a key that did not hold. */
struct mem_use {
	const struct urxe_peer *peer; /* whose key it would be */
	uint32_t key, pd, access, qpn;
	uint64_t addr, len;
};

/* Note which check failed, and the two values that differ; kind: enum
 * reason_key. */
void mem_refused(uint32_t kind, const struct mem_use *u) __attribute__((cold));

/* The slow half of mem_reach: shared files. */
void mem_reach_file(struct urxe_peer *peer, const struct urxe_key *k,
		    uint64_t offset, struct urxe_seg *seg);
void mem_unmap_files(struct urxe_peer *peer);
/* Unmap those of its files that no MR is on any more. */
void mem_give_back(struct urxe_peer *peer);
/* Bring what was written to k's file to where it outlives us.  -errno */
int mem_persist(struct urxe_peer *peer, const struct urxe_key *k);

/* Is it memory of this very process?  pid alone does not tell. */
static inline bool mem_is_mine(const struct urxe_peer *peer,
			       const struct urxe_key *k)
{
	return k->pid == urxe_pid &&
	       (k->flags & URXE_MR_FOREIGN) == peer->my_flag;
}

/* How to get at len bytes at addr of an entry that mem_lookup found. */
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
			  peer->my_flag)) { /* mem_is_mine(), not odp.h */
		seg->ptr = (char *)(uintptr_t)seg->va;
	} else {
		seg->peer = peer;
		seg->key = k;
		if (k->kind == URXE_MEM_FILE)
			mem_reach_file(peer, k, offset, seg);
	}
}

/* In the child of a fork. */
void mem_after_fork(void);

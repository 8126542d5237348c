// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Diagnosis of a rejected key: repeat the checks of mem.h and record which
 * one failed.
 */
#include "mem.h"
#include "shared/bitmap.h"
#include "engine/core/why_note.h"

/*
 * Record a reason for a key: the request's QP, length and address, and the
 * values that differ.
 */
#define note_key(name, kind, u, ...)                                   \
	why_note(name, REASON_KEY(kind, (u)->key), (u)->qpn, (u)->len, \
		 (u)->addr, __VA_ARGS__)

/*
 * Return how many keys were issued at the index of @key after it, modulo 256.
 * Deregistration of an MR counts as one. Deallocation of a memory window does
 * not.
 */
static uint8_t key_age(const struct urxe_arena *a, uint32_t key)
{
	return load_relaxed(&a->key_tag[URXE_KEY_INDEX(key)]) -
	       URXE_KEY_TAG(key);
}

/*
 * Return whether any key was issued at this index. The tag of the first key
 * is 1, so a current tag of 0 means none, unless the tag wrapped around from
 * 255.
 */
static bool key_existed(const struct urxe_arena *a, uint32_t key)
{
	return load_relaxed(&a->key_tag[URXE_KEY_INDEX(key)]) ||
	       URXE_KEY_TAG(key) == UINT8_MAX;
}

/* Find out why no live entry has this key. */
static void why_not_live(uint32_t kind, const struct mem_use *u)
{
	const struct urxe_arena *a = u->peer->arena;
	uint32_t i = URXE_KEY_INDEX(u->key);
	bool in_use = bitmap_test(a->key_map, i);
	bool is_live, is_window = in_use && bitmap_test(a->window_map, i);
	uint64_t live = 0;

	if (i < load_acquire(&a->key_high))
		live = load_relaxed(&a->key[i].live);
	is_live = live == URXE_MR_LIVE((uint32_t)live);
	if (URXE_KEY_CTX(u->key) != u->peer->slot)
		note_key(KEY_FOREIGN, kind, u, u->peer->slot,
			 URXE_KEY_CTX(u->key));
	else if (is_live && is_window)
		note_key(KEY_REBOUND, kind, u, (uint32_t)live);
	else if (is_live)
		note_key(KEY_ENDED, kind, u, (uint32_t)live);
	else if (is_window)
		note_key(KEY_UNBOUND, kind, u, 0);
	else if (!key_existed(a, u->key))
		note_key(KEY_NONE, kind, u, 0);
	else if (in_use && !key_age(a, u->key))
		note_key(KEY_DISABLED, kind, u, 0);
	else if (!in_use && key_age(a, u->key) <= 1)
		note_key(KEY_DEREGISTERED, kind, u, 0);
	else
		note_key(KEY_NONE, kind, u, 0);
}

void mem_refused(uint32_t kind, const struct mem_use *u)
{
	const struct urxe_arena *a = u->peer->arena;
	uint32_t i = URXE_KEY_INDEX(u->key);
	const struct urxe_key *k = &a->key[i];

	if (i >= load_acquire(&a->key_high) ||
	    load_relaxed(&k->live) != URXE_MR_LIVE(u->key))
		why_not_live(kind, u);
	else if (k->pd != u->pd)
		note_key(KEY_PD, kind, u, k->pd, u->pd);
	else if ((k->access & u->access) != u->access)
		note_key(KEY_ACCESS, kind, u, k->access, u->access);
	else if (!(u->access & MEM_REMOTE_ACCESS) && k->flags & URXE_MR_IS_MW)
		note_key(KEY_WINDOW_LOCAL, kind, u, 0);
	else if (!mem_serves(k, u->qpn))
		note_key(KEY_WINDOW_QP, kind, u, k->qpn);
	else
		note_key(KEY_RANGE, kind, u, k->iova, k->iova + k->length,
			 u->addr, u->addr + u->len);
}

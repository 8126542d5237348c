// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The key table of a context: an entry for each MR and memory window, which
 * its lkey and rkey name.
 *
 * A key is context slot, index in the table, and an 8-bit tag that changes
 * with each use of the entry.  An entry's live word is URXE_MR_LIVE(key)
 * while the key is valid.  key_alloc() takes an entry, key_set() and
 * key_enable() make it valid, key_revoke() invalidates it and waits for its
 * users, key_free() gives it back.
 *
 * Callers are the MR and MW verbs and bind.c.  The arena's lock protects
 * allocation, tags and windows.  Requesters and pollers look keys up without
 * a lock: key_revoke() clears the live word (seq_cst) and then waits for the
 * guards that name the key and for the pollers (shared/guard.h).
 *
 * key_high and the window counts are in shared memory and may be damaged by
 * other processes.  They are checked before use and repaired.
 */
#include <errno.h>

#include "engine/cq/cq.h"
#include "key.h"
#include "engine/run/quiesce.h"
#include "shared/bitmap.h"

#define KEYS_PER_PAGE (URXE_PAGE / sizeof(struct urxe_key))

/* Number of entries that have memory, also if @high is damaged. */
static uint32_t key_memory(uint32_t high)
{
	return high <= URXE_MAX_KEY ? high / KEYS_PER_PAGE * KEYS_PER_PAGE : 0;
}

static uint32_t key_count(const struct urxe_arena *a)
{
	return key_memory(load_relaxed(&a->key_high));
}

/* Reserve memory for the table up to @index.  0 or -errno. */
static int key_grow(struct urxe_context *ctx, uint32_t index)
{
	struct urxe_arena *a = ctx->arena;
	uint32_t sound, high = load_relaxed(&a->key_high);
	int ret;

	while (index >= (sound = key_memory(high))) {
		ret = arena_reserve(ctx->cmd_fd,
				    (char *)&a->key[sound] - (char *)a,
				    URXE_PAGE);
		if (ret)
			return ret;
		/* if another process was faster, high is its value */
		if (cas_acq_rel(&a->key_high, &high, sound + KEYS_PER_PAGE))
			high = sound + KEYS_PER_PAGE;
	}
	return 0;
}

struct urxe_key *key_alloc(struct urxe_context *ctx, enum urxe_obj obj,
			   uint32_t *key, int *err)
{
	struct urxe_arena *a = ctx->arena;
	uint32_t i, limit;

	*err = process_publish_liveness(ctx->fabric);
	if (!*err)
		*err = fabric_obj_get(ctx->fabric, ctx->slot, obj);
	if (*err)
		return NULL;
	*err = arena_lock(ctx->fabric, a);
	if (*err)
		goto err_put;
	/* reuse entries in turn before the table grows: keys recur late */
	limit = key_count(a);
	i = limit ? bitmap_find_next(a->key_map, limit, a->key_next % limit, 1,
				     1) :
		    0;
	if (i == limit)
		i = bitmap_find(a->key_map, URXE_MAX_KEY, limit, 1, 1);
	if (i < URXE_MAX_KEY) {
		bitmap_set(a->key_map, i, 1);
		a->key_next = i + 1;
		if (obj == URXE_OBJ_MW)
			bitmap_set(a->window_map, i, 1);
		else
			bitmap_clear(a->window_map, i, 1);
		*key = URXE_KEY(ctx->slot, i,
				fetch_add_relaxed(&a->key_tag[i], 1) + 1);
	}
	arena_unlock(ctx->fabric, a);
	*err = i < URXE_MAX_KEY ?
		       key_grow(ctx, i) :
		       fabric_fail(ENOMEM,
				   "a context can have at most %u MRs and MWs",
				   URXE_MAX_KEY - 1);
	if (!*err)
		return &a->key[i];
	if (i < URXE_MAX_KEY)
		bitmap_clear(a->key_map, i, 1);
err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, obj);
	return NULL;
}

void key_set(struct urxe_key *k, const struct urxe_key *desc)
{
	k->iova = desc->iova;
	k->length = desc->length;
	k->va = desc->va;
	k->pd = desc->pd;
	k->access = desc->access;
	k->pid = desc->pid;
	k->kind = desc->kind;
	k->flags = desc->flags;
	k->file = desc->file;
	k->dm = desc->dm;
	k->file_offset = desc->file_offset;
}

void key_enable(struct urxe_arena *a, struct urxe_key *k, uint32_t key)
{
	fetch_add_relaxed(&a->keys_made, 1);
	store_seq_cst(&k->live, URXE_MR_LIVE(key));
}

/* Whether windows are bound to the MR; repair the count.  Lock held. */
static bool key_has_windows(struct urxe_arena *a, struct urxe_key *k,
			    uint32_t key)
{
	uint32_t i, n = 0, limit = key_count(a);

	if (!load_relaxed(&k->windows) || k->flags & URXE_MR_IS_MW)
		return false;
	for (i = 0; i < limit; i++)
		n += bitmap_test(a->key_map, i) &&
		     a->key[i].flags & URXE_MR_IS_MW && a->key[i].parent == key;
	store_relaxed(&k->windows, n);
	return n;
}

/* Wait for requesters, and for pollers, which place inline receive data. */
static void key_quiesce(struct urxe_context *ctx, uint32_t key)
{
	quiesce_mr(ctx->fabric, ctx->arena, key,
		   ctx->arena->key[URXE_KEY_INDEX(key)].pd);
	cq_wait_pollers(ctx);
}

/*
 * The arena's lock orders this with bind.c: while it is held, no window is
 * bound or unbound.  The tag tells whether another process of this context
 * destroyed the object already; its entry may have been reused.
 */
int key_revoke(struct urxe_context *ctx, uint32_t key, bool retire)
{
	struct urxe_arena *a = ctx->arena;
	uint32_t i = URXE_KEY_INDEX(key);
	struct urxe_key *k = &a->key[i];
	int ret;

	ret = arena_lock(ctx->fabric, a);
	if (ret)
		return ret;
	if (!bitmap_test(a->key_map, i) ||
	    load_relaxed(&a->key_tag[i]) != URXE_KEY_TAG(key))
		ret = -ENOENT;
	else if (key_has_windows(a, k, key))
		ret = -EBUSY;
	if (!ret) {
		store_seq_cst(&k->live, 0);
		if (retire)
			fetch_add_relaxed(&a->key_tag[i], 1);
	}
	arena_unlock(ctx->fabric, a);
	if (!ret)
		key_quiesce(ctx, key);
	return ret;
}

void key_free(struct urxe_context *ctx, enum urxe_obj obj, uint32_t key)
{
	bitmap_clear(ctx->arena->key_map, URXE_KEY_INDEX(key), 1);
	fabric_obj_put(ctx->fabric, ctx->slot, obj);
}

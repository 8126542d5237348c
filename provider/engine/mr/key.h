/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The key table of a context: its entries describe the MRs and MWs that lkeys
 * and rkeys name.  Registration calls these functions; requesters read
 * entries through mem.h.
 *
 * States of an entry, and the function that leads there:
 *
 *	free		key_free()
 *	allocated	key_alloc(); live is 0, and the owner fills it
 *	live		key_enable()
 *	revoked		key_revoke(); no requester uses it
 */
#pragma once

#include "engine/core/context.h"

/*
 * Allocate an entry, which is not live, and its key.  On failure return NULL,
 * with -errno in *err.
 */
struct urxe_key *key_alloc(struct urxe_context *ctx, enum urxe_obj obj,
			   uint32_t *key, int *err);
/* Copy the description; not live, the tag, or the count of windows. */
void key_set(struct urxe_key *k, const struct urxe_key *desc);
/*
 * Make the entry live (seq_cst), after it was filled.  Before that, keys_made
 * is incremented, which invalidates cached regions (region.h).
 */
void key_enable(struct urxe_arena *a, struct urxe_key *k, uint32_t key);
/*
 * Invalidate a key (seq_cst), then wait for the guards that name it and for
 * pollers of this process.  retire: also make later calls with this key fail,
 * by other processes that share the context.  -EBUSY if windows are bound to
 * it; -ENOENT if the entry has another key by now.
 */
int key_revoke(struct urxe_context *ctx, uint32_t key, bool retire);
/* Free the entry of a revoked key. */
void key_free(struct urxe_context *ctx, enum urxe_obj obj, uint32_t key);

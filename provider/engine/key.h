/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Entries of a context's key table: what lkeys and rkeys name. */
#pragma once

#include "context.h"

/* A new entry, not yet live; its key in *key.  NULL and -errno in *err. */
struct urxe_key *key_alloc(struct urxe_context *ctx, enum urxe_obj obj,
			   uint32_t *key, int *err);
/* Copy all but live and windows. */
void key_set(struct urxe_key *k, const struct urxe_key *desc);
/* Here it comes: peers may use it. */
void key_enable(struct urxe_arena *a, struct urxe_key *k, uint32_t key);
/*
 * Nobody may use it any more; waits for those who do.  retire: and no other
 * process can name it from here on.  -EBUSY while windows are bound to it,
 * -ENOENT if key is not what the entry holds.
 */
int key_revoke(struct urxe_context *ctx, uint32_t key, bool retire);
void key_free(struct urxe_context *ctx, enum urxe_obj obj, uint32_t key);

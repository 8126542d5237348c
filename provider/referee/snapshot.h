/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What bytes were at a moment, to tell later whether they changed, and where.
 *
 * They are looked at in at most SNAPSHOT_BLOCKS blocks, of each a hash is kept.
 * Up to SNAPSHOT_BYTES that is all of them, and blocks are of 8 bytes at least,
 * of which the hash is as good as a copy; of more bytes a block of 256 here and
 * there, the first and the last always.
 *
 * Reading never faults: the memory may be gone.
 */
#pragma once

#include "span.h"

#define SNAPSHOT_BLOCKS 256
#define SNAPSHOT_BYTES (SNAPSHOT_BLOCKS * 256)

struct snapshot;

/*
 * Free it with free().  NULL: there is nothing to look at, or no way, or
 * *missing, not 0 then, is where memory is missing.
 */
struct snapshot *snapshot_take(const struct spans *s, uint64_t *missing);

/* Where the first block begins that has nothing before byte `from`. */
uint64_t snapshot_block(const struct snapshot *s, uint64_t from);

enum snapshot_verdict { SNAPSHOT_SAME, SNAPSHOT_CHANGED, SNAPSHOT_MISSING };
/*
 * Compare with what is there now, from byte `from` on.  If not the same, *where
 * is the first block that differs (of several pieces: that begins in one), or
 * begins where memory is missing.
 */
enum snapshot_verdict snapshot_compare(const struct snapshot *then,
				       const struct spans *s, uint64_t from,
				       struct span *where);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Snapshots of memory, to detect later whether it changed, and where.
 *
 * A snapshot has hashes of at most SNAPSHOT_BLOCKS blocks.  Memory of up to
 * SNAPSHOT_BYTES is covered completely.  Its blocks have at least 8 bytes; a
 * block of 8 bytes has a hash without collisions.  Longer memory is sampled
 * by SNAPSHOT_BLOCKS blocks of 256 bytes at equal distances, including the
 * first and the last bytes.  Changes between the blocks are not detected.
 *
 * Memory is read by process_vm_readv(2), so memory that is not mapped is
 * reported and does not raise SIGSEGV.  change.c and fetch.c are the callers.
 * There is no state besides the snapshots; any thread may call.
 */
#pragma once

#include "span.h"

#define SNAPSHOT_BLOCKS 256
#define SNAPSHOT_BYTES (SNAPSHOT_BLOCKS * 256)

struct snapshot;

/*
 * Return a snapshot of the spans; the caller frees it with free().  NULL: if
 * *missing is not 0, it is the first address that cannot be read.  Otherwise
 * the spans are empty, there is no memory, or reading is not allowed.
 */
struct snapshot *snapshot_take(const struct spans *s, uint64_t *missing);

/*
 * Return the offset of the first block that begins at or behind offset @from,
 * or the length if there is none.
 */
uint64_t snapshot_block(const struct snapshot *s, uint64_t from);

enum snapshot_verdict { SNAPSHOT_SAME, SNAPSHOT_CHANGED, SNAPSHOT_MISSING };
/*
 * Compare the snapshot with the current bytes, in blocks that begin at or
 * behind offset @from.  CHANGED: *where is the first block that differs; if
 * its bytes are in several spans, *where has the address of the first byte
 * and the length of the block.  MISSING: where->at is the first address that
 * cannot be read.  If the memory cannot be read for another reason, the
 * result is SAME.
 */
enum snapshot_verdict snapshot_compare(const struct snapshot *then,
				       const struct spans *s, uint64_t from,
				       struct span *where);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The ranges of bytes that outstanding WRs read or write, in a hierarchical
 * spatial hash (Eitz and Gu, "Hierarchical Spatial Hashing for Real-time
 * Collision Detection", 2007; here with one dimension).  It finds the entries
 * that overlap a given range.
 *
 * An entry of at most 2^k bytes, and of more than 2^(k-1), has level k.  It
 * is in the bucket of the block of 2^k bytes in which it begins.  So an entry
 * of level k that overlaps a span begins in one of the blocks of the span, or
 * in the block before them; no other buckets are visited.
 *
 * memory.c owns the tables; all calls are made under referee_lock().
 */
#pragma once

#include "span.h"

struct memory;

struct flight_entry {
	struct flight_entry *next; /* in the same bucket */
	struct span span;
	struct memory *of;
	uint32_t key; /* rkey of the span; 0: addresses of this process */
	uint8_t level;
};

#define FLIGHT_LEVELS 64

struct flight_table {
	struct flight_entry **bucket;
	size_t n, buckets; /* a power of 2, or 0 */
	size_t of_level[FLIGHT_LEVELS]; /* entries of each level */
};

/*
 * Add an entry.  An empty span is not added.  False: there is no memory, or
 * the span is longer than 2^63 bytes.
 */
bool flight_table_add(struct flight_table *t, const struct span *span,
		      uint32_t key, struct memory *of);
/* Remove the entry of that span and @of, if there is one. */
void flight_table_remove(struct flight_table *t, const struct span *span,
			 const struct memory *of);
/* Remove all entries, and free the buckets. */
void flight_table_clear(struct flight_table *t);

/*
 * An iterator over the entries that have a key and overlap a span.  No entry
 * may be added or removed meanwhile.
 */
struct flight_iter {
	const struct flight_table *t;
	struct span span;
	uint32_t key;
	unsigned int level;
	uint64_t block, last; /* the current block, and the level's last */
	size_t at; /* the current bucket */
	bool all; /* visit all buckets, not those of the blocks */
	struct flight_entry *e;
	size_t seen; /* entries and buckets visited, for tests */
};

void flight_iter_begin(struct flight_iter *l, const struct flight_table *t,
		       const struct span *span, uint32_t key);
/* Return the next entry, or NULL. */
struct flight_entry *flight_iter_next(struct flight_iter *l);

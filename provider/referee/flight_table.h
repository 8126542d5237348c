/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which bytes WRs in flight read or write: a hierarchical spatial hash.
 *
 * An entry of up to 2^k bytes is of level k, and in the bucket of the block of
 * 2^k bytes that it begins in.  So whatever meets a span begins, at each level,
 * in one of the blocks of that span or in the block before them.
 */
#pragma once

#include "span.h"

struct memory;

struct flight_entry {
	struct flight_entry *next; /* of the same bucket */
	struct span span;
	struct memory *of;
	uint32_t key; /* an rkey whose bytes they are; 0: this process's */
	uint8_t level;
};

#define FLIGHT_LEVELS 64

struct flight_table {
	struct flight_entry **bucket;
	size_t n, buckets; /* a power of 2, or 0 */
	size_t of_level[FLIGHT_LEVELS]; /* how many there are */
};

/* False: there is no memory. */
bool flight_table_add(struct flight_table *t, const struct span *span,
		      uint32_t key, struct memory *of);
/* That entry of it, if it is there. */
void flight_table_remove(struct flight_table *t, const struct span *span,
			 const struct memory *of);
/* All of them. */
void flight_table_clear(struct flight_table *t);

/* A walk through those that meet a span; none may be added or removed
 * meanwhile. */
struct flight_look {
	const struct flight_table *t;
	struct span span;
	uint32_t key;
	unsigned int level;
	uint64_t block, last; /* of that level */
	size_t at; /* the bucket, if all of them are looked through */
	bool all;
	struct flight_entry *e;
	size_t seen; /* entries and buckets so far */
};

void flight_look_begin(struct flight_look *l, const struct flight_table *t,
		       const struct span *span, uint32_t key);
/* The next one, or NULL. */
struct flight_entry *flight_look_next(struct flight_look *l);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bitmaps in shared memory, of indices and pages in use.  bitmap_take(),
 * bitmap_try_set() and bitmap_clear() need no lock: the thread that changes a
 * bit from 0 to 1 owns it, and only the owner clears it.  Setting is acquire
 * and clearing is release, so what an owner did precedes what the next owner
 * does.  Search functions load relaxed: their result is a hint.
 *
 * @n bits from @bit on must lie within the bitmap.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

static inline _Atomic uint64_t *bitmap_word(const uint64_t *map, uint32_t bit)
{
	return (_Atomic uint64_t *)&map[bit / 64];
}

/*
 * Return the mask of those of @n bits from @bit on that lie in its word, and
 * their number in *in_word.
 */
static inline uint64_t bitmap_mask(uint32_t bit, uint32_t n, uint32_t *in_word)
{
	*in_word = 64 - bit % 64 < n ? 64 - bit % 64 : n;
	return UINT64_MAX >> (64 - *in_word) << (bit % 64);
}

static inline bool bitmap_test(const uint64_t *map, uint32_t bit)
{
	return load_relaxed(bitmap_word(map, bit)) >> (bit % 64) & 1;
}

/* release: see above */
static inline void bitmap_clear(uint64_t *map, uint32_t bit, uint32_t n)
{
	uint64_t mask;
	uint32_t k;

	for (; n; bit += k, n -= k) {
		mask = bitmap_mask(bit, n, &k);
		fetch_and_release(bitmap_word(map, bit), ~mask);
	}
}

/*
 * Set @n bits, all of which must be clear.  False: one of them was set, and
 * those that this call had set are clear again.
 */
static inline bool bitmap_try_set(uint64_t *map, uint32_t bit, uint32_t n)
{
	const uint32_t first = bit;
	uint64_t mask, old;
	uint32_t k;

	for (; n; bit += k, n -= k) {
		mask = bitmap_mask(bit, n, &k);
		old = fetch_or_acquire(bitmap_word(map, bit), mask);
		if (!(old & mask))
			continue;
		fetch_and_release(bitmap_word(map, bit), ~(mask & ~old));
		bitmap_clear(map, first, bit - first);
		return false;
	}
	return true;
}

static inline void bitmap_set(uint64_t *map, uint32_t bit, uint32_t n)
{
	uint64_t mask;
	uint32_t k;

	for (; n; bit += k, n -= k) {
		mask = bitmap_mask(bit, n, &k);
		fetch_or_acquire(bitmap_word(map, bit), mask);
	}
}

/*
 * Return the first multiple of @align in [from, bits) where @n bits are
 * clear, or @bits if there is none.  Full words are skipped.
 */
static inline uint32_t bitmap_find(const uint64_t *map, uint32_t bits,
				   uint32_t from, uint32_t n, uint32_t align)
{
	uint32_t start, end;

	for (start = (from + align - 1) / align * align;
	     start < bits && n <= bits - start;) {
		if (start % 64 == 0 &&
		    load_relaxed(bitmap_word(map, start)) == UINT64_MAX) {
			start = (start + 64 + align - 1) / align * align;
			continue;
		}
		for (end = start; end < start + n; end++)
			if (bitmap_test(map, end))
				break;
		if (end == start + n)
			return start;
		start = (end + 1 + align - 1) / align * align;
	}
	return bits;
}

/* Search from @from to the end, then from 0. */
static inline uint32_t bitmap_find_next(const uint64_t *map, uint32_t bits,
					uint32_t from, uint32_t n,
					uint32_t align)
{
	uint32_t bit = bitmap_find(map, bits, from, n, align);

	return bit < bits || !from ? bit : bitmap_find(map, bits, 0, n, align);
}

/* Find and set @n clear bits.  Return the first, or @bits. */
static inline uint32_t bitmap_take(uint64_t *map, uint32_t bits, uint32_t from,
				   uint32_t n, uint32_t align)
{
	uint32_t bit;

	do {
		bit = bitmap_find_next(map, bits, from, n, align);
	} while (bit < bits && !bitmap_try_set(map, bit, n));
	return bit;
}

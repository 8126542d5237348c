/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bit maps in shared memory.  bitmap_take() and bitmap_clear() need no lock:
 * whoever sets a bit that was clear has it, and gives it back alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

static inline _Atomic uint64_t *bitmap_word(const uint64_t *map, uint32_t bit)
{
	return (_Atomic uint64_t *)&map[bit / 64];
}

/* Those of n bits from `bit` that are in its word. */
static inline uint64_t bitmap_mask(uint32_t bit, uint32_t n, uint32_t *in_word)
{
	*in_word = 64 - bit % 64 < n ? 64 - bit % 64 : n;
	return UINT64_MAX >> (64 - *in_word) << (bit % 64);
}

static inline bool bitmap_test(const uint64_t *map, uint32_t bit)
{
	return load_relaxed(bitmap_word(map, bit)) >> (bit % 64) & 1;
}

/* release: who takes them next comes after what was done with them */
static inline void bitmap_clear(uint64_t *map, uint32_t bit, uint32_t n)
{
	uint64_t mask;
	uint32_t k;

	for (; n; bit += k, n -= k) {
		mask = bitmap_mask(bit, n, &k);
		fetch_and_release(bitmap_word(map, bit), ~mask);
	}
}

/* False: one of them was set already, and no other is now. */
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
 * First run of n clear bits in [from, bits) that starts at a multiple of
 * align; bits if there is none.  Full words are stepped over.
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

/* The same, but searching from `from` first and then from the beginning. */
static inline uint32_t bitmap_find_next(const uint64_t *map, uint32_t bits,
					uint32_t from, uint32_t n,
					uint32_t align)
{
	uint32_t bit = bitmap_find(map, bits, from, n, align);

	return bit < bits || !from ? bit : bitmap_find(map, bits, 0, n, align);
}

/* bitmap_find_next(), and they are ours. */
static inline uint32_t bitmap_take(uint64_t *map, uint32_t bits, uint32_t from,
				   uint32_t n, uint32_t align)
{
	uint32_t bit;

	do {
		bit = bitmap_find_next(map, bits, from, n, align);
	} while (bit < bits && !bitmap_try_set(map, bit, n));
	return bit;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Bit maps in shared memory.  The caller holds the lock that guards them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

static inline bool bitmap_test(const uint64_t *map, uint32_t bit)
{
	return map[bit / 64] >> (bit % 64) & 1;
}

static inline void bitmap_set(uint64_t *map, uint32_t bit, uint32_t n)
{
	for (; n; bit++, n--)
		map[bit / 64] |= 1ull << (bit % 64);
}

static inline void bitmap_clear(uint64_t *map, uint32_t bit, uint32_t n)
{
	for (; n; bit++, n--)
		map[bit / 64] &= ~(1ull << (bit % 64));
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
		if (start % 64 == 0 && map[start / 64] == UINT64_MAX) {
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

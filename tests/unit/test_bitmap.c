// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Bitmaps: runs, alignment, word borders, and comparison with a model. */
#include <stdlib.h>
#include <string.h>

#include "shared/bitmap.h"
#include "unit.h"

#define BITS 256

START_TEST(set_test_clear)
{
	uint64_t map[4] = { 0 };
	uint32_t i;

	bitmap_set(map, 60, 10);
	for (i = 0; i < BITS; i++)
		ck_assert_int_eq(bitmap_test(map, i), i >= 60 && i < 70);
	bitmap_clear(map, 62, 4);
	for (i = 0; i < BITS; i++)
		ck_assert_int_eq(bitmap_test(map, i),
				 (i >= 60 && i < 62) || (i >= 66 && i < 70));
	bitmap_set(map, 0, BITS);
	for (i = 0; i < 4; i++)
		ck_assert(map[i] == UINT64_MAX);
	bitmap_clear(map, 0, BITS);
	for (i = 0; i < 4; i++)
		ck_assert(map[i] == 0);
}
END_TEST

START_TEST(find_in_empty_and_full)
{
	uint64_t map[4] = { 0 };

	ck_assert_uint_eq(bitmap_find(map, BITS, 0, 1, 1), 0);
	ck_assert_uint_eq(bitmap_find(map, BITS, 0, BITS, 1), 0);
	ck_assert_uint_eq(bitmap_find(map, BITS, 0, BITS + 1, 1), BITS);
	ck_assert_uint_eq(bitmap_find(map, BITS, 1, BITS, 1), BITS);
	ck_assert_uint_eq(bitmap_find(map, BITS, 255, 1, 1), 255);
	ck_assert_uint_eq(bitmap_find(map, BITS, 255, 2, 1), BITS);
	bitmap_set(map, 0, BITS);
	ck_assert_uint_eq(bitmap_find(map, BITS, 0, 1, 1), BITS);
	bitmap_clear(map, 255, 1);
	ck_assert_uint_eq(bitmap_find(map, BITS, 0, 1, 1), 255);
	ck_assert_uint_eq(bitmap_find(map, BITS, 0, 1, 2), BITS);
}
END_TEST

START_TEST(find_aligned)
{
	uint64_t map[4] = { 0 };

	bitmap_set(map, 0, 1);
	ck_assert_uint_eq(bitmap_find(map, BITS, 0, 4, 1), 1);
	ck_assert_uint_eq(bitmap_find(map, BITS, 0, 4, 4), 4);
	ck_assert_uint_eq(bitmap_find(map, BITS, 0, 4, 128), 128);
	bitmap_set(map, 130, 1);
	ck_assert_uint_eq(bitmap_find(map, BITS, 0, 4, 128), BITS);
	/* the alignment need not be a power of two */
	ck_assert_uint_eq(bitmap_find(map, BITS, 0, 3, 48), 48);
}
END_TEST

START_TEST(find_next_wraps)
{
	uint64_t map[4] = { 0 };

	bitmap_set(map, 100, BITS - 100);
	ck_assert_uint_eq(bitmap_find(map, BITS, 100, 1, 1), BITS);
	ck_assert_uint_eq(bitmap_find_next(map, BITS, 100, 1, 1), 0);
	ck_assert_uint_eq(bitmap_find_next(map, BITS, 90, 10, 1), 90);
	ck_assert_uint_eq(bitmap_find_next(map, BITS, 91, 10, 1), 0);
	ck_assert_uint_eq(bitmap_find_next(map, BITS, 0, 101, 1), BITS);
}
END_TEST

/* Reference implementation of bitmap_find(). */
static uint32_t find_slowly(const uint64_t *map, uint32_t from, uint32_t n,
			    uint32_t align)
{
	uint32_t start, i;

	for (start = 0; start + n <= BITS; start++) {
		if (start < from || start % align)
			continue;
		for (i = 0; i < n && !bitmap_test(map, start + i); i++)
			;
		if (i == n)
			return start;
	}
	return BITS;
}

START_TEST(find_matches_model)
{
	uint64_t map[4];
	uint32_t round, i, from, n, align;

	srandom(1);
	for (round = 0; round < 20000; round++) {
		for (i = 0; i < 4; i++) {
			map[i] = (uint64_t)random() << 33 ^
				 (uint64_t)random() << 11 ^ (uint64_t)random();
			/* full and empty words are special cases */
			if (random() % 4 == 0)
				map[i] = UINT64_MAX;
			if (random() % 4 == 0)
				map[i] = 0;
		}
		from = random() % BITS;
		n = 1 + random() % (random() % 2 ? 4 : 100);
		align = 1u << random() % 8;
		ck_assert_uint_eq(bitmap_find(map, BITS, from, n, align),
				  find_slowly(map, from, n, align));
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("bitmap");

	add(s, set_test_clear);
	add(s, find_in_empty_and_full);
	add(s, find_aligned);
	add(s, find_next_wraps);
	add(s, find_matches_model);
	return run_suite(s);
}

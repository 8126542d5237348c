/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Chance that comes again.
 *
 * Nothing is drawn from a generator that goes on: a value is a function of the
 * seed, of whose it is (struct chance: the program, an object of it) and of
 * what it is for and the how manieth of that.  So it does not matter in which
 * order threads ask, and a value more in one place changes none elsewhere.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chance {
	uint64_t key;
};

/* Each bit of x touches all (a permutation: the finalizer of splitmix64). */
static inline uint64_t chance_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* What is of whole, and of it the part `which`. */
static inline struct chance chance_part(struct chance whole, uint64_t which)
{
	return (struct chance){ chance_mix(whole.key ^ chance_mix(which)) };
}

static inline struct chance chance_named(struct chance whole, const char *name)
{
	for (; *name; name++)
		whole = chance_part(whole, (unsigned char)*name);
	return whole;
}

/* The nth value for that. */
static inline uint64_t chance_draw(struct chance c, uint32_t what, uint64_t nth)
{
	return chance_part(chance_part(c, what), nth).key;
}

/* ns: 0.1 ms, or twice that, or twice that ... so often at most, and seldom. */
static inline uint64_t chance_ns(struct chance c, uint32_t what, uint64_t nth,
				 unsigned int doublings)
{
	return 100000ull << __builtin_ctzll(chance_draw(c, what, nth) |
					    1ull << doublings);
}

/* Of 0 to n - 1; n is not 0. */
static inline uint32_t chance_below(struct chance c, uint32_t what,
				    uint64_t nth, uint32_t n)
{
	return (uint32_t)((chance_draw(c, what, nth) >> 32) * n >> 32);
}

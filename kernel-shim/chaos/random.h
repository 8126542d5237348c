/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Seeded random numbers: a counter-based generator, whose mixing function is
 * the finalizer of splitmix64 (Steele, Lea, Flood, "Fast Splittable
 * Pseudorandom Number Generators", OOPSLA 2014).
 *
 * The generator has no state.  A value is a function of the stream (struct
 * chance: the seed, the program, and an object of the program), of its
 * purpose, and of its number for that purpose.  So values do not depend on
 * the order in which threads draw them, and an additional draw in one place
 * changes no values elsewhere.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stream of random numbers. */
struct random_stream {
	uint64_t key;
};

/* Mix the bits of @x: a permutation; each bit affects all bits. */
static inline uint64_t random_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* Return substream @which of a stream. */
static inline struct random_stream random_part(struct random_stream whole,
					       uint64_t which)
{
	return (struct random_stream){ random_mix(whole.key ^
						  random_mix(which)) };
}

/* Return the substream of that name, such as the name of the program. */
static inline struct random_stream random_named(struct random_stream whole,
						const char *name)
{
	for (; *name; name++)
		whole = random_part(whole, (unsigned char)*name);
	return whole;
}

/* Return value number @nth for purpose @what, 64 random bits. */
static inline uint64_t random_draw(struct random_stream c, uint32_t what,
				   uint64_t nth)
{
	return random_part(random_part(c, what), nth).key;
}

/*
 * Return a random delay in ns: 0.1 ms * 2^k with probability 2^-(k + 1), and
 * k at most @doublings.
 */
static inline uint64_t random_ns(struct random_stream c, uint32_t what,
				 uint64_t nth, unsigned int doublings)
{
	return 100000ull << __builtin_ctzll(random_draw(c, what, nth) |
					    1ull << doublings);
}

/* Return a random number from 0 to @n - 1.  @n is not 0. */
static inline uint32_t random_below(struct random_stream c, uint32_t what,
				    uint64_t nth, uint32_t n)
{
	return (uint32_t)((random_draw(c, what, nth) >> 32) * n >> 32);
}

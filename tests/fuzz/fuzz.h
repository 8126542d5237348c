/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Numbers from a seed: the same ones each time. */
#pragma once

#include <stdint.h>

struct dice {
	uint64_t state;
};

/* splitmix64 */
static inline uint64_t roll64(struct dice *d)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* In [0, n). */
static inline uint32_t roll(struct dice *d, uint32_t n)
{
	return (uint32_t)(roll64(d) >> 32) % n;
}

/* What a worker ends with. */
#define FUZZ_BUS 3 /* SIGBUS */

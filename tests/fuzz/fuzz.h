/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What fuzz.c and traffic.c share: seeded random numbers by splitmix64
 * (Steele, Lea and Flood 2014), and an exit status.  The same seed gives the
 * same sequence.
 */
#pragma once

#include <stdint.h>

struct dice {
	uint64_t state;
};

static inline uint64_t roll64(struct dice *d)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* A number in [0, n); n is not 0. */
static inline uint32_t roll(struct dice *d, uint32_t n)
{
	return (uint32_t)(roll64(d) >> 32) % n;
}

/* Exit status of traffic.c if SIGBUS killed one of its processes */
#define FUZZ_BUS 3

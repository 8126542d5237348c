/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include <stdint.h>

/* Return log2(@n), rounded up; 0 if n is 0. */
static inline uint32_t log2_up(uint32_t n)
{
	return n > 1 ? 32 - (uint32_t)__builtin_clz(n - 1) : 0;
}

/* Return the smallest power of two that is >= @n; @n is at most 2^31. */
static inline uint32_t pow2_up(uint32_t n)
{
	return 1u << log2_up(n);
}

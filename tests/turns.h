/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How often a test repeats something whose outcome depends on how threads or
 * processes happen to run.
 */
#pragma once

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TURNS_SANITIZED 5
#else
#define TURNS_SANITIZED 1
#endif

/*
 * @n turns.  Under a sanitizer a fifth of them in ./check, because each takes
 * several times as long, and @n in ./check --long (URXE_TEST_LONG).  Forked
 * processes of one test get the same number.
 */
static inline int turns_of(int n)
{
	if (getenv("URXE_TEST_LONG") || n < TURNS_SANITIZED)
		return n;
	return n / TURNS_SANITIZED;
}

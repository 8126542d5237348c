/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Number of repetitions in tests whose outcome depends on the scheduling of
 * threads or processes
 */
#pragma once

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TURNS_SANITIZED 5
#else
#define TURNS_SANITIZED 1
#endif

/*
 * Return the number of repetitions, for @n in a normal build.  Under a
 * sanitizer, where each takes several times as long, it is a fifth of @n in
 * ./check and @n in ./check --long (URXE_TEST_LONG).  Forked processes of a
 * test get the same number.
 */
static inline int turns_of(int n)
{
	if (getenv("URXE_TEST_LONG") || n < TURNS_SANITIZED)
		return n;
	return n / TURNS_SANITIZED;
}

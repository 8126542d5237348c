/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Helpers for tests of the engine with several threads in one process. */
#pragma once

#include <pthread.h>

#include "base/clock.h"
#include "engine/engine.h"

/* As ck_assert(), for hot loops: only a failure is reported to the runner. */
#define sure(cond) \
	do { \
		if (!(cond)) \
			ck_abort_msg("%s:%d: %s", __func__, __LINE__, #cond); \
	} while (0)

/* a longer wait is a hang */
#define HANG_NS 60000000000ull
#define threads_add(suite, test) \
	do { \
		TCase *tc_ = tcase_create(#test); \
		tcase_set_timeout(tc_, 300); \
		tcase_add_test(tc_, test); \
		suite_add_tcase(suite, tc_); \
	} while (0)

/* Repeat meanwhile until cond holds; fail after HANG_NS. */
#define until(cond, meanwhile) \
	do { \
		uint64_t end_ = clock_now() + HANG_NS; \
		while (!(cond)) { \
			meanwhile; \
			sure(clock_now() < end_); \
		} \
	} while (0)

static inline pthread_t thread_of(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	sure(!pthread_create(&t, NULL, fn, arg));
	return t;
}

/* Return a number below @n (xorshift64).  *@state must not be 0. */
static inline uint32_t rnd(uint64_t *state, uint32_t n)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 20) % n;
}

/* Fill in a message: @len bytes that count up from @seed. */
static inline void bytes_make(char *p, uint32_t len, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		p[i] = (char)(seed + i);
}

static inline bool bytes_are(const char *p, uint32_t len, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < len && p[i] == (char)(seed + i); i++)
		;
	return i == len;
}

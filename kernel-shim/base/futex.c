// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "futex.h"

#ifndef SYS_futex_waitv /* Linux 5.16; the same number on all architectures */
#define SYS_futex_waitv 449
#endif

/* struct futex_waitv, which older headers do not have */
struct waitv {
	uint64_t val, uaddr;
	uint32_t flags, zero;
};
#define WAITV_SIZE_U32 2u

int futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t ns)
{
	const struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000),
				     .tv_nsec = (long)(ns % 1000000000) };
	const struct timespec *limit = ns == FUTEX_FOR_EVER ? NULL : &ts;
	int saved = errno, ret = 0;

	if (syscall(SYS_futex, word, FUTEX_WAIT, seen, limit, NULL, 0) &&
	    errno == EINTR)
		ret = -EINTR;
	errno = saved;
	return ret;
}

void futex_wake(_Atomic uint32_t *word, int n)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAKE, n, NULL, NULL, 0);
	errno = saved;
}

int event_count_wait(struct event_count *e, uint32_t seen, uint64_t ns)
{
	int ret = 0;

	fetch_add_seq_cst(&e->sleepers, 1);
	if (event_count_read(e) == seen)
		ret = futex_wait(&e->count, seen, ns);
	fetch_sub_relaxed(&e->sleepers, 1);
	return ret;
}

void event_count_ring(struct event_count *e)
{
	fetch_add_seq_cst(&e->count, 1);
	if (load_seq_cst(&e->sleepers))
		futex_wake(&e->count, INT_MAX);
}

static _Atomic int words_known; /* 1: has futex_waitv(2), -1: not */

bool event_count_takes_words(void)
{
	int has = load_relaxed(&words_known), saved = errno;

	if (has)
		return has > 0;
	/* without words a kernel that has the call returns EINVAL */
	has = syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0) && errno == EINVAL ?
		      1 :
		      -1;
	store_relaxed(&words_known, has);
	errno = saved;
	return has > 0;
}

static struct waitv waitv_word(_Atomic uint32_t *word, uint32_t seen)
{
	return (struct waitv){ .val = seen,
			       .uaddr = (uintptr_t)word,
			       .flags = WAITV_SIZE_U32 };
}

static void futex_wait_words(_Atomic uint32_t *word, uint32_t seen,
			     const struct futex_word *words, uint32_t n,
			     uint64_t ns)
{
	const uint64_t until = clock_now() + ns;
	const struct timespec ts = { .tv_sec = (time_t)(until / 1000000000),
				     .tv_nsec = (long)(until % 1000000000) };
	struct waitv v[1 + FUTEX_WORDS_MAX];
	int saved = errno;
	uint32_t i;

	v[0] = waitv_word(word, seen);
	for (i = 0; i < n; i++)
		v[1 + i] = waitv_word(words[i].word, words[i].seen);
	if (syscall(SYS_futex_waitv, v, 1 + n, 0, &ts, CLOCK_MONOTONIC) < 0 &&
	    errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT)
		/* forbidden since (seccomp); else the callers would spin */
		store_relaxed(&words_known, -1);
	errno = saved;
}

void event_count_wait_words(struct event_count *e, uint32_t seen,
			    const struct futex_word *words, uint32_t n,
			    uint64_t ns)
{
	if (!n) {
		event_count_wait(e, seen, ns);
		return;
	}
	fetch_add_seq_cst(&e->sleepers, 1);
	if (event_count_read(e) == seen)
		futex_wait_words(&e->count, seen, words, n, ns);
	fetch_sub_relaxed(&e->sleepers, 1);
}

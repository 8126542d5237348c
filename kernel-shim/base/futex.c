// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "futex.h"

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

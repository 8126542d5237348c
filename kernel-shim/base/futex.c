// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "futex.h"

int event_count_wait(struct event_count *e, uint32_t seen, uint64_t ns)
{
	const struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000),
				     .tv_nsec = (long)(ns % 1000000000) };
	const struct timespec *limit = ns == EVENT_COUNT_FOR_EVER ? NULL : &ts;
	int saved = errno, ret = 0;

	fetch_add_seq_cst(&e->sleepers, 1);
	if (event_count_read(e) == seen &&
	    syscall(SYS_futex, &e->count, FUTEX_WAIT, seen, limit, NULL, 0) &&
	    errno == EINTR)
		ret = -EINTR;
	fetch_sub_relaxed(&e->sleepers, 1);
	errno = saved;
	return ret;
}

void event_count_ring(struct event_count *e)
{
	fetch_add_seq_cst(&e->count, 1);
	if (load_seq_cst(&e->sleepers))
		syscall(SYS_futex, &e->count, FUTEX_WAKE, INT_MAX, NULL, NULL,
			0);
}

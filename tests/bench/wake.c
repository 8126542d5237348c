/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Cost of waking another process on the same CPU and of being woken by it */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <math.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

static void wake(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void await(_Atomic uint32_t *word, uint32_t value)
{
	while (atomic_load_explicit(word, memory_order_acquire) != value)
		syscall(SYS_futex, word, FUTEX_WAIT, value - 1, NULL, NULL, 0);
}

/*
 * Each process wakes the other one and then sleeps.  Return ns for both
 * wake-ups.
 */
double raw_wake(struct end *e, uint32_t n)
{
	_Atomic uint32_t *word = e->common->wake;
	uint64_t t;
	uint32_t i;

	/* relaxed: the peer loads it only after the barrier */
	atomic_store_explicit(&word[e->rank], 0, memory_order_relaxed);
	if (!end_share_cpu(e))
		n = 0;
	t = bench_now();
	for (i = 1; i <= n; i++) {
		if (e->rank == 0)
			wake(&word[0], i);
		await(&word[!e->rank], i);
		if (e->rank == 1)
			wake(&word[1], i);
	}
	t = bench_now() - t;
	end_leave_cpu(e);
	return n ? (double)t / n : NAN;
}

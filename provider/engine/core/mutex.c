// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Slow path of the futex mutex of mutex.h: spin, then register as a waiter
 * and sleep. tests/model/mutex.pml checks the protocol.
 */
#include "base/futex.h"
#include "mutex.h"

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/*
 * Upper bound of one sleep. A seccomp filter installed later may forbid
 * membarrier(2), and then a wake-up can be missed.
 */
#define MUTEX_NAP_NS 1000000000ull

/*
 * Spins before sleeping. Most critical sections are shorter than the time it
 * takes to fall asleep.
 */
#define MUTEX_SPINS 40

static bool mutex_spin(struct urxe_mutex *m)
{
	int i;

	for (i = 0; i < MUTEX_SPINS; i++) {
		cpu_relax();
		if (!load_relaxed(&m->locked) && mutex_trylock(m))
			return true;
	}
	return false;
}

void mutex_lock_slow(struct urxe_mutex *m)
{
	if (mutex_spin(m))
		return;
	fetch_add_relaxed(&m->waiters, 1);
	presence_barrier();
	while (!mutex_spin(m))
		futex_wait(&m->locked, 1, MUTEX_NAP_NS);
	fetch_sub_relaxed(&m->waiters, 1);
}

void mutex_wake(struct urxe_mutex *m)
{
	futex_wake(&m->locked, 1);
}

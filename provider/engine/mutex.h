/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A lock among the threads of this process, for the data path: one locked
 * instruction takes it and none gives it back.  (One of glibc has two.)
 *
 *	holder				who waits
 *	locked = 0			waiters++
 *	(here)				presence_barrier()
 *	waiters?  wake one		locked?  then sleep
 *
 * It is the argument of base/presence.h: either the holder sees that somebody
 * waits, or he who waits sees that the lock is free, because the barrier runs
 * on the holder's CPU, too.  One barrier does for all of his wait: whoever gives
 * the lock back later sees him.  tests/model/mutex.pml is this, checked.
 *
 * Who gives the lock back reads `waiters` afterwards, when it may be another's
 * already: the lock's memory is freed only by those who know that nobody is at
 * it, as ctx->lock and the pins of QPs see to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/presence.h"

struct urxe_mutex {
	_Atomic uint32_t locked; /* futex */
	_Atomic uint32_t waiters;
};

/* Also in the child of a fork, where nobody else is. */
static inline void mutex_init(struct urxe_mutex *m)
{
	store_relaxed(&m->locked, 0);
	store_relaxed(&m->waiters, 0);
}

static inline bool mutex_trylock(struct urxe_mutex *m)
{
	uint32_t is_free = 0;

	return atomic_compare_exchange_strong_explicit(&m->locked, &is_free, 1,
						       memory_order_acquire,
						       memory_order_relaxed);
}

void mutex_lock_slow(struct urxe_mutex *m) __attribute__((cold));
void mutex_wake(struct urxe_mutex *m) __attribute__((cold));

static inline void mutex_lock(struct urxe_mutex *m)
{
	if (unlikely(!mutex_trylock(m)))
		mutex_lock_slow(m);
}

/*
 * The same for who has seen that presence_cheap is true; true: mutex_wake() is
 * still to be called.
 */
static inline bool mutex_unlock_cheap(struct urxe_mutex *m)
{
	store_release(&m->locked, 0);
	atomic_signal_fence(memory_order_seq_cst);
	return unlikely(load_relaxed(&m->waiters));
}

static inline void mutex_unlock(struct urxe_mutex *m)
{
	store_release(&m->locked, 0);
	if (likely(presence_cheap))
		atomic_signal_fence(memory_order_seq_cst);
	else
		presence_barrier();
	if (unlikely(load_relaxed(&m->waiters)))
		mutex_wake(m);
}

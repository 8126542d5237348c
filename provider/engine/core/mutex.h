/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A futex mutex between the threads of this process, for the data path.  lock
 * executes one locked instruction and unlock none; a glibc mutex has one in
 * each.
 *
 *	unlock				lock, slow path
 *	locked = 0			waiters++
 *	(compiler barrier)		presence_barrier()
 *	if waiters != 0: wake one	if locked: sleep
 *
 * This is an asymmetric Dekker handshake, see base/presence.h: membarrier(2)
 * runs a full barrier on the holder's CPU as well.  So either the holder sees
 * the waiter, or the waiter sees that the lock is free.  One barrier is
 * enough for the whole wait, because each later unlock sees the waiter.
 * tests/model/mutex.pml checks this.
 *
 * unlock reads waiters after it has released the lock, when another thread
 * may hold it.  So the memory of the lock must not be freed before all
 * threads have returned from unlock.  ctx->lock and the pins of QPs ensure
 * that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/presence.h"

struct urxe_mutex {
	_Atomic uint32_t locked; /* 0 or 1; the futex word */
	_Atomic uint32_t waiters; /* threads in mutex_lock_slow() */
};

/* Initialize the mutex; also in the child of a fork. */
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
 * Unlock when presence_cheap is known to be true.  If this returns true the
 * caller has to call mutex_wake().
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

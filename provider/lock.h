/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Locks, and what is left of them where one thread is promised.
 *
 * A thread domain, or IBV_CREATE_CQ_ATTR_SINGLE_THREADED, promises that one
 * application thread uses the object.  That thread then pays no locked
 * instruction.  But others come by now and then: a poller of another CQ that
 * flushes a broken QP, the service thread with its timers, a thread that
 * deregisters memory.  They are the *outsiders*, and theirs is the whole
 * price:
 *
 *   the one thread		an outsider (the mutex held)
 *   inside = true		claimed = true
 *   (compiler barrier)		membarrier(2)
 *   claimed?  then back out	inside?  then wait, or give up
 *     and take the mutex
 *
 * membarrier runs a full barrier on every thread of the process, so that one
 * of the two sees the other, as with a barrier on both sides.
 */
#ifndef URXE_LOCK_H
#define URXE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct urxe_lock {
	pthread_mutex_t mutex;
	bool single_threaded;
	bool by_mutex; /* how the one thread got in */
	_Atomic bool inside; /* the one thread is in */
	_Atomic bool claimed; /* an outsider is in, or about to be */
};

/* single_threaded is a wish: without membarrier(2) it is not granted. */
void urxe_lock_init(struct urxe_lock *l, bool single_threaded);
void urxe_lock_destroy(struct urxe_lock *l);
void urxe_lock_slow(struct urxe_lock *l);

static inline void urxe_lock(struct urxe_lock *l)
{
	if (!l->single_threaded) {
		pthread_mutex_lock(&l->mutex);
		return;
	}
	atomic_store_explicit(&l->inside, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&l->claimed,
						  memory_order_acquire), 0))
		urxe_lock_slow(l);
}

static inline void urxe_unlock(struct urxe_lock *l)
{
	if (!l->single_threaded) {
		pthread_mutex_unlock(&l->mutex);
	} else if (__builtin_expect(l->by_mutex, 0)) {
		l->by_mutex = false;
		pthread_mutex_unlock(&l->mutex);
	} else {
		atomic_store_explicit(&l->inside, false, memory_order_release);
	}
}

/* For whoever is not the one thread, or does not know. */
void urxe_lock_outside(struct urxe_lock *l);
bool urxe_trylock_outside(struct urxe_lock *l);
void urxe_unlock_outside(struct urxe_lock *l);

#endif

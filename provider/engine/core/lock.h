/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Locks of queues and CQs: the gate, and the queue lock that is a gate or a
 * mutex.
 *
 * A gate is an asymmetric lock (a biased lock, an asymmetric Dekker handshake
 * with membarrier(2)).  One thread at a time is its insider, which executes
 * no locked instruction.  The insider is the thread that a thread domain or
 * IBV_CREATE_CQ_ATTR_SINGLE_THREADED promises, or a poller that holds another
 * lock.  All other threads are outsiders and pay the whole price: a poller of
 * another CQ that flushes a broken QP, the service thread with its timers, a
 * thread that deregisters memory.
 *
 *   insider			outsider, with the mutex held
 *   in-use flag = odd		claimed = true
 *   if claimed: exit, and	presence_barrier()
 *     take the mutex		if the flag is odd: wait, or fail
 *
 * Both sides store before they load, so at least one of them sees the other;
 * base/presence.h has the argument.
 *
 * A destroyer, which only clears a pointer or revokes a key, does not claim
 * the gate.  After the barrier new insiders see the change, so that it waits
 * for the current insider only (gate_wait()).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/presence.h"
#include "mutex.h"

struct urxe_gate {
	struct urxe_mutex mutex;
	struct presence insider;
	_Atomic bool claimed; /* an outsider holds it or waits for it */
	bool by_mutex; /* the insider holds the mutex */
};

/*
 * Initialize the gate; also in the child of a fork, whose only thread is not
 * inside.
 */
void gate_init(struct urxe_gate *g);

/* Slow path of gate_enter(): back out and take the mutex. */
void gate_enter_slow(struct urxe_gate *g);

/* Enter and leave the gate as its insider. */
static inline void gate_enter(struct urxe_gate *g)
{
	presence_enter_private(&g->insider);
	if (__builtin_expect(load_acquire(&g->claimed), 0))
		gate_enter_slow(g);
}

static inline void gate_leave(struct urxe_gate *g)
{
	if (__builtin_expect(g->by_mutex, 0)) {
		g->by_mutex = false;
		mutex_unlock(&g->mutex);
	} else {
		presence_leave(&g->insider);
	}
}

/* Lock and unlock the gate as an outsider; trylock does not wait. */
void gate_lock(struct urxe_gate *g);
bool gate_trylock(struct urxe_gate *g);
void gate_unlock(struct urxe_gate *g);

/* After presence_barrier(): wait until the current insider has left. */
void gate_wait(struct urxe_gate *g);

/* ------------------------------------------------------------------------ */

/* The lock of a queue: a gate if one thread is promised, else a mutex. */
struct urxe_lock {
	struct urxe_gate gate; /* only its mutex, if not single_threaded */
	bool single_threaded;
};

static inline void urxe_lock_init(struct urxe_lock *l, bool single_threaded)
{
	gate_init(&l->gate);
	l->single_threaded = single_threaded;
}

static inline void urxe_lock(struct urxe_lock *l)
{
	if (!l->single_threaded)
		mutex_lock(&l->gate.mutex);
	else
		gate_enter(&l->gate);
}

static inline void urxe_unlock(struct urxe_lock *l)
{
	if (!l->single_threaded)
		mutex_unlock(&l->gate.mutex);
	else
		gate_leave(&l->gate);
}

/* For threads that may not be the promised one. */
static inline void urxe_lock_outside(struct urxe_lock *l)
{
	if (!l->single_threaded)
		mutex_lock(&l->gate.mutex);
	else
		gate_lock(&l->gate);
}

static inline bool urxe_trylock_outside(struct urxe_lock *l)
{
	if (!l->single_threaded)
		return mutex_trylock(&l->gate.mutex);
	return gate_trylock(&l->gate);
}

static inline void urxe_unlock_outside(struct urxe_lock *l)
{
	if (!l->single_threaded)
		mutex_unlock(&l->gate.mutex);
	else
		gate_unlock(&l->gate);
}

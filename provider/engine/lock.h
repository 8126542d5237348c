/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Locks, and what is left of them where only one thread comes.
 *
 * A *gate* is a lock for one insider at a time, who pays no locked
 * instruction.  It is the thread that a thread domain or
 * IBV_CREATE_CQ_ATTR_SINGLE_THREADED promises, or a poller who holds another
 * lock.  But others come by now and then: a poller of another CQ that flushes
 * a broken QP, the service thread with its timers, a thread that deregisters
 * memory.  They are the *outsiders*, and theirs is the whole price:
 *
 *   insider			outsider (the mutex held)
 *   enters			claimed = true
 *   claimed?  then back out	presence_barrier()
 *     and take the mutex	inside?  then wait, or give up
 *
 * base/presence.h has the argument why one of the two sees the other.
 *
 * Who only takes something away (clears a pointer, revokes a key) does not
 * claim: after the barrier new insiders see that it is gone, and only the one
 * that is inside now is waited for.
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
	_Atomic bool claimed; /* an outsider is in, or about to be */
	bool by_mutex; /* how the insider got in */
};

/* Also in the child of a fork, whose only thread is not inside. */
void gate_init(struct urxe_gate *g);

void gate_enter_slow(struct urxe_gate *g);

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

/* For outsiders. */
void gate_lock(struct urxe_gate *g);
bool gate_trylock(struct urxe_gate *g);
void gate_unlock(struct urxe_gate *g);

/* After presence_barrier(): wait until who is inside now has left. */
void gate_wait(struct urxe_gate *g);

/* ------------------------------------------------------------------------ */

/* The lock of a QP's queue: a gate where one thread is promised. */
struct urxe_lock {
	struct urxe_gate gate; /* its mutex, if it is not single_threaded */
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

/* For whoever is not the one thread, or does not know. */
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

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A robust mutex in memory that processes share, also across PID namespaces.
 * If the holder dies, the next process takes the lock over.  robust_lock()
 * returns 1 to it: the protected data may be half changed.  If the holder
 * lives but does not run, a waiter gives up after ROBUST_TIMEOUT_NS with
 * -ETIMEDOUT and names the holder.  kernel-shim/fabric/robust.c has the
 * functions.  The lock protects the device segment, the keys of a context and
 * the tables of the CM.
 *
 * A robust pthread mutex is not sufficient.  It stores a TID, which is not
 * unique across PID namespaces.  If a waiter with the holder's TID dies in
 * another namespace, the kernel would release the lock of a live holder.
 *
 * word is 0, or the id of the process that holds the lock (struct
 * urxe_process), with ROBUST_WAITERS if a waiter may be asleep (futex(2)).
 * The steps are similar to mutex 2 of Drepper's "Futexes Are Tricky":
 *
 *	lock		0 -> id, acquire
 *	wait		id -> id | WAITERS, then sleep while word is that
 *	lock after wait	0 -> id | WAITERS, acquire: others may still be asleep
 *	unlock		id -> 0, release; or id | WAITERS -> 0, and wake one
 *	take over	id [| WAITERS] of a dead process -> own id | WAITERS,
 *			acquire
 *
 * All threads of a process have the same id, and wait for each other as for
 * other processes.  A forked child has an id of its own.  Each step is one
 * compare-and-swap, so of several waiters that find the holder dead exactly
 * one takes over.  If that one dies too, the next takes over from it.  A
 * damaged word names no live process and is taken over likewise.
 *
 * No waiter depends on a wakeup by a process that may be dead: each checks
 * again every ROBUST_CHECK_NS.  It then detects a dead holder, and also a lock
 * that was released to a sleeper that was killed before it took it.
 *
 * tests/model/robust.pml checks this.
 */
#pragma once

#include <stdint.h>

#include "base/atomic.h"

struct robust_lock {
	_Atomic uint32_t word; /* futex */
	/*
	 * incremented by each holder; a waiter that sees it change restarts
	 * its timeout
	 */
	_Atomic uint32_t turn;
};

#define ROBUST_WAITERS (1u << 31)
#define ROBUST_CHECK_NS 10000000ull
/*
 * far longer than any critical section of a process that runs; counted as
 * base/patience.h describes
 */
#define ROBUST_TIMEOUT_NS 2000000000ull

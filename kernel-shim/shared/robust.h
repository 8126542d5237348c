/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A lock in memory that processes share, also across PID namespaces.  A holder
 * that dies leaves it to the next, with whatever he had half done; one that
 * lives but does not run is waited for ROBUST_PATIENCE_NS and then named.
 * (A robust pthread mutex holds a TID, which is another thread's in another
 * PID namespace: there a dying waiter frees the lock of a living holder.)
 *
 * word is 0, or the id of the process that holds it (struct urxe_process) and
 * ROBUST_WAITERS when somebody may be asleep.
 *
 *	takes it	0 -> id, acquire
 *	waits		id -> id | WAITERS, and sleeps while that is there
 *	is woken	0 -> id | WAITERS: the others may still be asleep
 *	gives it back	id -> 0, release; id | WAITERS -> 0 and wakes one
 *	takes it over	id [| WAITERS] of a dead process -> own id | WAITERS
 *
 * Two threads of a process have one id, and one of them waits for the other as
 * for anybody.  A child of a fork has an id of its own.  Each step is one
 * compare-and-swap, so of those who find a holder dead one takes over, and is
 * told so; if he dies, too, the next is told.  A word that is damaged names
 * nobody who lives, and is taken over the same way.
 *
 * No sleeper needs to be woken by somebody who may be dead: it looks around
 * every ROBUST_LOOK_NS.  That finds the dead holder, and a lock that was given
 * back to a sleeper who was killed before he took it.
 *
 * tests/model/robust.pml is this, checked.
 */
#pragma once

#include <stdint.h>

#include "base/atomic.h"

struct robust_lock {
	_Atomic uint32_t word; /* futex */
	_Atomic uint32_t turn; /* counts holders: is it the same one still? */
};

#define ROBUST_WAITERS (1u << 31)
#define ROBUST_LOOK_NS 10000000ull
/* Far longer than anybody who runs has it. */
#define ROBUST_PATIENCE_NS 2000000000ull

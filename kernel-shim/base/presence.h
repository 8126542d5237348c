/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * struct presence: an in-use flag, a counter that is odd while its owner is
 * in a critical section.  Reclaimers wait on it before they free what the
 * owner may use.  The owner enters the critical section with one of the
 * presence_enter functions and exits it with one of the presence_leave
 * functions.
 *
 * The algorithm is Dekker's store-load handshake, as on the read side of
 * userspace RCU:
 *
 *	owner				reclaimer
 *	enter: seq becomes odd		invalidate the object
 *	(barrier)			(barrier)
 *	look the object up, use it	if seq is odd, wait until seq changes
 *	exit: seq becomes even
 *
 * Each flag has one owner at a time: the requester of a QP (guard.h), the
 * bouncer (bounce_slot.h), or the insider of a gate (engine/core/lock.h).  Only
 * the owner writes seq, or a thread that excludes the owner
 * (presence_clear()).  Any thread of any process that maps the flag may read
 * it.
 *
 * Each side stores and then loads what the other side stores.  The four
 * accesses are seq_cst, so in their total order at least one side sees the
 * other.  Either the owner's lookup follows the invalidation, and the owner
 * does not find the object; or the owner's entry precedes the reclaimer's
 * load, and the reclaimer waits.  Therefore objects that are looked up in a
 * critical section are loaded and invalidated with seq_cst.  The exit is a
 * release store; the reclaimer's acquire load of it orders the owner's last
 * use before the reclamation.
 *
 * If all reclaimers are in the owner's process, the owner may call
 * presence_enter_private(), which has no locked instruction.  Reclaimers then
 * call presence_barrier() at (barrier).  It is membarrier(2), which executes
 * a full barrier on every running thread of the process, so the four accesses
 * need no order of their own.  If the system has no membarrier(2), both sides
 * execute a locked instruction instead.
 *
 * A seq that has changed means that the critical section was exited.  If the
 * owner entered again, it does not find the object.  An owner that dies in a
 * critical section leaves seq odd.  So a reclaimer that waits on another
 * process checks whether that process lives, and a new owner of the flag
 * first calls presence_clear().
 *
 * tests/model/orders.cpp (model "presence") checks the memory orders,
 * tests/model/mutex.pml the handshake with membarrier(2), and
 * tests/unit/test_presence.c both kinds of entry on the CPU.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "atomic.h"
#include "compiler.h"
#include "patience.h"

struct presence {
	_Atomic uint32_t seq;
};

/* Only the owner writes seq, so no read-modify-write is needed. */
static inline uint32_t presence_own(const struct presence *p)
{
	return load_relaxed(&p->seq);
}

static inline void presence_enter(struct presence *p)
{
	exchange_seq_cst(&p->seq, presence_own(p) | 1);
}

/*
 * The reclaimer's barrier for objects that owners use after
 * presence_enter_private().  errno is kept.
 */
void presence_barrier(void);
extern internal bool presence_cheap; /* true: membarrier(2) works */

/*
 * Fast variant of presence_enter_private(), for callers that have checked
 * presence_cheap.  Return the value of seq, for presence_leave_at().
 */
static inline uint32_t presence_enter_cheap(struct presence *p)
{
	const uint32_t seq = presence_own(p) | 1;

	store_relaxed(&p->seq, seq);
	atomic_signal_fence(memory_order_seq_cst);
	return seq;
}

static inline void presence_enter_private(struct presence *p)
{
	store_relaxed(&p->seq, presence_own(p) | 1);
	if (__builtin_expect(presence_cheap, 1))
		atomic_signal_fence(memory_order_seq_cst);
	else
		presence_barrier();
}

/*
 * Exit and enter again in one step.  Waiting reclaimers continue, and objects
 * have to be looked up anew.
 */
static inline void presence_move(struct presence *p)
{
	exchange_seq_cst(&p->seq, presence_own(p) + 2);
}

static inline void presence_leave(struct presence *p)
{
	store_release(&p->seq, presence_own(p) + 1);
}

/*
 * Variant of presence_leave() if presence_move() was not called since the
 * entry.  @seq is what presence_enter_cheap() returned.
 */
static inline void presence_leave_at(struct presence *p, uint32_t seq)
{
	store_release(&p->seq, seq + 1);
}

/*
 * Make seq even.  The caller is the new owner and the old one is dead, or it
 * knows that the owner is in no critical section.
 */
static inline void presence_clear(struct presence *p)
{
	store_release(&p->seq, (presence_own(p) + 1) & ~1u);
}

static inline bool presence_is_inside(const struct presence *p)
{
	return load_seq_cst(&p->seq) & 1;
}

/*
 * Wait until the owner has exited the critical section that it is in now, or
 * until is_dead(arg) returns true.  @is_dead is called from time to time and
 * may be NULL.  Return false if *patience ends before; NULL waits without a
 * limit.  Yield at first, because most critical sections are short, then
 * sleep.  errno is kept.
 */
bool presence_wait_within(const struct presence *p, struct patience *patience,
			  bool (*is_dead)(void *), void *arg);

static inline void presence_wait(const struct presence *p,
				 bool (*is_dead)(void *), void *arg)
{
	presence_wait_within(p, NULL, is_dead, arg);
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Locks for atomics (IB 9.4.5) on memory that not every requester maps.
 *
 * On such memory a requester reads and writes the word with a system call
 * each, and holds a lock to make that one atomic operation.  All requesters
 * that access a word must use the same lock, whatever their key, process and
 * address.  The locks are an array of hash buckets, urxe_dev.atomic_lock[]:
 *
 *   - private memory is identified by its process and its address there;
 *   - shared memory may be registered by several processes at several
 *     addresses, which have only the offset in the page in common.
 *
 * A lock is a word: owner, the id of a process (32) | suspect (1) | turn
 * (31).  turn counts up whenever the lock is taken or released, against ABA.
 *
 *	lock		owner 0 -> id, acquire
 *	unlock		id -> 0, release
 *	take over	id of a dead process -> own id, acquire
 *	mark suspect	the word did not change for ATOMIC_TIMEOUT_NS: set
 *			`suspect`
 *
 * A requester that maps the word uses the CPU's atomics, under the same lock.
 * Device memory needs no lock unless urxe_dev.atomics_divided is set.
 *
 * engine/exec/atomics.c has the operations.  No requester waits long for a
 * holder that is stopped.  The first one waits for ATOMIC_TIMEOUT_NS, counted
 * as base/patience.h describes, and marks the lock suspect.  A requester that
 * finds a suspect lock gets no response, so the timers of its QP count.  The
 * lock cannot be taken from a live holder, because its write may still follow.
 */
#pragma once

#include "layout.h"

#define ATOMIC_TIMEOUT_NS 500000000ull

#define ATOMIC_OWNER(word) ((uint32_t)(word))
#define ATOMIC_STUCK (1ull << 32)
#define ATOMIC_COUNT_ONE (1ull << 33)
/*
 * The word that follows @word: held by process @id, and free.  Both increment
 * turn and clear suspect.
 */
#define ATOMIC_HELD(word, id) \
	(((word) & ~(ATOMIC_COUNT_ONE - 1)) + ATOMIC_COUNT_ONE + (id))
#define ATOMIC_FREE(word) \
	(((word) & ~(ATOMIC_COUNT_ONE - 1)) + ATOMIC_COUNT_ONE)

static inline uint32_t atomic_lock_shared(uint64_t va)
{
	return va / 8 % URXE_ATOMIC_SHARED;
}

/*
 * Return the index of the lock for private memory at @va of process @pid,
 * whose PID namespace has inode @pidns.
 */
static inline uint32_t atomic_lock_private(uint64_t va, int32_t pid,
					   uint64_t pidns)
{
	uint64_t h = (va / 8 ^ (uint64_t)(uint32_t)pid << 32 ^ pidns << 20) *
		     0x9e3779b97f4a7c15ull;

	return URXE_ATOMIC_SHARED + (h >> 40) % URXE_ATOMIC_PRIVATE;
}

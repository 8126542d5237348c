/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Locks around atomics on memory that not everybody maps.
 *
 * There the requester reads the word, and writes it, with a system call each; a
 * lock makes one operation of them.  All who reach a word through urxe must
 * find the same lock, whatever key, process and address they have it by:
 *
 *   - private memory is known by its process and its address there;
 *   - shared memory may be registered by several processes, at several
 *     addresses, which have in common only where in its page the word is.
 *
 * A lock's word: owner, the id of a process (32) | doubted (1) | turns (31).
 *
 *	takes it	owner 0 -> id, acquire
 *	gives it back	id -> 0 and one turn more, release
 *	takes it over	id of a dead process -> id and one turn more
 *	doubts it	sets `doubted`, when the same turn took too long
 *
 * Nobody waits for a holder that is stopped: the first one does for
 * ATOMIC_PATIENCE_NS, and to whoever meets a doubted holder the responder is
 * silent, so that his QP's own timers count.  The lock cannot be taken from a
 * holder that lives, for his write may be still to come.
 */
#pragma once

#include "layout.h"

#define ATOMIC_PATIENCE_NS 500000000ull

#define ATOMIC_OWNER(word) ((uint32_t)(word))
#define ATOMIC_DOUBTED (1ull << 32)
#define ATOMIC_TURN (1ull << 33)
/* Held by id; and by nobody: the turn after that of word. */
#define ATOMIC_HELD(word, id) (((word) & ~(ATOMIC_TURN - 1)) + ATOMIC_TURN + (id))
#define ATOMIC_FREE(word) (((word) & ~(ATOMIC_TURN - 1)) + ATOMIC_TURN)

static inline uint32_t atomic_lock_shared(uint64_t va)
{
	return va / 8 % URXE_ATOMIC_SHARED;
}

/* pidns: of the process's number. */
static inline uint32_t atomic_lock_private(uint64_t va, int32_t pid,
					   uint64_t pidns)
{
	uint64_t h = (va / 8 ^ (uint64_t)(uint32_t)pid << 32 ^ pidns << 20) *
		     0x9e3779b97f4a7c15ull;

	return URXE_ATOMIC_SHARED + (h >> 40) % URXE_ATOMIC_PRIVATE;
}

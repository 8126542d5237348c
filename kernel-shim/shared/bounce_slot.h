/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Copy path 4: private memory of a process that the system does not let us
 * reach.  A thread of that process, the *bouncer*, copies between its memory
 * and a ring in its context's arena, which the requester has mapped.
 *
 *	requester		slot.word	bouncer
 *	claims a slot		FREE -> FILLING
 *	fills it, rings		     -> POSTED
 *				     -> SERVING	checks the keys, copies
 *				     -> DONE	rings back
 *	takes the answer	     -> FREE
 *
 *	does not wait longer:	POSTED -> FREE
 *				SERVING -> LEFT
 *				LEFT -> FREE	has done it
 *
 * A slot's word holds the state, the requester's context (slot and
 * generation) and a count that each claim raises; every step is a
 * compare-and-swap from the word that was expected, so nobody takes another's
 * slot for his own.
 *
 * A message of several slots has up to four of them under way.  Each names
 * the one before it (after), and the bouncer does it when that was done, whole,
 * and not at all if that failed or was left; so bytes arrive in their order,
 * and none behind one that did not.  What came of a slot's last request the
 * bouncer remembers; so the requester keeps a slot until it has the answer to
 * the one after it.  Who has a slot takes more only if they are free: nobody
 * waits for a slot while he has one.  What a requester leaves he leaves from
 * the end.
 *
 * The bouncer does not get a CPU that its program keeps busy when it is asked.
 * So it binds itself to the CPU of a requester that has to wait for it
 * (bounce_serve.c), and that one sleeps at once: it gives away the CPU that it
 * would wait on.  It is a hint: wherever both run, all of this holds.
 *
 * The requester waits where it is, in ibv_post_send, its guard up.  That is
 * sound because the bouncer waits for nobody: it takes no lock, executes no
 * work requests and has no other duty; not even the memory of its ring comes
 * from a heap with a lock.  So two processes may bounce to each other, or a
 * service thread may do it, and no circle can close.
 *
 * Deaths.  The bouncer's process is named in owner, which a requester that
 * waits looks at now and then; a dead one gives no answer, like a NIC that is
 * gone.  A thread that ends before its process takes its name away.  What a
 * dead requester left FILLING or DONE is taken by the next; each slot that it
 * POSTED is done in whole, or not at all.
 *
 * A bouncer that lives but does not run (SIGSTOP, a debugger) is waited for
 * as long as BOUNCE_PATIENCE_NS; then the slot is left, and to the requester
 * nobody answered: the QP's own timers take over, and `stuck` spares the others
 * the wait.  What was POSTED is not done later.  What was being copied is, when
 * the bouncer runs again, before anything that is asked later: a slot's worth
 * at most, as a packet that was on its way, and nothing that comes after it.
 * For a message that takes a receive the requester pings first, and returns the
 * receive if the bouncer stops after that (engine/responder.c).  A request that
 * cannot be repeated, as for the result of an atomic that was done, is called
 * committed: the requester waits longer, BOUNCE_COMMITTED_NS, and then fails.
 *
 * The bouncer trusts no requester.  It is at_work (presence.h) from before it
 * takes a slot until it is done; meanwhile the keys and ranges are looked up
 * again.  Whoever takes a key, a QP or a receive away waits for it after the
 * guards (bounce_quiesce), for a requester may have been killed in the middle
 * of its request.  And it copies with preadv and pwritev between the arena's
 * file and its memory: where a page is missing they fail, and they are allowed
 * where process_vm_* is not.
 *
 * tests/model/bounce.pml is this, checked.
 */
#pragma once

#include "layout.h"

enum bounce_state {
	BOUNCE_FREE,
	BOUNCE_FILLING,
	BOUNCE_POSTED,
	BOUNCE_SERVING,
	BOUNCE_DONE,
	BOUNCE_LEFT,
};

/* state (3) | context slot (9) << 3 | generation (31) << 12 | count << 43 */
#define BOUNCE_COUNT_ONE (1ull << 43)
#define BOUNCE_STATE(word) ((enum bounce_state)((word)&7))
#define BOUNCE_OWNER(word) ((uint32_t)((word) >> 3 & 511))
#define BOUNCE_GEN(word) ((uint32_t)((word) >> 12 & URXE_GEN_MASK))
#define BOUNCE_CLAIM(old, slot, gen) /* counts on */              \
	((((old) & ~(BOUNCE_COUNT_ONE - 1)) + BOUNCE_COUNT_ONE) | \
	 (uint64_t)(gen) << 12 | (uint64_t)(slot) << 3 | BOUNCE_FILLING)
static_assert(URXE_MAX_CTX == 512, "9 bits");
/* Which request it is, whatever its state; never 0. */
#define BOUNCE_ID(word) ((word) & ~7ull)

static inline uint64_t bounce_word(uint64_t old, enum bounce_state state)
{
	return (old & ~7ull) | state;
}

/* No requester waits longer for a bouncer that does nothing. */
#define BOUNCE_PATIENCE_NS 500000000ull
#define BOUNCE_COMMITTED_NS 5000000000ull
/* ... but for one that has to sync a file. */
#define BOUNCE_SYNC_NS 30000000000ull

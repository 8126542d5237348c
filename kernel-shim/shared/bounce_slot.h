/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Copy path 4: a bounce buffer for private memory of a process that the
 * kernel does not let other processes access (process_vm_readv(2) fails).  A
 * thread of that process, the bouncer, copies between its memory and a ring
 * of slots in its context's arena, which the requester has mapped.
 *
 *	requester		slot.word	bouncer
 *	claim a slot		FREE -> FILLING
 *	fill it, wake bouncer	     -> POSTED
 *				     -> SERVING	check the keys, copy
 *				     -> DONE	wake the requester
 *	read the answer		     -> FREE
 *
 *	give up:		POSTED -> FREE
 *				SERVING -> LEFT
 *				LEFT -> FREE	has finished the copy
 *
 *	requester died:		FILLING, POSTED, DONE -> FILLING
 *						(another requester claims it)
 *				POSTED -> FREE	(a destroyer cancels it)
 *
 * A slot's word holds the state, the requester's context (slot and
 * generation), and a counter that each claim increments, against ABA.  Every
 * step is a compare-and-swap from the expected word, except that the bouncer
 * stores FREE after LEFT, and a new bouncer stores FREE in all slots.
 * engine/copy/bounce.c is the requester's side, engine/copy/bounce_serve.c the
 * bouncer's; bounce_quiesce() is the destroyer's.
 *
 * Order.  A message of several slots has up to four of them outstanding.
 * Each slot names its predecessor (after).  The bouncer serves a slot only if
 * its predecessor was copied completely.  If the predecessor failed or was
 * given up, the slot is cancelled.  So bytes arrive in order, and none after
 * a gap.  The bouncer remembers the result of the last request of each slot,
 * so a requester keeps a slot until it has the answer to its successor.  A
 * requester that has a slot claims more only if they are free: no requester
 * waits for a slot while it has one, so there is no deadlock.  A requester
 * that gives up releases its slots from the last to the first.
 *
 * Placement.  If the program keeps the bouncer's CPU busy, the bouncer is
 * scheduled late.  Therefore it binds itself to the CPU of a requester that
 * has to wait for it (engine/copy/bounce_serve.c), and that requester sleeps at
 * once to release the CPU.  This is only an optimization; the protocol does
 * not depend on it.
 *
 * No deadlock.  The requester waits within ibv_post_send, with its guard
 * raised.  The bouncer waits for no other thread: it takes no lock, executes
 * no work requests, and does nothing else.  Even the memory of its ring is
 * reserved in place, not allocated from a heap with a lock.  So two processes
 * may bounce to each other, and a service thread may be the requester.
 *
 * Deaths.  owner is the id of the bouncer's process.  A requester that waits
 * checks from time to time whether that process lives; a dead one does not
 * respond, like a NIC that is gone.  A bouncer that exits before its process
 * clears owner.  A slot that a dead requester left FILLING, POSTED or DONE is
 * claimed by the next requester.  If the bouncer serves a POSTED slot of a
 * dead requester first, it serves it completely.
 *
 * Stopped bouncers.  A bouncer that lives but does not run (SIGSTOP, a
 * debugger) is waited for at most BOUNCE_TIMEOUT_NS, counted as
 * base/patience.h describes.  Then the requester gives the slots up and treats
 * the responder as silent, so that the QP's timers count.  `stuck` tells other
 * requesters not to wait.  A slot that was POSTED is not served later.  A slot
 * that was SERVING is finished when the bouncer continues, before any later
 * request.  That is at most one slot, like a packet in flight, and nothing
 * that follows it.  Before a SEND takes a receive, the requester pings the
 * bouncer; if the bouncer stops after that, the receive is returned
 * (engine/exec/responder.c).  A request that cannot be repeated, such as the
 * result of an atomic that was executed, is called committed: the requester
 * waits BOUNCE_COMMITTED_NS, and then the WR fails.
 *
 * The bouncer does not trust requesters.  From before it takes a slot until
 * it is done, at_work is odd (base/presence.h); meanwhile it looks keys and
 * ranges up again.  A destroyer of a key, a QP or a receive waits for at_work
 * after it has waited for the guards (bounce_quiesce()), because a requester
 * may have been killed in the middle of its request.  Its copies report a
 * missing page as an error (provider/engine/copy/nofault.h), or without a
 * signal handler are made by preadv(2) and pwritev(2) between the arena's file
 * and its memory, which are allowed where process_vm_*(2) is not.
 *
 * tests/model/bounce.pml checks this.
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
#define BOUNCE_CLAIM(old, slot, gen) /* counts up */              \
	((((old) & ~(BOUNCE_COUNT_ONE - 1)) + BOUNCE_COUNT_ONE) | \
	 (uint64_t)(gen) << 12 | (uint64_t)(slot) << 3 | BOUNCE_FILLING)
static_assert(URXE_MAX_CTX == 512, "9 bits");
/* Identifies a request, whatever its state; never 0. */
#define BOUNCE_ID(word) ((word) & ~7ull)

static inline uint64_t bounce_word(uint64_t old, enum bounce_state state)
{
	return (old & ~7ull) | state;
}

/*
 * How long a requester waits for a bouncer that makes no progress: normally,
 * for a committed request ...
 */
#define BOUNCE_TIMEOUT_NS 500000000ull
#define BOUNCE_COMMITTED_NS 5000000000ull
/* ... and for one that syncs a file. */
#define BOUNCE_SYNC_NS 30000000000ull

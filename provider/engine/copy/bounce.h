/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Copy path 4: a bounce buffer in shared memory, for a process whose memory
 * other processes may not reach by process_vm_readv/writev.  A requester
 * posts a request in a slot of the bounce ring.  A thread of the process that
 * owns the memory, the bouncer, copies.  shared/bounce_slot.h has the
 * protocol, tests/model/bounce.pml checks it.
 *
 * Requesters call the functions of bounce.c, threads of the owning process
 * those of bounce_serve.c.
 */
#pragma once

#include "shared/bounce_slot.h"
#include "transfer.h"

/*
 * Number of slots of the bouncer's ring, 0 until it is allocated.  Peers can
 * write to the word, so that it is bounded here.
 */
static inline uint32_t bouncer_slots(const struct urxe_bouncer *b)
{
	uint32_t n = load_acquire(&b->slots);

	return n < URXE_BOUNCE_SLOTS ? n : URXE_BOUNCE_SLOTS;
}

/* bounce.c: the requester ------------------------------------------------ */

/*
 * Execute a batch through the bouncer of the process that registered key[0].
 * The number of bytes copied is added to *moved, and they are removed from
 * the iovecs, also on failure.
 *
 * The requester gives up if the bouncer makes no progress at all for
 * BOUNCE_TIMEOUT_NS, or BOUNCE_COMMITTED_NS if b->committed is set.
 *
 * TRANSFER_GONE: the process died or, if the batch is not committed, does not
 * respond.  TRANSFER_DENIED: it has no bouncer or, if the batch is committed,
 * does not respond.
 */
enum transfer_status bounce_flush(struct transfer_batch *b, uint64_t *moved);

/* Note why bounce_flush() of @b returned @status, TRANSFER_GONE or _DENIED. */
void bounce_why(const struct transfer_batch *b, enum transfer_status status);

/*
 * Did a requester give up on a bouncer of that context that has not run
 * since?  Such a bouncer may be stopped in the middle of a copy.
 */
bool bounce_is_stuck(const struct urxe_peer *peer);

/* Ping all bouncers of that context; false if one does not respond. */
bool bounce_answers(struct urxe_context *ctx, struct urxe_peer *peer);

/*
 * Have the bouncer of the process that registered k write k's file to stable
 * storage (a FLUSH to persistence).  False if that failed.
 */
bool bounce_persist(struct urxe_context *ctx, struct urxe_peer *peer,
		    const struct urxe_key *k);

/*
 * Wait until no bouncer of that arena works on a request of a requester that
 * died while its guard was raised.  The destroyer calls this after it waited
 * for the guards (quiesce.c).  Requests of dead requesters that no bouncer
 * has begun are cancelled.  Returns false if *patience ended while a bouncer
 * was still busy; NULL waits without a limit.
 */
bool bounce_quiesce(struct urxe_fabric *f, struct urxe_arena *a,
		    struct patience *patience);
/*
 * The same for callers that must not block: wait for about QUIESCE_TRY_NS,
 * then return false.
 */
bool bounce_quiesce_try(struct urxe_fabric *f, struct urxe_arena *a);
/*
 * Limit of the wait in the _try functions, in ns.  A thread that is running
 * exits its critical section in that time, or by the time of the next try.
 */
#define QUIESCE_TRY_NS 1000000ull

/* bounce_serve.c: the bouncer -------------------------------------------- */

/*
 * Start the bouncer of ctx when both conditions hold:
 *
 *	bounce_expose()		other processes may access ctx: a QP goes to
 *				RTR and its remote end is not known to be in
 *				this process, an XRC SRQ, an imported context
 *	bounce_private()	private memory is registered
 *
 * If process_vm_readv/writev is forbidden to this process even for itself,
 * bounce_private() alone starts it.  The bouncer is running when the call
 * returns.  Returns 0, or -EAGAIN if no thread can be created and peers are
 * known to need it.
 */
int bounce_expose(struct urxe_context *ctx);
int bounce_private(struct urxe_context *ctx);
void bounce_stop(struct urxe_context *ctx);

/* The lock of bounce_serve.c, held across fork(). */
void bounce_lock(void);
void bounce_unlock(void);

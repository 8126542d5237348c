/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Copy path 4; the protocol is in shared/bounce_slot.h. */
#pragma once

#include "shared/bounce_slot.h"
#include "transfer.h"

/* How many slots its ring has; others could write there. */
static inline uint32_t bouncer_slots(const struct urxe_bouncer *b)
{
	uint32_t n = load_acquire(&b->slots);

	return n < URXE_BOUNCE_SLOTS ? n : URXE_BOUNCE_SLOTS;
}

/* bounce.c: the requester ------------------------------------------------- */

/*
 * Carry out a batch.  Committed: wait for as long as the other process lives.
 * TRANSFER_GONE: it does not, or does not answer; TRANSFER_DENIED: it has no
 * bouncer.  The bytes that arrived are added to *moved and leave the iovecs.
 */
enum transfer_status bounce_flush(struct transfer_batch *b, uint64_t *moved);

/*
 * Was a bouncer of that context given up on, and has not run since?  It may be
 * in the middle of a slot.
 */
bool bounce_is_stuck(const struct urxe_peer *peer);

/* Does everybody answer who copies for that context? */
bool bounce_answers(struct urxe_context *ctx, struct urxe_peer *peer);

/* Have the process that registered k sync its file. */
bool bounce_persist(struct urxe_context *ctx, struct urxe_peer *peer,
		    const struct urxe_key *k);

/*
 * The guards were waited for; now wait until no bouncer of that arena is at
 * work for a requester who died with his guard up.  False: one still is, at
 * `until` of clock_now(); 0: wait for ever.
 */
bool bounce_quiesce(struct urxe_fabric *f, struct urxe_arena *a,
		    uint64_t until);
/* The same for those who must not wait: false if one of them goes on. */
bool bounce_quiesce_try(struct urxe_fabric *f, struct urxe_arena *a);
/* Who runs has left after this long, or will have when it is tried again. */
#define QUIESCE_TRY_NS 1000000ull

/* bounce_serve.c: the bouncer --------------------------------------------- */

/*
 * It is started when other processes may come (a QP goes to RTR whose other
 * end is not known to be in this process, an XRC SRQ, an imported context)
 * and private memory is registered; where process_vm_* is forbidden to this
 * very process, already with the memory.  It runs when the call returns.
 * -EAGAIN: no thread can be made, and it is known that others need it.
 */
int bounce_expose(struct urxe_context *ctx);
int bounce_private(struct urxe_context *ctx);
void bounce_stop(struct urxe_context *ctx);

/* Held over fork(). */
void bounce_lock(void);
void bounce_unlock(void);

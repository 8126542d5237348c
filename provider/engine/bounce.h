/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Copy path 4; the protocol is in shared/bounce_slot.h. */
#ifndef URXE_BOUNCE_H
#define URXE_BOUNCE_H

#include "shared/bounce_slot.h"
#include "transfer.h"

/* bounce.c: the requester ------------------------------------------------- */

/*
 * Carry out a batch.  Committed: wait for as long as the other process lives.
 * TRANSFER_GONE: it does not, or does not answer; TRANSFER_DENIED: it has no
 * bouncer.  moved gets the number of bytes that arrived.
 */
enum transfer_status bounce_flush(const struct transfer_batch *b,
				  uint64_t *moved);

/* Does everybody answer who copies for that context? */
bool bounce_answers(struct urxe_context *ctx, struct urxe_peer *peer);

/* Have the process that registered k sync its file.  -errno */
int bounce_persist(struct urxe_context *ctx, struct urxe_peer *peer,
		   const struct urxe_key *k);

/*
 * The guards were waited for; now wait until no bouncer of that arena is at
 * work for a requester who died with his guard up.
 */
void bounce_quiesce(struct urxe_fabric *f, struct urxe_arena *a);

/* bounce_serve.c: the bouncer --------------------------------------------- */

/*
 * It is started when other processes may come (a QP goes to RTR whose other
 * end is not known to be in this process, an XRC SRQ, an imported context)
 * and private memory is registered; where process_vm_* is forbidden to this
 * very process, already with the memory.  It runs when the call returns.
 */
void bounce_expose(struct urxe_context *ctx);
void bounce_private(struct urxe_context *ctx);
void bounce_stop(struct urxe_context *ctx);

/* Held over fork(). */
void bounce_lock(void);
void bounce_unlock(void);

#endif

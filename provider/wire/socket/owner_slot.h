/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Owner slots of the socket: safe replacement of a socket owner that is
 * stopped.
 *
 * A socket owner that is stopped (SIGSTOP, a debugger) is replaced like a
 * dead one, but it may continue later, in the middle of a packet.  Each
 * socket owner therefore has an owner slot in shared memory
 * (dev->wire.owner_slot[]).  There it publishes the QPN of the packet that it
 * is about to execute:
 *
 *	socket owner, for each packet	its successor
 *	at = QPN			socket_owner = own id
 *	socket_owner still own id?	load `at` of all owner slots
 *	execute, or drop the packet
 *
 * All these accesses are seq_cst.  Both sides store before they load, so at
 * least one sees the other (Dekker handshake).  Either the old owner sees
 * that it was replaced and touches nothing, or the successor sees which QP
 * the old owner is at.  The successor drops packets for that QP, as if they
 * were lost, until the old owner has finished or is dead.  All other QPs are
 * served.
 *
 * `at` is 0 for packets of UD QPs, which may have several requesters at once,
 * and for packets of the connection manager, which has a lock.
 *
 * Only the socket owner calls these functions, except owner_slot_of(), which
 * candidates call (socket_owner.c).  tests/wire/ends.sh stops and continues
 * socket owners during traffic.
 */
#pragma once

#include "fabric/fabric.h"

struct owner_slot {
	struct urxe_fabric *f;
	struct urxe_owner_slot *sh; /* NULL: none */
	uint32_t me; /* process_id() of this process */
	/* number of QPs whose packet a replaced owner is executing */
	uint32_t stuck;
	struct {
		struct urxe_owner_slot *sh;
		uint32_t owner, qpn;
	} at[URXE_OWNER_SLOTS]; /* their owner slots, owners and QPNs */
};

/*
 * Claim an owner slot.  The caller, process me, is the socket owner.  Returns
 * false if all are occupied.
 */
bool owner_slot_take(struct owner_slot *s, struct urxe_fabric *f, uint32_t me);
void owner_slot_release(struct owner_slot *s);
/*
 * Return true if another live process has an owner slot, and so may have a
 * socket.
 */
bool owner_slot_has_others(const struct owner_slot *s);
/* Return the owner slot of a process, or NULL. */
struct urxe_owner_slot *owner_slot_of(struct urxe_fabric *f, uint32_t owner);

/*
 * Return true if a previous owner is at QP qpn.  Called if s->stuck is not 0.
 */
bool owner_slot_is_stuck(struct owner_slot *s, uint32_t qpn);

static inline bool owner_slot_is_current(const struct owner_slot *s)
{
	return load_seq_cst(&s->f->dev->wire.socket_owner) == s->me;
}

/*
 * Begin a packet for QP qpn, or 0.  Returns false if it must not be executed.
 */
static inline bool owner_slot_enter(struct owner_slot *s, uint32_t qpn)
{
	store_seq_cst(&s->sh->at, qpn);
	if (__builtin_expect(owner_slot_is_current(s), 1) &&
	    __builtin_expect(!s->stuck || !owner_slot_is_stuck(s, qpn), 1))
		return true;
	store_release(&s->sh->at, 0);
	return false;
}

/*
 * End the part of a packet that must not be done twice.  Call it before the
 * receiver is woken: a process is most likely to be stopped in that system
 * call, and the QP would stay blocked.
 */
static inline void owner_slot_exit(struct owner_slot *s)
{
	store_release(&s->sh->at, 0);
}

/* End a batch of packets. */
static inline void owner_slot_end_batch(struct owner_slot *s)
{
	owner_slot_exit(s);
	store_relaxed(&s->sh->batches, load_relaxed(&s->sh->batches) + 1);
}

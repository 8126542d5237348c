/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Owner slots of the socket: safe replacement of a socket owner that is
 * stopped.
 *
 * A socket owner that is stopped (SIGSTOP, a debugger) is replaced like a
 * dead one, but it may continue later, in the middle of a packet.  Each
 * socket owner therefore has an owner slot in shared memory
 * (dev->wire.seat[]).  There it publishes the QPN of the packet that it is
 * about to execute:
 *
 *	socket owner, for each packet	its successor
 *	at = QPN			holder = own id
 *	load holder: still own id?	load `at` of all owner slots
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
 * Only the socket owner calls these functions, except seat_of(), which
 * candidates call (socket_owner.c).  tests/wire/ends.sh stops and continues socket
 * owners during traffic.
 */
#pragma once

#include "fabric/fabric.h"

struct wire_seat {
	struct urxe_fabric *f;
	struct urxe_wire_seat *sh; /* NULL: none */
	uint32_t me; /* process_id() of this process */
	/* number of QPs whose packet a replaced owner is executing */
	uint32_t stuck;
	struct {
		struct urxe_wire_seat *sh;
		uint32_t owner, qpn;
	} at[URXE_WIRE_SEATS]; /* their owner slots, owners and QPNs */
};

/*
 * Claim an owner slot.  The caller, process me, is the socket owner.  Returns
 * false if all are occupied.
 */
bool seat_take(struct wire_seat *s, struct urxe_fabric *f, uint32_t me);
void seat_leave(struct wire_seat *s);
/*
 * Return true if another live process has an owner slot, and so may have a
 * socket.
 */
bool seat_has_others(const struct wire_seat *s);
/* Return the owner slot of a process, or NULL. */
struct urxe_wire_seat *seat_of(struct urxe_fabric *f, uint32_t owner);

/*
 * Return true if a previous owner is at QP qpn.  Called if s->stuck is not 0.
 */
bool seat_is_stuck(struct wire_seat *s, uint32_t qpn);

static inline bool seat_holds(const struct wire_seat *s)
{
	return load_seq_cst(&s->f->dev->wire.holder) == s->me;
}

/*
 * Begin a packet for QP qpn, or 0.  Returns false if it must not be executed.
 */
static inline bool seat_enter(struct wire_seat *s, uint32_t qpn)
{
	store_seq_cst(&s->sh->at, qpn);
	if (__builtin_expect(seat_holds(s), 1) &&
	    __builtin_expect(!s->stuck || !seat_is_stuck(s, qpn), 1))
		return true;
	store_release(&s->sh->at, 0);
	return false;
}

/*
 * End the part of a packet that must not be done twice.  Call it before the
 * receiver is woken: a process is most likely to be stopped in that system
 * call, and the QP would stay blocked.
 */
static inline void seat_pass(struct wire_seat *s)
{
	store_release(&s->sh->at, 0);
}

/* End a batch of packets. */
static inline void seat_rest(struct wire_seat *s)
{
	seat_pass(s);
	store_relaxed(&s->sh->turns, load_relaxed(&s->sh->turns) + 1);
}

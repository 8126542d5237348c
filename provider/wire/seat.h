/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A holder of the socket that is stopped (Ctrl-Z, a debugger) is replaced as one
 * that died is; but it will go on one day, in the middle of a packet.  So who
 * holds has a seat in shared memory (dev->wire.seat[]), where he says which QP
 * the packet is for that he is about to carry out:
 *
 *	the holder, for each packet	who replaces him
 *	at = its QPN			holder = his own id
 *	is it me who holds?		looks at `at` of all seats
 *	carries it out, or leaves
 *
 * All of that is seq_cst.  So either the old one sees that he holds no more, and
 * touches nothing, or the new one sees what QP he is at: for that one he does
 * nothing, as if its packets were lost, until the old one is through or dead.
 * All other QPs go on.
 *
 * UD QPs may have several requesters at once, and the connection manager has a lock:
 * for their packets `at` is 0.
 */
#pragma once

#include "fabric/fabric.h"

struct wire_seat {
	struct urxe_fabric *f;
	struct urxe_wire_seat *sh; /* NULL: has none */
	uint32_t me; /* process_id() */
	uint32_t stuck; /* QPs that those before are at ... */
	struct {
		struct urxe_wire_seat *sh;
		uint32_t owner, qpn;
	} at[URXE_WIRE_SEATS]; /* ... and who */
};

/* Take one; the caller, process me, is the holder.  False: all are taken. */
bool seat_take(struct wire_seat *s, struct urxe_fabric *f, uint32_t me);
void seat_leave(struct wire_seat *s);
/* Has another one a seat who lives, and so may have a socket? */
bool seat_has_others(const struct wire_seat *s);
/* The seat of that process, or NULL. */
struct urxe_wire_seat *seat_of(struct urxe_fabric *f, uint32_t owner);

/* Is another one at that QP?  There are some. */
bool seat_is_stuck(struct wire_seat *s, uint32_t qpn);

static inline bool seat_holds(const struct wire_seat *s)
{
	return load_seq_cst(&s->f->dev->wire.holder) == s->me;
}

/* A packet for QP qpn, or 0: false if it must not be carried out. */
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
 * What is to be done once for that packet is done: early, for in a system call
 * that wakes its receiver a holder is found stopped easily.
 */
static inline void seat_pass(struct wire_seat *s)
{
	store_release(&s->sh->at, 0);
}

/* All packets that were there are through. */
static inline void seat_rest(struct wire_seat *s)
{
	seat_pass(s);
	store_relaxed(&s->sh->turns, load_relaxed(&s->sh->turns) + 1);
}

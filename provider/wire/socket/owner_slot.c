// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Owner slots of the wire socket, see owner_slot.h. */
#include "shared/guard.h"
#include "owner_slot.h"

/* Claim an owner slot that is free or whose owner is dead. */
static bool seat_claim(struct urxe_fabric *f, struct urxe_wire_seat *sh,
		       uint32_t me)
{
	uint32_t owner = load_acquire(&sh->owner);

	return (!owner || process_is_dead(f, owner)) &&
	       cas_seq_cst(&sh->owner, &owner, me);
}

/*
 * Record the QPs that previous owners are at.  Called after the own id was
 * stored in dev->wire.holder.
 */
static void seat_look_round(struct wire_seat *s)
{
	struct urxe_wire_seat *sh = s->f->dev->wire.seat;
	uint32_t i, owner, qpn;

	s->stuck = 0;
	for (i = 0; i < URXE_WIRE_SEATS; i++) {
		owner = load_seq_cst(&sh[i].owner);
		qpn = load_seq_cst(&sh[i].at);
		if (&sh[i] == s->sh || !owner || !qpn)
			continue;
		s->at[s->stuck].sh = &sh[i];
		s->at[s->stuck].owner = owner;
		s->at[s->stuck++].qpn = qpn;
	}
}

bool seat_take(struct wire_seat *s, struct urxe_fabric *f, uint32_t me)
{
	struct urxe_wire_seat *sh = f->dev->wire.seat;
	uint32_t i;

	for (i = 0; i < URXE_WIRE_SEATS && !seat_claim(f, &sh[i], me); i++)
		;
	if (i == URXE_WIRE_SEATS)
		return false;
	s->f = f;
	s->sh = &sh[i];
	s->me = me;
	store_seq_cst(&s->sh->at, 0);
	store_relaxed(&s->sh->tid, 0);
	presence_clear(&s->sh->guard.requester);
	guard_init(&s->sh->guard);
	seat_look_round(s);
	return true;
}

void seat_leave(struct wire_seat *s)
{
	if (!s->sh)
		return;
	store_release(&s->sh->at, 0);
	store_release(&s->sh->owner, 0);
	s->sh = NULL;
}

bool seat_has_others(const struct wire_seat *s)
{
	const struct urxe_wire_seat *sh = s->f->dev->wire.seat;
	uint32_t i, owner;

	for (i = 0; i < URXE_WIRE_SEATS; i++) {
		owner = load_acquire(&sh[i].owner);
		if (&sh[i] != s->sh && owner && !process_is_dead(s->f, owner))
			return true;
	}
	return false;
}

struct urxe_wire_seat *seat_of(struct urxe_fabric *f, uint32_t owner)
{
	struct urxe_wire_seat *sh = f->dev->wire.seat;
	uint32_t i;

	for (i = 0; i < URXE_WIRE_SEATS; i++)
		if (load_acquire(&sh[i].owner) == owner)
			return &sh[i];
	return NULL;
}

bool seat_is_stuck(struct wire_seat *s, uint32_t qpn)
{
	uint32_t i = 0;

	while (i < s->stuck) {
		/* acquire: see what the previous owner did there */
		if (load_acquire(&s->at[i].sh->at) != s->at[i].qpn ||
		    load_acquire(&s->at[i].sh->owner) != s->at[i].owner ||
		    (s->at[i].qpn == qpn &&
		     process_is_dead(s->f, s->at[i].owner)))
			s->at[i] = s->at[--s->stuck];
		else if (s->at[i++].qpn == qpn)
			return true;
	}
	return false;
}

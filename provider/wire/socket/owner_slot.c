// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Owner slots of the wire socket, see owner_slot.h. */
#include "shared/guard.h"
#include "owner_slot.h"

/* Claim an owner slot that is free or whose owner is dead. */
static bool owner_slot_claim(struct urxe_fabric *f, struct urxe_owner_slot *sh,
			     uint32_t me)
{
	uint32_t owner = load_acquire(&sh->owner);

	return (!owner || process_is_dead(f, owner)) &&
	       cas_seq_cst(&sh->owner, &owner, me);
}

/*
 * Record the QPs that previous owners are at.  Called after the own id was
 * stored in dev->wire.socket_owner.
 */
static void owner_slot_find_stuck(struct owner_slot *s)
{
	struct urxe_owner_slot *sh = s->f->dev->wire.owner_slot;
	uint32_t i, owner, qpn;

	s->stuck = 0;
	for (i = 0; i < URXE_OWNER_SLOTS; i++) {
		owner = load_seq_cst(&sh[i].owner);
		qpn = load_seq_cst(&sh[i].at);
		if (&sh[i] == s->sh || !owner || !qpn)
			continue;
		s->at[s->stuck].sh = &sh[i];
		s->at[s->stuck].owner = owner;
		s->at[s->stuck++].qpn = qpn;
	}
}

bool owner_slot_take(struct owner_slot *s, struct urxe_fabric *f, uint32_t me)
{
	struct urxe_owner_slot *sh = f->dev->wire.owner_slot;
	uint32_t i;

	for (i = 0; i < URXE_OWNER_SLOTS && !owner_slot_claim(f, &sh[i], me);
	     i++)
		;
	if (i == URXE_OWNER_SLOTS)
		return false;
	s->f = f;
	s->sh = &sh[i];
	s->me = me;
	store_seq_cst(&s->sh->at, 0);
	store_relaxed(&s->sh->tid, 0);
	presence_clear(&s->sh->guard.requester);
	guard_init(&s->sh->guard);
	owner_slot_find_stuck(s);
	return true;
}

void owner_slot_release(struct owner_slot *s)
{
	if (!s->sh)
		return;
	store_release(&s->sh->at, 0);
	store_release(&s->sh->owner, 0);
	s->sh = NULL;
}

bool owner_slot_has_others(const struct owner_slot *s)
{
	const struct urxe_owner_slot *sh = s->f->dev->wire.owner_slot;
	uint32_t i, owner;

	for (i = 0; i < URXE_OWNER_SLOTS; i++) {
		owner = load_acquire(&sh[i].owner);
		if (&sh[i] != s->sh && owner && !process_is_dead(s->f, owner))
			return true;
	}
	return false;
}

struct urxe_owner_slot *owner_slot_of(struct urxe_fabric *f, uint32_t owner)
{
	struct urxe_owner_slot *sh = f->dev->wire.owner_slot;
	uint32_t i;

	for (i = 0; i < URXE_OWNER_SLOTS; i++)
		if (load_acquire(&sh[i].owner) == owner)
			return &sh[i];
	return NULL;
}

bool owner_slot_is_stuck(struct owner_slot *s, uint32_t qpn)
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

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Responder side of atomics.  The response carries the original value.  A
 * duplicate is not executed again; it is answered from the list in shared
 * memory (struct urxe_wire_responder.atomic).
 */
#define _GNU_SOURCE
#include <string.h>

#include "engine/exec/atomics.h"
#include "engine/qp/why.h"
#include "server.h"

bool fetch_has_resources(const struct request *r)
{
	uint32_t limit = load_relaxed(&r->c->sh->max_dest_rd_atomic);

	if (likely(limit))
		return true;
	why_note(RESOURCES, 1, r->c->qpn, limit);
	return false;
}

/* ------------------------------------------------------- atomics */

static void atomic_answer(struct request *r, uint32_t psn, uint32_t msn,
			  uint64_t original)
{
	struct wire_packet p;

	reply_covers_ack(r, psn);
	reply_begin(r, WIRE_ATOMIC_ACKNOWLEDGE, psn, &p);
	p.aeth.msn = msn & WIRE_PSN_MASK;
	p.atomicack.original = original;
	reply_add(r, &p);
}

static void atomic_wqe(const struct request *r, struct urxe_wqe *w)
{
	const struct wire_atomiceth *a = &r->p->atomiceth;

	memset(w, 0, sizeof(*w));
	w->length = 8;
	w->rkey = a->rkey;
	w->remote_addr = a->addr;
	if (r->op == WIRE_FETCH_ADD) {
		w->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		w->atomic.compare_add = a->swap_add;
	} else {
		w->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		w->atomic.compare_add = a->compare;
		w->atomic.swap = a->swap_add;
	}
}

void fetch_keep(struct request *r, uint64_t original)
{
	struct urxe_wire_responder *st = r->st;
	struct urxe_wire_atomic *a =
		&st->atomic[st->atomics++ % URXE_WIRE_ATOMICS];

	a->original = original;
	a->msn = wire_psn_add(st->msn, 1);
	a->psn = r->p->bth.psn | URXE_WIRE_DONE;
}

enum response fetch_atomic(struct request *r)
{
	const struct urxe_key *key;
	struct urxe_seg word;
	enum response resp;
	struct urxe_wqe w;
	uint64_t original;

	atomic_wqe(r, &w);
	if (!fetch_has_resources(r) || !responder_is_aligned(w.remote_addr))
		return RESP_NAK_INVALID;
	resp = responder_access(r->c, w.rkey, w.remote_addr, 8,
				IBV_ACCESS_REMOTE_ATOMIC, &word, &key);
	if (resp)
		return resp;
	if (!responder_is_aligned(word.va))
		return RESP_NAK_INVALID;
	respond_step(r);
	resp = atomics_execute(&r->s->me, r->c, &word, key, &w, &original);
	if (resp) {
		respond_step_undone(r);
		return resp;
	}
	fetch_keep(r, original);
	respond_accept(r, 1, URXE_WIRE_NOTHING);
	atomic_answer(r, r->p->bth.psn, r->st->msn, original);
	return RESP_ACK;
}

const struct urxe_wire_atomic *fetch_kept(const struct request *r)
{
	const uint32_t psn = r->p->bth.psn | URXE_WIRE_DONE;
	uint32_t i;

	for (i = 0; i < URXE_WIRE_ATOMICS; i++)
		if (r->st->atomic[i].psn == psn)
			return &r->st->atomic[i];
	return NULL;
}

void fetch_atomic_duplicate(struct request *r)
{
	const struct urxe_wire_atomic *a = fetch_kept(r);

	if (a)
		atomic_answer(r, r->p->bth.psn, a->msn, a->original);
}

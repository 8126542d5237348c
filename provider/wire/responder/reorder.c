// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reorder buffer of the responder, see reorder.h. */
#define _GNU_SOURCE
#include <string.h>

#include "server.h"

/*
 * Most PSNs from the first to the last packet of a generation.  A copy that
 * was not used, since its packet arrived again, must not meet the same PSN.
 */
#define SPAN (1 << 20)

static struct reorder_slot *slot_of(struct request *r, uint32_t psn)
{
	struct reorder *b = &r->s->reorder;
	/* connections begin at different slots */
	const uint32_t first = r->v->reorder.generation * REORDER_WINDOW / 4;

	return &b->slot[(first + psn) % REORDER_SLOTS];
}

static bool slot_has(const struct reorder_slot *k,
		     const struct reorder_state *o, uint32_t psn)
{
	return k->generation == o->generation && k->in.packet.bth.psn == psn;
}

static void slot_fill(struct reorder_slot *k, const struct wire_received *in)
{
	k->in = *in;
	memcpy(k->bytes, in->bth, in->bytes);
	k->in.bth = k->bytes;
	if (in->packet.payload)
		k->in.packet.payload =
			k->bytes +
			((const uint8_t *)in->packet.payload - in->bth);
}

/* Begin a new generation, with packet psn. */
static void reorder_begin(struct request *r, uint32_t psn)
{
	uint32_t *g = &r->s->reorder.generation;

	if (!++*g)
		++*g;
	r->v->reorder = (struct reorder_state){ *g, psn, psn };
}

bool reorder_put(struct request *r, int32_t behind)
{
	struct reorder_state *o = &r->v->reorder;
	const uint32_t psn = r->p->bth.psn;
	struct reorder_slot *k;

	if (behind > (int32_t)REORDER_WINDOW || r->in->bytes > sizeof(k->bytes))
		return false;
	if (!o->generation || wire_psn_minus(psn, o->first) > SPAN)
		reorder_begin(r, psn);
	if (wire_psn_before(o->last, psn))
		o->last = psn;
	k = slot_of(r, psn);
	k->generation = o->generation;
	slot_fill(k, r->in);
	return true;
}

bool reorder_take(struct request *r, uint32_t epsn, struct wire_received *in)
{
	struct reorder_state *o = &r->v->reorder;
	struct reorder_slot *k;
	bool has;

	if (wire_psn_before(o->last, epsn))
		o->generation = 0;
	if (!o->generation)
		return false;
	k = slot_of(r, epsn);
	has = slot_has(k, o, epsn);
	if (has) {
		*in = k->in;
		k->generation = 0;
	}
	return has;
}

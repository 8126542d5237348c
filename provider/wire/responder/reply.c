// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Responses.  ACKs are coalesced: they are sent when all packets in the
 * socket buffer have been processed.  An ACK, a READ response and an atomic
 * response acknowledge all earlier PSNs (IB 9.7.5.1.2).
 */
#define _GNU_SOURCE
#include <string.h>

#include "base/clock.h"
#include "server.h"

/* Minimum interval of CNPs for each QP, in ns, as NICs have it. */
#define CNP_INTERVAL 50000u

void reply_flush(struct wire_server *s)
{
	if (s->sender.n)
		wire_sender_flush(&s->sender, &s->out, NULL);
	if (s->sender.sent.packets || s->sender.sent.lost)
		count_sent(s->me.ctx->fabric, COUNTER_HOLDER, &s->sender.sent);
}

static void reply_make(const struct cached_qp *v, uint8_t op, uint32_t psn,
		       uint32_t msn, struct wire_packet *p)
{
	memset(p, 0, sizeof(*p));
	p->bth.opcode = op | v->transport;
	p->bth.pkey = 0xffff;
	p->bth.qpn = URXE_CONN_DEST(v->conn.want);
	p->bth.psn = psn;
	p->aeth.syndrome = WIRE_ACK;
	p->aeth.msn = msn & WIRE_PSN_MASK;
}

static uint8_t *reply_put(struct wire_server *s, const struct cached_qp *v,
			  const struct wire_packet *p)
{
	if (wire_sender_is_full(&s->sender))
		reply_flush(s);
	return wire_sender_add(&s->sender, &v->path, p);
}

static void reply_ack(struct wire_server *s, struct cached_qp *v)
{
	struct wire_packet p;

	reply_make(v, WIRE_ACKNOWLEDGE, v->psn, v->msn, &p);
	reply_put(s, v, &p);
	v->due = false;
}

void reply_ack_later(struct request *r)
{
	struct wire_server *s = r->s;
	struct cached_qp *v = r->v;
	struct urxe_wire_inbox *in;

	v->due = true;
	/*
	 * The PSN before epsn.  Stored now: the QP must not be accessed when
	 * the ACK is sent.
	 */
	v->psn = wire_psn_add(load_relaxed(&r->c->sh->epsn), WIRE_PSN_MASK);
	v->msn = r->st->msn;
	in = &container_of(r->st, struct urxe_wire_qp, responder)->inbox;
	store_relaxed(&in->ack_due, load_relaxed(&s->owner_slot.sh->acks));
	store_relaxed(&in->ack_owner, s->owner_slot.me);
	if (v->listed)
		return;
	v->listed = true;
	v->next_due = s->due;
	s->due = (uint32_t)(v - s->cached) + 1;
}

void reply_covers_ack(struct request *r, uint32_t psn)
{
	if (!wire_psn_before(psn, r->v->psn))
		r->v->due = false;
}

void reply_acks(struct wire_server *s)
{
	_Atomic uint32_t *acks = &s->owner_slot.sh->acks;
	const bool any = s->due;
	struct cached_qp *v;

	while (s->due) {
		v = &s->cached[s->due - 1];
		s->due = v->next_due;
		v->listed = false;
		if (v->due)
			reply_ack(s, v);
	}
	reply_flush(s);
	if (any)
		store_release(acks, load_relaxed(acks) + 1);
}

void reply_forget(struct wire_server *s, struct cached_qp *v)
{
	if (v->listed)
		reply_acks(s); /* this also removes v from the list */
}

void reply_begin(struct request *r, uint8_t op, uint32_t psn,
		 struct wire_packet *p)
{
	reply_make(r->v, op, psn & WIRE_PSN_MASK, r->st->msn, p);
}

uint8_t *reply_add(struct request *r, const struct wire_packet *p)
{
	return reply_put(r->s, r->v, p);
}

void reply_nak(struct request *r, uint8_t syndrome, uint32_t psn)
{
	struct wire_packet p;

	if (r->v->due)
		reply_ack(r->s, r->v);
	reply_begin(r, WIRE_ACKNOWLEDGE, psn, &p);
	p.aeth.syndrome = syndrome;
	reply_add(r, &p);
}

/* Annex A17.9.3 */
void reply_congestion(struct request *r)
{
	const struct wire_packet p = {
		.bth = { .opcode = WIRE_CNP_OPCODE,
			 .becn = true,
			 .pkey = 0xffff,
			 .qpn = URXE_CONN_DEST(r->c->want) },
	};
	const uint64_t now = clock_now();

	if (now - r->v->cnp_sent_at < CNP_INTERVAL)
		return;
	r->v->cnp_sent_at = now;
	reply_put(r->s, r->v, &p);
	server_count(r->s, URXE_CNT_CNP_SENT);
}

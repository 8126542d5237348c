// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * XRC target: selection of the SRQ.  Each request names the SRQ whose receive
 * it takes and whose protection domain its keys are in (IB A14.2).  All
 * packets of a message use the same SRQ.  Runs in the socket owner's thread
 * with the guard raised.
 */
#define _GNU_SOURCE
#include "engine/qp/why.h"
#include "server.h"

static bool is_for_others(const struct request *r, uint32_t srqn)
{
	return srqn != r->st->srqn && (r->under_way != URXE_WIRE_NOTHING ||
				       load_acquire(&r->st->receive.valid));
}

enum response shared_use_srq(struct request *r)
{
	const uint32_t srqn = r->p->xrceth.srqn;

	if (likely(r->s->me.type != IBV_QPT_XRC_SEND))
		return RESP_ACK;
	if (is_for_others(r, srqn))
		return RESP_NAK_INVALID;
	r->st->srqn = srqn;
	if (!load_acquire(&r->st->receive.valid) ?
		    conn_use_srq(&r->s->me, r->c, srqn) :
		    shared_use_stored_srq(r))
		return RESP_ACK;
	why_note(NO_SRQ, srqn, r->c->qpn);
	return RESP_NAK_INVALID;
}

enum response shared_use_srq_duplicate(struct request *r)
{
	return r->s->me.type == IBV_QPT_XRC_SEND &&
			       !conn_use_srq(&r->s->me, r->c,
					     r->p->xrceth.srqn) ?
		       RESP_SILENCE :
		       RESP_ACK;
}

bool shared_use_stored_srq(struct request *r)
{
	const struct urxe_wire_responder *st = r->st;

	if (r->s->me.type != IBV_QPT_XRC_SEND)
		return r->c->rx.srq;
	return conn_use_srq(&r->s->me, r->c, st->srqn) &&
	       r->c->rx.srq_live == st->receive.srq_live;
}

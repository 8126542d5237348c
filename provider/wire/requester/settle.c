// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Settling a connected QP before the program moves it to ERR or RESET, or
 * destroys it.
 *
 * A NIC sends the ACK of a message, and completes a WR whose ACK has arrived,
 * without the program.  Here the socket owner sends the ACK after the program
 * may have seen the message, and the poller processes the ACK.  The program
 * may disconnect in between.  Without settle(), the DREQ overtakes the ACK,
 * and the last SEND of the peer is flushed although it was received.
 */
#include "base/clock.h"
#include "base/thread.h"
#include "engine/poll/poller.h"
#include "engine/run/quiesce.h"
#include "message.h"
#include "roce_requester.h"
#include "wire/psn.h"
#include "wire/socket/inbox.h"
#include "wire/socket/owner_slot.h"
#include "wire/socket/port.h"

/* Longer than a socket owner on a busy machine needs for a packet. */
#define SETTLE_NS 20000000ull

/* Return whether an ACK is due, and the socket owner has not sent it. */
static bool ack_is_due(struct urxe_fabric *f, const struct urxe_wire_inbox *in)
{
	const uint32_t owner = load_relaxed(&in->ack_owner);
	const struct urxe_owner_slot *slot;

	if (!owner)
		return false;
	slot = owner_slot_of(f, owner); /* NULL: it may not have sent it */
	return !slot || load_acquire(&slot->acks) == load_relaxed(&in->ack_due);
}

/* Return whether the socket owner may still send the ACK that is due. */
static bool ack_may_come(struct urxe_fabric *f,
			 const struct urxe_wire_inbox *in)
{
	const uint32_t owner = load_relaxed(&in->ack_owner);

	return ack_is_due(f, in) && owner_slot_of(f, owner) &&
	       !process_is_dead(f, owner);
}

/* Wait until no socket owner is at a packet or an ACK of the QP. */
static void settle_wait(const struct urxe_qp *qp,
			const struct urxe_wire_inbox *in)
{
	const uint64_t end = clock_now() + SETTLE_NS;
	struct urxe_fabric *f = qp->ctx->fabric;
	uint32_t turns = 0;

	while ((quiesce_qp_busy(f, qp->qpn, qp->attr.dest_qp_num) ||
		ack_may_come(f, in)) &&
	       clock_now() < end)
		thread_give_way(++turns);
}

/* Acknowledge the packets before the expected one. */
static void settle_ack(const struct urxe_qp *qp, const struct urxe_wire_qp *e)
{
	const uint32_t epsn = load_acquire(&qp->sh->epsn) & WIRE_PSN_MASK;
	struct wire_packet p = {
		.bth = { .opcode = WIRE_RC | WIRE_ACKNOWLEDGE,
			 .pkey = 0xffff,
			 .qpn = qp->attr.dest_qp_num,
			 .psn = wire_psn_add(epsn, WIRE_PSN_MASK) },
	};
	struct wire_port *port;
	struct wire_path path;
	int err;

	if (!ack_is_due(qp->ctx->fabric, &e->inbox))
		return;
	p.aeth.syndrome = WIRE_ACK;
	p.aeth.msn = e->responder.msn & WIRE_PSN_MASK;
	message_path(qp, &path);
	port = port_begin(path.sgid, &err);
	if (!port)
		return;
	port_add(port, &path, &p);
	port_end(port, qp->ctx->fabric);
}

void settle(struct urxe_qp *qp)
{
	const struct urxe_wire_qp *e = wire_entry(qp->ctx->arena, qp->qpn);
	const enum ibv_qp_state state = qp_state(qp);

	if (!e || qp->type != IBV_QPT_RC || !qp->wire ||
	    (state != IBV_QPS_RTR && state != IBV_QPS_RTS &&
	     state != IBV_QPS_SQD))
		return;
	settle_wait(qp, &e->inbox);
	urxe_lock(&qp->lock);
	if (qp->wire)
		settle_ack(qp, e);
	urxe_unlock(&qp->lock);
	poll_progress(qp->scq);
}

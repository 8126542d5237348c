// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Responder for connected QPs: PSN check and dispatch (IB 9.7.4, 9.7.5; UC:
 * 9.8).  The expected packet is executed.  A duplicate gets the response that
 * it got before.  A gap causes one sequence NAK.  Runs in the socket owner's
 * thread with the guard raised.
 *
 * The state of a QP is in shared memory (shared/wire.h).  `step` marks work
 * that must not be repeated: a socket owner that finds it set breaks the QP.
 * `nak_sent`: a NAK for this ePSN was sent.  `under_way`: the kind of message
 * of which more packets are expected.
 */
#define _GNU_SOURCE
#include "engine/qp/why.h"
#include "server.h"

/* Properties of opcodes. */
enum {
	OP_FIRST = 1, /* first packet of a message */
	OP_LAST = 2, /* last packet of a message */
	OP_SEND = 4,
	OP_WRITE = 8,
	OP_READ = 16,
	OP_ATOMIC = 32,
	OP_PLACE = 64, /* FLUSH, ATOMIC WRITE */
};

static const uint8_t ops[32] = {
	[WIRE_SEND_FIRST] = OP_SEND | OP_FIRST,
	[WIRE_SEND_MIDDLE] = OP_SEND,
	[WIRE_SEND_LAST] = OP_SEND | OP_LAST,
	[WIRE_SEND_LAST_IMM] = OP_SEND | OP_LAST,
	[WIRE_SEND_LAST_INV] = OP_SEND | OP_LAST,
	[WIRE_SEND_ONLY] = OP_SEND | OP_FIRST | OP_LAST,
	[WIRE_SEND_ONLY_IMM] = OP_SEND | OP_FIRST | OP_LAST,
	[WIRE_SEND_ONLY_INV] = OP_SEND | OP_FIRST | OP_LAST,
	[WIRE_WRITE_FIRST] = OP_WRITE | OP_FIRST,
	[WIRE_WRITE_MIDDLE] = OP_WRITE,
	[WIRE_WRITE_LAST] = OP_WRITE | OP_LAST,
	[WIRE_WRITE_LAST_IMM] = OP_WRITE | OP_LAST,
	[WIRE_WRITE_ONLY] = OP_WRITE | OP_FIRST | OP_LAST,
	[WIRE_WRITE_ONLY_IMM] = OP_WRITE | OP_FIRST | OP_LAST,
	[WIRE_READ_REQUEST] = OP_READ | OP_FIRST | OP_LAST,
	[WIRE_COMPARE_SWAP] = OP_ATOMIC | OP_FIRST | OP_LAST,
	[WIRE_FETCH_ADD] = OP_ATOMIC | OP_FIRST | OP_LAST,
	[WIRE_FLUSH] = OP_PLACE | OP_FIRST | OP_LAST,
	[WIRE_ATOMIC_WRITE] = OP_PLACE | OP_FIRST | OP_LAST,
};

void respond_step(struct request *r)
{
	store_relaxed(&r->st->step, 1);
	atomic_thread_fence(memory_order_release);
}

void respond_step_undone(struct request *r)
{
	store_release(&r->st->step, 0);
}

/*
 * Expect the packet n PSNs after this one.  The store (release) commits this
 * one.
 */
static void respond_expect(struct request *r, uint32_t n, uint8_t under_way)
{
	store_release(
		&r->c->sh->epsn,
		URXE_WIRE_EPSN(wire_psn_add(r->p->bth.psn, n), under_way));
}

void respond_accept(struct request *r, uint32_t n,
		    enum urxe_wire_under_way under_way)
{
	struct urxe_wire_responder *st = r->st;

	st->nak_sent = 0;
	if (under_way == URXE_WIRE_NOTHING) {
		st->msn = wire_psn_add(st->msn, 1);
		st->invalidated = 0; /* the PSN will be used again */
	}
	respond_expect(r, n, under_way);
	store_release(&st->step, 0);
	owner_slot_exit(&r->s->owner_slot);
	if (r->s->me.type != IBV_QPT_UC &&
	    (under_way == URXE_WIRE_NOTHING || r->p->bth.ack_request))
		reply_ack_later(r);
}

static uint8_t expected_op(const struct request *r)
{
	return r->under_way == URXE_WIRE_SEND  ? OP_SEND :
	       r->under_way == URXE_WIRE_WRITE ? OP_WRITE :
						 0;
}

/*
 * Return true if the packet continues the message in progress, or begins one
 * if none is.
 */
static bool is_in_place(const struct request *r)
{
	const uint8_t op = ops[r->op], wanted = expected_op(r);

	return wanted ? op & wanted && !(op & OP_FIRST) : op & OP_FIRST;
}

/*
 * Return true if the payload length is valid: the full MTU, except in the
 * last packet.
 */
static bool has_its_length(const struct request *r)
{
	const uint8_t op = ops[r->op];
	const uint32_t length = r->p->length;

	if (!(op & (OP_SEND | OP_WRITE)))
		return true;
	if (!(op & OP_LAST))
		return length == r->mtu;
	return length <= r->mtu && (length || op & OP_FIRST);
}

static enum response execute_op(struct request *r)
{
	const uint8_t op = ops[r->op];
	enum response resp = shared_use_srq(r);

	if (unlikely(resp))
		return resp;
	if (op & OP_SEND)
		return request_send(r);
	if (op & OP_WRITE)
		return request_write(r);
	if (op & OP_READ)
		return fetch_read(r);
	return op & OP_ATOMIC ? fetch_atomic(r) : place(r);
}

/* ------------------------------------------------------- RC */

static void respond_break(struct request *r, enum response nak)
{
	static const uint8_t syndrome[] = {
		[RESP_NAK_INVALID] = WIRE_NAK_INVALID,
		[RESP_NAK_ACCESS] = WIRE_NAK_ACCESS,
		[RESP_NAK_OPERATION] = WIRE_NAK_OPERATION,
	};

	reply_nak(r, syndrome[nak], r->p->bth.psn);
	request_abandon(r);
	conn_break(r->c, nak, NULL, NULL);
}

void respond_refuse(struct request *r, enum response resp)
{
	switch (resp) {
	case RESP_RNR:
		/* packets that are already in flight behind it need no NAK */
		r->st->nak_sent = 1;
		reply_nak(r,
			  WIRE_RNR_NAK |
				  (load_relaxed(&r->c->sh->min_rnr_timer) & 31),
			  r->p->bth.psn);
		server_count(r->s, URXE_CNT_SEND_RNR);
		break;
	case RESP_NAK_INVALID:
	case RESP_NAK_ACCESS:
	case RESP_NAK_OPERATION:
		respond_break(r, resp);
		break;
	default:
		break; /* RESP_SILENCE */
	}
}

void respond_missing(struct request *r, uint32_t epsn)
{
	if (r->st->nak_sent)
		return;
	r->st->nak_sent = 1;
	reply_nak(r, WIRE_NAK_SEQUENCE, epsn);
}

static void respond_duplicate(struct request *r)
{
	const uint8_t op = ops[r->op];

	if (op & OP_READ)
		fetch_read_duplicate(r);
	else if (op & OP_ATOMIC)
		fetch_atomic_duplicate(r);
	else if (op & OP_PLACE)
		place_duplicate(r);
	else if (op)
		reply_ack_later(r);
}

static void respond_rc(struct request *r)
{
	const uint32_t epsn = load_relaxed(&r->c->sh->epsn) & WIRE_PSN_MASK;
	const int32_t behind = wire_psn_minus(r->p->bth.psn, epsn);
	enum response resp = RESP_NAK_INVALID;

	if (unlikely(load_acquire(&r->st->step))) {
		why_note(PROCESS_DIED, 0);
		respond_break(r, RESP_NAK_OPERATION);
		return;
	}
	if (unlikely(r->s->readers) && reader_holds_back(r, behind))
		return;
	if (unlikely(behind > 0)) {
		server_count(r->s, URXE_CNT_OUT_OF_SEQ);
		reorder_put(r, behind);
		respond_missing(r, epsn);
		return;
	}
	if (unlikely(behind < 0)) {
		server_count(r->s, URXE_CNT_DUPLICATE);
		respond_duplicate(r);
		return;
	}
	if (likely(is_in_place(r) && has_its_length(r)))
		resp = execute_op(r);
	if (unlikely(resp))
		respond_refuse(r, resp);
	/* an XRC target has no CQ whose poller could flush the receive */
	if (unlikely(r->s->me.type == IBV_QPT_XRC_SEND) &&
	    load_relaxed(&r->st->receive.valid) && !request_is_accepted(r))
		request_abandon(r);
}

/* ------------------------------------------------------- UC */

/*
 * A packet that cannot be executed is dropped with the rest of its message.
 * The receive of the dropped message remains in responder.receive and is used
 * for the next message (IB 9.8.2, 9.8.3).
 */
static void respond_uc(struct request *r)
{
	const uint32_t epsn = load_relaxed(&r->c->sh->epsn) & WIRE_PSN_MASK;
	enum response resp = RESP_NAK_INVALID;

	if (unlikely(load_acquire(&r->st->step))) {
		why_note(PROCESS_DIED, 0);
		conn_break(r->c, RESP_NAK_OPERATION, NULL, NULL);
		return;
	}
	if (ops[r->op] & OP_FIRST)
		r->under_way = URXE_WIRE_NOTHING;
	else if (r->p->bth.psn != epsn)
		r->under_way = URXE_WIRE_DROPPED;
	if (r->p->bth.psn != epsn)
		server_count(r->s, URXE_CNT_OUT_OF_SEQ);
	if (is_in_place(r) && has_its_length(r))
		resp = execute_op(r);
	/*
	 * execute_op() may have lowered or moved the guard: the QPN may belong
	 * to another QP now, so check before storing epsn
	 */
	if (resp && request_is_accepted(r))
		respond_expect(r, 1, URXE_WIRE_DROPPED);
}

void respond(struct request *r)
{
	r->under_way = URXE_WIRE_UNDER_WAY(load_relaxed(&r->c->sh->epsn));
	if (r->s->me.type == IBV_QPT_UC)
		respond_uc(r);
	else
		respond_rc(r);
}

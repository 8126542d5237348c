/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What QPs that are connected to other hosts, or may be heard from there, have
 * in shared memory: an entry in a table of their context's arena, by the index
 * of the QPN.  It has memory once the QP's word `wire` is set (struct
 * urxe_qp_sh); an idle QP and one without a wire have none.
 *
 * Who holds the fabric's socket (the holder, provider/wire) writes there what
 * comes, and takes it into account that the owner may be dead or broken, as the
 * owner does of him.
 */
#pragma once

#include <stdalign.h>
#include <stdint.h>

#include "base/atomic.h"

#define URXE_WIRE_LINE 64

/*
 * The inbox: answers to requests, for the requester.  A ring of bytes with one
 * producer, the holder, and one consumer, the QP's owner under the QP's lock;
 * head and tail count bytes and go round.  A record is struct urxe_wire_answer,
 * and length bytes of payload, filled up to a multiple of 8.
 *
 * tail is stored (release) behind a whole record, so that a holder that dies
 * leaves none or all of it; head (release) when a record was used.  Is there no
 * room the record is lost, as on a wire.
 *
 * The ring's memory stays with the entry as long as the arena lives: a late
 * record of a holder that was slow meets the next QP of that index, which finds
 * that it is not its.
 */
#define URXE_WIRE_INBOX_BYTES (256u << 10)

/*
 * What the requester is at, for those who look on; the owner's relaxed stores,
 * which need not fit together.
 */
struct urxe_wire_shown {
	_Atomic uint32_t una, next, end; /* PSNs: provider/wire/window.h */
	_Atomic uint32_t window; /* packets */
	_Atomic uint32_t again; /* how often it went back to una */
	_Atomic uint32_t left; /* tries; URXE_WIRE_ENDLESS: it has no timeout */
	_Atomic uint64_t until; /* clock_now() when una is lost; 0: never */
};
#define URXE_WIRE_ENDLESS UINT32_MAX

struct urxe_wire_inbox {
	_Atomic uint64_t ring; /* offset in the arena; 0: not needed yet */
	/*
	 * clock_now() when the owner looked last: while that is recent it will
	 * look again by itself, and is not woken.  0: it goes to sleep.
	 */
	_Atomic uint64_t looked;
	struct urxe_wire_shown shown;
	alignas(URXE_WIRE_LINE) _Atomic uint32_t head;
	alignas(URXE_WIRE_LINE) _Atomic uint32_t tail;
	_Atomic uint32_t lost; /* records that found no room; who looks on */
};

/* How long "recent" is, ns. */
#define URXE_WIRE_RECENT 250000ull

struct urxe_wire_answer {
	uint32_t qpn; /* whose it is */
	uint32_t psn;
	uint64_t original; /* of an atomic */
	uint16_t length; /* of the payload */
	uint8_t opcode; /* the low five bits: enum wire_opcode; or the CNP's */
	uint8_t syndrome; /* of the AETH */
	uint32_t msn;
};

/*
 * The responder's half: what it must know of a QP from one packet to the next,
 * and so must who holds the socket next.  The holder alone writes it, under the
 * guard of the wire; the owner clears it before the QP gets to RTR, and when
 * it did forget the QP nobody is in there (qp_forget).
 *
 * Which packet is expected is in the QP's epsn: the PSN, and above it what is
 * under way.  A packet counts when that is stored.  What was done for a packet
 * before, and is not done twice, must not be left in between: `step` is set
 * meanwhile.  Who finds it set took over from one who died just there, cannot tell
 * what is done, and breaks the QP.
 */
#define URXE_WIRE_EPSN(psn, under_way) ((psn) | (uint32_t)(under_way) << 24)
#define URXE_WIRE_UNDER_WAY(epsn) ((uint8_t)((epsn) >> 24))
enum urxe_wire_under_way {
	URXE_WIRE_NOTHING,
	URXE_WIRE_SEND, /* it has a receive: taken */
	URXE_WIRE_WRITE,
	URXE_WIRE_DROPPED, /* UC: the rest of a message that is lost */
};

/* A receive that a message has while it is under way. */
#define URXE_WIRE_SGES 32
struct urxe_wire_taken {
	_Atomic uint32_t there; /* 1: there is one */
	uint32_t index;
	uint64_t wr_id;
	uint16_t ticket;
	uint8_t num_sge;
	uint32_t srq_live; /* XRC: of the SRQ responder.srqn, what `live` was */
	struct {
		uint64_t addr;
		uint32_t length, lkey;
	} sge[URXE_WIRE_SGES];
};

/* Atomics that were done: one that comes again gets the same answer. */
#define URXE_WIRE_ATOMICS 16
struct urxe_wire_atomic {
	uint64_t original;
	uint32_t psn; /* | URXE_WIRE_DONE */
	uint32_t msn;
};
#define URXE_WIRE_DONE 0x80000000u
#define URXE_WIRE_BEGUN 0x40000000u

struct urxe_wire_responder {
	_Atomic uint32_t step; /* 1: in the middle */
	uint16_t told; /* 1: a NAK for this epsn went out */
	uint16_t atomics; /* done so far: the next place */
	uint32_t msn; /* messages that were carried out */
	uint32_t first; /* PSN of the first packet of what is under way */
	uint32_t rkey, length; /* of a WRITE that is under way */
	uint64_t addr;
	uint32_t invalidated; /* PSN of a SEND that did it, or has begun to */
	uint32_t srqn; /* XRC: whose receive the message has */
	struct urxe_wire_taken taken;
	struct urxe_wire_atomic atomic[URXE_WIRE_ATOMICS];
};

struct urxe_wire_qp {
	struct urxe_wire_inbox inbox;
	alignas(URXE_WIRE_LINE) struct urxe_wire_responder responder;
};

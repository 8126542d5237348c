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

struct urxe_wire_inbox {
	_Atomic uint64_t ring; /* offset in the arena; 0: not needed yet */
	/*
	 * clock_now() when the owner looked last: while that is recent it will
	 * look again by itself, and is not woken.
	 */
	_Atomic uint64_t looked;
	alignas(URXE_WIRE_LINE) _Atomic uint32_t head;
	alignas(URXE_WIRE_LINE) _Atomic uint32_t tail;
	_Atomic uint32_t lost; /* records that found no room; who looks on */
};

/* How long "recent" is, ns. */
#define URXE_WIRE_RECENT 100000ull

struct urxe_wire_answer {
	uint32_t qpn; /* whose it is */
	uint32_t psn;
	uint64_t original; /* of an atomic */
	uint16_t length; /* of the payload */
	uint8_t opcode; /* the low five bits: enum wire_opcode; or the CNP's */
	uint8_t syndrome; /* of the AETH */
	uint32_t msn;
};

struct urxe_wire_qp {
	struct urxe_wire_inbox inbox;
	/* the responder's state is the holder's */
	alignas(URXE_WIRE_LINE) uint64_t responder[104];
};

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared state of QPs that communicate with other hosts: an entry in a table
 * of the context's arena, by the index of the QPN.  An entry has memory once
 * urxe_qp_sh.wire is set.  An idle QP and a QP without a wire have none.
 *
 *   process         role
 *   socket owner    reads the fabric's UDP socket (provider/wire/socket_owner.h);
 *                   produces into the inbox, writes the responder state
 *   QP owner        consumes the inbox under the QP's lock; clears the
 *                   responder state before RTR
 *
 * Each side must tolerate that the other is dead or faulty.
 * tests/wire/ends.sh kills and stops socket owners during traffic.
 */
#pragma once

#include <stdalign.h>
#include <stdint.h>

#include "base/atomic.h"

#define URXE_WIRE_LINE 64

/*
 * The inbox: responses to the QP's requests, from the socket owner to the
 * requester.  It is a single-producer single-consumer byte ring (a Lamport
 * queue).  The producer is the socket owner.  The consumer is the QP's owner,
 * under the QP's lock.  head and tail count bytes and wrap.  A record is
 * struct urxe_wire_answer and `length` bytes of payload, padded to a multiple
 * of URXE_INBOX_ALIGN.
 *
 * The producer stores tail (release) after the whole record, so a socket
 * owner that dies leaves a whole record or none.  The consumer stores head
 * (release) when it has used a record.  If the ring is full the record is
 * lost, like a packet.
 *
 * The first ring is small: ACKs have no payload.  The first READ replaces it
 * by a larger one, of the first QPs of a context that READ.  The consumer
 * copies the records that it has not read to the new ring, which is otherwise
 * zero, and stores its word (release).  The producer may write a record to the
 * old ring meanwhile.  Each record contains its position, so that the consumer
 * finds it there if it is not in the new ring.  A record that is in neither, or
 * of a producer that does not follow the protocol, counts as empty (QPN 0,
 * without payload) and is discarded.
 *
 * The rings stay allocated as long as the arena.  A slow socket owner may
 * thus write to an old ring, or deliver a late record to the next QP of the
 * same index, which discards it because its QPN differs.
 */
#define URXE_INBOX_ALIGN 32u /* bytes of a record without payload */
#define URXE_INBOX_SMALL_LOG 15
/* of the first URXE_INBOX_LARGE_MAX QPs of a context that READ ... */
#define URXE_INBOX_LARGE_LOG 20
#define URXE_INBOX_LARGE_MAX 8
/* ... and of the following ones, up to that many in total */
#define URXE_INBOX_READ_LOG 17
#define URXE_INBOX_READ_MAX 128
/* A ring in one word: offset in the arena | log2(bytes); 0: no ring. */
#define URXE_INBOX_RING(offset, log) ((offset) | (log))
#define URXE_INBOX_LOG(word) ((uint32_t)(word)&63)
#define URXE_INBOX_OFFSET(word) ((word) & ~63ull)

/*
 * State of the requester, for diagnostic tools.  The owner stores each member
 * relaxed; they need not be consistent with each other.
 */
struct urxe_wire_status {
	_Atomic uint32_t una, next, end; /* PSNs: provider/wire/requester/window.h */
	_Atomic uint32_t window; /* packets */
	_Atomic uint32_t retransmits; /* retransmissions from una */
	/* retries left; URXE_WIRE_ENDLESS: no timeout */
	_Atomic uint32_t left;
	/* a READ waits for its turn: provider/wire/requester/budget.h */
	_Atomic uint32_t waits_turn;
	_Atomic uint64_t until; /* clock_now() when una times out; 0: never */
};
#define URXE_WIRE_ENDLESS UINT32_MAX

struct urxe_wire_inbox {
	_Atomic uint64_t ring; /* URXE_INBOX_RING() */
	_Atomic uint64_t first; /* the ring that was replaced, or 0 */
	/*
	 * clock_now() of the owner's last poll.  While it is recent the owner
	 * polls again by itself and is not woken.  0: the owner is about to
	 * sleep.
	 *
	 * The owner stores 0 and then checks the ring.  The socket owner
	 * stores tail and then loads `last_poll`.  Both have a seq_cst fence in
	 * between, so at least one sees the other's store (Dekker handshake).
	 */
	_Atomic uint64_t last_poll;
	struct urxe_wire_status published;
	alignas(URXE_WIRE_LINE) _Atomic uint32_t head;
	alignas(URXE_WIRE_LINE) _Atomic uint32_t tail;
	/* records lost because the ring was full; for diagnostic tools */
	_Atomic uint32_t lost;
	/*
	 * Of the responder, here because the socket owner writes this line:
	 * when the last ACK became due, the process id of the socket owner (0:
	 * none was due) and its `acks` (struct urxe_owner_slot).
	 */
	_Atomic uint32_t ack_owner, ack_due;
};

/* How long a poll counts as recent, ns. */
#define URXE_WIRE_RECENT 250000ull

struct urxe_wire_answer {
	uint32_t qpn; /* destination QP */
	uint32_t psn;
	uint64_t original; /* original value, of an atomic */
	uint16_t length; /* of the payload */
	/* low five bits of the opcode: enum wire_opcode; or the CNP opcode */
	uint8_t opcode;
	uint8_t syndrome; /* of the AETH */
	uint32_t msn;
	uint32_t at; /* URXE_INBOX_AT(position of the record) */
};
/* positions are multiples of URXE_INBOX_ALIGN, and 0 is no record */
#define URXE_INBOX_AT(pos) ((pos) | 1)

/*
 * The responder state: what a QP must remember from one packet to the next,
 * also if another process becomes the socket owner.  Only the socket owner
 * writes it, protected by its guard.  The QP's owner clears it before the QP
 * becomes RTR, after qp_forget() has waited until no raised guard names the
 * QP.
 *
 * The expected packet is in urxe_qp_sh.epsn: the PSN and, above it, enum
 * urxe_wire_under_way.  Storing epsn commits a packet.
 *
 * Some steps that come before that store must not be done twice.  `step` is 1
 * during such a step.  A socket owner that finds it set has replaced a
 * process that died there.  It cannot know what was done, and breaks the QP.
 */
#define URXE_WIRE_EPSN(psn, under_way) ((psn) | (uint32_t)(under_way) << 24)
#define URXE_WIRE_UNDER_WAY(epsn) ((uint8_t)((epsn) >> 24))
enum urxe_wire_under_way {
	URXE_WIRE_NOTHING,
	URXE_WIRE_SEND, /* a SEND; its receive is in `receive` */
	URXE_WIRE_WRITE,
	URXE_WIRE_DROPPED, /* UC: the rest of a lost message is discarded */
};

/* The receive of a message in progress. */
#define URXE_WIRE_SGES 32
struct urxe_stored_receive {
	_Atomic uint32_t valid; /* 1: a receive is stored here */
	uint32_t index;
	uint64_t wr_id;
	uint16_t ticket;
	uint8_t num_sge;
	/* XRC: `live` of SRQ responder.srqn when it was taken */
	uint32_t srq_live;
	struct {
		uint64_t addr;
		uint32_t length, lkey;
	} sge[URXE_WIRE_SGES];
};

/* Executed atomics.  A duplicate request gets the stored result. */
#define URXE_WIRE_ATOMICS 16
struct urxe_wire_atomic {
	uint64_t original;
	uint32_t psn; /* | URXE_WIRE_DONE */
	uint32_t msn;
};
#define URXE_WIRE_DONE 0x80000000u
#define URXE_WIRE_BEGUN 0x40000000u

struct urxe_wire_responder {
	_Atomic uint32_t step; /* 1: in a step that must not be repeated */
	uint16_t nak_sent; /* 1: a NAK for this epsn was sent */
	/* number executed; modulo URXE_WIRE_ATOMICS the next entry */
	uint16_t atomics;
	uint32_t msn; /* MSN: messages executed */
	/* PSN of the first packet of the message in progress */
	uint32_t first;
	uint32_t rkey, length; /* of the RDMA WRITE in progress */
	uint64_t addr;
	/*
	 * PSN of the SEND that invalidated a key, with URXE_WIRE_DONE or
	 * _BEGUN
	 */
	uint32_t invalidated;
	uint32_t srqn; /* XRC: SRQ of the message's receive */
	struct urxe_stored_receive receive;
	struct urxe_wire_atomic atomic[URXE_WIRE_ATOMICS];
};

struct urxe_wire_qp {
	struct urxe_wire_inbox inbox;
	alignas(URXE_WIRE_LINE) struct urxe_wire_responder responder;
};

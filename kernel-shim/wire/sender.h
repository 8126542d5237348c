/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Batched transmit of RoCE v2 packets on a UDP socket (socket.h): a queue of
 * up to WIRE_SENDER_PACKETS packets that is flushed by one sendmmsg(2) if
 * possible.  Consecutive packets of equal size on one path become one message
 * that the kernel cuts (UDP GSO, UDP_SEGMENT).
 *
 * Users are the requesters of a process, under the lock of their port
 * (provider/wire/socket/port.c), and the responder in the socket owner's thread
 * (provider/wire/responder/reply.c).  A sender has no lock and allocates nothing.  It
 * is large (sizeof).  If all bytes are 0, it is an initialized, empty sender.
 * tests/unit/test_socket.c tests it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wire/icrc.h"
#include "wire/packet.h"
#include "wire/socket.h"

#define WIRE_SENDER_PACKETS 64u

/* Fault injection on transmit: what the sender does with a packet. */
enum wire_tx_fault {
	WIRE_NO_FAULT, /* send it */
	WIRE_LOST, /* discard it */
	WIRE_DUPLICATED, /* send it twice */
	/*
	 * Send it after the packets of the next flush.  One packet at a time
	 * is delayed; others are sent in order.
	 */
	WIRE_LATE,
	WIRE_DAMAGED, /* invert a bit after the ICRC was calculated */
};

/*
 * Decides on each packet that is added; called in any sending thread.  It is
 * set once, before the first packet (provider/wire/tx_fault.c).  NULL: all
 * packets are sent.
 */
typedef enum wire_tx_fault wire_tx_fault_fn(const struct wire_packet *p);
extern wire_tx_fault_fn *wire_tx_fault;

struct wire_outgoing {
	struct wire_path path;
	/*
	 * Offset in wire_sender.bytes; length from the BTH to the pad, after
	 * which the ICRC follows
	 */
	uint32_t at, bytes;
	enum wire_tx_fault fault;
};

struct wire_sender {
	unsigned int n; /* queued packets */
	uint32_t used; /* bytes of the queued packets */
	bool no_gso; /* the kernel refuses GSO on the socket */
	bool no_label; /* the kernel refuses flow labels */
	/*
	 * Counters since the caller cleared them: packets sent, their bytes
	 * from the BTH to the ICRC, and packets that the kernel refused
	 */
	struct wire_sent {
		uint32_t packets, lost;
		uint64_t bytes;
	} sent;
	bool late; /* the last element of `packet` has a delayed packet */
	struct wire_outgoing packet[WIRE_SENDER_PACKETS + 1];
	uint8_t bytes[(WIRE_SENDER_PACKETS + 1) *
		      (WIRE_MAX_TRANSPORT + WIRE_ICRC_BYTES)];
};

static inline bool wire_sender_is_full(const struct wire_sender *s)
{
	return s->n == WIRE_SENDER_PACKETS;
}

/*
 * Queue a packet.  Return the address of its payload of p->length bytes, or
 * NULL if the queue is full, the opcode is not defined or the payload is too
 * long.  If p->payload is NULL, the caller must write the payload before
 * wire_sender_flush().  Otherwise it is copied: p->known bytes, then zeros.
 *
 * sgid, source_port and v1 of the path are ignored: the socket determines the
 * first two, and packets are RoCE v2.  The traffic class is sent with its ECN
 * bits.  A hop limit of 0 selects the system's default.  The flow label is
 * sent unless the kernel refuses it.
 */
uint8_t *wire_sender_add(struct wire_sender *s, const struct wire_path *path,
			 const struct wire_packet *p);

/* Remove the packet that was added last, if there is one. */
void wire_sender_drop(struct wire_sender *s);

/*
 * Send all queued packets in order.  The queue is empty afterwards, also
 * after an error.  Packets that the kernel refuses are lost, as on a wire,
 * and the packets after them are sent.  Return 0, or the -errno of the first
 * refusal:
 *
 *	-EAGAIN		no buffer space, and the socket is nonblocking
 *	-EMSGSIZE	a packet exceeds the MTU of the interface
 *	-ENETUNREACH, -EPERM and others of sendmsg(2)
 *
 * *sent, if @sent is not NULL, is the number of packets sent.  errno is kept.
 */
int wire_sender_flush(struct wire_sender *s, const struct wire_socket *socket,
		      unsigned int *sent);

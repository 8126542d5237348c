/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Batched receive of RoCE v2 packets from a UDP socket (socket.h).
 * wire_receive() gets up to WIRE_RECEIVER_MESSAGES datagrams by one
 * recvmmsg(2).  wire_received() then returns their packets one by one, parsed
 * and with the ICRC checked.  Datagrams that the kernel merged (UDP_GRO) are
 * split.
 *
 * The caller is the socket owner (provider/wire/responder/server.c), in one thread.  A
 * receiver has no lock and allocates nothing.  It needs about 2 MiB, of which
 * most is rarely used: allocate it with mmap(2).  Include this with
 * _GNU_SOURCE defined, for struct mmsghdr.  tests/unit/test_socket.c tests
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "wire/icrc.h"
#include "wire/parse.h"
#include "wire/socket.h"

#define WIRE_RECEIVER_MESSAGES 32u
/* No UDP datagram is longer, also after GRO. */
#define WIRE_MESSAGE_BYTES 65536u
#define WIRE_CONTROL_BYTES 256u

struct wire_message {
	union wire_sockaddr from;
	struct iovec iov;
	_Alignas(struct cmsghdr) uint8_t control[WIRE_CONTROL_BYTES];
};

struct wire_receiver {
	struct wire_solver solver;
	const struct wire_socket *socket;
	unsigned int n, next; /* messages received; the next to split */
	/*
	 * The socket's count of datagrams dropped for lack of buffer space
	 * (SO_RXQ_OVFL), as of the last message.  It is not written while the
	 * count is 0.
	 */
	uint32_t dropped;
	/*
	 * The message that is being split: offset of its next packet, length,
	 * length of each packet but the last
	 */
	uint32_t at, bytes, segment;
	struct wire_path path;
	struct wire_front front;
	bool has_front;
	struct mmsghdr header[WIRE_RECEIVER_MESSAGES];
	struct wire_message message[WIRE_RECEIVER_MESSAGES];
	uint8_t buffer[WIRE_RECEIVER_MESSAGES][WIRE_MESSAGE_BYTES];
};

/* Initialize a receiver. */
void wire_receiver_begin(struct wire_receiver *r);

/*
 * Receive the datagrams that the socket has, up to WIRE_RECEIVER_MESSAGES.
 * If the socket is blocking, wait for the first one.  Return 0 or -errno;
 * -EAGAIN if a nonblocking socket has none.  Packets of the previous call are
 * discarded.  @s must exist until wire_received() returns false.
 */
int wire_receive(struct wire_receiver *r, const struct wire_socket *s);

struct wire_received {
	/*
	 * Path from the peer to this host or to a group, with the peer's UDP
	 * source port, the traffic class including the ECN bits, the
	 * remaining hop limit and, for IPv4, the ID (0 if the packet is
	 * refused).  qpn is 0.
	 */
	struct wire_path path;
	/* If it is not WIRE_TAKEN, the caller must discard the packet. */
	enum wire_refusal refusal;
	uint32_t bytes; /* received length, BTH to ICRC */
	const uint8_t *bth;
	/*
	 * Valid if WIRE_TAKEN.  Its payload, like bth, points into the
	 * receiver, until the next wire_receive().
	 */
	struct wire_packet packet;
};

/*
 * Get the next packet, in the order of arrival.  Return false if there is
 * none left.  An accepted packet has a correct ICRC: for IPv4, it is correct
 * for some ID (wire_solver in icrc.h).
 */
bool wire_received(struct wire_receiver *r, struct wire_received *out);

/*
 * Return whether a router has marked the packet: ECN codepoint CE (RFC 3168).
 * The receiver then sends a CNP to the sender (annex A17.9.3).
 */
static inline bool wire_is_congested(const struct wire_path *path)
{
	return (path->traffic_class & 3) == 3;
}

#define WIRE_GRH_BYTES 40u
/*
 * Write the GRH that precedes the payload of a UD datagram in the receive
 * buffer: the IPv6 header, or 20 zero bytes and the IPv4 header.
 */
void wire_put_grh(const struct wire_received *r, uint8_t grh[WIRE_GRH_BYTES]);

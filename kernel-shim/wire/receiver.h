/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets that came: as many as the kernel has, by one system call, and then
 * one by one.  What several packets were merged into (GRO) is taken apart.
 *
 * A receiver is somebody's own: it has no lock and allocates nothing.  It is
 * big (sizeof), most of it for what is rarely there: memory that was mapped and
 * not touched is best.  (struct mmsghdr is only there with _GNU_SOURCE.)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "wire/icrc.h"
#include "wire/parse.h"
#include "wire/socket.h"

#define WIRE_RECEIVER_MESSAGES 32u
/* The longest datagram; GRO makes none that is longer. */
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
	unsigned int n, next; /* messages */
	/* Datagrams that found no room in the socket, by its own count, as of
	 * the last message that was taken. */
	uint32_t dropped;
	/* of the message that is taken apart: */
	uint32_t at, bytes, segment;
	struct wire_path path;
	struct wire_front front;
	bool has_front;
	struct mmsghdr header[WIRE_RECEIVER_MESSAGES];
	struct wire_message message[WIRE_RECEIVER_MESSAGES];
	uint8_t buffer[WIRE_RECEIVER_MESSAGES][WIRE_MESSAGE_BYTES];
};

/* Once, before all else. */
void wire_receiver_begin(struct wire_receiver *r);

/*
 * What there is, up to that many messages; it waits for the first one if the
 * socket blocks.  0, or -errno (EAGAIN: there is nothing).  What was there from
 * the call before is gone.  The socket stays until all packets are taken.
 */
int wire_receive(struct wire_receiver *r, const struct wire_socket *s);

struct wire_received {
	/*
	 * From the peer to us, or to a group: with the port that it sent from,
	 * the traffic class with its ECN bits, the hop limit that was left,
	 * and, of IPv4, the ID (if it is refused: 0).
	 */
	struct wire_path path;
	/* Anything but WIRE_TAKEN: the packet is none. */
	enum wire_refusal refusal;
	uint32_t bytes; /* from the BTH to the ICRC, as it came */
	const uint8_t *bth;
	/* Its payload is in the receiver, until the next wire_receive(). */
	struct wire_packet packet;
};

/* The next one, in the order in which they came; false: there is none left.
 * A packet that is taken has an ICRC that is right: over IPv4 for some ID. */
bool wire_received(struct wire_receiver *r, struct wire_received *out);

/* Congestion was met on the way (ECN): the sender is to be told by a CNP. */
static inline bool wire_is_congested(const struct wire_path *path)
{
	return (path->traffic_class & 3) == 3;
}

#define WIRE_GRH_BYTES 40u
/*
 * What is in front of a datagram's payload in a receive buffer: the header of
 * IPv6, or 20 zeros and that of IPv4.
 */
void wire_put_grh(const struct wire_received *r, uint8_t grh[WIRE_GRH_BYTES]);

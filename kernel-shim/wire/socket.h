/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * UDP sockets for RoCE v2, as any user may open them.  What they send goes
 * unfragmented and, over IPv4, with ID 0: the ICRC counts on both.
 *
 * A socket that is open is not written to: threads may share it, each with a
 * sender or a receiver of its own.
 *
 * Functions that return an int return 0 or -errno.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

struct wire_socket {
	int fd; /* -1: closed */
	bool ipv6;
	uint8_t gid[16]; /* its own address */
	uint16_t port;
	uint32_t interface; /* that has the address */
	uint32_t room; /* bytes that the kernel keeps for it, as it counts */
};

enum {
	WIRE_NONBLOCKING = 1,
	WIRE_SENDS_ONLY = 2, /* what comes is thrown away by the kernel */
	WIRE_LOOPS = 4, /* what it sends to a group comes to this host, too */
	WIRE_YIELDS = 8, /* the port may be taken over, ... */
	WIRE_TAKES_OVER = 16, /* ... as this one does: it gets what comes */
};

/*
 * Bound to the address and the port; port 0 is any, s->port tells which one it
 * became.  EADDRNOTAVAIL: no interface has the address.  EADDRINUSE: rxe or
 * another fabric has the port.
 */
int wire_socket_open(struct wire_socket *s, const uint8_t gid[16],
		     uint16_t port, unsigned int flags);

/*
 * One that receives what is sent to a group, at the interface that has the
 * address.  A socket of an address does not get that, so that each group has a
 * socket of its own; several of one group get it each.
 */
int wire_socket_open_group(struct wire_socket *s, const uint8_t gid[16],
			   const uint8_t group[16], uint16_t port,
			   unsigned int flags);

/*
 * What the interface that has the address has room for: enum ibv_mtu, 4096 at
 * most.  0: no interface has it.
 */
uint8_t wire_active_mtu(const uint8_t gid[16]);

/* Nothing, if it is closed. */
void wire_socket_close(struct wire_socket *s);

/* For the sender and the receiver: a GID and a port as sockets have them. */
union wire_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};
/* Its length. */
socklen_t wire_sockaddr_of(union wire_sockaddr *to, const uint8_t gid[16],
			   uint16_t port, uint32_t interface);

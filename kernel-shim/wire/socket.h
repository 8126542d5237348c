/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * UDP sockets for RoCE v2, without privileges.  Path MTU discovery is on
 * (IP_PMTUDISC_DO): packets are not fragmented, and over IPv4 the ID is 0
 * (with GSO, it counts the segments of a message from 0).  The sender relies
 * on both to calculate the ICRC.
 *
 * Callers: the socket owner (provider/wire/responder/server.c, groups.c) receives,
 * ports (provider/wire/socket/port.c) and the CM (kernel-shim/cm/wire.c) send.
 * After wire_socket_open() the structure is constant, and threads may share
 * it, each with its own sender or receiver.
 *
 * Functions that return an int return 0 or -errno.
 */
#pragma once

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

struct wire_socket {
	int fd; /* -1: closed */
	bool ipv6;
	uint8_t gid[16]; /* own address, also of the socket of a group */
	uint16_t port; /* UDP port to which it is bound */
	uint32_t interface; /* index of the address's interface, or 0 */
	uint32_t room; /* SO_RCVBUF, in bytes as the kernel counts them */
};

enum {
	WIRE_NONBLOCKING = 1,
	WIRE_SENDS_ONLY = 2, /* the kernel drops all received packets */
	WIRE_LOOPS = 4, /* this host receives its own multicast packets */
	WIRE_YIELDS = 8, /* another socket may take the port over */
	/*
	 * Bind although sockets with WIRE_YIELDS are bound to the port.  This
	 * socket receives the packets from then on.
	 */
	WIRE_TAKES_OVER = 16,
	/*
	 * No multicast: the interface is looked up only for a link-local
	 * address.  The call is async-signal-safe otherwise.
	 */
	WIRE_UNICAST = 32,
};

/*
 * Open a socket bound to an address and a port.  Port 0 selects any free
 * port; s->port is the port.  Errors include -EADDRNOTAVAIL, if the host does
 * not have the address, and -EADDRINUSE, if rxe or another fabric uses the
 * port.  After an error *s is closed.
 */
int wire_socket_open(struct wire_socket *s, const uint8_t gid[16],
		     uint16_t port, unsigned int flags);

/*
 * Open a socket that receives the packets of a multicast group at the
 * interface that has the address @gid.  A socket of wire_socket_open() does
 * not receive multicast, so each group needs a socket.  If several sockets
 * are bound to a group, each of them receives all packets.  -EINVAL if @group
 * is no multicast GID, or its IP version is not that of @gid.
 */
int wire_socket_open_group(struct wire_socket *s, const uint8_t gid[16],
			   const uint8_t group[16], uint16_t port,
			   unsigned int flags);

/* Maximum length of the headers of a RoCE v2 packet and its ICRC, in bytes */
#define WIRE_HEADERS 80u

/*
 * Return the MTU in bytes of the interface of an address, and its name.
 * Return 0 if no interface has the address.
 */
uint32_t wire_interface_mtu(const uint8_t gid[16], char name[IF_NAMESIZE]);

/*
 * Return the path MTU, an enum ibv_mtu, for which the interface of the
 * address is large enough, at least IBV_MTU_256.  Return 0 if no interface
 * has the address.
 */
uint8_t wire_active_mtu(const uint8_t gid[16]);

/* Close the socket.  No effect if it is closed. */
void wire_socket_close(struct wire_socket *s);

/* A socket address, for the sender and the receiver. */
union wire_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};
/*
 * Make the socket address of a GID and a port.  @interface is the scope of
 * link-local and multicast IPv6 addresses, otherwise it is ignored.  Return
 * the length of the address.
 */
socklen_t wire_sockaddr_of(union wire_sockaddr *to, const uint8_t gid[16],
			   uint16_t port, uint32_t interface);

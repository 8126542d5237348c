/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sending sockets of the process: one for each of its own addresses, opened
 * when it is first needed, with the packets queued on it.  All QPs of the
 * process share them.  Each has a lock, held from port_begin() to port_end().
 */
#pragma once

#include "fabric/fabric.h"
#include "wire/sender.h"

struct wire_port;

/* Data rate of 4X SDR, 8 Gbit/s */
#define PORT_BYTES_PER_US 1000ull

/* Return the locked port of address sgid, or NULL and -errno in *err. */
struct wire_port *port_begin(const uint8_t sgid[16], int *err);
/* Like wire_sender_add(), but if the queue is full, flush it first. */
uint8_t *port_add(struct wire_port *p, const struct wire_path *path,
		  const struct wire_packet *packet);
/*
 * How many packets of that size, in bytes, may be sent now by an unreliable
 * QP, which has no window?  They are paced like those of a port with a speed
 * of PORT_BYTES_PER_US: a receiver may be slower than the sender, and packets
 * that do not fit into its socket buffer are lost.  Times are of clock_now().
 */
uint32_t port_room(const struct wire_port *p, uint32_t bytes, uint64_t now);
/* Unreliable packets with that many bytes in total were added. */
void port_pace(struct wire_port *p, uint64_t bytes, uint64_t now);
/* Return the time from which port_room() is not 0. */
uint64_t port_paced_until(const struct wire_port *p);
/*
 * How many bytes of packets does the receive buffer of a socket take that is
 * opened like this one?  The kernel counts up to twice as many.
 */
uint32_t port_buffer(const struct wire_port *p);
/* Remove the packet added last. */
void port_drop(struct wire_port *p);
/*
 * Send the queued packets, count them in f, and unlock the port.  Returns 0,
 * or -errno of the first packet that the kernel refused.
 */
int port_end(struct wire_port *p, struct urxe_fabric *f);
/*
 * Send an empty datagram, which is not a RoCE packet, to UDP port WIRE_PORT
 * of the own address.  It wakes the socket owner.  Returns 0 or -errno.
 */
int port_ring(const uint8_t own[16]);

/*
 * In the child of a fork: drop all ports, so that the child opens its own.  A
 * thread of the parent may have held the locks.
 */
void port_after_fork(void);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Simulated network of the host under test: UDP sockets, a network interface
 * and the clock.  No packet leaves the process.  The linker option --wrap
 * replaces functions of libc and of the provider by those of net.c.  The
 * provider creates no thread: thread_start() fails, and pollers do the work
 * of the threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net_packet {
	uint8_t from[16], to[16]; /* GIDs */
	uint8_t traffic_class;
	uint16_t ip_id, port; /* of packets from the host only */
	const uint8_t *bytes; /* from the BTH to the end of the ICRC */
	size_t n;
};

/* The addresses of the interface, eth0. */
extern const uint8_t net_ipv4[16], net_ipv6[16];

/*
 * Queue a packet for the host, which receives it by recvmmsg().  Return false
 * if the queue is full or the packet is too long.
 */
bool net_put(const struct net_packet *p);
bool net_is_empty(void);
unsigned int net_waiting(void); /* number of queued packets */
/* Remove the oldest queued packet: received, or for no socket of the host. */
void net_lose(void);

/* Called for each packet that the host sends.  Defined in peer.c. */
void net_sent(const struct net_packet *p);

/* Advance CLOCK_MONOTONIC. */
void net_pass(uint64_t ns);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The network of a host that is fuzzed: its sockets of UDP, its interface and its
 * clock are here, and nothing leaves the process.  The linker puts these
 * functions in the place of libc's (--wrap).  No thread is made: who polls does
 * what they would do.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net_packet {
	uint8_t from[16], to[16]; /* GIDs */
	uint8_t traffic_class;
	uint16_t ip_id, port; /* of what the host sends */
	const uint8_t *bytes; /* from the BTH to the ICRC */
	size_t n;
};

/* eth0's addresses */
extern const uint8_t net_ipv4[16], net_ipv6[16];

/* For the host; it is there when it next looks.  False: there is no room. */
bool net_put(const struct net_packet *p);
bool net_is_empty(void);
unsigned int net_waiting(void); /* how many */
void net_lose(void); /* the oldest one: nobody is there */

/* What the host sent; the harness has it. */
void net_sent(const struct net_packet *p);

/* CLOCK_MONOTONIC goes on by so much. */
void net_pass(uint64_t ns);

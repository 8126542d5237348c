/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Choice of the local address for RoCE v2 to other hosts: urxe run --wire. */
#pragma once

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>

struct wire_choice {
	char text[INET6_ADDRSTRLEN]; /* the address */
	char interface[IF_NAMESIZE]; /* interface that has the address */
	bool ipv6;
	/* GID; of an IPv4 address: IPv4-mapped (::ffff:a.b.c.d) */
	struct in6_addr gid;
};

/*
 * Choose an address. @what is an address or the name of an interface. If it
 * is NULL, the source address of the default route is chosen. Without such a
 * route, the address is chosen by preference (IPv4, global IPv6, link-local
 * IPv6); it is an error if several are equally preferred, or if there are
 * only loopback addresses. Return 0, or EXIT_USAGE with the reason in @why.
 */
int wire_choose(const char *what, struct wire_choice *w, char why[256]);

/*
 * Handle --wire[=what]: set URXE_WIRE in the environment. Return 0, or the
 * exit code after logging the error.
 */
int set_wire(const char *what);

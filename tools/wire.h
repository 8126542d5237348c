/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which address the wire has: RoCE v2 to other hosts. */
#pragma once

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>

struct wire_choice {
	char text[INET6_ADDRSTRLEN]; /* the address */
	char interface[IF_NAMESIZE]; /* that has it */
	bool ipv6;
	struct in6_addr gid; /* of an IPv4 address: mapped */
};

/*
 * That of `what`, an address or an interface's name; NULL: that from which
 * packets go out by default, or the only one there is.  0, or EXIT_USAGE; what
 * is wrong with it is in why.
 */
int wire_choose(const char *what, struct wire_choice *w, char why[256]);

/* --wire[=what]: URXE_WIRE for what is run.  0, or the exit code; says why. */
int set_wire(const char *what);

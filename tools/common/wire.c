// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe run --wire: choose an address from an interface, or from the routing
 * table.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "commands.h"
#include "wire.h"

/*
 * Addresses reserved for documentation (RFC 5737, RFC 3849). A UDP socket is
 * connected to them, which sends nothing: the kernel only selects the source
 * address.
 */
#define NOWHERE_4 "192.0.2.1"
#define NOWHERE_6 "2001:db8::1"

static bool choice_of(const struct ifaddrs *a, struct wire_choice *w)
{
	const struct sockaddr_in *in = (const void *)a->ifa_addr;
	const struct sockaddr_in6 *in6 = (const void *)a->ifa_addr;

	if (!a->ifa_addr || !(a->ifa_flags & IFF_UP) ||
	    (a->ifa_addr->sa_family != AF_INET &&
	     a->ifa_addr->sa_family != AF_INET6))
		return false;
	memset(w, 0, sizeof(*w));
	w->ipv6 = a->ifa_addr->sa_family == AF_INET6;
	snprintf(w->interface, sizeof(w->interface), "%s", a->ifa_name);
	if (w->ipv6) {
		w->gid = in6->sin6_addr;
		return inet_ntop(AF_INET6, &in6->sin6_addr, w->text,
				 sizeof(w->text));
	}
	w->gid.s6_addr[10] = w->gid.s6_addr[11] = 0xff;
	memcpy(w->gid.s6_addr + 12, &in->sin_addr, 4);
	return inet_ntop(AF_INET, &in->sin_addr, w->text, sizeof(w->text));
}

/*
 * Preference of the address if only its interface is given: IPv4, then global
 * IPv6, then link-local IPv6, then loopback.
 */
static int rank(const struct wire_choice *w, unsigned int flags)
{
	if (!w->ipv6)
		return flags & IFF_LOOPBACK ? 1 : 4;
	if (IN6_IS_ADDR_LOOPBACK(&w->gid))
		return 1;
	return IN6_IS_ADDR_LINKLOCAL(&w->gid) ? 2 : 3;
}

/*
 * How well the address matches @what; 0: not. Of an interface the preferred
 * address matches best.
 */
static int match(const struct wire_choice *w, unsigned int flags,
		 const char *what)
{
	struct in6_addr six;
	struct in_addr four;

	if (!strcmp(what, w->interface))
		return rank(w, flags);
	if (w->ipv6)
		return inet_pton(AF_INET6, what, &six) == 1 &&
				       !memcmp(&six, &w->gid, sizeof(six)) ?
			       5 :
			       0;
	return inet_pton(AF_INET, what, &four) == 1 &&
			       !memcmp(&four, w->gid.s6_addr + 12, 4) ?
		       5 :
		       0;
}

/*
 * Source address of packets on the default route. Return false if there is no
 * route.
 */
static bool source_of(int family, const char *nowhere, char text[])
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} a = { .sa.sa_family = (sa_family_t)family };
	void *raw = family == AF_INET ? (void *)&a.in.sin_addr :
					(void *)&a.in6.sin6_addr;
	socklen_t len = sizeof(a);
	bool found;
	int fd;

	inet_pton(family, nowhere, raw);
	/* same offset in sockaddr_in and sockaddr_in6 */
	a.in.sin_port = htons(4791);
	fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	found = !connect(fd, &a.sa, sizeof(a)) &&
		!getsockname(fd, &a.sa, &len) &&
		inet_ntop(family, raw, text, INET6_ADDRSTRLEN);
	close(fd);
	return found;
}

/* "eth0 10.0.0.1, eth0 fd00::1" */
static void list(struct ifaddrs *all, char *to, size_t room)
{
	struct wire_choice w;
	struct ifaddrs *a;
	size_t at = 0;

	*to = '\0';
	for (a = all; a && at < room; a = a->ifa_next)
		if (choice_of(a, &w) && rank(&w, a->ifa_flags) > 1)
			at += (size_t)snprintf(to + at, room - at, "%s%s %s",
					       at ? ", " : "", w.interface,
					       w.text);
}

/* Store the best address in @w. Return how many are equally good. */
static int best_of(struct ifaddrs *all, const char *what, struct wire_choice *w)
{
	int best = 0, now, n = 0;
	struct wire_choice one;
	struct ifaddrs *a;

	for (a = all; a; a = a->ifa_next) {
		if (!choice_of(a, &one))
			continue;
		now = what ? match(&one, a->ifa_flags, what) :
			     rank(&one, a->ifa_flags);
		if (!now || (!what && now < 2) || now < best)
			continue;
		n = now == best ? n + 1 : 1;
		if (n == 1)
			*w = one;
		best = now;
	}
	return n;
}

int wire_choose(const char *what, struct wire_choice *w, char why[256])
{
	char source[INET6_ADDRSTRLEN], there[160];
	struct ifaddrs *all;
	int n;

	if (getifaddrs(&all)) {
		snprintf(why, 256, "cannot list the network interfaces");
		return EXIT_USAGE;
	}
	list(all, there, sizeof(there));
	if (!what && (source_of(AF_INET, NOWHERE_4, source) ||
		      source_of(AF_INET6, NOWHERE_6, source)))
		n = best_of(all, source, w);
	else
		n = best_of(all, what, w);
	freeifaddrs(all);
	if (!what && n > 1)
		snprintf(
			why, 256,
			"more than one address is possible; choose one with --wire=ADDRESS: %s",
			there);
	else if (!n && !*there)
		snprintf(why, 256, "no interface with an address is up");
	else if (!n)
		snprintf(why, 256,
			 "\"%s\" is not an interface that is up, nor the "
			 "address of one; available: %s",
			 what ? what : source, there);
	return n && (what || n == 1) ? 0 : EXIT_USAGE;
}

int set_wire(const char *what)
{
	struct wire_choice w;
	char why[256];

	if (wire_choose(what, &w, why))
		return fail(EXIT_USAGE, "--wire: %s", why);
	setenv("URXE_WIRE", w.text, 1);
	return 0;
}

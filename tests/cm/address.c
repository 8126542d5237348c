// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"

static bool is_link_local(const struct sockaddr *a)
{
	const struct sockaddr_in6 *a6 = (const void *)a;

	return a->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL(&a6->sin6_addr);
}

bool find_address(int family, void *out, size_t len)
{
	struct ifaddrs *list = NULL, *i;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (i = list; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != family ||
		    !(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK ||
		    is_link_local(i->ifa_addr))
			continue;
		memcpy(out, i->ifa_addr, len);
		found = true;
	}
	freeifaddrs(list);
	return found;
}

struct sockaddr_in own_ip4(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	const char *env = getenv("URXE_TEST_ADDRESS");

	if (env && inet_pton(AF_INET, env, &a.sin_addr) == 1)
		return a;
	if (!find_address(AF_INET, &a, sizeof(a)))
		a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = 0;
	return a;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A preload library that imitates a sandbox without netlink: socket() of
 * AF_NETLINK fails with EAFNOSUPPORT.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

int socket(int domain, int type, int protocol)
{
	int (*next)(int, int, int) =
		(int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");

	if (domain == AF_NETLINK) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	return next(domain, type, protocol);
}

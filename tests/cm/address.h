/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Addresses of this host, for tests of rdma_cm. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Store in @out (@len bytes) an address of @family of an interface that is
 * up, neither loopback nor link-local.  False: there is none.
 */
bool find_address(int family, void *out, size_t len);
/* Return such an IPv4 address, or 127.0.0.1 if there is none, with port 0. */
struct sockaddr_in own_ip4(void);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Addresses of this machine, for tests of rdma_cm. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

/* One of an interface that is up: not of the loopback, nor link local. */
bool find_address(int family, void *out, size_t len);
/* Such a one, or else the loopback's; without a port. */
struct sockaddr_in own_ip4(void);

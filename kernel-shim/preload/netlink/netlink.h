/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The stand-in for a NETLINK_RDMA socket, as the wrappers use it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

int netlink_socket(int type);
/* The number is that of another socket now. */
void netlink_forget(int fd);
bool netlink_maybe(int fd);
/* Take a request; false if fd is not a stand-in. */
bool netlink_request(int fd, const void *buf, size_t len);

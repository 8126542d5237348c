/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Emulated NETLINK_RDMA sockets.  The wrappers of socket, send, sendto and
 * sendmsg (wrap/fd.c) call these functions, from any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Create an emulated socket.  @type: as for socket(2).  Return the
 * descriptor, or -errno.  -EPROTONOSUPPORT: libnl-3 cannot be loaded, or the
 * descriptor number is too high to be tracked.
 */
int netlink_socket(int type);
/* Note that descriptor number @fd now is another socket. */
void netlink_forget(int fd);
/*
 * Return true if @fd may be an emulated socket.  It is one load, no system
 * call; the descriptor may have been closed and reused.
 */
bool netlink_maybe(int fd);
/*
 * Execute the requests in @buf and queue the responses on @fd.  False: @fd is
 * not an emulated socket, or @len is more than 4096; nothing was done.
 */
bool netlink_request(int fd, const void *buf, size_t len);

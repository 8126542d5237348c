/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The emulated character device /dev/infiniband/rdma_cm, as used by the
 * wrappers of open and write (preload/wrap).  Its descriptors are FIFOs, one
 * for each event channel (cm/cm.h).  librdmacm writes commands to them, which
 * ucma_write() intercepts.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/atomic.h"

/*
 * The process that has opened a channel last, this one or its parent before a
 * fork; 0: none, so no write is a command.
 */
extern _Atomic int ucma_used;
/*
 * Open an event channel; of @flags only O_NONBLOCK is used.  Returns the
 * descriptor, O_CLOEXEC, or -errno.
 */
int ucma_open(int flags);
/* Maximum length of a command in bytes, with room for newer versions. */
#define UCMA_COMMAND_MAX 512
/*
 * Run the command at @buf, of at most UCMA_COMMAND_MAX bytes.  *out is the
 * result of write(2): @len, or -1 with errno set.  Return false, without any
 * effect, if @fd is no channel.  A cancellation point if it is one.
 */
bool ucma_write(int fd, const void *buf, size_t len, ssize_t *out);
/* The process ends; one of its children was killed: leave.c */
void ucma_leave(void);
void ucma_child_killed(void);

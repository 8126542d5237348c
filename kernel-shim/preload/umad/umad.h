/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The emulated character devices /dev/infiniband/umadN and issmN, as used by
 * the wrappers of open, ioctl, read and write (preload/wrap).  A descriptor of
 * a umad device is a FIFO (mad/mad_device.h).  The other wrappers call these
 * functions only if umad_used is set.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/atomic.h"

/* Has this process, or its parent before a fork, opened a umad device? */
extern _Atomic bool umad_used;

/* Open the umad or issm device of port k: a descriptor, O_CLOEXEC, or -errno.
 */
int umad_open(uint32_t k, int flags);
int umad_open_issm(uint32_t k, int flags);
/*
 * Execute a call on a descriptor; *ret is its result, -1 with errno set on
 * failure.  False, without any effect: it is no umad device.
 */
bool umad_ioctl(int fd, unsigned long request, void *arg, int *ret);
bool umad_write(int fd, const void *buf, size_t len, ssize_t *ret);
/* next: libc's read(2), by which a thread may wait and be cancelled */
bool umad_read(int fd, void *buf, size_t len,
	       ssize_t (*next)(int fd, void *buf, size_t len), ssize_t *ret);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* /dev/infiniband/rdma_cm, as the wrappers use it. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/atomic.h"

/* A channel was opened in this process: writes may be commands. */
extern _Atomic int ucma_used;
/* Open /dev/infiniband/rdma_cm: the descriptor, O_CLOEXEC, or -errno. */
int ucma_open(int flags);
/* The longest command, and some that newer libraries may have. */
#define UCMA_COMMAND_MAX 512
/* Carry out a command of at most that; false if fd is something else. */
bool ucma_write(int fd, const void *buf, size_t len, ssize_t *out);

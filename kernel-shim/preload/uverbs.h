/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Emulation of the uverbs ioctl on the command descriptor of a context
 * (cmd_fd, the file of its arena).  The ioctl wrapper (wrap/fd.c) calls it,
 * from any thread.
 */
#pragma once

/*
 * Execute RDMA_VERBS_IOCTL.  0, -errno, or 1 if @fd is not the descriptor of
 * an emulated context; then the caller forwards the ioctl to the kernel.
 */
int uverbs_ioctl(int fd, void *arg);

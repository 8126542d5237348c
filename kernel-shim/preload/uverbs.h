/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ioctls on the descriptor of a context. */
#pragma once

/* RDMA_VERBS_IOCTL: 0, -errno, or 1 if fd is not one of ours. */
int uverbs_ioctl(int fd, void *arg);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Special files: files of the private tree that emulate something other than
 * they are.  The wrappers of open and stat call these functions in any
 * thread.  A file is recognized by its mode, its size and the fabric's file
 * system:
 *
 *	TREE_CDEV_MODE, TREE_CDEV_SIZE	verbs device; open makes a context
 *	TREE_CDEV_MODE, TREE_CM_SIZE	rdma_cm; open makes a channel
 *	TREE_CDEV_MODE, TREE_UMAD_SIZE	umad device; TREE_ISSM_SIZE: issm
 *	CM_FIFO_MODE			an event channel of rdma_cm
 *	TREE_EINVAL_MODE, size 0	attribute of an empty GID table entry;
 *					read fails with EINVAL
 *
 * The arena of a context, which is the descriptor of an open verbs device, is
 * reported by fstat as that device.
 */
#pragma once

#include "preload/tree/tree.h"

/*
 * Complete an open(2) that returned @fd.  If it is a special file, close @fd
 * and return the descriptor that replaces it: a context, a channel, or one
 * whose read fails with EINVAL.  Otherwise return @fd.  -1 with errno on
 * error.  With O_PATH or O_DIRECTORY nothing is replaced.
 */
int special_open(int fd, int flags);
/*
 * Replace members of *st by those of the emulated file, for instance the mode
 * and number of a character device.  @fd is -1 if *st is of a path.
 */
void special_stat(int fd, struct stat *st);

/*
 * Return the errno with which inotify_add_watch() of @path must fail, or 0.
 *
 * If libibverbs cannot open the device, it watches /dev/char/ for five
 * seconds for another one.  None will appear.  So the watch fails with the
 * error of this thread's last open of a device, once.
 */
int special_watch(const char *path);

/* Fast check, before special_stat(), that a mode may be a special file's */
static inline bool special_mode(unsigned int mode)
{
	return mode == TREE_CDEV_MODE || mode == TREE_EINVAL_MODE ||
	       mode == CM_FIFO_MODE;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The files that are not what they are stored as. */
#pragma once

#include "preload/tree/tree.h"

/*
 * What open returned is given the meaning of the file: a context for the
 * character device, an unreadable descriptor for an empty slot.  Returns the
 * descriptor to hand out, or -1 with errno.
 */
int special_open(int fd, int flags);
/* Make st say what the kernel's file would; fd is -1 for a path. */
void special_stat(int fd, struct stat *st);

/*
 * When libibverbs could not open the device it watches /dev/char for five
 * seconds for another one to come.  None will: the error of this thread's
 * failed open, with which to refuse the watch, or 0.
 */
int special_watch(const char *path);

/* The quick test before special_stat. */
static inline bool special_mode(unsigned int mode)
{
	return mode == TREE_CDEV_MODE || mode == TREE_EINVAL_MODE ||
	       mode == CM_FIFO_MODE;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Find a file descriptor of this process that refers to a mapped file, so
 * that peers can open the file through /proc/PID/fd.  Called when an MR is
 * registered (file.c).
 */
#pragma once

#include <stdbool.h>

struct vma;

/* Does fd refer to the file that v maps? */
bool descriptor_is(int fd, const struct vma *v);
/*
 * Return such a descriptor, or -1.  Results are cached, and negative results
 * are rechecked with increasing intervals; sure forces a new search.
 */
int descriptor_find(const struct vma *v, bool sure);
/* Reinitialize the lock in the child of a fork. */
void descriptor_after_fork(void);

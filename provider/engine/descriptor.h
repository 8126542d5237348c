/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which of this process's descriptors leads to a mapped file, so that peers
 * can open it through /proc.
 */
#pragma once

#include <stdbool.h>

struct vma;

/* Is fd the file that v maps? */
bool descriptor_is(int fd, const struct vma *v);
/* One that is, or -1.  sure: also where it was looked for in vain before. */
int descriptor_find(const struct vma *v, bool sure);
/* In the child of a fork. */
void descriptor_after_fork(void);

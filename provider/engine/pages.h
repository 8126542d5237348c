/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Pages of this process change from private to shared ones, and back. */
#pragma once

#include <stddef.h>

struct smaps_vma;
struct stat;

#define PAGES_NAME "urxe-adopted"

/*
 * Copy len bytes at `at`, whole pages of private memory, to a new memfd, and
 * map that in their place.  Its descriptor, or -errno: nothing has changed.
 */
int pages_share(void *at, size_t len, struct stat *st);
/*
 * Make v, a shared mapping of memfd fd in which nobody else writes, private.
 * 1: it is, but what it shows is still in the file.  -errno: it is not.
 */
int pages_unshare(int fd, const struct smaps_vma *v);
/*
 * All of it is private and in no need of the file: what is given up of it by
 * madvise, or added by mremap, shall be zeros, as of other private memory.
 */
void pages_empty(int fd);
/* A copy of what memfd fd has at v, in private memory; NULL: no memory. */
void *pages_copy(int fd, const struct smaps_vma *v);

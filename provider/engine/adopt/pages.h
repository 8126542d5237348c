/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Replace private pages of this process by shared pages of a memfd, and back,
 * while other threads use them.  Called by adopt.c and adopt_fork.c under the
 * adoption lock.
 */
#pragma once

#include <stddef.h>

struct smaps_vma;
struct stat;

/* Name of the memfds. */
#define PAGES_NAME "urxe-adopted"

/*
 * Copy len bytes at `at`, whole pages of private memory, to a new memfd, and
 * map it in their place.  No concurrent store is lost.  Returns the
 * descriptor and fills *st, or returns -errno with the pages unchanged.
 */
int pages_share(void *at, size_t len, struct stat *st);
/*
 * Make v, a shared mapping of memfd fd that no other process writes to,
 * private.  0: done; 1: done, but the mapping still reads pages of the file,
 * so the file must not be emptied; -errno: v is still shared.
 */
int pages_unshare(int fd, const struct smaps_vma *v);
/*
 * Empty the file after all its mappings have become private and have their
 * own copies.  Then pages that are discarded by madvise() or added by
 * mremap() read as zeros, as in other private memory.
 */
void pages_empty(int fd);
/* Copy the contents of memfd fd at v to new private memory, or NULL. */
void *pages_copy(int fd, const struct smaps_vma *v);

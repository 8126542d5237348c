/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A cache of one open descriptor of /proc/self/maps, for queries by the ioctl
 * PROCMAP_QUERY at registration (vma.c).  Opening the file takes ten times as
 * long as a query.
 *
 * The descriptor describes the address space that it was opened in, so a
 * forked child must not use its parent's.  The state of the cache is in a
 * page with MADV_WIPEONFORK, which is zero in the child.  The program may
 * close the descriptor and reuse its number, so its identity is checked
 * before each use.
 *
 * One thread uses the cached descriptor at a time; others open their own.
 */
#pragma once

#include <stdbool.h>

struct maps {
	int fd; /* -1: open failed, as without /proc */
	bool lent; /* cached: no read(), as the file position is shared */
	struct maps_kept *kept; /* the cache, locked; NULL: not locked */
};

/*
 * Enable the cache.  This maps a page, so it must not be called during a
 * query of the mappings.
 */
void maps_prepare(void);
/* Get a descriptor; fresh: open a new one. */
void maps_open(struct maps *m, bool fresh);
/* Release it; keep: put it into the cache if possible. */
void maps_close(struct maps *m, bool keep);
/* Close the cached descriptor. */
void maps_forget(void);

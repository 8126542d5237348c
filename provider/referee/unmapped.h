/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory that goes away under an MR: munmap, mremap, a mapping over it,
 * madvise(MADV_DONTNEED).
 *
 * The preload library reports each such call when it succeeded.  Its caller may
 * be an allocator that holds its locks, or the referee itself: what is found is
 * noted under a lock of its own, and told by the next referee_unlock(). Nothing
 * is allocated under that lock, and it is not held over the handlers of a fork.
 */
#pragma once

#include "shadow.h"

void unmapped_init(void);

/* The MR is one from now on, or again, at m->addr; or no more. */
void unmapped_watch(struct shadow_mr *m);
void unmapped_forget(struct shadow_mr *m);

/* Tell what was noted.  Under referee_lock(). */
void unmapped_tell(void);

/*
 * Around fork(), under referee_lock().  The parent is checked; the child's
 * copies of memory are no MRs.
 */
void unmapped_before_fork(void);
void unmapped_after_fork_parent(void);
void unmapped_after_fork_child(void);

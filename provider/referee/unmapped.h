/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Detection of memory that is taken away while it is registered: by
 * munmap(2), mremap(2), mmap(2) with MAP_FIXED, or madvise(2) with
 * MADV_DONTNEED, MADV_FREE or MADV_REMOVE.  Also of a fork(2) with MRs,
 * without ibv_fork_init().
 *
 * The preload library reports each such call after it has succeeded
 * (base/map_watch.h), in the thread that made it.  That thread may hold locks
 * of an allocator, or referee_lock().  So the call is only recorded, under a
 * lock of unmapped.c.  The next referee_unlock() of any thread makes findings
 * of the records.  Nothing is allocated under that lock.  The fork handlers
 * do not hold it over fork(2); the child initializes it.
 *
 * A new MR may be in a mapping that another thread made at an address that
 * was just unmapped, before that call is reported.  Therefore a counter is
 * incremented for each watched MR.  The preload library reads it before the
 * call; MRs with a greater number are skipped.
 */
#pragma once

#include "shadow.h"

/* Register with the preload library, if it is loaded.  Called once. */
void unmapped_init(void);

/*
 * Watch the MR from now on, and stop watching it.  Called when the MR is
 * registered, re-registered, put back or destroyed, under referee_lock().
 * MRs that are on-demand, inherited or at an unknown address are not watched.
 */
void unmapped_watch(struct shadow_mr *m);
void unmapped_forget(struct shadow_mr *m);

/* Report what was recorded.  Under referee_lock(). */
void unmapped_report(void);

/*
 * Called before and after fork(2), under referee_lock().  MRs of the parent
 * stay watched.  Those of the child are not: they are copies of memory that
 * the device does not access.
 */
void unmapped_before_fork(void);
void unmapped_after_fork_parent(void);
void unmapped_after_fork_child(void);

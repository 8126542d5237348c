/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Page adoption, enabled by the environment variable URXE_ADOPT: when private
 * pages are registered they are replaced by a shared mapping of a memfd.
 * Peers can map that memfd (copy path 2, transfer.h).  When the last MR in
 * the pages is deregistered they become private again.  docs/adoption.md
 * describes what a program can observe.
 *
 * The callers are memory registration and deregistration (verbs/mr/mr.c,
 * verbs/mr/rereg.c) and the fork handlers.  All functions do nothing if adoption
 * is disabled.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

void adopt_init(void);

/*
 * Take and release the adoption lock, which is recursive.  The caller holds
 * it during registration, from the check of the pages until the key is live,
 * and during deregistration.  So no peer writes to pages by copy path 3 while
 * they are replaced.  Thread cancellation is disabled while the lock is held.
 */
void adopt_begin(void);
void adopt_end(void);

/*
 * Replace the pages of [va, va + len) by a shared mapping of a memfd.  Return
 * false, with the pages unchanged, if they do not qualify or this fails.
 * adopt_settle() makes them private again unless adopt_hold() was called.
 */
bool adopt_range(uint64_t va, uint64_t len);
/* Is this file a memfd that adopt_range() created? */
bool adopt_has(uint64_t dev, uint64_t ino);
/* Add or drop the reference of an MR; ignored if adopt_has() is false. */
void adopt_hold(uint64_t dev, uint64_t ino);
void adopt_put(uint64_t dev, uint64_t ino);
/*
 * Make the pages of each unreferenced memfd private again.  Pages stay shared
 * if another MR lies in them or they were changed by, say, mlock or madvise.
 */
void adopt_settle(void);

/*
 * The fork() handlers: a child gets private copies of adopted pages.  The
 * first one calls adopt_begin(), the other two call adopt_end().
 */
void adopt_before_fork(void);
void adopt_after_fork_parent(void);
void adopt_after_fork_child(void);

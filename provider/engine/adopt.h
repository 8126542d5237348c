/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Page adoption, where URXE_ADOPT asks for it: private pages that are
 * registered become a shared mapping of a memfd, which peers map (copy path 2),
 * and private ones again when their last MR has gone.  What a program can tell
 * of it stands in docs/adoption.md.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

void adopt_init(void);

/*
 * Held while an MR comes or goes, from the look at its pages to its key's being
 * live, so that no peer writes to pages by path 3 while they change.  May be
 * nested.
 */
void adopt_begin(void);
void adopt_end(void);

/*
 * Make [va, va + len) a shared mapping if that may be.  True: it is; and goes
 * back in adopt_settle() unless somebody holds it by then.
 */
bool adopt_range(uint64_t va, uint64_t len);
/* Is it of ours, and not the program's? */
bool adopt_has(uint64_t dev, uint64_t ino);
/* An MR is in that file, which may be one of ours, or is not any more. */
void adopt_hold(uint64_t dev, uint64_t ino);
void adopt_put(uint64_t dev, uint64_t ino);
/* Those that nobody holds, or uses by another MR, become private. */
void adopt_settle(void);

/*
 * A child of fork() has copies of its own.  Between adopt_begin(), before, and
 * adopt_end(), which the latter two call.
 */
void adopt_before_fork(void);
void adopt_after_fork_parent(void);
void adopt_after_fork_child(void);

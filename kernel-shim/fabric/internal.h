/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of the fabric share among themselves. */
#pragma once

#include "fabric.h"

int arena_init(int fd, uint32_t slot, uint32_t gen, const char comm[16]);
/*
 * What the slot was when made, for an MR of context ctx: a slot of its own with
 * the same pages, which goes when the MR puts it.  -errno
 */
int dm_heap_share(struct urxe_fabric *f, uint32_t slot, uint32_t made,
		  uint32_t ctx, uint32_t ctx_gen);
/* Free the device memory in slot, whose context is dead.  0 or -errno. */
int dm_heap_reclaim(struct urxe_fabric *f, uint32_t slot);
/* Under the device lock, whose holder died: what is used is what slots have. */
void dm_heap_recover(struct urxe_fabric *f);
/* Remove the heap's file if it is on a hugetlbfs; nobody uses it. */
void dm_heap_remove(struct urxe_dev *dev);

/*
 * place.c: the directory that a fabric's is in; a descriptor.  With create it
 * is made if it is not there.  -EPERM: it is not safe; -EAGAIN: try again.
 */
int place_open(const char *dir, bool create);
/* The fabric at dir has gone. */
void place_leave(const char *dir);

/*
 * stale.c: lock the device segment behind fd, F_RDLCK for users, F_WRLCK for
 * replacing it.  -EAGAIN: others hold it; -ESTALE: it was replaced.
 */
int fabric_hold(int fd, short type);
/* Is the directory still the one that its name leads to? */
bool fabric_in_place(const struct urxe_fabric *f);
/*
 * broken.c: are files gone, or too short?  err is what mapping the segment came
 * to.
 */
bool fabric_is_broken(const struct urxe_fabric *f, int err);
/* Make room for a new one: -ESTALE, there is; -EAGAIN: others are at it. */
int fabric_put_away(struct urxe_fabric *f);
/*
 * Remove the fabric behind f->dirfd, whose segment need not be mapped.
 * -EBUSY: it is in use; -EAGAIN, -ESTALE: others are making or removing it, or
 * did; -ENOTEMPTY: only_empty, and it is not.
 */
int fabric_retire(struct urxe_fabric *f, bool only_empty);

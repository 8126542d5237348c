/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The file table of a context: the shared files that contain its MRs, so that
 * peers can map them (copy path 2).  Registration calls these functions; the
 * peers' side is mem.c.
 */
#pragma once

#include "engine/core/context.h"

/*
 * Add a reference of an MR to its shared file.  Returns the file's index.
 * *in_memory tells whether the file is on tmpfs or hugetlbfs, so that peers
 * may map it.  A file on disk is entered only if any is set.
 *
 * -ENOENT: there is no way for peers to open the file, or it is on disk and
 * any is not set; peers use copy path 3.  -ENOMEM: the table is full.
 */
struct vma;
int file_get(struct urxe_context *ctx, const struct vma *v, bool any,
	     bool *in_memory);
/* Drop the reference of an MR. */
void file_put(struct urxe_context *ctx, uint32_t index);

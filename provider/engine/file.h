/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A context's file table: the shared files that its MRs lie in, so that peers
 * can map them; mem.c is the peers' side.
 */
#pragma once

#include "context.h"

/*
 * Note the shared file an MR lies in; its index.  Peers may map it if it is in
 * memory, else it must be wanted for another reason.  -ENOENT: it cannot be
 * opened again, and is reached by path 3; -ENOMEM.
 */
struct vma;
int file_get(struct urxe_context *ctx, const struct vma *v, bool any,
	     bool *in_memory);
void file_put(struct urxe_context *ctx, uint32_t index);

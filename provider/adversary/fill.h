/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The option "fill" for receive buffers: their contents are undefined from
 * ibv_post_recv until the completion, so the bytes of an earlier message are
 * overwritten with FILL_BYTE when the buffer is posted. A program that still
 * has to read them, or that reads data that has not arrived, sees FILL_BYTE.
 *
 * Bytes that are 0 stay 0. No device changes the bytes behind the end of a
 * short message, and some programs clear their buffers once and then receive
 * strings. If the verb refuses the receive, fill_undo() restores the bytes:
 * the device never owned the buffer.
 *
 * The callers are the interposers of ibv_post_recv and ibv_post_srq_recv
 * (recv.c), without a lock. Memory is accessed by process_vm_readv(2) and
 * process_vm_writev(2), so that unmapped memory does not end the process: if
 * the buffers cannot be read completely, nothing is filled. transport.c uses
 * FILL_BYTE for the option "fill" of READs.
 */
#pragma once

#include <sys/uio.h>

#include "engine/mem/mem.h"

#define FILL_BYTE 0xa5
#define FILL_MAX_BYTES 8192 /* bytes of a receive, see fill_set() */
#define FILL_RUNS (2 * URXE_MAX_SGE)

/* The bytes before fill_set(), and where they were. */
struct fill {
	unsigned int runs;
	size_t len;
	struct iovec run[FILL_RUNS];
	char was[FILL_MAX_BYTES];
};

/*
 * Fill the buffers of @wr, whose lkeys are of @self and @pd, and save their
 * bytes in @f. @wr has at most URXE_MAX_SGE SGEs. At most FILL_MAX_BYTES bytes
 * are filled: of the SGE that exceeds this, its first and its last bytes, and
 * none of the SGEs behind it. An SGE is skipped if its lkey is invalid or its
 * memory is not of this process. errno is kept.
 */
void fill_set(struct fill *f, struct urxe_peer *self, uint32_t pd,
	      const struct ibv_recv_wr *wr);
/* Restore the bytes that fill_set() saved in @f. errno is kept. */
void fill_undo(const struct fill *f);

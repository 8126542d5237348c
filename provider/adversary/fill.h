/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is in a receive buffer is the device's from ibv_post_recv to the
 * completion.  So the bytes of an earlier message are overwritten when the
 * buffer is posted: a program that has not read them yet, or reads what did not
 * come yet, sees FILL_BYTE.
 *
 * Not all programs that look at a buffer are wrong.  Nobody promises, and no
 * device does, that what is behind the end of a short message changes; so bytes
 * that are 0 stay 0, as a program has them that clears its buffers once and
 * receives strings.  And what the verb refuses was never the device's: it is
 * put back.
 *
 * The bytes are read and written by the kernel: memory that is not there, or
 * may not be written to, is left alone.
 */
#pragma once

#include <sys/uio.h>

#include "engine/mem.h"

#define FILL_BYTE 0xa5
#define FILL_MOST 8192 /* of a receive: its beginning and its end */
#define FILL_RUNS (2 * URXE_MAX_SGE)

/* What was there. */
struct fill {
	unsigned int runs;
	size_t len;
	struct iovec run[FILL_RUNS];
	char was[FILL_MOST];
};

/* The bytes that wr, which has URXE_MAX_SGE SGEs at most, names by the keys of
 * self in that PD. */
void fill_set(struct fill *f, struct urxe_peer *self, uint32_t pd,
	      const struct ibv_recv_wr *wr);
void fill_undo(const struct fill *f);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The journal of remote writes (shared/journal.h): the outstanding and recent
 * WRs of all checked programs of a fabric that write to a responder's memory.
 * The referee reads it to decide whether a peer may have written to a buffer,
 * and whether WRs of two processes write to the same bytes.
 *
 * memory.c, change.c and overlap.c call these functions under
 * referee_lock().  Without a journal (it cannot be mapped, or the process
 * uses that of another fabric) journal_may_have_written() returns true, and
 * journal_other_writes() returns false.
 */
#pragma once

#include "span.h"

/* Announce that the WRs of the context are recorded from now on. */
void journal_join(struct urxe_context *ctx);
/* The context is about to be closed and has no outstanding WRs. */
void journal_leave(struct urxe_context *ctx);

/* Return the next position, or 0 without a journal. */
uint64_t journal_now(const struct urxe_context *ctx);
/*
 * Record a WR that is about to be posted and writes to @remote.  Return the
 * argument of journal_done(), or 0: it is not recorded.
 */
uint64_t journal_write(const struct urxe_context *ctx, uint32_t qpn,
		       uint32_t rkey, const struct span *remote);
/* Record that the completion of the WR was polled, or the WR dropped. */
void journal_done(uint64_t written);

/*
 * May a WR have written to the spans since position @since?  True if that is
 * unknown.
 */
bool journal_may_have_written(const struct urxe_context *ctx,
			      const struct spans *s, uint64_t since);

/* An outstanding WR of another process. */
struct journal_other {
	uint32_t qpn;
	int pid;
	struct span span;
};
/*
 * Find an outstanding WR of another living process that was posted at
 * position @since or later and writes to @remote of @rkey.  False: none.
 */
bool journal_other_writes(const struct urxe_context *ctx, uint32_t rkey,
			  const struct span *remote, uint64_t since,
			  struct journal_other *other);

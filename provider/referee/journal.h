/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which WRs of the fabric's checked programs write in whose memory
 * (shared/journal.h), and what that says of bytes of ours.
 */
#pragma once

#include "span.h"

/* A context is about to be used, and its WRs will be written there. */
void journal_join(struct urxe_context *ctx);
/* It is about to be closed, and nothing of it is in flight. */
void journal_leave(struct urxe_context *ctx);

/* The position that is next. */
uint64_t journal_now(const struct urxe_context *ctx);
/* A WR is about to be posted.  What journal_done() wants, 0: nothing. */
uint64_t journal_write(const struct urxe_context *ctx, uint32_t qpn,
		       uint32_t rkey, const struct span *remote);
void journal_done(uint64_t written);

/* Has somebody written to the spans since that position, or maybe so? */
bool journal_may_have_written(const struct urxe_context *ctx,
			      const struct spans *s, uint64_t since);

/* A WR of another process. */
struct journal_other {
	uint32_t qpn;
	int pid;
	struct span span;
};
/* One, posted at that position or later, that writes there and is in flight. */
bool journal_other_writes(const struct urxe_context *ctx, uint32_t rkey,
			  const struct span *remote, uint64_t since,
			  struct journal_other *other);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The state of an outstanding WR's memory, shared by memory.c, overlap.c,
 * change.c, ending.c and fetch.c.  All of it is guarded by referee_lock(),
 * except the list of fetch.c, which has its own lock.
 */
#pragma once

#include "referee/ranges/flight_table.h"
#include "shadow.h"
#include "referee/ranges/snapshot.h"

enum memory_use {
	MEMORY_SOURCE, /* the device reads it: a send, a WRITE, ... */
	MEMORY_RECEIVE, /* the device writes a message to it */
	MEMORY_FETCH, /* the device writes a READ's or atomic's result */
};

struct memory {
	struct shadow_queue *q;
	struct shadow_wr *wr;
	enum memory_use use;
	struct spans spans;
	struct span remote; /* written by way of wr->rkey, or empty */
	struct span read; /* read by a READ of more than 8 bytes, or empty */
	/*
	 * Changes are not checked (any more): another outstanding WR has, or
	 * may have, the same bytes; or a change was reported.
	 */
	bool unchecked;
	struct snapshot *before; /* NULL: none was taken */
	struct urxe_context *ctx;
	uint64_t since; /* journal position when it was posted */
	uint64_t written; /* of journal_write(), or 0 */
};

/*
 * Address ranges of the outstanding WRs of this process: local bytes that are
 * read (sources) and written (targets); and, by rkey, remote bytes that are
 * written (remotes) and that READs of more than 8 bytes read (reads).
 */
extern struct flight_table memory_sources, memory_targets, memory_remotes,
	memory_reads;

/*
 * The journal position when this process last polled the completion of a
 * receive.
 */
extern uint64_t memory_received_at;

/*
 * Was the WR posted before a message was received?  The message may be the
 * peer's response to it.
 */
static inline bool memory_is_answered(const struct memory *m)
{
	return m->wr->nth < m->q->answered;
}

/*
 * Does the device access the memory of the queue's WRs?  In states such as
 * ERR it only completes them.
 */
bool memory_is_at_work(const struct shadow_queue *q);

/* overlap.c: compare m with the tables, before m is added to them. */
void overlap_check(struct memory *m);
/* change.c: before and after the post */
void change_begin(struct memory *m);
void change_posted(struct memory *m);
/*
 * Before the post: if m sends from a buffer that an earlier WR of its queue
 * is sending, check that buffer for changes.
 */
void change_check_earlier(const struct memory *m);
/* At the completion: report a change since the snapshot. */
void change_check(struct memory *m, const struct ibv_wc *wc);
/* fetch.c: take the snapshot of the result; NULL: there is none. */
struct snapshot *fetch_take(const struct memory *m);
/* Drop all snapshots of the queue, also those of WRs with a shadow. */
void fetch_drop(const struct shadow_queue *q);
void fetch_init(void);
void fetch_after_fork(void);

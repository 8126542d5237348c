/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What memory.c keeps of a WR in flight; all of it is under referee_lock(). */
#pragma once

#include "flight_table.h"
#include "shadow.h"
#include "snapshot.h"

enum memory_use {
	MEMORY_SOURCE, /* a device reads it */
	MEMORY_RECEIVE, /* a message is written there */
	MEMORY_FETCH, /* what a READ or an atomic brings is */
};

struct memory {
	struct shadow_queue *q;
	struct shadow_wr *wr;
	enum memory_use use;
	struct spans spans;
	struct span remote; /* what is written by wr->rkey, or empty */
	struct span read; /* what a READ reads so */
	/* another WR in flight has, or may have, the same bytes: they may
	 * change at any time
	 */
	bool met;
	struct snapshot *before;
	struct urxe_context *ctx;
	uint64_t since; /* of the journal: when it was posted */
	uint64_t written; /* there, or 0 */
};

/*
 * What is in flight: bytes that are read, that are written; and by rkey, in
 * anybody's memory, what is written and what READs of more than 8 bytes read.
 */
extern struct flight_table memory_sources, memory_targets, memory_remotes,
	memory_reads;

/* The journal's position when this process last got a message. */
extern uint64_t memory_heard;

/* Was it posted before a message came, which may be the answer to it? */
static inline bool memory_is_answered(const struct memory *m)
{
	return m->wr->nth < m->q->answered;
}

/* Does a device look at it?  In the error state it only completes. */
bool memory_is_at_work(const struct shadow_queue *q);

/* overlap.c: the others in flight, before m is in the tables. */
void overlap_check(struct memory *m);
/* change.c: bytes that change, or are not there. */
void change_begin(struct memory *m);
void change_posted(struct memory *m);
/* It is about to be posted, maybe from a buffer that is being sent already. */
void change_again(const struct memory *m);
void change_check(struct memory *m, const struct ibv_wc *wc);
/* fetch.c: what was there when it was answered; NULL: that is not known. */
struct snapshot *fetch_take(const struct memory *m);
/* All that is there of q's, be it of WRs that are known. */
void fetch_drop(const struct shadow_queue *q);
void fetch_init(void);
void fetch_after_fork(void);

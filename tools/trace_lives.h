/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The lives of WRs, put together from a trace's records: those of a send queue
 * from the posting to the polling of the completion, and receives.
 *
 * wr_ids are the program's and may all be the same; but each queue's WRs are
 * posted, begun and completed in order, so the oldest one that fits is meant.
 */
#pragma once

#include "trace_file.h"

enum life_step {
	LIFE_POSTED,
	LIFE_LEFT,
	LIFE_ARRIVED,
	LIFE_ANSWERED,
	LIFE_COMPLETED,
	LIFE_POLLED,
	LIFE_STEPS
};

struct life {
	struct life *next, *prev; /* of its QP's queue, by posting */
	struct life_qp *qp;
	uint64_t nth; /* of its queue */
	uint64_t wr_id, op, length, status;
	bool recv;
	bool refused; /* it was not posted after all */
	uint64_t at[LIFE_STEPS]; /* ns; 0: did not happen, or is not known */
	const struct trace_record *by[LIFE_STEPS]; /* what says so, or NULL */
	const struct trace_record *fetched; /* of an atomic, or NULL */
	/* of a message that took a receive (or several: the first one), and
	 * of a receive: the other one, or NULL */
	struct life *partner;
	uint32_t track; /* who shows it may note where; else 0 */
};

struct life_qp {
	struct life_qp *next;
	struct life_qp *older; /* of its bucket */
	uint64_t fabric, since; /* a number may be used again */
	uint32_t qpn;
	int32_t pid; /* its owner: trace_thread.process */
	uint64_t type, cq[2]; /* of sends, of receives; 0: not known */
	struct life *first[2], *last[2]; /* of each queue */
	struct life *open[2]; /* none before it will change */
	struct life *todo[2][LIFE_STEPS]; /* all before it had that step */
	uint64_t lives[2];
	uint32_t track; /* as a life's */
	struct life *arrived; /* the last message that takes a receive ... */
	struct life *unpaired; /* ... and none before it has no partner */
};

#define LIVES_BUCKETS 256

/* By the order in which QPs were made, or first seen. */
struct lives {
	struct life_qp *qp, **end;
	struct life_qp *newest[LIVES_BUCKETS]; /* by QPN */
	const struct trace_batch *batch;
	struct life **of; /* for each record: whose it is, or NULL */
};

/* Is it a message that takes one? */
bool life_takes_receive(const struct life *w);

/* 0, or the exit code. */
int lives_make(struct lives *l, const struct trace_batch *b);
/* Who had that number in the record's fabric when it was made, or NULL. */
struct life_qp *lives_qp(const struct lives *l, const struct trace_record *r,
			 uint32_t qpn);
void lives_free(struct lives *l);

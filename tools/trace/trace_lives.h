/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lives of WRs, reconstructed from the records of a trace. The life of a send
 * WR or of a receive is from posting to the polling of its completion. The
 * life of a receive of an SRQ starts with its completion.
 *
 * A record names its WR by QPN and wr_id. Programs choose wr_ids and may use
 * one for many WRs. The WRs of a queue are posted, started and completed in
 * order, so a record belongs to the oldest WR that matches and has not had
 * this step.
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
	/* other WRs of the queue, in the order of posting */
	struct life *next, *prev;
	struct life_qp *qp;
	uint64_t nth; /* ordinal in its queue */
	uint64_t wr_id, op, length, status;
	bool recv;
	bool refused; /* ibv_post_send or ibv_post_recv refused it */
	/* time, ns; 0: did not happen, or is not known */
	uint64_t at[LIFE_STEPS];
	/* the record of the step, or NULL */
	const struct trace_record *by[LIFE_STEPS];
	/* FETCHED record of an atomic, or NULL */
	const struct trace_record *fetched;
	/*
	 * The matching WR of the peer, or NULL: of a message the receive that
	 * it consumed (of several, the first one), of a receive the message.
	 */
	struct life *partner;
	uint32_t track; /* for the writer of an output format; else 0 */
};

struct life_qp {
	struct life_qp *next;
	struct life_qp *older; /* next in the hash bucket */
	/* from when it had this number; QPNs are reused */
	uint64_t fabric, since;
	uint32_t qpn;
	int32_t pid; /* owner: trace_thread.process */
	uint64_t type, cq[2]; /* cq: send CQ, receive CQ; 0: not known */
	/* of the send queue [0] and the receive queue [1] */
	struct life *first[2], *last[2];
	struct life *open[2]; /* earlier WRs do not change any more */
	struct life *todo[2][LIFE_STEPS]; /* earlier WRs have had that step */
	uint64_t lives[2];
	uint32_t track; /* as life.track */
	/* last message that arrived and consumes a receive */
	struct life *arrived;
	struct life *unpaired; /* earlier messages have a partner */
};

#define LIVES_BUCKETS 256

/* QPs in the order in which they were created, or first seen. */
struct lives {
	struct life_qp *qp, **end;
	/* hash table by QPN, newest first */
	struct life_qp *newest[LIVES_BUCKETS];
	const struct trace_batch *batch;
	struct life **of; /* for each record its WR, or NULL */
};

/* Whether the WR is a message that consumes a receive. */
bool life_takes_receive(const struct life *w);

/*
 * Build the lives of all WRs of @b. Return 0, or the exit code after logging
 * the error. Free with lives_free() in both cases.
 */
int lives_make(struct lives *l, const struct trace_batch *b);
/*
 * The QP that had number @qpn in the record's fabric at the record's time, or
 * NULL.
 */
struct life_qp *lives_qp(const struct lives *l, const struct trace_record *r,
			 uint32_t qpn);
void lives_free(struct lives *l);

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
#include "trace_print.h"

enum wr_step {
	STEP_POSTED,
	STEP_LEFT,
	STEP_ARRIVED,
	STEP_ANSWERED,
	STEP_COMPLETED,
	STEP_POLLED,
	WR_STEPS
};

struct wr_history {
	/* other WRs of the queue, in the order of posting */
	struct wr_history *next, *prev;
	struct wr_history_qp *qp;
	uint64_t nth; /* ordinal in its queue */
	uint64_t wr_id, op, length, status;
	bool recv;
	bool refused; /* ibv_post_send or ibv_post_recv refused it */
	/* time, ns; 0: did not happen, or is not known */
	uint64_t at[WR_STEPS];
	/* the record of the step, or NULL */
	const struct trace_record *by[WR_STEPS];
	/* FETCHED record of an atomic, or NULL */
	const struct trace_record *fetched;
	/*
	 * The matching WR of the peer, or NULL: of a message the receive that
	 * it consumed (of several, the first one), of a receive the message.
	 */
	struct wr_history *partner;
	uint32_t track; /* for the writer of an output format; else 0 */
};

struct wr_history_qp {
	struct wr_history_qp *next;
	struct wr_history_qp *older; /* next in the hash bucket */
	/* from when it had this number; QPNs are reused */
	uint64_t fabric, since;
	uint32_t qpn;
	char on[TRACE_NAME_ROOM]; /* its device, or "" */
	int32_t pid; /* owner: trace_thread.process */
	uint64_t type, cq[2]; /* cq: send CQ, receive CQ; 0: not known */
	/* of the send queue [0] and the receive queue [1] */
	struct wr_history *first[2], *last[2];
	struct wr_history *open[2]; /* earlier WRs do not change any more */
	/* earlier WRs have had that step */
	struct wr_history *todo[2][WR_STEPS];
	uint64_t histories[2];
	uint32_t track; /* as life.track */
	/* last message that arrived and consumes a receive */
	struct wr_history *arrived;
	struct wr_history *unpaired; /* earlier messages have a partner */
};

#define WR_HISTORY_BUCKETS 256

/* QPs in the order in which they were created, or first seen. */
struct wr_histories {
	struct wr_history_qp *qp, **end;
	/* hash table by QPN, newest first */
	struct wr_history_qp *newest[WR_HISTORY_BUCKETS];
	const struct trace_batch *batch;
	struct wr_history **of; /* for each record its WR, or NULL */
};

/* Whether the WR is a message that consumes a receive. */
bool wr_history_takes_receive(const struct wr_history *w);

/*
 * Build the lives of all WRs of @b. Return 0, or the exit code after logging
 * the error. Free with wr_histories_free() in both cases.
 */
int wr_histories_make(struct wr_histories *l, const struct trace_batch *b);
/*
 * The QP that had number @qpn in the record's fabric at the record's time, or
 * NULL.
 */
struct wr_history_qp *wr_histories_qp(const struct wr_histories *l,
				      const struct trace_record *r,
				      uint32_t qpn);
void wr_histories_free(struct wr_histories *l);

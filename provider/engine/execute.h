/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Carrying out a work request. */
#pragma once

#include "qp.h"
#include "transfer.h"

/* What has become of a WR. */
enum verdict {
	WR_DONE, /* complete it */
	WR_DROPPED, /* nobody heard it: complete it all the same */
	WR_IN_FLIGHT, /* begun; its answer comes later (flight.h) */
	WR_COMPLETED, /* and completed, together with the other end's */
	WR_RNR, /* the responder has no receive: try again */
	WR_SILENT, /* nobody answers: try again */
	WR_FAILED, /* with run.status */
};

/* One pass over the queue. */
struct run {
	struct transfer_batch batch; /* WRITEs that are in flight together */
	enum ibv_wc_status status; /* of the WR that failed */
	/* what needs the responder's resources, since the last fence */
	uint32_t fetches, fetched_to;
};

static inline void run_begin(struct run *r, struct urxe_qp *qp)
{
	transfer_begin(&r->batch, qp->ctx, false);
	r->fetches = 0;
	r->fetched_to = qp->sq.begun;
}

/* The WR that is begun next is a READ, an atomic or the like. */
static inline void run_count_fetch(struct run *r, const struct urxe_qp *qp)
{
	for (; r->fetched_to != qp->sq.begun; r->fetched_to++)
		if (sq_slot(&qp->sq, r->fetched_to + 1)->flags & IBV_SEND_FENCE)
			r->fetches = 0;
	r->fetches++;
}

/* qp->lock is held and its guard is up. */
enum verdict execute(struct urxe_qp *qp, struct run *r, struct urxe_wqe *w);
/* w leaves, and nobody hears it: WR_DROPPED if its own side is in order. */
enum verdict execute_lost(struct urxe_qp *qp, struct run *r,
			  const struct urxe_wqe *w);
/* What a response to w means for the requester; IB 9.7.5.2 and 11.6.2. */
enum verdict execute_answered(struct urxe_qp *qp, struct run *r,
			      const struct urxe_wqe *w, enum response resp);

/* For part.c: pieces of the above. ---------------------------------------- */

/*
 * The WR's bytes, to be read or written.  The number of runs, or -1: a key does
 * not hold.
 */
int part_gather(struct urxe_qp *qp, const struct urxe_wqe *w, bool write,
		struct urxe_seg *seg);
/* Has the responder resources for so many READs and atomics at once? */
static inline bool part_has_resources(const struct urxe_qp *qp, uint32_t n)
{
	uint32_t limit = load_relaxed(&qp->conn.sh->max_dest_rd_atomic);

	return limit && (n <= limit || qp->attr.max_rd_atomic <= limit);
}

/* w, a WRITE WITH IMMEDIATE whose bytes are there, takes its receive. */
enum verdict part_receive(struct urxe_qp *qp, struct run *r,
			  const struct urxe_wqe *w);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Execution of a work request.  The requester (requester.c) calls execute()
 * for each WR that it begins.  The function also does the responder's work
 * (responder.h), in the requester's process.
 */
#pragma once

#include "engine/qp/flight.h"
#include "engine/qp/qp.h"
#include "engine/copy/transfer.h"

/* One pass of the requester over the send queue. */
struct run {
	struct transfer_batch batch; /* WRITEs for one process_vm call */
	enum ibv_wc_status status; /* of the WR that failed */
	/*
	 * number of READs, atomics and the like since the last fence, and the
	 * slot up to which fences have been looked for
	 */
	uint32_t fetches, fetched_to;
};

static inline void run_begin(struct run *r, struct urxe_qp *qp)
{
	transfer_begin(&r->batch, qp->ctx, false);
	r->fetches = 0;
	r->fetched_to = qp->sq.begun;
}

/*
 * Count the WR that is begun next, which needs a responder resource (READ,
 * atomic and the like).
 */
static inline void run_count_fetch(struct run *r, const struct urxe_qp *qp)
{
	for (; r->fetched_to != qp->sq.begun; r->fetched_to++)
		if (sq_slot(&qp->sq, r->fetched_to + 1)->flags & IBV_SEND_FENCE)
			r->fetches = 0;
	r->fetches++;
}

/* Execute w.  qp->lock is held and qp's guard is raised. */
enum verdict execute(struct urxe_qp *qp, struct run *r, struct urxe_wqe *w);
/*
 * The result of w if its packets are lost: WR_DROPPED, or WR_FAILED if the
 * requester's own checks fail.
 */
enum verdict execute_lost(struct urxe_qp *qp, struct run *r,
			  const struct urxe_wqe *w);
/* The result of w for a response to it; IB 9.7.5.2 and 11.6.2. */
enum verdict execute_answered(struct urxe_qp *qp, struct run *r,
			      const struct urxe_wqe *w, enum response resp);

/* Parts of the above, for part.c ----------------------------------------- */

/*
 * Get the local bytes of w, to be read or (write) written, as segments.
 * Returns their number, or -1 if an lkey is not valid.
 */
int part_gather(struct urxe_qp *qp, const struct urxe_wqe *w, bool write,
		struct urxe_seg *seg);
/* Does the responder have resources for n READs and atomics at once? */
static inline bool part_has_resources(const struct urxe_qp *qp, uint32_t n)
{
	uint32_t limit = load_relaxed(&qp->conn.sh->max_dest_rd_atomic);

	return limit && (n <= limit || qp->attr.max_rd_atomic <= limit);
}

/*
 * Take a receive for w, fill it from src (NULL: WRITE WITH IMMEDIATE, no
 * data) and complete both ends.  failed: complete the receive with this
 * error.
 */
enum verdict execute_receive(struct urxe_qp *qp, struct run *r,
			     const struct urxe_wqe *w,
			     const struct urxe_seg *src,
			     enum ibv_wc_status failed);

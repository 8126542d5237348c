// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Outstanding WRs: counting and dropping them. See flight.h. */
#include "flight.h"
#include "engine/run/service.h"
#include "wait.h"

/*
 * Update qp->in_flight, which is true while a transport has outstanding WRs,
 * and the CQ's count of QPs that need progress.
 */
static void flight_recount(struct urxe_qp *qp)
{
	bool in_flight = qp->transport && qp->sq.done != qp->sq.begun;

	if (in_flight == qp->in_flight)
		return;
	qp->in_flight = in_flight;
	if (!in_flight) {
		fetch_sub_relaxed(&qp->scq->stalled, 1);
		return;
	}
	fetch_add_relaxed(&qp->scq->stalled, 1);
	service_need_by(qp->ctx,
			qp->transport->due ? qp->transport->due(qp) : 0);
}

void flight_count(struct urxe_qp *qp)
{
	bool flew = qp->in_flight;

	flight_recount(qp);
	if ((flew || qp->in_flight) && qp->stall.kind == STALL_NONE)
		wait_end(qp);
}

void flight_cancel(struct urxe_qp *qp)
{
	if (likely(!qp->transport))
		return;
	qp->transport->cancel(qp);
	qp->sq.begun = qp->sq.done;
	qp->sq.to_restart = 0;
	flight_count(qp);
}

void flight_disown(struct urxe_qp *qp)
{
	if (qp->transport)
		qp->transport->cancel(qp);
	qp->why.code = REASON_NONE; /* the parent's WR failed */
	qp->sq.done = qp->sq.begun;
	qp->sq.to_restart = 0;
	flight_recount(qp);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Checks of queue sizes, receiver-not-ready delays and RLIMIT_MEMLOCK. */
#include <errno.h>

#include "base/plural.h"
#include "base/clock.h"
#include "limits.h"
#include "referee.h"
#include "verbs/mr/memlock.h"
#include "verbs/qp.h"

/* ------------------------------------------------------- CQs */

/*
 * Each outstanding WR that will have a completion, and each completion that
 * was not polled yet, needs one entry of the CQ.  ibv_create_cq returns the
 * number of entries in cq->cqe.  Programs may rely on that number, not only
 * on the number they requested.
 */
void limits_posted(struct shadow_queue *q, const struct shadow_wr *wr)
{
	struct shadow_cq *c = q->cq;
	char name[FINDING_NAME];
	struct finding f = { .rule = RULE_cq_overrun,
			     .at_is = "CQ created",
			     .here = true };

	if (!c || !wr->signaled || ++c->pending <= c->cqe ||
	    c->s.inherited || c->ignores_overrun)
		return;
	f.object = shadow_name(&c->s, name);
	f.at = &c->s.made;
	finding_report(
		&f,
		"can overrun: it has %u entr%s, and %u outstanding WR%s will complete in it",
		c->cqe, c->cqe == 1 ? "y" : "ies", c->pending,
		plural(c->pending));
}

void limits_left(struct shadow_queue *q, const struct shadow_wr *wr)
{
	if (q->cq && wr->signaled && !wr->beyond)
		q->cq->pending--;
}

/* ------------------------------------------------------- send queues */

/* Does the QP send?  In SQE and ERR all WRs complete, signaled or not. */
static bool qp_sends(const struct ibv_qp *qp)
{
	return qp_state(to_uqp((struct ibv_qp *)qp)) == IBV_QPS_RTS;
}

/* A post failed because the send queue is full. */
static void limits_refused(const struct shadow_qp *q)
{
	char name[FINDING_NAME];
	struct finding f = { .rule = RULE_sq_stuck, .here = true };

	if (!q->sq.count || q->sq.count < q->sq.capacity || q->sq.signaled ||
	    q->s.inherited || !qp_sends(q->qp))
		return;
	f.object = shadow_name(&q->s, name);
	finding_report(
		&f,
		"the send queue is full of %u WR%s, none of which is signaled: no completion will free an entry",
		q->sq.count, plural(q->sq.count));
}

/* ------------------------------------------------------- receives */

/*
 * Does the send queue wait for a receive of the peer (RNR)?  If the QP's lock
 * is taken, the answer is no, and the next post checks again.
 */
static bool qp_waits_for_receive(const struct shadow_qp *q)
{
	struct urxe_qp *qp = to_uqp(q->qp);
	bool waits;

	if (!urxe_trylock_outside(&qp->lock))
		return false;
	waits = qp->stall.kind == STALL_RNR;
	urxe_unlock_outside(&qp->lock);
	return waits;
}

static void limits_check_rnr(struct shadow_qp *q)
{
	if (q->rnr_since || !qp_waits_for_receive(q))
		return;
	if (!q->rnr_times++)
		stack_take(&q->rnr_at);
	q->rnr_since = clock_now();
}

void limits_rnr_ended(struct shadow_qp *q)
{
	if (!q->rnr_since)
		return;
	q->rnr_ns += clock_now() - q->rnr_since;
	q->rnr_since = 0;
}

void limits_answered(struct shadow_qp *q, int ret)
{
	referee_lock();
	if (ret == ENOMEM)
		limits_refused(q);
	else if (!ret)
		limits_check_rnr(q);
	referee_unlock();
}

void limits_end(const struct shadow_qp *q)
{
	char name[FINDING_NAME];
	struct finding f = { .rule = RULE_receive_late,
			     .at = &q->rnr_at,
			     .at_is = "first posted" };

	if (!q->rnr_times || q->s.inherited)
		return;
	f.object = shadow_name(&q->s, name);
	finding_report(
		&f,
		"found no posted receive on QP 0x%x (%u time%s, %llu ms of waiting in total)",
		q->dest_qpn, q->rnr_times, plural(q->rnr_times),
		(unsigned long long)q->rnr_ns / 1000000);
}

/* Reported once, because the limit is that of the process. */
void limits_memlock(const struct shadow_mr *m)
{
	static bool reported;
	uint64_t bytes, limit;
	char name[FINDING_NAME];
	const struct finding f = { .rule = RULE_memlock_exceeded,
				   .object = shadow_name(&m->s, name),
				   .here = true };

	if (reported || !memlock_exceeded(&bytes, &limit))
		return;
	reported = true;
	finding_report(
		&f,
		"the MRs of this process now have %llu bytes, and RLIMIT_MEMLOCK is %llu",
		(unsigned long long)bytes, (unsigned long long)limit);
}

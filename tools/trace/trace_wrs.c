// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reconstruction of the lives of WRs from records (trace_wrs.h). */
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "common/commands.h"
#include "trace_wrs.h"
#include "trace_print.h"

/* ------------------------------------------------------- QPs */

static struct wr_history_qp *qp_add(struct wr_histories *l,
				    const struct trace_record *r)
{
	struct wr_history_qp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->qpn = r->qpn;
	qp->pid = r->thread->process;
	qp->fabric = r->thread->fabric;
	qp->since = r->time;
	*l->end = qp;
	l->end = &qp->next;
	qp->older = l->newest[r->qpn % WR_HISTORY_BUCKETS];
	l->newest[r->qpn % WR_HISTORY_BUCKETS] = qp;
	return qp;
}

struct wr_history_qp *wr_histories_qp(const struct wr_histories *l,
				      const struct trace_record *r,
				      uint32_t qpn)
{
	struct wr_history_qp *qp;

	for (qp = l->newest[qpn % WR_HISTORY_BUCKETS]; qp; qp = qp->older)
		if (qp->qpn == qpn && qp->fabric == r->thread->fabric &&
		    qp->since <= r->time)
			break;
	return qp;
}

static struct wr_history_qp *qp_get(struct wr_histories *l,
				    const struct trace_record *r)
{
	struct wr_history_qp *qp = wr_histories_qp(l, r, r->qpn);

	return qp ? qp : qp_add(l, r);
}

static int qp_made(struct wr_histories *l, const struct trace_record *r)
{
	struct wr_history_qp *qp = qp_add(l, r);

	if (!qp)
		return fail(1, "no memory");
	qp->type = trace_number(r, "type");
	qp->cq[0] = trace_number(r, "send_cq");
	qp->cq[1] = trace_number(r, "recv_cq");
	trace_name(r, "on", qp->on);
	return 0;
}

/* ------------------------------------------------------- lives */

static struct wr_history *wr_history_add(struct wr_history_qp *qp, bool recv,
					 const struct trace_record *r)
{
	struct wr_history *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->qp = qp;
	w->recv = recv;
	w->nth = qp->histories[recv]++;
	w->wr_id = trace_number(r, "wr_id");
	w->op = trace_number(r, "op");
	w->length = trace_number(r, "length");
	w->prev = qp->last[recv];
	if (qp->last[recv])
		qp->last[recv]->next = w;
	else
		qp->first[recv] = w;
	qp->last[recv] = w;
	if (!qp->open[recv])
		qp->open[recv] = w;
	return w;
}

/*
 * Advance `open` past WRs that get no more records: polled and refused ones,
 * and unsignaled ones that were completed with a later WR.
 *
 * Several threads may poll at once and record in another order than they
 * polled. So a WR that is far behind @w, which was polled, is taken as
 * finished too: its record was lost.
 */
#define POLLED_AT_ONCE 1024

static void queue_advance(struct wr_history_qp *qp, const struct wr_history *w)
{
	struct wr_history *open = qp->open[w->recv];

	while (open && (open->at[STEP_POLLED] || open->refused ||
			open->nth + POLLED_AT_ONCE < w->nth))
		open = open->next;
	qp->open[w->recv] = open;
}

/*
 * Whether this step can be the WR's next record. A UD datagram must have left
 * before it arrives: a second copy must not count as the arrival of the next
 * WR with the same wr_id.
 */
static bool wr_history_accepts(const struct wr_history *w, enum wr_step step)
{
	if (w->at[step] || w->refused)
		return false;
	return step != STEP_ARRIVED || w->qp->type != IBV_QPT_UD ||
	       w->at[STEP_LEFT];
}

/* The oldest WR with that wr_id that has not had that step, or NULL. */
static struct wr_history *wr_history_find(struct wr_history_qp *qp, bool recv,
					  uint64_t wr_id, enum wr_step step)
{
	struct wr_history **todo = &qp->todo[recv][step], *w = qp->open[recv];

	if (w && *todo && (*todo)->nth > w->nth)
		w = *todo;
	while (w && w->next && (w->at[step] || w->refused))
		w = w->next;
	*todo = w;
	for (; w; w = w->next)
		if (w->wr_id == wr_id && wr_history_accepts(w, step))
			return w;
	return NULL;
}

static void wr_history_set_values(struct wr_histories *l,
				  const struct trace_record *r,
				  struct wr_history *w)
{
	l->of[r - l->batch->record] = w;
}

static struct wr_history *wr_history_step(struct wr_histories *l,
					  const struct trace_record *r,
					  bool recv, enum wr_step step)
{
	struct wr_history_qp *qp = wr_histories_qp(l, r, r->qpn);
	struct wr_history *w =
		qp ? wr_history_find(qp, recv, trace_number(r, "wr_id"), step) :
		     NULL;

	if (w) {
		w->at[step] = r->time;
		w->by[step] = r;
	}
	wr_history_set_values(l, r, w);
	return w;
}

/*
 * A record that is not a step belongs to the WR that waits for its response.
 */
static void wr_history_meanwhile(struct wr_histories *l,
				 const struct trace_record *r)
{
	struct wr_history_qp *qp = wr_histories_qp(l, r, r->qpn);

	if (qp)
		wr_history_set_values(l, r,
				      wr_history_find(qp, false,
						      trace_number(r, "wr_id"),
						      STEP_ANSWERED));
}

/*
 * The original value of an atomic. Several atomics may be fetched before
 * their responses are recorded, so `fetched` marks those that have theirs.
 */
static void wr_history_fetched(struct wr_histories *l,
			       const struct trace_record *r)
{
	struct wr_history_qp *qp = wr_histories_qp(l, r, r->qpn);
	uint64_t wr_id = trace_number(r, "wr_id"), op = trace_number(r, "op");
	struct wr_history *w = qp ? qp->open[0] : NULL;

	while (w && (w->wr_id != wr_id || w->op != op || w->fetched ||
		     !w->at[STEP_LEFT]))
		w = w->next;
	if (w)
		w->fetched = r;
	wr_history_set_values(l, r, w);
}

/*
 * A WR was polled: earlier WRs without a completion were unsignaled and are
 * done too.
 */
static void polled(struct wr_history *w, uint64_t status)
{
	struct wr_history_qp *qp = w->qp;
	struct wr_history *before;

	w->status = status;
	if (!w->recv)
		for (before = qp->open[0]; before != w; before = before->next)
			if (!before->at[STEP_COMPLETED])
				before->at[STEP_POLLED] = w->at[STEP_POLLED];
	queue_advance(qp, w);
}

static int posted(struct wr_histories *l, const struct trace_record *r,
		  bool recv)
{
	struct wr_history_qp *qp = qp_get(l, r);
	struct wr_history *w = qp ? wr_history_add(qp, recv, r) : NULL;

	if (!w)
		return fail(1, "no memory");
	w->at[STEP_POSTED] = r->time;
	w->by[STEP_POSTED] = r;
	wr_history_set_values(l, r, w);
	return 0;
}

/* Mark the last WR with that wr_id, and those posted after it, as refused. */
static void refused(struct wr_histories *l, const struct trace_record *r)
{
	struct wr_history_qp *qp = wr_histories_qp(l, r, r->qpn);
	uint64_t wr_id = trace_number(r, "wr_id");
	bool recv = trace_number(r, "recv");
	struct wr_history *w, *last;

	if (!qp || !qp->open[recv])
		return;
	last = qp->last[recv];
	while (last && (last->wr_id != wr_id || last->at[STEP_LEFT]))
		last = last == qp->open[recv] ? NULL : last->prev;
	for (w = last; w; w = w->next)
		if (!w->at[STEP_LEFT] && !w->at[STEP_COMPLETED])
			w->refused = true;
	wr_history_set_values(l, r, last);
}

bool wr_history_takes_receive(const struct wr_history *w)
{
	return !w->refused &&
	       (w->op == IBV_WR_SEND || w->op == IBV_WR_SEND_WITH_IMM ||
		w->op == IBV_WR_SEND_WITH_INV ||
		w->op == IBV_WR_RDMA_WRITE_WITH_IMM);
}

/*
 * The message that a completed receive belongs to: usually the one that
 * arrived last. A UD datagram may complete several receives, and earlier
 * datagrams without a partner were dropped. For other QP types, if the last
 * message has a partner, it is the first one without a partner, or NULL if
 * that has not arrived.
 */
static struct wr_history *message_of(struct wr_history_qp *qp)
{
	struct wr_history *w = qp->arrived;

	if (w && (!w->partner || qp->type == IBV_QPT_UD))
		return w;
	w = qp->unpaired ? qp->unpaired : qp->first[0];
	while (w && (!wr_history_takes_receive(w) || w->partner))
		w = w->next;
	if (w)
		qp->unpaired = w;
	return w && w->at[STEP_ARRIVED] ? w : NULL;
}

static int receive_completed(struct wr_histories *l,
			     const struct trace_record *r)
{
	struct wr_history *w = wr_history_step(l, r, true, STEP_COMPLETED),
			  *message;
	struct wr_history_qp *from =
		wr_histories_qp(l, r, (uint32_t)trace_number(r, "src_qp"));

	if (!w) { /* posted to an SRQ, so not to this QP */
		struct wr_history_qp *qp = qp_get(l, r);

		w = qp ? wr_history_add(qp, true, r) : NULL;
		if (!w)
			return fail(1, "no memory");
		w->at[STEP_COMPLETED] = r->time;
		wr_history_set_values(l, r, w);
	}
	w->length = trace_number(r, "length");
	message = from ? message_of(from) : NULL;
	if (message) {
		if (!message->partner)
			message->partner = w;
		w->partner = message;
	}
	return 0;
}

/* RESET discards all posted WRs. */
static void modified(struct wr_histories *l, const struct trace_record *r)
{
	struct wr_history_qp *qp = wr_histories_qp(l, r, r->qpn);
	uint64_t state;

	if (qp && trace_value(r, "state", &state) && state == IBV_QPS_RESET)
		qp->open[0] = qp->open[1] = NULL;
}

static int wr_histories_take(struct wr_histories *l,
			     const struct trace_record *r)
{
	struct wr_history *w;

	switch (r->what) {
	case TRACE_QP_MADE:
		return qp_made(l, r);
	case TRACE_QP_MODIFIED:
		modified(l, r);
		break;
	case TRACE_POSTED:
		return posted(l, r, false);
	case TRACE_RECV_POSTED:
		return r->qpn ? posted(l, r, true) : 0;
	case TRACE_REFUSED:
		refused(l, r);
		break;
	case TRACE_LEFT:
		wr_history_step(l, r, false, STEP_LEFT);
		break;
	case TRACE_ARRIVED:
		w = wr_history_step(l, r, false, STEP_ARRIVED);
		if (w && wr_history_takes_receive(w))
			w->qp->arrived = w;
		break;
	case TRACE_ANSWERED:
		wr_history_step(l, r, false, STEP_ANSWERED);
		break;
	case TRACE_WAITS:
	case TRACE_AGAIN:
	case TRACE_DATA:
		wr_history_meanwhile(l, r);
		break;
	case TRACE_FETCHED:
		wr_history_fetched(l, r);
		break;
	case TRACE_COMPLETED:
		if (trace_number(r, "op") & IBV_WC_RECV)
			return receive_completed(l, r);
		wr_history_step(l, r, false, STEP_COMPLETED);
		break;
	case TRACE_POLLED:
		w = wr_history_step(l, r, trace_number(r, "op") & IBV_WC_RECV,
				    STEP_POLLED);
		if (w)
			polled(w, trace_number(r, "status"));
		break;
	}
	return 0;
}

int wr_histories_make(struct wr_histories *l, const struct trace_batch *b)
{
	size_t i;
	int ret = 0;

	memset(l, 0, sizeof(*l));
	l->end = &l->qp;
	l->batch = b;
	l->of = calloc(b->records + 1, sizeof(*l->of));
	if (!l->of)
		return fail(1, "no memory");
	for (i = 0; i < b->records && !ret; i++)
		ret = wr_histories_take(l, &b->record[i]);
	return ret;
}

void wr_histories_free(struct wr_histories *l)
{
	struct wr_history_qp *qp;
	struct wr_history *w;
	int queue;

	while ((qp = l->qp)) {
		l->qp = qp->next;
		for (queue = 0; queue < 2; queue++)
			while ((w = qp->first[queue])) {
				qp->first[queue] = w->next;
				free(w);
			}
		free(qp);
	}
	free(l->of);
}

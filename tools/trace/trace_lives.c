// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reconstruction of the lives of WRs from records (trace_lives.h). */
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "common/commands.h"
#include "trace_lives.h"
#include "trace_print.h"

/* ------------------------------------------------------- QPs */

static struct life_qp *qp_add(struct lives *l, const struct trace_record *r)
{
	struct life_qp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->qpn = r->qpn;
	qp->pid = r->thread->process;
	qp->fabric = r->thread->fabric;
	qp->since = r->time;
	*l->end = qp;
	l->end = &qp->next;
	qp->older = l->newest[r->qpn % LIVES_BUCKETS];
	l->newest[r->qpn % LIVES_BUCKETS] = qp;
	return qp;
}

struct life_qp *lives_qp(const struct lives *l, const struct trace_record *r,
			 uint32_t qpn)
{
	struct life_qp *qp;

	for (qp = l->newest[qpn % LIVES_BUCKETS]; qp; qp = qp->older)
		if (qp->qpn == qpn && qp->fabric == r->thread->fabric &&
		    qp->since <= r->time)
			break;
	return qp;
}

static struct life_qp *qp_get(struct lives *l, const struct trace_record *r)
{
	struct life_qp *qp = lives_qp(l, r, r->qpn);

	return qp ? qp : qp_add(l, r);
}

static int qp_made(struct lives *l, const struct trace_record *r)
{
	struct life_qp *qp = qp_add(l, r);

	if (!qp)
		return fail(1, "no memory");
	qp->type = trace_number(r, "type");
	qp->cq[0] = trace_number(r, "send_cq");
	qp->cq[1] = trace_number(r, "recv_cq");
	return 0;
}

/* ------------------------------------------------------- lives */

static struct life *life_add(struct life_qp *qp, bool recv,
			     const struct trace_record *r)
{
	struct life *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->qp = qp;
	w->recv = recv;
	w->nth = qp->lives[recv]++;
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
#define LIVES_POLLED_AT_ONCE 1024

static void queue_advance(struct life_qp *qp, const struct life *w)
{
	struct life *open = qp->open[w->recv];

	while (open && (open->at[LIFE_POLLED] || open->refused ||
			open->nth + LIVES_POLLED_AT_ONCE < w->nth))
		open = open->next;
	qp->open[w->recv] = open;
}

/*
 * Whether this step can be the WR's next record. A UD datagram must have left
 * before it arrives: a second copy must not count as the arrival of the next
 * WR with the same wr_id.
 */
static bool life_may(const struct life *w, enum life_step step)
{
	if (w->at[step] || w->refused)
		return false;
	return step != LIFE_ARRIVED || w->qp->type != IBV_QPT_UD ||
	       w->at[LIFE_LEFT];
}

/* The oldest WR with that wr_id that has not had that step, or NULL. */
static struct life *life_find(struct life_qp *qp, bool recv, uint64_t wr_id,
			      enum life_step step)
{
	struct life **todo = &qp->todo[recv][step], *w = qp->open[recv];

	if (w && *todo && (*todo)->nth > w->nth)
		w = *todo;
	while (w && w->next && (w->at[step] || w->refused))
		w = w->next;
	*todo = w;
	for (; w; w = w->next)
		if (w->wr_id == wr_id && life_may(w, step))
			return w;
	return NULL;
}

static void life_tells(struct lives *l, const struct trace_record *r,
		       struct life *w)
{
	l->of[r - l->batch->record] = w;
}

static struct life *life_step(struct lives *l, const struct trace_record *r,
			      bool recv, enum life_step step)
{
	struct life_qp *qp = lives_qp(l, r, r->qpn);
	struct life *w =
		qp ? life_find(qp, recv, trace_number(r, "wr_id"), step) : NULL;

	if (w) {
		w->at[step] = r->time;
		w->by[step] = r;
	}
	life_tells(l, r, w);
	return w;
}

/*
 * A record that is not a step belongs to the WR that waits for its response.
 */
static void life_meanwhile(struct lives *l, const struct trace_record *r)
{
	struct life_qp *qp = lives_qp(l, r, r->qpn);

	if (qp)
		life_tells(l, r,
			   life_find(qp, false, trace_number(r, "wr_id"),
				     LIFE_ANSWERED));
}

/*
 * The original value of an atomic. Several atomics may be fetched before
 * their responses are recorded, so `fetched` marks those that have theirs.
 */
static void life_fetched(struct lives *l, const struct trace_record *r)
{
	struct life_qp *qp = lives_qp(l, r, r->qpn);
	uint64_t wr_id = trace_number(r, "wr_id"), op = trace_number(r, "op");
	struct life *w = qp ? qp->open[0] : NULL;

	while (w && (w->wr_id != wr_id || w->op != op || w->fetched ||
		     !w->at[LIFE_LEFT]))
		w = w->next;
	if (w)
		w->fetched = r;
	life_tells(l, r, w);
}

/*
 * A WR was polled: earlier WRs without a completion were unsignaled and are
 * done too.
 */
static void polled(struct life *w, uint64_t status)
{
	struct life_qp *qp = w->qp;
	struct life *before;

	w->status = status;
	if (!w->recv)
		for (before = qp->open[0]; before != w; before = before->next)
			if (!before->at[LIFE_COMPLETED])
				before->at[LIFE_POLLED] = w->at[LIFE_POLLED];
	queue_advance(qp, w);
}

static int posted(struct lives *l, const struct trace_record *r, bool recv)
{
	struct life_qp *qp = qp_get(l, r);
	struct life *w = qp ? life_add(qp, recv, r) : NULL;

	if (!w)
		return fail(1, "no memory");
	w->at[LIFE_POSTED] = r->time;
	w->by[LIFE_POSTED] = r;
	life_tells(l, r, w);
	return 0;
}

/* Mark the last WR with that wr_id, and those posted after it, as refused. */
static void refused(struct lives *l, const struct trace_record *r)
{
	struct life_qp *qp = lives_qp(l, r, r->qpn);
	uint64_t wr_id = trace_number(r, "wr_id");
	bool recv = trace_number(r, "recv");
	struct life *w, *last;

	if (!qp || !qp->open[recv])
		return;
	last = qp->last[recv];
	while (last && (last->wr_id != wr_id || last->at[LIFE_LEFT]))
		last = last == qp->open[recv] ? NULL : last->prev;
	for (w = last; w; w = w->next)
		if (!w->at[LIFE_LEFT] && !w->at[LIFE_COMPLETED])
			w->refused = true;
	life_tells(l, r, last);
}

bool life_takes_receive(const struct life *w)
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
static struct life *message_of(struct life_qp *qp)
{
	struct life *w = qp->arrived;

	if (w && (!w->partner || qp->type == IBV_QPT_UD))
		return w;
	w = qp->unpaired ? qp->unpaired : qp->first[0];
	while (w && (!life_takes_receive(w) || w->partner))
		w = w->next;
	if (w)
		qp->unpaired = w;
	return w && w->at[LIFE_ARRIVED] ? w : NULL;
}

static int receive_completed(struct lives *l, const struct trace_record *r)
{
	struct life *w = life_step(l, r, true, LIFE_COMPLETED), *message;
	struct life_qp *from =
		lives_qp(l, r, (uint32_t)trace_number(r, "src_qp"));

	if (!w) { /* posted to an SRQ, so not to this QP */
		struct life_qp *qp = qp_get(l, r);

		w = qp ? life_add(qp, true, r) : NULL;
		if (!w)
			return fail(1, "no memory");
		w->at[LIFE_COMPLETED] = r->time;
		life_tells(l, r, w);
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
static void modified(struct lives *l, const struct trace_record *r)
{
	struct life_qp *qp = lives_qp(l, r, r->qpn);
	uint64_t state;

	if (qp && trace_value(r, "state", &state) && state == IBV_QPS_RESET)
		qp->open[0] = qp->open[1] = NULL;
}

static int lives_take(struct lives *l, const struct trace_record *r)
{
	struct life *w;

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
		life_step(l, r, false, LIFE_LEFT);
		break;
	case TRACE_ARRIVED:
		w = life_step(l, r, false, LIFE_ARRIVED);
		if (w && life_takes_receive(w))
			w->qp->arrived = w;
		break;
	case TRACE_ANSWERED:
		life_step(l, r, false, LIFE_ANSWERED);
		break;
	case TRACE_WAITS:
	case TRACE_AGAIN:
	case TRACE_DATA:
		life_meanwhile(l, r);
		break;
	case TRACE_FETCHED:
		life_fetched(l, r);
		break;
	case TRACE_COMPLETED:
		if (trace_number(r, "op") & IBV_WC_RECV)
			return receive_completed(l, r);
		life_step(l, r, false, LIFE_COMPLETED);
		break;
	case TRACE_POLLED:
		w = life_step(l, r, trace_number(r, "op") & IBV_WC_RECV,
			      LIFE_POLLED);
		if (w)
			polled(w, trace_number(r, "status"));
		break;
	}
	return 0;
}

int lives_make(struct lives *l, const struct trace_batch *b)
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
		ret = lives_take(l, &b->record[i]);
	return ret;
}

void lives_free(struct lives *l)
{
	struct life_qp *qp;
	struct life *w;
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

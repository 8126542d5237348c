// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Conversion of a trace to Chrome trace-event JSON.
 *
 * The slice of a send WR lasts from posting to the polling of its completion,
 * that of a receive from its completion on. Slices of one track must not
 * overlap, but the lives of WRs do. So each queue has several tracks (lanes),
 * as many as WRs were outstanding at once. Lanes have thread ids from
 * FIRST_LANE on, which no thread has.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/commands.h"
#include "common/json.h"
#include "trace_wrs.h"
#include "trace_mad.h"
#include "trace_perfetto.h"
#include "trace_print.h"

#define LANES 64 /* maximum of a queue; further WRs have no slice */
#define FIRST_LANE (1u << 24)

struct output {
	FILE *to;
	const struct trace_batch *batch;
	uint64_t start, end;
	const char *between; /* separator before the next event */
	unsigned int lanes, flows;
};

/* ------------------------------------------------------- events */

/*
 * Start an event. The caller prints its name and arguments and calls
 * event_end().
 */
static void event_begin(struct output *o, char phase, int32_t pid, uint32_t tid,
			uint64_t time)
{
	fprintf(o->to,
		"%s{\"ph\":\"%c\",\"pid\":%d,\"tid\":%u,\"ts\":%" PRIu64
		".%03u",
		o->between, phase, pid, tid, (time - o->start) / 1000,
		(unsigned int)((time - o->start) % 1000));
	o->between = ",\n";
}

static void event_end(struct output *o)
{
	fputc('}', o->to);
}

static void name_track(struct output *o, const char *what, int32_t pid,
		       uint32_t tid, const char *name)
{
	event_begin(o, 'M', pid, tid, o->start);
	fprintf(o->to, ",\"name\":\"%s\",\"args\":{\"name\":", what);
	json_string(o->to, name);
	fputc('}', o->to);
	event_end(o);
}

/* Whether record @i is of another thread than the record before it. */
static bool is_first_of(const struct trace_batch *b, size_t i)
{
	return b->record[i].thread != b->record[i ? i - 1 : 0].thread || !i;
}

static void name_process(struct output *o, const struct trace_thread *t)
{
	char name[TRACE_NAME + 48];

	snprintf(name, sizeof(name), t->nth ? "%s (PID %d#%d)" : "%s",
		 t->program, t->pid, t->nth + 1);
	name_track(o, "process_name", t->process, (uint32_t)t->tid, name);
}

static int name_threads(struct output *o)
{
	const struct trace_thread **seen = NULL, **more, *t;
	size_t i, j, n = 0;

	for (i = 0; i < o->batch->records; i++) {
		t = o->batch->record[i].thread;
		if (!is_first_of(o->batch, i))
			continue;
		for (j = 0; j < n && seen[j] != t; j++)
			;
		if (j < n)
			continue;
		more = realloc(seen, (n + 1) * sizeof(*more));
		if (!more) {
			free(seen);
			return fail(1, "no memory");
		}
		seen = more;
		seen[n++] = t;
		name_process(o, t);
		name_track(o, "thread_name", t->process, (uint32_t)t->tid,
			   t->thread);
	}
	free(seen);
	return 0;
}

/* ------------------------------------------------------- WRs */

/*
 * Start of the slice, ns; 0: no slice. A receive starts with its completion:
 * the wait for a message is not work.
 */
static uint64_t wr_history_begin(const struct wr_history *w)
{
	int step = w->recv ? STEP_COMPLETED : STEP_POSTED;

	if (w->refused)
		return 0;
	for (; step < WR_STEPS; step++)
		if (w->at[step])
			return w->at[step];
	return 0;
}

/* End of the slice: the last step that is known. */
static uint64_t wr_history_end(const struct wr_history *w)
{
	uint64_t end = 0;
	int step;

	for (step = 0; step < WR_STEPS; step++)
		if (w->at[step] > end)
			end = w->at[step];
	return end;
}

static void wr_history_instants(struct output *o, const struct wr_history *w,
				uint32_t tid)
{
	static const char *const name[] = { "posted",	"left",	     "arrived",
					    "answered", "completed", "polled" };
	int step;

	for (step = STEP_LEFT; step < STEP_POLLED; step++) {
		if (!w->at[step] || w->recv)
			continue;
		event_begin(o, 'i', w->qp->pid, tid, w->at[step]);
		fprintf(o->to, ",\"s\":\"t\",\"name\":\"%s\"", name[step]);
		event_end(o);
	}
}

static void wr_history_slice(struct output *o, const struct wr_history *w,
			     uint32_t tid)
{
	uint64_t begin = wr_history_begin(w), ns = wr_history_end(w) - begin;

	event_begin(o, 'X', w->qp->pid, tid, begin);
	fprintf(o->to, ",\"dur\":%" PRIu64 ".%03u,\"name\":\"", ns / 1000,
		(unsigned int)(ns % 1000));
	if (w->recv)
		fputs("receive", o->to);
	else
		trace_print_value(o->to, "op", w->op);
	fprintf(o->to, " 0x%" PRIx64 "\",\"cat\":\"wr\",\"args\":{", w->wr_id);
	fprintf(o->to, "\"length\":%" PRIu64 ",\"status\":\"", w->length);
	if (w->at[STEP_POLLED] && w->at[STEP_COMPLETED])
		trace_print_value(o->to, "status", w->status);
	fputs("\"}", o->to);
	event_end(o);
	wr_history_instants(o, w, tid);
}

/*
 * One end of a flow arrow, on track @tid: its start at the message, or its
 * end at the receive.
 */
static void wr_history_flow(struct output *o, const struct wr_history *w,
			    uint32_t tid, unsigned int id)
{
	event_begin(o, w->recv ? 'f' : 's', w->qp->pid, tid,
		    w->recv ? w->at[STEP_COMPLETED] : w->at[STEP_ARRIVED]);
	fprintf(o->to, ",\"id\":%u,\"cat\":\"message\",\"name\":\"message\"%s",
		id, w->recv ? ",\"bp\":\"e\"" : "");
	event_end(o);
}

static void lane_name(struct output *o, const struct wr_history_qp *qp,
		      bool recv, unsigned int lane, uint32_t tid)
{
	char name[64];

	snprintf(name, sizeof(name), "QP 0x%x %s %u", qp->qpn,
		 recv ? "receives" : "sends", lane + 1);
	name_track(o, "thread_name", qp->pid, tid, name);
}

static void queue_slices(struct output *o, struct wr_history_qp *qp, bool recv)
{
	/* time at which the lane is free again */
	uint64_t until[LANES] = { 0 };
	uint32_t tid = FIRST_LANE + o->lanes;
	unsigned int lane, used = 0;
	struct wr_history *w;

	for (w = qp->first[recv]; w; w = w->next) {
		if (!wr_history_begin(w))
			continue;
		for (lane = 0;
		     lane < used && until[lane] > wr_history_begin(w);)
			lane++;
		if (lane == LANES)
			continue;
		if (lane == used)
			lane_name(o, qp, recv, used++, tid + lane);
		until[lane] = wr_history_end(w);
		wr_history_slice(o, w, tid + lane);
		w->track = tid + lane;
	}
	o->lanes += used;
}

static void queue_flows(struct output *o, const struct wr_history_qp *qp)
{
	const struct wr_history *w;

	for (w = qp->first[1]; w; w = w->next) {
		if (!w->partner || !w->track || !w->partner->track)
			continue;
		wr_history_flow(o, w->partner, w->partner->track, ++o->flows);
		wr_history_flow(o, w, w->track, o->flows);
	}
}

/* ------------------------------------------------------- threads */

static void print_call_slice(struct output *o, const struct trace_record *r)
{
	uint64_t ns;

	if (!trace_call_ns(r, &ns))
		return;
	event_begin(o, 'X', r->thread->process, (uint32_t)r->thread->tid,
		    r->time);
	fprintf(o->to,
		",\"dur\":%" PRIu64 ".%03u,\"cat\":\"verb\",\"name\":\"%s\"",
		ns / 1000, (unsigned int)(ns % 1000), trace_call_name(r));
	event_end(o);
}

/*
 * Print a record that is not a step of a WR as an instant. Fields of a CM
 * message are an argument.
 */
static void print_instant(struct output *o, const struct trace_record *r)
{
	const char *message = trace_mad_name(r);
	char *text;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	if (!to)
		return;
	trace_print_what(to, r);
	if (!fclose(to)) {
		event_begin(o, 'i', r->thread->process,
			    (uint32_t)r->thread->tid, r->time);
		fputs(",\"s\":\"t\",\"name\":", o->to);
		if (message)
			fprintf(o->to,
				"\"CM %s\",\"args\":{\"fields\":", message);
		json_string(o->to, text);
		fputs(message ? "}" : "", o->to);
		event_end(o);
	}
	free(text);
}

static void print_record(struct output *o, const struct trace_record *r)
{
	switch (r->what) {
	case TRACE_CALL:
		print_call_slice(o, r);
		break;
	case TRACE_WHY:
	case TRACE_WAITS:
	case TRACE_AGAIN:
	case TRACE_REFUSED:
	case TRACE_QP_MODIFIED:
	case TRACE_QP_BROKEN:
	case TRACE_CQ_EVENT:
	case TRACE_ASYNC_EVENT:
	case TRACE_CM_CALL:
	case TRACE_CM_EVENT:
	case TRACE_CM_SENT:
		print_instant(o, r);
		break;
	}
}

/* ------------------------------------------------------- CQs */

struct depth {
	struct depth *next;
	int32_t pid;
	uint64_t cq;
	int64_t waiting;
};

static void depth_change(struct output *o, struct depth **all,
			 const struct trace_record *r,
			 const struct wr_history_qp *qp, bool recv, int by)
{
	struct depth *d;

	for (d = *all; d; d = d->next)
		if (d->pid == qp->pid && d->cq == qp->cq[recv])
			break;
	if (!d) {
		d = calloc(1, sizeof(*d));
		if (!d)
			return;
		d->pid = qp->pid;
		d->cq = qp->cq[recv];
		d->next = *all;
		*all = d;
	}
	d->waiting += by;
	if (d->waiting < 0) /* the first records may be lost */
		d->waiting = 0;
	event_begin(o, 'C', d->pid, 0, r->time);
	fprintf(o->to,
		",\"name\":\"CQ 0x%" PRIx64
		"\",\"args\":{\"completions\":%" PRId64 "}",
		d->cq, d->waiting);
	event_end(o);
}

static void print_depths(struct output *o, const struct wr_histories *l)
{
	struct depth *all = NULL, *d;
	const struct trace_record *r;
	const struct wr_history_qp *qp;
	uint64_t op;
	size_t i;

	for (i = 0; i < o->batch->records; i++) {
		r = &o->batch->record[i];
		if ((r->what != TRACE_COMPLETED && r->what != TRACE_POLLED) ||
		    !trace_value(r, "op", &op))
			continue;
		qp = wr_histories_qp(l, r, r->qpn);
		if (qp && qp->cq[!!(op & IBV_WC_RECV)])
			depth_change(o, &all, r, qp, op & IBV_WC_RECV,
				     r->what == TRACE_COMPLETED ? 1 : -1);
	}
	while ((d = all)) {
		all = d->next;
		free(d);
	}
}

int trace_perfetto(FILE *to, const struct trace_batch *b)
{
	struct output o = { .to = to, .batch = b, .between = "\n" };
	struct wr_history_qp *qp;
	struct wr_histories l;
	size_t i;
	int ret = wr_histories_make(&l, b);

	if (b->records)
		o.start = b->record[0].time;
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", to);
	ret |= name_threads(&o);
	for (i = 0; i < b->records; i++)
		print_record(&o, &b->record[i]);
	for (qp = l.qp; qp; qp = qp->next) {
		queue_slices(&o, qp, false);
		queue_slices(&o, qp, true);
	}
	for (qp = l.qp; qp; qp = qp->next)
		queue_flows(&o, qp);
	print_depths(&o, &l);
	fputs("\n]}\n", to);
	wr_histories_free(&l);
	return ret;
}

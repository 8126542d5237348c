// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The HTML page of a trace. The page is html/ladder.*, which the build
 * assembles. The trace is its data, as JSON in a <script
 * type="application/json"> element, which is not executed. To save space,
 * each record is an array:
 *
 *   [ns since the first record, thread, QP, event, WR or -1,
 *    QP of the responder, whether it is an error, values]
 *
 * A QP is -1 if there is none, and -2 if it was created before the trace. The
 * values are [name, value, ...], or a string. Threads, QPs, WRs and events
 * are indexes in the arrays of that name.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/commands.h"
#include "common/json.h"
#include "trace_html.h"
#include "trace_wrs.h"
#include "trace_print.h"

struct output {
	FILE *to;
	const struct trace_batch *batch;
	struct wr_histories histories;
	const struct trace_thread **thread;
	size_t threads;
	const char *between; /* separator before the next value */
};

/* ------------------------------------------------------- who */

static size_t thread_number(const struct output *o,
			    const struct trace_thread *t)
{
	size_t i;

	for (i = 0; i < o->threads && o->thread[i] != t; i++)
		;
	return i;
}

static int collect_threads(struct output *o)
{
	const struct trace_thread **more, *t, *last = NULL;
	size_t i;

	for (i = 0; i < o->batch->records; i++) {
		t = o->batch->record[i].thread;
		if (t == last || thread_number(o, t) < o->threads)
			continue;
		more = realloc(o->thread, (o->threads + 1) * sizeof(*more));
		if (!more)
			return fail(1, "no memory");
		o->thread = more;
		o->thread[o->threads++] = last = t;
	}
	return 0;
}

static void print_threads(struct output *o)
{
	const struct trace_thread *t;
	size_t i;

	fputs("\"threads\":[", o->to);
	for (i = 0; i < o->threads; i++) {
		t = o->thread[i];
		fprintf(o->to,
			"%s{\"process\":%d,\"pid\":%d,\"tid\":%d,"
			"\"lost\":%s,\"program\":",
			i ? ",\n" : "", t->process, t->pid, t->tid,
			t->lost ? "true" : "false");
		json_string(o->to, t->program);
		fputs(",\"thread\":", o->to);
		json_string(o->to, t->thread);
		fputc('}', o->to);
	}
	fputs("],\n", o->to);
}

static void print_qps(struct output *o)
{
	const char *between = "";
	struct wr_history_qp *qp;

	fputs("\"qps\":[", o->to);
	for (qp = o->histories.qp; qp; qp = qp->next) {
		fprintf(o->to, "%s{\"qpn\":%u,\"process\":%d,\"type\":\"",
			between, qp->qpn, qp->pid);
		if (qp->type)
			trace_print_value(o->to, "type", qp->type);
		fputs("\"}", o->to);
		between = ",\n";
	}
	fputs("],\n", o->to);
}

static void print_events(struct output *o)
{
	static const struct {
		const char *name, *called;
	} events[] = {
#define EVENT(name, called, values) { #name, called },
#include "trace/events.h"
#undef EVENT
	};
	size_t i;

	fputs("\"events\":[", o->to);
	for (i = 0; i < sizeof(events) / sizeof(*events); i++)
		fprintf(o->to, "%s[\"%s\",\"%s\"]", i ? "," : "",
			events[i].name, events[i].called);
	fputs("],\n", o->to);
}

/* ------------------------------------------------------- what */

/*
 * Number QPs and WRs in the order of print_qps() and print_wrs(): these are
 * the indexes by which the page finds them.
 */
static void number_wrs(struct output *o)
{
	struct wr_history_qp *qp;
	struct wr_history *w;
	uint32_t n = 0, qps = 0;
	int queue;

	for (qp = o->histories.qp; qp; qp = qp->next) {
		qp->track = qps++;
		for (queue = 0; queue < 2; queue++)
			for (w = qp->first[queue]; w; w = w->next)
				w->track = n++;
	}
}

/* Each WR is [QP, whether it is a receive, matching WR of the peer or -1]. */
static void print_wrs(struct output *o)
{
	const char *between = "";
	struct wr_history_qp *qp;
	struct wr_history *w;
	int queue;

	fputs("\"wrs\":[", o->to);
	for (qp = o->histories.qp; qp; qp = qp->next)
		for (queue = 0; queue < 2; queue++)
			for (w = qp->first[queue]; w; w = w->next) {
				fprintf(o->to, "%s[%u,%d,%" PRId64 "]", between,
					qp->track, queue,
					w->partner ?
						(int64_t)w->partner->track :
						-1);
				between = ",\n";
			}
	fputs("],\n", o->to);
}

static void print_value(void *arg, const char *name, const char *text)
{
	struct output *o = arg;

	fputs(o->between, o->to);
	json_string(o->to, name);
	fputc(',', o->to);
	json_string(o->to, text);
	o->between = ",";
}

/* Print the text of urxe trace as a string. */
static int print_words(struct output *o, const struct trace_record *r)
{
	char *text;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	if (!to)
		return fail(1, "no memory");
	trace_print_what(to, r);
	if (fclose(to))
		return fail(1, "no memory");
	json_string(o->to, text);
	free(text);
	return 0;
}

/* No QP, or a QP that was created before the trace. */
enum { QP_NONE = -1, QP_EARLIER = -2 };

static int64_t qp_number(const struct output *o, const struct trace_record *r,
			 uint64_t qpn)
{
	const struct wr_history_qp *qp =
		wr_histories_qp(&o->histories, r, (uint32_t)qpn);

	if (qpn && qp)
		return (int64_t)qp->track;
	/*
	 * A process that finds a connection of two dead processes disconnects
	 * both ends, so the QP may not be in the trace.
	 */
	return qpn && r->what == TRACE_CM_SENT ? QP_EARLIER : QP_NONE;
}

static int print_record(struct output *o, const struct trace_record *r)
{
	const struct wr_history *w = o->histories.of[r - o->batch->record];
	uint64_t peer;
	int ret = 0;

	if (!trace_value(r, "peer", &peer))
		peer = 0;
	fprintf(o->to,
		"[%" PRIu64 ",%zu,%" PRId64 ",%u,%" PRId64 ",%" PRId64 ",%d,",
		r->time - o->batch->record[0].time, thread_number(o, r->thread),
		qp_number(o, r, r->qpn), r->what, w ? (int64_t)w->track : -1,
		qp_number(o, r, peer), trace_is_error(r));
	if (r->what == TRACE_CALL || r->what == TRACE_WHY ||
	    r->what >= TRACE_EVENTS) {
		ret = print_words(o, r);
	} else {
		o->between = "";
		fputc('[', o->to);
		ret = trace_each_value(r, print_value, o);
		fputc(']', o->to);
	}
	fputc(']', o->to);
	return ret;
}

static int print_records(struct output *o)
{
	size_t i;
	int ret = 0;

	fputs("\"records\":[", o->to);
	for (i = 0; i < o->batch->records && !ret; i++) {
		fputs(i ? ",\n" : "\n", o->to);
		ret = print_record(o, &o->batch->record[i]);
	}
	fputs("]", o->to);
	return ret;
}

int trace_html(FILE *to, const struct trace_batch *b)
{
	struct output o = { .to = to, .batch = b };
	int ret = wr_histories_make(&o.histories, b);

	if (!ret)
		ret = collect_threads(&o);
	if (!ret) {
		number_wrs(&o);
		fputs(html_before_data, to);
		fputs("{\"version\":1,\n", to);
		print_threads(&o);
		print_qps(&o);
		print_events(&o);
		print_wrs(&o);
		ret = print_records(&o);
		fputs("}\n", to);
		fputs(html_after_data, to);
	}
	free(o.thread);
	wr_histories_free(&o.histories);
	return ret;
}

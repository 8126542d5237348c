// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* urxe top: live table of the QPs of a fabric, their rates and waits. */
#define _GNU_SOURCE
#include <getopt.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/commands.h"
#include "top.h"

#define DELAY_MIN 0.1
#define DELAY_MAX 5 /* PSNs wrap after 2^24 packets */

/* ---------------------------------------------------------- rates */

static const struct view_qp *qp_before(const struct top *t,
				       const struct view_qp *q)
{
	const struct view_qp *was = view_qp(t->before, q->qpn);

	return was && was->ctx->slot == q->ctx->slot &&
			       was->ctx->gen == q->ctx->gen ?
		       was :
		       NULL;
}

/*
 * The PSN after the last one that @q has sent. For a connected QP it is the
 * PSN that its peer expects. For other QPs it is the sq_psn that the owner
 * stores from time to time.
 */
static uint32_t qp_sent(const struct view *v, const struct view_qp *q)
{
	const uint32_t dest = URXE_CONN_DEST(load_relaxed(&q->sh.conn));
	const struct view_qp *peer = view_qp(v, dest);

	if (peer &&
	    (load_relaxed(&q->sh.type) == IBV_QPT_RC ||
	     load_relaxed(&q->sh.type) == IBV_QPT_UC) &&
	    URXE_CONN_DEST(load_relaxed(&peer->sh.conn)) == q->qpn)
		return load_relaxed(&peer->sh.epsn) & URXE_PSN_MASK;
	return load_relaxed(&q->sh.sq_psn);
}

static void row_measure(const struct top *t, struct top_row *r)
{
	const struct view_qp *q = r->qp, *was = qp_before(t, q);
	uint64_t bytes;

	if (!was || t->seconds <= 0)
		return;
	r->packets = ((qp_sent(t->now, q) - qp_sent(t->before, was)) &
		      URXE_PSN_MASK) /
		     t->seconds;
	bytes = load_relaxed(&q->sh.sent_bytes) -
		load_relaxed(&was->sh.sent_bytes);
	r->bytes = (int64_t)bytes > 0 ? (double)bytes / t->seconds : 0;
	r->receives = (load_relaxed(&q->sh.rq.cons) -
		       load_relaxed(&was->sh.rq.cons)) /
		      t->seconds;
}

double top_counter(const struct top *t, enum urxe_counter which)
{
	uint64_t n = 0;
	uint32_t k;

	for (k = 0; k < dev_hcas(t->now->dev); k++)
		n += counter_read(t->now->dev, k, which) -
		     counter_read(t->before->dev, k, which);

	return t->seconds > 0 && (int64_t)n > 0 ? (double)n / t->seconds : 0;
}

static const struct stall *row_stall(const struct top *t, uint32_t qpn)
{
	const struct stall *s, *idle = NULL;
	uint32_t i;

	for (i = 0; i < t->stalls.n; i++) {
		s = &t->stalls.list[i];
		if (s->qpn != qpn)
			continue;
		if (s->level == STALL_STALLS)
			return s;
		idle = s;
	}
	return idle;
}

static void top_compare(struct top *t)
{
	struct stalls old = t->stalls;
	uint32_t i;

	t->seconds = (double)(t->now->at - t->before->at) / 1e9;
	stalls_find(&t->stalls, t->before, t->now);
	stalls_remember(&t->stalls, &old);
	stalls_free(&old);
	free(t->row);
	t->row = calloc(t->now->qps + 1, sizeof(*t->row));
	t->rows = t->row ? t->now->qps : 0;
	for (i = 0; i < t->rows; i++) {
		t->row[i].qp = &t->now->qp[i];
		t->row[i].waits = row_stall(t, t->row[i].qp->qpn);
		row_measure(t, &t->row[i]);
	}
}

bool top_refresh(struct top *t, bool quiet)
{
	struct view *v = view_take(t->dir, quiet);

	if (!v)
		return false;
	view_free(t->before);
	t->before = t->now;
	t->now = v;
	if (t->before)
		top_compare(t);
	return true;
}

void top_close(struct top *t)
{
	view_free(t->before);
	view_free(t->now);
	stalls_free(&t->stalls);
	free(t->row);
}

/* ---------------------------------------------------------- order */

static int by_number(double a, double b)
{
	return (a > b) - (a < b);
}

static int row_compare(const void *a, const void *b, void *order)
{
	const struct top_row *x = a, *y = b;
	const uint64_t never = UINT64_MAX;
	int d = 0;

	switch (*(enum top_order *)order) {
	case TOP_WAITS:
		d = by_number(x->waits ? -(double)x->waits->level : 1,
			      y->waits ? -(double)y->waits->level : 1);
		if (!d)
			d = by_number(
				(double)(x->waits ? x->waits->since : never),
				(double)(y->waits ? y->waits->since : never));
		break;
	case TOP_NAME:
		d = strcmp(x->qp->process.comm, y->qp->process.comm);
		break;
	case TOP_PACKETS:
		d = by_number(y->packets, x->packets);
		break;
	case TOP_BYTES:
		d = by_number(y->bytes, x->bytes);
		break;
	case TOP_PID:
		d = by_number(x->qp->process.pid, y->qp->process.pid);
		break;
	default:
		break;
	}
	return d ? d : by_number(x->qp->qpn, y->qp->qpn);
}

void top_sort(struct top *t, enum top_order order)
{
	if (t->rows)
		qsort_r(t->row, t->rows, sizeof(*t->row), row_compare, &order);
}

/* ---------------------------------------------------------- the command */

static int top_once(struct top *t, enum top_order order, double delay,
		    bool json)
{
	const struct timespec ts = {
		.tv_sec = (time_t)delay,
		.tv_nsec = (long)((delay - (double)(time_t)delay) * 1e9),
	};

	if (!top_refresh(t, false))
		return EXIT_USAGE;
	nanosleep(&ts, NULL);
	if (!top_refresh(t, false))
		return EXIT_USAGE;
	top_sort(t, order);
	if (json)
		top_print_json(t, stdout);
	else
		top_print(t, stdout, 0, 0, 0);
	return 0;
}

static bool order_parse(const char *word, enum top_order *order)
{
	static const char *const words[TOP_ORDERS + 1] = {
		[TOP_WAITS] = "waits",	   [TOP_PID] = "pid",
		[TOP_NAME] = "name",	   [TOP_QPN] = "qpn",
		[TOP_PACKETS] = "packets", [TOP_BYTES] = "bytes",
	};
	int i;

	for (i = 0; i < TOP_ORDERS; i++)
		if (!strcmp(word, words[i])) {
			*order = (enum top_order)i;
			return true;
		}
	fail_word("--sort", word, words);
	return false;
}

static bool delay_parse(const char *word, double *delay)
{
	char *end;

	*delay = strtod(word, &end);
	return end != word && !*end && *delay >= DELAY_MIN &&
	       *delay <= DELAY_MAX;
}

static bool is_screen(void)
{
	const char *term = getenv("TERM");

	return term && *term && strcmp(term, "dumb") && isatty(STDIN_FILENO) &&
	       isatty(STDOUT_FILENO);
}

/* clang-format off */
static const struct command_option options[] = {
	{ 'f', "fabric", "NAME", "name of the fabric", "$URXE_FABRIC or default" },
	{ '1' | OPTION_SHORT, "once", NULL, "print the table once", "until q is typed" },
	{ 'j', "json", NULL, "print JSON, once", "a table" },
	{ 's', "sort", "KEY", "sort by waits, pid, name, qpn, packets or bytes", "waits" },
	{ 'd' | OPTION_SHORT, "delay", "SECONDS", "time between updates, 0.1 to 5", "1" },
	OPTIONS_END,
};
/* clang-format on */

static int cmd_top(int argc, char **argv)
{
	enum top_order order = TOP_WAITS;
	bool once = false, json = false;
	const char *fabric = NULL;
	struct top t = { 0 };
	double delay = 1;
	char dir[256];
	int c, ret;

	while ((c = option_next(argc, argv, options, 0)) >= 0) {
		if (c == 'f')
			fabric = optarg;
		else if (c == 'j')
			json = true;
		else if (c == '1')
			once = true;
		else if ((c != 's' || !order_parse(optarg, &order)) &&
			 (c != 'd' || !delay_parse(optarg, &delay)))
			return usage();
	}
	if (optind != argc)
		return usage();
	ret = choose_fabric(fabric, dir);
	if (ret)
		return ret;
	t.dir = dir;
	ret = once || json || !is_screen() ? top_once(&t, order, delay, json) :
					     top_run(&t, order, delay);
	top_close(&t);
	return ret;
}

/* clang-format off */
const struct command command_top = {
	.name = "top",
	.run = cmd_top,
	.operands = "",
	.what = "Show the QPs of a fabric live, with their rates and waits.",
	.options = options,
};
/* clang-format on */

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* urxe trace: print or convert what urxe run --trace recorded. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/plural.h"
#include "chaos/number.h"
#include "common/commands.h"
#include "trace_pcap.h"
#include "trace_html.h"
#include "trace_json.h"
#include "trace_perfetto.h"
#include "trace_print.h"

/* Which records are printed. */
struct filter {
	const char *program; /* its name, PID, or PID#N */
	bool one_qp, one_wr_id, errors;
	uint64_t qpn, wr_id;
};

/*
 * Whether @program names the thread's process. A trace holds only the first
 * TRACE_NAME - 1 bytes of a program name. PID#2 is the second process with
 * that PID (trace_who()).
 */
static bool is_of_program(const struct trace_thread *t, const char *program)
{
	char pid[16], one[32];

	snprintf(pid, sizeof(pid), "%d", t->pid);
	snprintf(one, sizeof(one), "%d#%d", t->pid, t->nth + 1);
	return !strncmp(program, t->program, TRACE_NAME - 1) ||
	       !strcmp(program, pid) || !strcmp(program, one);
}

static bool filter_passes(const struct filter *f, const struct trace_record *r)
{
	const struct trace_thread *t = r->thread;
	uint64_t value;

	if (f->program && !is_of_program(t, f->program))
		return false;
	if (f->one_qp && r->qpn != f->qpn &&
	    !(trace_value(r, "peer", &value) && value == f->qpn))
		return false;
	if (f->one_wr_id &&
	    !(trace_value(r, "wr_id", &value) && value == f->wr_id))
		return false;
	return !f->errors || trace_is_error(r);
}

static bool filter_is_any(const struct filter *f)
{
	return f->program || f->one_qp || f->one_wr_id || f->errors;
}

static bool number(const char *text, uint64_t *out)
{
	return number_parse(text, strlen(text), UINT64_MAX, out);
}

/* Report lost records, after all records were printed. */
static void print_losses(const struct trace_input *in, unsigned int n)
{
	char who[TRACE_WHO];
	unsigned int i, j;

	for (i = 0; i < n; i++) {
		if (trace_input_lost(&in[i]))
			fail(0, "%s: no space for the records of %llu thread%s",
			     in[i].path,
			     (unsigned long long)trace_input_lost(&in[i]),
			     plural(trace_input_lost(&in[i])));
		for (j = 0; j < in[i].threads; j++) {
			trace_who(in[i].thread[j], who);
			if (in[i].thread[j]->lost)
				fail(0,
				     "%s: %s overwrote its first records; to keep more, use --trace-records",
				     in[i].path, who);
		}
	}
}

#define FOLLOW_US 100000

/* Print a record with its time relative to @start, ns. */
typedef void printer(FILE *to, const struct trace_record *r, uint64_t start);

static int show(struct trace_input *in, unsigned int n, const struct filter *f,
		printer *print, bool follow)
{
	uint64_t start = 0;
	struct trace_batch b;
	size_t i;
	int ret;

	do {
		ret = trace_read(in, n, &b);
		if (!start && b.records)
			start = b.record[0].time;
		for (i = 0; i < b.records; i++)
			if (filter_passes(f, &b.record[i]))
				print(stdout, &b.record[i], start);
		trace_batch_free(&b);
		if (fflush(stdout))
			return fail(1, "cannot write to standard output");
		if (follow)
			usleep(FOLLOW_US);
	} while (follow && !ret);
	print_losses(in, n);
	return ret;
}

/* Convert all records to another format. */
typedef int writer(FILE *to, const struct trace_batch *b);

/*
 * Open the output file. A trace is refused: to truncate it would lose the
 * records and kill the programs that have it mapped (SIGBUS).
 */
static FILE *open_output(const char *path)
{
	FILE *to;

	if (trace_exists(path)) {
		fail(1, "%s is a trace and is not overwritten", path);
		return NULL;
	}
	to = fopen(path, "we");
	if (!to)
		fail(1, "%s: %s", path, strerror(errno));
	return to;
}

static int convert(struct trace_input *in, unsigned int n, writer *write,
		   const char *path)
{
	struct trace_batch b;
	int ret, failed;
	FILE *to;

	ret = trace_read(in, n, &b);
	to = open_output(path);
	if (to) {
		ret |= write(to, &b);
		/* fclose() reports only the error of its own write */
		failed = ferror(to);
		if (fclose(to) || failed)
			ret = fail(1, "%s: %s", path, strerror(errno));
	} else {
		ret = 1;
	}
	trace_batch_free(&b);
	print_losses(in, n);
	return ret;
}

static int show_files(char **path, unsigned int n, const struct filter *f,
		      printer *print, bool follow, writer *write,
		      const char *out)
{
	struct trace_input *in = calloc(n, sizeof(*in));
	unsigned int opened;
	int ret = 0;

	if (!in)
		return fail(1, "no memory");
	for (opened = 0; opened < n && !ret; opened++) {
		ret = trace_input_open(&in[opened], path[opened]);
		if (!ret)
			ret = trace_input_fits(&in[opened], &in[0]);
	}
	if (!ret)
		ret = write ? convert(in, n, write, out) :
			      show(in, n, f, print, follow);
	while (opened--)
		trace_input_close(&in[opened]);
	free(in);
	return ret;
}

/* clang-format off */
static const struct command_option options[] = {
	OPTION_HEADING("Records as lines"),
	{ 'e', "errors", NULL, "only failures and waits, with their reasons", "all" },
	{ 'q', "qp", "QPN", "only this QP, and messages that arrived there", "all" },
	{ 'w', "wr-id", "N", "only WRs with this wr_id", "all" },
	{ 'p', "program", "NAME|PID", "only this program or process", "all" },
	{ 'f', "follow", NULL, "continue with new records as they are written", "stop at the end" },
	OPTION_HEADING("Other formats"),
	{ 'j', "json", NULL, "a JSON object on a line for each record", "text" },
	{ 'C', "pcap", "OUT", "write packets for Wireshark to OUT", "text" },
	{ 'P', "perfetto", "OUT", "write JSON for ui.perfetto.dev to OUT", "text" },
	{ 'H', "html", "OUT", "write a page with a ladder diagram to OUT", "text" },
	OPTIONS_END,
};
/* clang-format on */

static int cmd_trace(int argc, char **argv)
{
	struct filter f = { 0 };
	const char *out = NULL;
	writer *write = NULL;
	printer *print = trace_print;
	bool follow = false;
	int c;

	while ((c = option_next(argc, argv, options, 0)) >= 0) {
		if (c == 'e')
			f.errors = true;
		else if (c == 'f')
			follow = true;
		else if (c == 'j')
			print = trace_print_json;
		else if (c == 'P' && !write)
			write = trace_perfetto, out = optarg;
		else if (c == 'C' && !write)
			write = trace_pcap, out = optarg;
		else if (c == 'H' && !write)
			write = trace_html, out = optarg;
		else if (c == 'p')
			f.program = optarg;
		else if (c == 'q' && number(optarg, &f.qpn))
			f.one_qp = true;
		else if (c == 'w' && number(optarg, &f.wr_id))
			f.one_wr_id = true;
		else
			return usage();
	}
	if (optind == argc)
		return usage();
	if (write && (follow || filter_is_any(&f) || print != trace_print))
		return fail(
			2,
			"--errors, --follow, --json, --program, --qp and --wr-id cannot be combined with --html, --pcap or --perfetto");
	return show_files(argv + optind, (unsigned int)(argc - optind), &f,
			  print, follow, write, out);
}

/* clang-format off */
const struct command command_trace = {
	.name = "trace",
	.run = cmd_trace,
	.operands = "FILE...",
	.what = "Show the records of urxe run --trace, as text or in another format.",
	.options = options,
	.examples = "  urxe trace --errors t.urxe\n"
		    "  urxe trace --html t.html t.urxe\n",
};
/* clang-format on */

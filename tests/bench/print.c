/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Output of the results as text, tab separated values, Markdown and JSON */
#include <math.h>
#include <string.h>

#include "common/json.h"
#include "rows.h"

struct word {
	char s[64];
};

static struct word number(double v)
{
	struct word w = { "-" };

	if (!isnan(v))
		snprintf(w.s, sizeof(w.s),
			 v < 10	 ? "%.2f" :
			 v < 100 ? "%.1f" :
				   "%.0f",
			 v);
	return w;
}

/* The interquartile range: "96.1 to 97.0" */
static struct word spread(const struct figure *f)
{
	struct word w = { "-" };

	if (!isnan(f->low))
		snprintf(w.s, sizeof(w.s), "%.24s to %.24s", number(f->low).s,
			 number(f->high).s);
	return w;
}

/* The size of a message ("64 KiB"), or the length of a list ("64") */
static struct word size_word(enum chart c, uint32_t size)
{
	struct word w;
	bool kib = c != CHART_RATE && size >= 1024;
	bool mib = c != CHART_RATE && size >= 1u << 20;

	snprintf(w.s, sizeof(w.s), "%u%s",
		 mib ? size >> 20 :
		 kib ? size >> 10 :
		       size,
		 mib ? "M" :
		 kib ? "K" :
		       "");
	return w;
}

/* The best and the worst round */
static struct word range(const struct figure *f)
{
	struct word w = { "-" };

	if (!isnan(f->best))
		snprintf(w.s, sizeof(w.s), "%.24s to %.24s",
			 number(fmin(f->best, f->worst)).s,
			 number(fmax(f->best, f->worst)).s);
	return w;
}

static void text_row(FILE *to, enum regime g, int i)
{
	struct figure f = row_figure(g, i);

	fprintf(to, "%-48s %7s %-4s %18s", rows[i].name, number(f.median).s,
		unit_name(rows[i].unit), spread(&f).s);
	if (!isnan(f.ratio))
		fprintf(to, " %6s x  %s", number(f.ratio).s,
			rows[rows[i].of].name);
	fputc('\n', to);
}

static void text_table(FILE *to, enum regime g)
{
	int i;

	fprintf(to, "\n%-48s %7s %4s %18s %8s\n", "", "median", "", "quartiles",
		"time, of");
	for (i = 0; i < n_rows && !rows[i].chart; i++) {
		if (i && rows[i].who != rows[i - 1].who)
			fputc('\n', to);
		text_row(to, g, i);
	}
}

static void text_chart(FILE *to, enum regime g, enum chart c)
{
	int first = chart_series(c, 0), i, end;

	if (first == n_rows)
		return;
	fprintf(to, "\n%s, %s, by %s\n%-28s", chart_title(c), chart_unit(c),
		chart_x(c), "");
	for (i = first, end = series_end(first); i < end; i++)
		fprintf(to, " %7s", size_word(c, rows[i].size).s);
	for (i = first; i < n_rows; i = chart_series(c, end)) {
		fprintf(to, "\n%-28s", rows[i].name);
		for (end = series_end(i); i < end; i++)
			fprintf(to, " %7s", number(row_figure(g, i).median).s);
	}
	fputc('\n', to);
}

static void text_head(FILE *to, const struct run *r)
{
	fprintf(to, "%s, %s, %s, load average %s\n%d rounds%s, %s\n", r->cpu,
		r->kernel, r->date, number(r->load).s, r->rounds,
		r->quick ? ", short ones" : "", run_pinning(r));
	if (r->real_time_error)
		fprintf(to, "no real-time priority: %s\n", r->real_time_error);
	if (*r->missing)
		fprintf(to, "%s\n", r->missing);
}

void print_text(FILE *to, const struct run *r)
{
	int g, c;

	text_head(to, r);
	for (g = 0; g < REGIME_COUNT; g++) {
		if (!r->regime[g])
			continue;
		fprintf(to, "\nAt %s priority\n", regime_name(g));
		text_table(to, g);
		for (c = FIRST_CHART; c <= LAST_CHART; c++)
			text_chart(to, g, c);
	}
}

void print_tabs(FILE *to, int only)
{
	struct figure f, lim;
	int i;

	for (i = 0; i < n_rows; i++) {
		if (only >= 0 && i != only)
			continue;
		f = row_figure(REGIME_NORMAL, i);
		fprintf(to, "%s\t%s\t%s\t%s\t", rows[i].name,
			unit_name(rows[i].unit), number(f.best).s,
			number(f.median).s);
		if (rows[i].of < 0) {
			fputs("\t\t\t\n", to);
			continue;
		}
		lim = row_figure(REGIME_NORMAL, rows[i].of);
		fprintf(to, "%s\t%s\t%s\t%s\n", rows[rows[i].of].name,
			number(lim.best).s, number(lim.median).s,
			number(f.best_ratio).s);
	}
}

static void markdown_row(FILE *to, const struct run *r, int i)
{
	struct figure f;
	int g;

	fprintf(to, "| %s |", rows[i].name);
	for (g = 0; g < REGIME_COUNT; g++) {
		if (!r->regime[g])
			continue;
		f = row_figure(g, i);
		fprintf(to, " %s %s | %s | %s |", number(f.median).s,
			unit_name(rows[i].unit), range(&f).s,
			isnan(f.ratio) ? "" : number(f.ratio).s);
	}
	fprintf(to, " %s |\n", rows[i].of < 0 ? "" : rows[rows[i].of].name);
}

void print_markdown(FILE *to, const struct run *r)
{
	int g, i;

	fprintf(to, "%s, %s, %s; %d rounds, %s. Load average before: %s.\n",
		r->cpu, r->kernel, r->date, r->rounds, run_pinning(r),
		number(r->load).s);
	if (r->real_time_error)
		fprintf(to, "No real-time priority: %s.\n", r->real_time_error);
	if (*r->missing)
		fprintf(to, "There was %s.\n", r->missing);
	fputs("\n| |", to);
	for (g = 0; g < REGIME_COUNT; g++)
		if (r->regime[g])
			fprintf(to, " %s priority | least to greatest | ratio |",
				regime_name(g));
	fputs(" to |\n| --- |", to);
	for (g = 0; g < REGIME_COUNT; g++)
		if (r->regime[g])
			fputs(" ---: | ---: | ---: |", to);
	fputs(" --- |\n", to);
	for (i = 0; i < n_rows && !rows[i].chart; i++)
		markdown_row(to, r, i);
}

static void json_number(struct json *j, const char *name, double v)
{
	if (isnan(v))
		json_put_null(j, name);
	else
		json_put_double(j, name, v);
}

static void json_row(struct json *j, enum regime g, int i)
{
	const struct row *row = &rows[i];
	struct figure f = row_figure(g, i);

	json_open(j, NULL, '{');
	json_put_string(j, "name", row->name);
	json_put_string(j, "by", who_name(row->who));
	json_put_string(j, "regime", regime_name(g));
	json_put_string(j, "unit", unit_name(row->unit));
	json_number(j, "median", f.median);
	json_number(j, "low", f.low);
	json_number(j, "high", f.high);
	json_number(j, "best", f.best);
	json_number(j, "worst", f.worst);
	if (row->of >= 0) {
		json_number(j, "ratio", f.ratio);
		json_put_string(j, "of", rows[row->of].name);
	}
	json_close(j, '}');
}

static void json_series(struct json *j, enum regime g, int i)
{
	const struct row *row = &rows[i];
	int end = series_end(i);

	json_open(j, NULL, '{');
	json_put_string(j, "name", row->name);
	json_put_string(j, "by", who_name(row->who));
	json_put_string(j, "regime", regime_name(g));
	json_open(j, "points", '[');
	for (; i < end; i++) {
		json_open(j, NULL, '{');
		/* UCX has no lists of WRs, so its rate is a single point */
		if (row->chart != CHART_RATE || row->fn)
			json_put_number(j, "x", rows[i].size);
		json_number(j, "y", row_figure(g, i).median);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

static void json_chart(struct json *j, const struct run *r, enum chart c)
{
	int g, i;

	json_open(j, NULL, '{');
	json_put_string(j, "title", chart_title(c));
	json_put_string(j, "x", chart_x(c));
	json_put_string(j, "y", chart_unit(c));
	json_open(j, "series", '[');
	for (g = 0; g < REGIME_COUNT; g++)
		for (i = chart_series(c, 0); r->regime[g] && i < n_rows;
		     i = chart_series(c, series_end(i)))
			json_series(j, g, i);
	json_close(j, ']');
	json_close(j, '}');
}

void print_json(FILE *to, const struct run *r)
{
	struct json j = { .to = to };
	int g, i, c;

	json_open(&j, NULL, '{');
	json_put_string(&j, "urxe", URXE_VERSION);
	json_put_string(&j, "cpu", r->cpu);
	json_put_string(&j, "kernel", r->kernel);
	json_put_string(&j, "date", r->date);
	json_number(&j, "load", r->load);
	json_put_number(&j, "rounds", (uint64_t)r->rounds);
	json_put_bool(&j, "quick", r->quick);
	json_put_number(&j, "cpus", (uint64_t)r->cpus);
	json_put_bool(&j, "pinned", r->cpus > 1);
	json_put_string(&j, "missing", r->missing);
	json_open(&j, "rows", '[');
	for (g = 0; g < REGIME_COUNT; g++)
		for (i = 0; i < n_rows && r->regime[g] && !rows[i].chart; i++)
			json_row(&j, g, i);
	json_close(&j, ']');
	json_open(&j, "charts", '[');
	for (c = FIRST_CHART; c <= LAST_CHART; c++)
		json_chart(&j, r, c);
	json_close(&j, ']');
	json_close(&j, '}');
	fputc('\n', to);
}

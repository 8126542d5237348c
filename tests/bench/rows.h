/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Rows and samples of the benchmark.  A row is a line of the table, or a
 * point of a chart.
 */
#pragma once

#include <stdio.h>

#include "bench.h"

#define MAX_ROUNDS 101
#define MAX_ROWS 240

enum unit { UNIT_NS, UNIT_US, UNIT_GB_S, UNIT_M_S };

/* Implementation that is measured */
enum who { WHO_RAW, WHO_URXE, WHO_UCX, WHO_LIBFABRIC, WHO_COUNT };

/*
 * Where it runs: the pair of processes, one process, or an external program
 */
enum where { IN_PAIR, IN_ONE, IN_UCX, IN_LIBFABRIC };

enum chart { CHART_NONE, CHART_LATENCY, CHART_BANDWIDTH, CHART_RATE };
#define FIRST_CHART CHART_LATENCY
#define LAST_CHART CHART_RATE

enum regime { REGIME_NORMAL, REGIME_REAL_TIME, REGIME_COUNT };

struct row {
	const char *name; /* for a chart point: its series */
	bench_fn fn;
	const char *program; /* UCX: options of ucx_perftest, instead of fn */
	uint32_t n; /* operations in a round */
	uint32_t size; /* bytes, or WRs of a list; 0: any */
	enum unit unit;
	enum who who;
	enum where where;
	int of; /* the row whose time it is compared with, or -1 */
	enum chart chart;
};

extern struct row rows[MAX_ROWS];
extern int n_rows;

/* Fill rows[].  @table_only omits the charts and the other libraries. */
void rows_make(bool table_only);
int row_find(const char *name); /* row of the table, or -1 */

/*
 * Store a sample, in ns per operation.  NaN: the measurement was not
 * possible.
 */
void sample_set(enum regime g, int row, int round, double ns);
/* Sort the samples.  Call this after the last sample_set(). */
void samples_sort(void);

/* Results in the unit of the row; NaN: the measurement was not possible */
struct figure {
	double median, low, high; /* median and quartiles */
	double best, worst;
	/* Median of the times, divided by that of row `of` */
	double ratio;
	double best_ratio;
};
struct figure row_figure(enum regime g, int row);

const char *unit_name(enum unit unit);
const char *who_name(enum who who);
const char *regime_name(enum regime g);

/*
 * Return the first row at or after @i that belongs to chart @c, or n_rows.
 * The points of a series are adjacent.
 */
int chart_series(enum chart c, int i);
int series_end(int i); /* first row after the series of row @i */
const char *chart_title(enum chart c);
const char *chart_unit(enum chart c);
const char *chart_x(enum chart c);

/* Properties of the run, for all output formats */
struct run {
	int rounds;
	bool regime[REGIME_COUNT];
	int cpus; /* CPUs of the affinity mask */
	bool quick;
	const char *missing; /* programs that could not be run, and why */
	const char *real_time_error;
	double load; /* 1-minute load average at the start; NaN: unknown */
	char cpu[80], kernel[80], date[32];
};

static inline enum regime run_best_regime(const struct run *r)
{
	return r->regime[REGIME_REAL_TIME] ? REGIME_REAL_TIME : REGIME_NORMAL;
}
const char *run_pinning(const struct run *r);

/* print.c */
void print_text(FILE *to, const struct run *r);
void print_tabs(FILE *to, int only); /* a row, or -1: the whole table */
void print_markdown(FILE *to, const struct run *r);
void print_json(FILE *to, const struct run *r);
/* svg.c */
void print_svg(FILE *to, const struct run *r);

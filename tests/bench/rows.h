/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is measured: the rows of the table, and the points of the charts, which
 * are rows as well.  And the samples.
 */
#pragma once

#include <stdio.h>

#include "bench.h"

#define MAX_ROUNDS 101
#define MAX_ROWS 240

enum unit { UNIT_NS, UNIT_US, UNIT_GB_S, UNIT_M_S };

/* Who does it. */
enum who { WHO_RAW, WHO_URXE, WHO_UCX, WHO_LIBFABRIC, WHO_COUNT };

/* Where: the pair of processes, one process, or programs that are run. */
enum where { IN_PAIR, IN_ONE, IN_UCX, IN_LIBFABRIC };

enum chart { CHART_NONE, CHART_LATENCY, CHART_BANDWIDTH, CHART_RATE };
#define FIRST_CHART CHART_LATENCY
#define LAST_CHART CHART_RATE

enum regime { REGIME_NORMAL, REGIME_REAL_TIME, REGIME_COUNT };

struct row {
	const char *name; /* of a point: its series */
	bench_fn fn;
	const char *program; /* of UCX: options; in place of fn */
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

/* The rows that urxe-bench always had, for who wants nothing else. */
void rows_make(bool table_only);
int row_find(const char *name); /* in the table; -1 */

/* ns for each operation; NaN: it was not possible */
void sample_set(enum regime g, int row, int round, double ns);
/* When all are there. */
void samples_sort(void);

/* In the row's unit, NaN where it was not possible. */
struct figure {
	double median, low, high; /* the quartiles */
	double best, worst;
	double ratio; /* of the time of the row `of`, median of median */
	double best_ratio;
};
struct figure row_figure(enum regime g, int row);

const char *unit_name(enum unit unit);
const char *who_name(enum who who);
const char *regime_name(enum regime g);

/* Its first row at or after i, or n_rows; points of one series are in turn. */
int chart_series(enum chart c, int i);
int series_end(int i); /* the first row that is not of the series of row i */
const char *chart_title(enum chart c);
const char *chart_unit(enum chart c);
const char *chart_x(enum chart c);

/* What is known of the run, for all who print it. */
struct run {
	int rounds;
	bool regime[REGIME_COUNT];
	int cpus; /* that it may use */
	bool quick;
	const char *missing; /* what could not be compared with, and why */
	const char *real_time_error;
	double load; /* average of a minute, when it began; NaN: not known */
	char cpu[80], kernel[80], date[32];
};

static inline enum regime run_best_regime(const struct run *r)
{
	return r->regime[REGIME_REAL_TIME] ? REGIME_REAL_TIME : REGIME_NORMAL;
}
const char *run_pinning(const struct run *r);

/* print.c */
void print_text(FILE *to, const struct run *r);
void print_tabs(FILE *to, int only); /* -1: the table */
void print_markdown(FILE *to, const struct run *r);
void print_json(FILE *to, const struct run *r);
/* svg.c */
void print_svg(FILE *to, const struct run *r);

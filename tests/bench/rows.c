/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rows of the table, the points of the charts, and the statistics of
 * their samples
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

enum {
	RAW_MEMCPY_8,
	RAW_FETCH_ADD,
	RAW_LINE,
	RAW_WAKE,
	RAW_VM_PINGPONG,
	RAW_VM_8,
	RAW_MEMCPY_BIG,
	RAW_VM_BIG,
	RAW_START,
};

#define RAW(name, fn, n, size, unit, where)                                   \
	{                                                                     \
		name, fn, NULL, n, size, unit, WHO_RAW, where, -1, CHART_NONE \
	}
#define URXE(name, fn, n, size, unit, where, of)                               \
	{                                                                      \
		name, fn, NULL, n, size, unit, WHO_URXE, where, of, CHART_NONE \
	}

static const struct row table[] = {
	[RAW_MEMCPY_8] =
		RAW("memcpy, 8 B", raw_memcpy, 1000000, 8, UNIT_NS, IN_ONE),
	[RAW_FETCH_ADD] = RAW("atomic add, uncontended line", raw_fetch_add,
			      300000, 0, UNIT_NS, IN_ONE),
	[RAW_LINE] = RAW("cache line, half round trip", raw_line, 50000, 0,
			 UNIT_NS, IN_PAIR),
	[RAW_WAKE] = RAW("futex: wake another, and be woken, one CPU", raw_wake,
			 5000, 0, UNIT_NS, IN_PAIR),
	[RAW_VM_PINGPONG] = RAW("process_vm_writev 8 B, half round trip",
				raw_vm_pingpong, 20000, 8, UNIT_NS, IN_PAIR),
	[RAW_VM_8] = RAW("process_vm_writev 8 B, call", raw_vm_write, 30000, 8,
			 UNIT_NS, IN_PAIR),
	[RAW_MEMCPY_BIG] = RAW("memcpy, 1 MiB", raw_memcpy, 300, BENCH_BIG,
			       UNIT_GB_S, IN_PAIR),
	[RAW_VM_BIG] = RAW("process_vm_writev, 1 MiB", raw_vm_write, 300,
			   BENCH_BIG, UNIT_GB_S, IN_PAIR),
	[RAW_START] =
		RAW("start of /bin/true", raw_start, 40, 0, UNIT_US, IN_ONE),

	URXE("one process: WRITE 8 B to DM, post + poll", verbs_write_dm,
	     100000, 8, UNIT_NS, IN_ONE, RAW_MEMCPY_8),
	URXE("one process: WRITE 8 B to memory, post + poll",
	     verbs_write_private, 100000, 8, UNIT_NS, IN_ONE, RAW_MEMCPY_8),
	URXE("WRITE 8 B to private memory, half round trip",
	     verbs_pingpong_private, 20000, 8, UNIT_NS, IN_PAIR,
	     RAW_VM_PINGPONG),
	URXE("WRITE 8 B to shared memory, half round trip",
	     verbs_pingpong_shared, 20000, 8, UNIT_NS, IN_PAIR, RAW_LINE),
	URXE("WRITE 8 B to DM, half round trip", verbs_pingpong_dm, 20000, 8,
	     UNIT_NS, IN_PAIR, RAW_LINE),
	URXE("SEND 8 B, half round trip", verbs_pingpong_send, 20000, 8,
	     UNIT_NS, IN_PAIR, RAW_LINE),
	URXE("SEND 8 B, half round trip, 64 receives posted",
	     verbs_pingpong_send_64, 20000, 8, UNIT_NS, IN_PAIR, RAW_LINE),
	URXE("SEND 8 B, half round trip, both on one CPU",
	     verbs_pingpong_one_cpu, 2000, 8, UNIT_NS, IN_PAIR, -1),
	URXE("WRITE 8 B to private memory, post + poll", verbs_write_private,
	     30000, 8, UNIT_NS, IN_PAIR, RAW_VM_8),
	URXE("WRITE 8 B to DM, post + poll", verbs_write_dm, 100000, 8, UNIT_NS,
	     IN_PAIR, RAW_MEMCPY_8),
	URXE("WRITE 8 B to DM, one by one", verbs_rate_write, 128000, 1,
	     UNIT_M_S, IN_PAIR, RAW_MEMCPY_8),
	URXE("WRITE 8 B to DM, lists of 32", verbs_rate_write, 320000, 32,
	     UNIT_M_S, IN_PAIR, RAW_MEMCPY_8),
	URXE("SEND 8 B, lists of 32", verbs_rate_send, 128000, 32, UNIT_M_S,
	     IN_PAIR, RAW_MEMCPY_8),
	URXE("SEND 8 B to shared memory, lists of 32", verbs_rate_send_shared,
	     320000, 32, UNIT_M_S, IN_PAIR, RAW_MEMCPY_8),
	URXE("FETCH_ADD in private memory, post + poll", verbs_atomic_private,
	     20000, 8, UNIT_NS, IN_PAIR, RAW_FETCH_ADD),
	URXE("FETCH_ADD in DM, post + poll", verbs_atomic_dm, 50000, 8, UNIT_NS,
	     IN_PAIR, RAW_FETCH_ADD),
	URXE("WRITE 1 MiB to private memory", verbs_stream_private, 300,
	     BENCH_BIG, UNIT_GB_S, IN_PAIR, RAW_VM_BIG),
	URXE("WRITE 1 MiB to shared memory", verbs_stream_shared, 300,
	     BENCH_BIG, UNIT_GB_S, IN_PAIR, RAW_MEMCPY_BIG),
	URXE("WRITE 1 MiB to DM", verbs_stream_dm, 300, BENCH_BIG, UNIT_GB_S,
	     IN_PAIR, RAW_MEMCPY_BIG),
	URXE("start of /bin/true with the preload library", start_preloaded, 40,
	     0, UNIT_US, IN_ONE, RAW_START),
};

/*
 * 8-byte operations of other libraries, and the row that each is compared
 * with
 */
static const struct {
	const char *name, *program;
	uint32_t n;
	enum unit unit;
	enum where where;
	const char *of;
} others[] = {
	{ "UCX put 8 B, half round trip", "-t put_lat -d memory -x posix",
	  20000, UNIT_NS, IN_UCX,
	  "WRITE 8 B to shared memory, half round trip" },
	{ "UCX am 8 B, half round trip", "-t am_lat -d memory -x posix", 20000,
	  UNIT_NS, IN_UCX, "SEND 8 B, half round trip" },
	{ "UCX tag 8 B, half round trip", "-t tag_lat", 20000, UNIT_NS, IN_UCX,
	  "SEND 8 B, half round trip" },
	{ "UCX put 8 B", "-t put_bw -d memory -x posix -D short", 1000000,
	  UNIT_M_S, IN_UCX, "WRITE 8 B to DM, lists of 32" },
	{ "UCX am 8 B", "-t am_bw -d memory -x posix -D short", 200000,
	  UNIT_M_S, IN_UCX, "SEND 8 B, lists of 32" },
	{ "libfabric shm 8 B, half round trip", NULL, 5000, UNIT_NS,
	  IN_LIBFABRIC, "SEND 8 B, half round trip" },
};

/* The series of the charts */
static const struct {
	const char *name;
	enum chart chart;
	enum who who;
	bench_fn fn;
	const char *program;
} series[] = {
	{ "urxe WRITE, shared memory", CHART_LATENCY, WHO_URXE,
	  verbs_pingpong_shared, NULL },
	{ "urxe WRITE, private memory", CHART_LATENCY, WHO_URXE,
	  verbs_pingpong_private, NULL },
	{ "urxe SEND", CHART_LATENCY, WHO_URXE, verbs_pingpong_send, NULL },
	{ "memcpy to shared memory", CHART_LATENCY, WHO_RAW,
	  raw_memcpy_pingpong, NULL },
	{ "process_vm_writev", CHART_LATENCY, WHO_RAW, raw_vm_pingpong, NULL },
	{ "UCX put, posix", CHART_LATENCY, WHO_UCX, NULL,
	  "-t put_lat -d memory -x posix" },
	{ "UCX tag, posix and cma", CHART_LATENCY, WHO_UCX, NULL,
	  "-t tag_lat" },
	{ "libfabric shm", CHART_LATENCY, WHO_LIBFABRIC, NULL, NULL },

	{ "urxe WRITE, shared memory", CHART_BANDWIDTH, WHO_URXE,
	  verbs_stream_shared, NULL },
	{ "urxe WRITE, private memory", CHART_BANDWIDTH, WHO_URXE,
	  verbs_stream_private, NULL },
	{ "memcpy", CHART_BANDWIDTH, WHO_RAW, raw_memcpy, NULL },
	{ "process_vm_writev", CHART_BANDWIDTH, WHO_RAW, raw_vm_write, NULL },
	{ "UCX put, posix", CHART_BANDWIDTH, WHO_UCX, NULL,
	  "-t put_bw -d memory -x posix -D short" },
	{ "UCX put, cma", CHART_BANDWIDTH, WHO_UCX, NULL,
	  "-t put_bw -d memory -x cma -D zcopy" },

	{ "urxe WRITE", CHART_RATE, WHO_URXE, verbs_rate_write, NULL },
	{ "urxe SEND", CHART_RATE, WHO_URXE, verbs_rate_send, NULL },
	/* UCX has no lists of WRs: one point, drawn as a horizontal line */
	{ "UCX put, posix", CHART_RATE, WHO_UCX, NULL,
	  "-t put_bw -d memory -x posix -D short" },
	{ "UCX am, posix", CHART_RATE, WHO_UCX, NULL,
	  "-t am_bw -d memory -x posix -D short" },
};

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const uint32_t sizes[] = { 8,	 64,	256,	1024,	  4096,
				  16384, 65536, 262144, BENCH_BIG };
static const uint32_t lengths[] = { 1, 2, 4, 8, 16, 32, 64 };

struct row rows[MAX_ROWS];
int n_rows;

static double sample[REGIME_COUNT][MAX_ROWS][MAX_ROUNDS];
/* Number of samples; NaN is not stored */
static int taken[REGIME_COUNT][MAX_ROWS];

/* Operations in a round, chosen so that a point takes about 10 ms */
static uint32_t point_n(enum chart chart, uint32_t size)
{
	uint32_t n;

	if (chart == CHART_RATE)
		return 64000;
	if (chart == CHART_LATENCY)
		n = size <= 4096 ? 4000 : 4000 * 4096 / size;
	else
		n = size <= 2048 ? 16000 : 16000 / (size / 2048);
	return n < 24 ? 24 : n;
}

static void add(struct row row)
{
	if (n_rows == MAX_ROWS)
		abort();
	rows[n_rows++] = row;
}

static void add_series(int s)
{
	static const enum where where_of[] = { IN_PAIR, IN_PAIR, IN_UCX,
					       IN_LIBFABRIC };
	const bool rate = series[s].chart == CHART_RATE;
	const uint32_t *x = rate ? lengths : sizes;
	int i, n = rate ? COUNT(lengths) : COUNT(sizes);

	if (rate && series[s].who == WHO_UCX)
		n = 1;
	for (i = 0; i < n; i++)
		add((struct row){
			.name = series[s].name,
			.fn = series[s].fn,
			.program = series[s].program,
			.n = point_n(series[s].chart, x[i]),
			.size = rate && n == 1 ? 8 : x[i],
			.unit = rate				 ? UNIT_M_S :
				series[s].chart == CHART_LATENCY ? UNIT_NS :
								   UNIT_GB_S,
			.who = series[s].who,
			.where = where_of[series[s].who],
			.of = -1,
			.chart = series[s].chart,
		});
}

void rows_make(bool table_only)
{
	int i;

	for (i = 0; i < COUNT(table); i++)
		add(table[i]);
	if (table_only)
		return;
	for (i = 0; i < COUNT(others); i++)
		add((struct row){
			.name = others[i].name,
			.program = others[i].program,
			.n = others[i].n,
			.size = 8,
			.unit = others[i].unit,
			.who = others[i].where == IN_UCX ? WHO_UCX :
							   WHO_LIBFABRIC,
			.where = others[i].where,
			.of = row_find(others[i].of),
		});
	for (i = 0; i < COUNT(series); i++)
		add_series(i);
}

int row_find(const char *name)
{
	int i;

	for (i = 0; i < n_rows; i++)
		if (!rows[i].chart && !strcmp(rows[i].name, name))
			return i;
	return -1;
}

void sample_set(enum regime g, int row, int round, double ns)
{
	/* round -1 is the warm-up; NaN: the measurement was not possible */
	if (round >= 0 && !isnan(ns))
		sample[g][row][taken[g][row]++] = ns;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void samples_sort(void)
{
	int g, i;

	for (g = 0; g < REGIME_COUNT; g++)
		for (i = 0; i < n_rows; i++)
			qsort(sample[g][i], (size_t)taken[g][i], sizeof(double),
			      by_value);
}

static double in_unit(const struct row *row, double ns)
{
	switch (row->unit) {
	case UNIT_GB_S:
		return row->size / ns;
	case UNIT_M_S:
		return 1000 / ns;
	case UNIT_US:
		return ns / 1000;
	default:
		return ns;
	}
}

/*
 * The quartile @part: 0 is the smallest sample, 2 the median, 4 the largest
 */
static double quartile(enum regime g, int row, int part)
{
	int n = taken[g][row];

	return n ? sample[g][row][(n - 1) * part / 4] : NAN;
}

struct figure row_figure(enum regime g, int i)
{
	const struct row *row = &rows[i];
	double q1 = in_unit(row, quartile(g, i, 1));
	double q3 = in_unit(row, quartile(g, i, 3));
	struct figure f = {
		.median = in_unit(row, quartile(g, i, 2)),
		.low = fmin(q1, q3),
		.high = fmax(q1, q3),
		.best = in_unit(row, quartile(g, i, 0)),
		.worst = in_unit(row, quartile(g, i, 4)),
		.ratio = NAN,
		.best_ratio = NAN,
	};

	if (row->of >= 0) {
		f.ratio = quartile(g, i, 2) / quartile(g, row->of, 2);
		f.best_ratio = quartile(g, i, 0) / quartile(g, row->of, 0);
	}
	return f;
}

const char *unit_name(enum unit unit)
{
	static const char *const names[] = { "ns", "us", "GB/s", "M/s" };

	return names[unit];
}

const char *who_name(enum who who)
{
	static const char *const names[] = { "raw", "urxe", "UCX",
					     "libfabric" };

	return names[who];
}

const char *regime_name(enum regime g)
{
	return g == REGIME_NORMAL ? "normal" : "real-time";
}

int chart_series(enum chart c, int i)
{
	while (i < n_rows && rows[i].chart != c)
		i++;
	return i;
}

int series_end(int i)
{
	int first = i;

	while (i < n_rows && rows[i].chart == rows[first].chart &&
	       rows[i].name == rows[first].name)
		i++;
	return i;
}

const char *chart_title(enum chart c)
{
	static const char *const titles[] = { "", "Latency: half a round trip",
					      "Bandwidth",
					      "Message rate, 8 bytes" };

	return titles[c];
}

const char *chart_unit(enum chart c)
{
	return c == CHART_LATENCY   ? "ns" :
	       c == CHART_BANDWIDTH ? "GB/s" :
				      "million a second";
}

const char *chart_x(enum chart c)
{
	return c == CHART_RATE ? "work requests in a list" : "bytes";
}

const char *run_pinning(const struct run *r)
{
	return r->cpus > 1 ?
		       "each process pinned to a CPU of its own" :
		       "only one CPU, so pinning is not possible: both processes share it";
}

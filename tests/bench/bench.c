/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * urxe-bench: the table.
 *
 *   urxe run -- urxe-bench [-d DEVICE] [-g GID_INDEX] [-r ROUNDS] [-q] [-t]
 * [-w]
 *
 * Every row is measured once in each round, raw limits and verbs in turn, so
 * that what disturbs the machine disturbs both.  The best and the median
 * round are printed; the ratio is that of the best ones.  -q: shorter
 * rounds.  -t: tab separated: name, unit, best, median, name of the raw
 * limit, its best, its median, ratio.  -w: nothing but the first row of one
 * process, a WRITE to DM.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define MAX_ROUNDS 101

enum unit { UNIT_NS, UNIT_GB_S, UNIT_M_S };
static const char *const unit_name[] = { "ns", "GB/s", "M/s" };

struct row {
	const char *name;
	bench_fn fn;
	uint32_t n; /* operations in a round */
	enum unit unit;
	int raw; /* index of the raw limit in the same table; -1: is one */
	bool alone; /* in one process */
};

enum {
	RAW_MEMCPY_8,
	RAW_FETCH_ADD,
	RAW_LINE,
	RAW_VM_PINGPONG,
	RAW_VM_8,
	RAW_MEMCPY_BIG,
	RAW_VM_BIG,
};

static const struct row rows[] = {
	[RAW_MEMCPY_8] = { "memcpy, 8 B", raw_memcpy_8, 1000000, UNIT_NS, -1,
			   true },
	[RAW_FETCH_ADD] = { "atomic add on a line of one's own", raw_fetch_add,
			    300000, UNIT_NS, -1, true },
	[RAW_LINE] = { "cache line, half round trip", raw_line, 50000, UNIT_NS,
		       -1, false },
	[RAW_VM_PINGPONG] = { "process_vm_writev 8 B, half round trip",
			      raw_vm_pingpong, 20000, UNIT_NS, -1, false },
	[RAW_VM_8] = { "process_vm_writev 8 B, call", raw_vm_write_8, 30000,
		       UNIT_NS, -1, false },
	[RAW_MEMCPY_BIG] = { "memcpy, 1 MiB", raw_memcpy_big, 300, UNIT_GB_S,
			     -1, false },
	[RAW_VM_BIG] = { "process_vm_writev, 1 MiB", raw_vm_write_big, 300,
			 UNIT_GB_S, -1, false },

	{ "one process: WRITE 8 B to DM, post + poll", verbs_write_dm, 100000,
	  UNIT_NS, RAW_MEMCPY_8, true },
	{ "one process: WRITE 8 B to memory, post + poll", verbs_write_private,
	  100000, UNIT_NS, RAW_MEMCPY_8, true },

	{ "WRITE 8 B to private memory, half round trip",
	  verbs_pingpong_private, 20000, UNIT_NS, RAW_VM_PINGPONG, false },
	{ "WRITE 8 B to shared memory, half round trip", verbs_pingpong_shared,
	  20000, UNIT_NS, RAW_LINE, false },
	{ "WRITE 8 B to DM, half round trip", verbs_pingpong_dm, 20000, UNIT_NS,
	  RAW_LINE, false },
	{ "SEND 8 B, half round trip", verbs_pingpong_send, 20000, UNIT_NS,
	  RAW_LINE, false },

	{ "SEND 8 B, half round trip, both on one CPU", verbs_pingpong_one_cpu,
	  2000, UNIT_NS, -1, false },

	{ "WRITE 8 B to private memory, post + poll", verbs_write_private,
	  30000, UNIT_NS, RAW_VM_8, false },
	{ "WRITE 8 B to DM, post + poll", verbs_write_dm, 100000, UNIT_NS,
	  RAW_MEMCPY_8, false },
	{ "WRITE 8 B to DM, lists of 32", verbs_rate_dm, 320000, UNIT_M_S,
	  RAW_MEMCPY_8, false },

	{ "FETCH_ADD in private memory, post + poll", verbs_atomic_private,
	  20000, UNIT_NS, RAW_FETCH_ADD, false },
	{ "FETCH_ADD in DM, post + poll", verbs_atomic_dm, 50000, UNIT_NS,
	  RAW_FETCH_ADD, false },

	{ "WRITE 1 MiB to private memory", verbs_big_private, 300, UNIT_GB_S,
	  RAW_VM_BIG, false },
	{ "WRITE 1 MiB to shared memory", verbs_big_shared, 300, UNIT_GB_S,
	  RAW_MEMCPY_BIG, false },
	{ "WRITE 1 MiB to DM", verbs_big_dm, 300, UNIT_GB_S, RAW_MEMCPY_BIG,
	  false },
};

#define FIRST_WRITE (RAW_VM_BIG + 1)
#define N_ROWS ((int)(sizeof(rows) / sizeof(rows[0])))

/* ns per operation, as measured; per row */
static double sample[N_ROWS][MAX_ROUNDS];
static _Atomic int finished; /* read by the signal handler */

/* Pin the caller to the which'th CPU it may use; false: there is none. */
static bool pin(int which)
{
	cpu_set_t may, one;
	int cpu;

	if (sched_getaffinity(0, sizeof(may), &may))
		return false;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &may) || which--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		return !sched_setaffinity(0, sizeof(one), &one);
	}
	return false;
}

static void run_row(struct end *e, int row, int round, int shrink)
{
	uint32_t n = rows[row].n / shrink;
	double ns = rows[row].fn(e, n ? n : 1);

	if (e->rank != 1)
		sample[row][round] = ns;
}

/* Both processes walk through this in step. */
static void run_pair(struct end *e, int rounds, int shrink)
{
	int i, r;

	for (r = -1; r < rounds; r++) /* round -1 warms up */
		for (i = 0; i < N_ROWS; i++)
			if (!rows[i].alone)
				run_row(e, i, r < 0 ? 0 : r, shrink);
}

static void run_alone(const char *device, int gid_index, int rounds, int shrink,
		      struct common *common, bool one_row)
{
	struct end e = { .rank = 2, .common = common };
	int i, r;

	end_open(&e, device, gid_index);
	end_connect(&e);
	for (r = -1; r < rounds; r++)
		for (i = 0; i < N_ROWS; i++)
			if (one_row ? i == FIRST_WRITE : rows[i].alone)
				run_row(&e, i, r < 0 ? 0 : r, shrink);
	end_close(&e);
}

/* NaN, "not possible here", sorts last. */
static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	if (isnan(x) || isnan(y))
		return isnan(x) - isnan(y);
	return (x > y) - (x < y);
}

static double in_unit(double ns, enum unit unit)
{
	switch (unit) {
	case UNIT_GB_S:
		return BENCH_BIG / ns;
	case UNIT_M_S:
		return 1000 / ns;
	default:
		return ns;
	}
}

static const char *number(double v, char *buf, size_t len)
{
	if (isnan(v))
		snprintf(buf, len, "-");
	else
		snprintf(buf, len,
			 v < 10	 ? "%.2f" :
			 v < 100 ? "%.1f" :
				   "%.0f",
			 v);
	return buf;
}

static void print_row(int i, int rounds, bool tabs)
{
	const struct row *row = &rows[i], *raw;
	const double *own = sample[i], *lim;
	char b[6][24] = { "", "", "", "", "" };

	number(in_unit(own[0], row->unit), b[0], sizeof(b[0]));
	number(in_unit(own[rounds / 2], row->unit), b[1], sizeof(b[1]));
	raw = row->raw < 0 ? NULL : &rows[row->raw];
	if (raw) {
		lim = sample[row->raw];
		number(in_unit(lim[0], raw->unit), b[2], sizeof(b[2]));
		number(in_unit(lim[rounds / 2], raw->unit), b[3], sizeof(b[3]));
		/* of the time for a piece of work, whatever the unit */
		number(own[0] / lim[0], b[4], sizeof(b[4]));
	}
	if (tabs)
		printf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", row->name,
		       unit_name[row->unit], b[0], b[1], raw ? raw->name : "",
		       b[2], b[3], b[4]);
	else if (raw)
		printf("%-47s %7s %7s %-4s  %6s x  %s\n", row->name, b[0], b[1],
		       unit_name[row->unit], b[4], raw->name);
	else
		printf("%-47s %7s %7s %s\n", row->name, b[0], b[1],
		       unit_name[row->unit]);
}

static void print_table(int rounds, bool pinned, bool tabs)
{
	int i;

	for (i = 0; i < N_ROWS; i++)
		qsort(sample[i], rounds, sizeof(double), by_value);
	if (!tabs)
		printf("%d rounds, %s\n\n%-47s %7s %7s %-4s  %8s  %s\n", rounds,
		       pinned ? "each process pinned to a CPU of its own" :
				"only one CPU: two-process rows say little",
		       "", "best", "median", "", "time", "of the raw limit");
	for (i = 0; i < N_ROWS; i++) {
		if (!tabs && i == FIRST_WRITE)
			putchar('\n');
		print_row(i, rounds, tabs);
	}
}

/* The other side ended before its time, and has said why. */
static void on_child(int sig)
{
	(void)sig;
	if (!atomic_load_explicit(&finished, memory_order_relaxed))
		_exit(1);
}

static int follower(struct common *common, const char *device, int gid_index,
		    int rounds, int shrink)
{
	struct end e = { .rank = 1, .common = common };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(1);
	end_open(&e, device, gid_index);
	end_connect(&e);
	run_pair(&e, rounds, shrink);
	end_close(&e);
	return 0;
}

static int leader(struct common *common, const char *device, int gid_index,
		  int rounds, int shrink, pid_t child)
{
	struct end e = { .rank = 0, .common = common };
	int status;

	end_open(&e, device, gid_index);
	end_connect(&e);
	run_pair(&e, rounds, shrink);
	atomic_store_explicit(&finished, 1, memory_order_relaxed);
	end_close(&e);
	if (waitpid(child, &status, 0) != child || status)
		return 1;
	run_alone(device, gid_index, rounds, shrink, common, false);
	return 0;
}

int main(int argc, char *argv[])
{
	int opt, gid_index = 0, rounds = 15, shrink = 1;
	const char *device = NULL;
	bool tabs = false, one_row = false, pinned;
	struct common *common;
	cpu_set_t may;
	pid_t child;

	while ((opt = getopt(argc, argv, "d:g:r:qtw")) != -1) {
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			gid_index = atoi(optarg);
			break;
		case 'r':
			rounds = atoi(optarg);
			break;
		case 'q':
			shrink = 4;
			break;
		case 't':
			tabs = true;
			break;
		case 'w':
			one_row = true;
			break;
		default:
			return 2;
		}
	}
	if (rounds < 1 || rounds > MAX_ROUNDS) {
		fprintf(stderr, "urxe-bench: 1 to %d rounds\n", MAX_ROUNDS);
		return 2;
	}
	pinned = !sched_getaffinity(0, sizeof(may), &may) &&
		 CPU_COUNT(&may) > 1;
	common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (common == MAP_FAILED) {
		perror("urxe-bench: mmap");
		return 1;
	}
	if (one_row) {
		run_alone(device, gid_index, rounds, shrink, common, true);
		qsort(sample[FIRST_WRITE], rounds, sizeof(double), by_value);
		print_row(FIRST_WRITE, rounds, true);
		return 0;
	}
	signal(SIGCHLD, on_child);
	/* Where Yama is on, this lets the raw limit be measured both ways. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	child = fork();
	if (child < 0) {
		perror("urxe-bench: fork");
		return 1;
	}
	if (!child)
		return follower(common, device, gid_index, rounds, shrink);
	pin(0);
	if (leader(common, device, gid_index, rounds, shrink, child))
		return 1;
	print_table(rounds, pinned, tabs);
	return 0;
}

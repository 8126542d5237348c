/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * urxe-bench-presence: what presence_enter_private() saves requesters, and
 * what the asymmetric barrier costs destroyers.  An in-use flag (struct
 * presence) marks a critical section in which objects are looked up; see
 * base/presence.h.
 *
 *   urxe run -- taskset -c 1 urxe-bench-presence [ROUNDS]
 *
 * Results are in ns.  Each round measures each row once; the median of the
 * rounds is printed.  Without a device only the first three rows are
 * measured.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/presence.h"
#include "bench.h"

#define MAX_ROUNDS 1001

static struct presence word;
static _Atomic bool claimed; /* stands for the object that is looked up */

static void look(void)
{
	if (atomic_load_explicit(&claimed, memory_order_seq_cst))
		abort();
}

static double enter_private(struct end *e, uint32_t n)
{
	uint64_t start = bench_now();
	uint32_t i;

	(void)e;
	for (i = 0; i < n; i++) {
		presence_enter_private(&word);
		look();
		presence_leave(&word);
	}
	return (double)(bench_now() - start) / n;
}

static double enter(struct end *e, uint32_t n)
{
	uint64_t start = bench_now();
	uint32_t i;

	(void)e;
	for (i = 0; i < n; i++) {
		presence_enter(&word);
		look();
		presence_leave(&word);
	}
	return (double)(bench_now() - start) / n;
}

static double barrier(struct end *e, uint32_t n)
{
	uint64_t start = bench_now();
	uint32_t i;

	(void)e;
	for (i = 0; i < n; i++)
		presence_barrier();
	return (double)(bench_now() - start) / n;
}

static double poll_empty(struct end *e, uint32_t n)
{
	uint64_t start = bench_now();
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < n; i++)
		if (ibv_poll_cq(e->cq, 1, &wc))
			abort();
	return (double)(bench_now() - start) / n;
}

static const struct {
	const char *name;
	bench_fn fn;
	uint32_t n;
} rows[] = {
	{ "enter + exit; membarrier(2) in the destroyer", enter_private,
	  20000 },
	{ "enter + exit with an atomic exchange", enter, 20000 },
	{ "membarrier(2) of the destroyer", barrier, 200 },
	{ "ibv_poll_cq of an empty CQ", poll_empty, 20000 },
	{ "WRITE 8 B to DM, post + poll", verbs_write_dm, 20000 },
};

#define N_ROWS ((int)(sizeof(rows) / sizeof(rows[0])))
#define NEED_DEVICE 3 /* index of the first row that needs a device */

static double sample[N_ROWS][MAX_ROUNDS];

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool open_end(struct end *e)
{
	struct ibv_device **list;
	int n = 0;

	list = ibv_get_device_list(&n);
	if (list)
		ibv_free_device_list(list);
	if (n < 1)
		return false;
	e->common = mmap(NULL, sizeof(*e->common), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (e->common == MAP_FAILED)
		return false;
	end_open(e, NULL, 0);
	end_connect(e);
	return true;
}

int main(int argc, char *argv[])
{
	int i, r, rounds = argc > 1 ? atoi(argv[1]) : 301;
	struct end e = { .rank = 2 };
	int n = open_end(&e) ? N_ROWS : NEED_DEVICE;

	if (rounds < 1 || rounds > MAX_ROUNDS)
		return 2;
	for (r = 0; r < rounds; r++)
		for (i = 0; i < n; i++)
			sample[i][r] = rows[i].fn(&e, rows[i].n);
	if (!presence_cheap)
		puts("no membarrier here: there is a barrier on both sides");
	for (i = 0; i < n; i++) {
		qsort(sample[i], (size_t)rounds, sizeof(double), by_value);
		printf("%-45s %7.1f\n", rows[i].name, sample[i][rounds / 2]);
	}
	return 0;
}

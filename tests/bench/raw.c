/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Limits of the machine without verbs: the denominators of the table */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "bench.h"

uint64_t bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Keep the compiler from moving or merging copies. */
static inline void fence(void *p)
{
	__asm__("" : : "r"(p) : "memory");
}

/*
 * Transfer of a cache line between CPUs: the leader increments its line, and
 * the follower answers in its own line.  Return half the round trip.
 */
double raw_line(struct end *e, uint32_t n)
{
	_Atomic uint64_t *mine = &e->common->line[e->rank][0];
	_Atomic uint64_t *theirs = &e->common->line[!e->rank][0];
	uint64_t i, t;

	/* relaxed: the peer loads it only after the barrier */
	atomic_store_explicit(mine, 0, memory_order_relaxed);
	end_barrier(e);
	t = bench_now();
	for (i = 1; i <= n; i++) {
		if (e->rank == 0)
			atomic_store_explicit(mine, i, memory_order_release);
		while (atomic_load_explicit(theirs, memory_order_acquire) != i)
			end_relax(e);
		if (e->rank == 1)
			atomic_store_explicit(mine, i, memory_order_release);
	}
	t = bench_now() - t;
	end_barrier(e);
	return t / (2.0 * n);
}

double raw_memcpy(struct end *e, uint32_t n)
{
	char *to = e->buf[BUF_PRIVATE] + BENCH_BIG, *from = e->buf[BUF_PRIVATE];
	size_t len = e->size;
	uint64_t t;
	uint32_t i;

	if (e->rank == 1)
		return 0;
	t = bench_now();
	for (i = 0; i < n; i++) {
		fence(&len); /* hide the length: call memcpy */
		memcpy(to, from, len);
		fence(to);
	}
	return (double)(bench_now() - t) / n;
}

/*
 * The last word of a message.  Its value shows that the message has arrived.
 */
static _Atomic uint64_t *last_word(struct end *e, char *message)
{
	return (_Atomic uint64_t *)(message + e->size - 8);
}

/*
 * Like raw_line, but with whole messages.  Each process copies its message
 * into memory that both processes have mapped.  The receiver polls the last
 * word.
 */
double raw_memcpy_pingpong(struct end *e, uint32_t n)
{
	char *out = e->common->area[!e->rank];
	_Atomic uint64_t *in = last_word(e, e->common->area[e->rank]);
	uint64_t i, t;
	int turn;

	atomic_store_explicit(in, 0, memory_order_relaxed);
	end_barrier(e);
	t = bench_now();
	for (i = 1; i <= n; i++)
		for (turn = 0; turn < 2; turn++) {
			if (turn == e->rank) {
				memcpy(out, e->buf[BUF_PRIVATE], e->size - 8);
				atomic_store_explicit(last_word(e, out), i,
						      memory_order_release);
				continue;
			}
			while (atomic_load_explicit(in, memory_order_acquire) !=
			       i)
				end_relax(e);
		}
	t = bench_now() - t;
	end_barrier(e);
	return t / (2.0 * n);
}

/* An atomic add on a line that only this CPU uses */
double raw_fetch_add(struct end *e, uint32_t n)
{
	_Atomic uint64_t *word = &e->common->line[0][0];
	uint64_t t;
	uint32_t i;

	if (e->rank == 1)
		return 0;
	t = bench_now();
	for (i = 0; i < n; i++)
		atomic_fetch_add_explicit(word, 1, memory_order_seq_cst);
	return (double)(bench_now() - t) / n;
}

/*
 * Write into the other process with process_vm_writev(2).  Return false if
 * that fails, for example because it is not permitted.
 */
static bool vm_write(struct end *e, size_t from, size_t to, size_t len)
{
	struct iovec l = { e->buf[BUF_PRIVATE] + from, len };
	struct iovec r = { (void *)(uintptr_t)(e->peer.va + to), len };

	return process_vm_writev(e->peer.pid, &l, 1, &r, 1, 0) == (ssize_t)len;
}

double raw_vm_write(struct end *e, uint32_t n)
{
	uint64_t t;
	uint32_t i;

	if (e->rank == 1)
		return 0;
	t = bench_now();
	for (i = 0; i < n; i++)
		if (!vm_write(e, 0, BENCH_BIG, e->size))
			return NAN;
	return (double)(bench_now() - t) / n;
}

/*
 * Like raw_line, but each write is a process_vm_writev(2).  Both processes
 * poll their private memory.
 */
double raw_vm_pingpong(struct end *e, uint32_t n)
{
	_Atomic uint64_t *in = last_word(e, e->buf[BUF_PRIVATE] + BENCH_BIG);
	uint64_t *out = (uint64_t *)(e->buf[BUF_PRIVATE] + e->size - 8);
	uint64_t i, t;
	bool ok;

	/*
	 * Both processes must know before they poll whether it is permitted.
	 */
	*out = 0;
	ok = vm_write(e, 0, BENCH_BIG, e->size);
	atomic_store_explicit(&e->common->line[e->rank][1], ok,
			      memory_order_relaxed);
	end_barrier(e);
	if (!atomic_load_explicit(&e->common->line[0][1],
				  memory_order_relaxed) ||
	    !atomic_load_explicit(&e->common->line[1][1], memory_order_relaxed))
		return NAN;
	t = bench_now();
	for (i = 1; i <= n; i++) {
		*out = i;
		if (e->rank == 0)
			vm_write(e, 0, BENCH_BIG, e->size);
		while (atomic_load_explicit(in, memory_order_acquire) != i)
			end_relax(e);
		if (e->rank == 1)
			vm_write(e, 0, BENCH_BIG, e->size);
	}
	t = bench_now() - t;
	end_barrier(e);
	return t / (2.0 * n);
}

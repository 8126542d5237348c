// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The one thread of this library.  A program that sleeps in poll must be woken
 * when the other end of its connection dies or a time wait ends, and there is
 * no kernel and no daemon to do it.  The thread exists while this process has
 * such connections; it looks ten times a second.
 */
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "command.h"

#define FIRST_NS 20000000 /* most connections are made by then */

/* The process that the thread belongs to: after fork the child has none. */
static _Atomic int watcher;
static _Atomic uint32_t wanted; /* counts calls for a watch */
static _Atomic bool failed;

static void watch_sleep(uint64_t ns)
{
	const struct timespec ts = { .tv_nsec = (long)ns };

	nanosleep(&ts, NULL);
}

static void *watch_main(void *arg)
{
	const int self = getpid();
	uint32_t seen;
	uint64_t sleep = FIRST_NS;
	int pid = self, none = 0;

	shim_inside++;
	for (;;) {
		seen = atomic_load_explicit(&wanted, memory_order_seq_cst);
		watch_sleep(sleep);
		sleep = ucma_tick();
		if (sleep)
			continue;
		pid = self;
		atomic_compare_exchange_strong_explicit(&watcher, &pid, 0,
							memory_order_seq_cst,
							memory_order_seq_cst);
		/* whoever still saw this thread counts on it */
		if (seen == atomic_load_explicit(&wanted, memory_order_seq_cst))
			return arg;
		sleep = FIRST_NS;
		none = 0;
		if (!atomic_compare_exchange_strong_explicit(
			    &watcher, &none, self, memory_order_seq_cst,
			    memory_order_seq_cst))
			return arg;
	}
}

void ucma_watch(void)
{
	const int self = getpid();
	int pid;

	atomic_fetch_add_explicit(&wanted, 1, memory_order_seq_cst);
	pid = atomic_load_explicit(&watcher, memory_order_seq_cst);
	if (pid == self)
		return;
	if (!atomic_compare_exchange_strong_explicit(&watcher, &pid, self,
						     memory_order_seq_cst,
						     memory_order_seq_cst))
		return;
	if (thread_start(NULL, watch_main, NULL)) {
		atomic_store_explicit(&failed, false, memory_order_relaxed);
		return;
	}
	atomic_store_explicit(&failed, true, memory_order_relaxed);
	atomic_store_explicit(&watcher, 0, memory_order_seq_cst);
}

bool ucma_unwatched(void)
{
	return atomic_load_explicit(&failed, memory_order_relaxed);
}

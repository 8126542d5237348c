// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The one thread of this library.  A program that sleeps in poll must be woken
 * when the other end of its connection dies or a time wait ends, and there is
 * no kernel and no daemon to do it.  The thread exists while this process has
 * such connections; it looks ten times a second.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "base/thread.h"
#include "command.h"

#define FIRST_NS 20000000 /* most connections are made by then */

/* The process that the thread belongs to: after fork the child has none. */
static _Atomic int watcher;
static _Atomic uint32_t wanted; /* counts calls for a watch */
static _Atomic bool failed;

static void *watch_main(void *arg)
{
	const int self = getpid();
	uint32_t seen, rung = ucma_timers();
	uint64_t sleep = FIRST_NS;
	int pid = self, none = 0;

	shim_inside++;
	for (;;) {
		seen = load_seq_cst(&wanted);
		ucma_sleep(rung, sleep);
		rung = ucma_timers();
		sleep = ucma_tick();
		if (sleep)
			continue;
		pid = self;
		cas_seq_cst(&watcher, &pid, 0);
		/* whoever still saw this thread counts on it */
		if (seen == load_seq_cst(&wanted))
			return arg;
		sleep = FIRST_NS;
		none = 0;
		if (!cas_seq_cst(&watcher, &none, self))
			return arg;
	}
}

void ucma_watch(void)
{
	const int self = getpid();
	int pid;

	fetch_add_seq_cst(&wanted, 1);
	pid = load_seq_cst(&watcher);
	if (pid == self)
		return;
	if (!cas_seq_cst(&watcher, &pid, self))
		return;
	if (thread_start(NULL, watch_main, NULL)) {
		store_relaxed(&failed, false);
		return;
	}
	store_relaxed(&failed, true);
	store_seq_cst(&watcher, 0);
}

bool ucma_watching(void)
{
	return load_seq_cst(&watcher) == getpid();
}

bool ucma_unwatched(void)
{
	return load_relaxed(&failed);
}

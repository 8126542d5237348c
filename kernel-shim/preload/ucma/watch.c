// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The service thread of rdma_cm, the only thread of the preload library.
 *
 * A program that sleeps in poll(2) must be woken when its peer dies or a
 * timer such as TIMEWAIT expires, and there is no kernel or daemon to do so.
 * The thread exists while ids of this process have timers or peers that may
 * die.  It runs ucma_tick() (cm_tick()) when the next timer expires, when a
 * timer is started in any process, and at least every 100 ms.
 *
 * A thread that ran a command calls ucma_watch() after it has unlocked the
 * tables.  The thread exits when a tick finds nothing to do.
 *
 * Memory order (all seq_cst): a Dekker handshake prevents a lost request.
 *
 *	ucma_watch()			service thread, nothing to do
 *	wanted++			watcher = 0
 *	load watcher			load wanted
 *
 * If ucma_watch() still reads this process from `watcher`, it relies on the
 * thread.  Then the thread reads a changed `wanted` and continues, unless
 * another thread has replaced it.  Otherwise ucma_watch() starts a new
 * thread.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "base/thread.h"
#include "command.h"

/* Time until the first tick: most connections are established by then */
#define FIRST_NS 20000000

/* Process of the thread; 0: none.  After fork, the child has no thread. */
static _Atomic int watcher;
static _Atomic uint32_t wanted; /* counts calls of ucma_watch() */
static _Atomic bool failed; /* the thread could not be started */

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
		/* a caller that still read `self` relies on this thread */
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

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "idle.h"

/* A thread that polls.  Times are in ns. */
static thread_own struct {
	uint64_t last; /* when it was here */
	uint64_t until, pause; /* it does not yield before */
	long switches;
} self;

/* Did anybody take this thread's place since it was last asked? */
static bool others_ran(void)
{
	struct rusage usage;
	long before = self.switches;

	if (getrusage(RUSAGE_THREAD, &usage))
		return false;
	self.switches = usage.ru_nivcsw;
	return self.switches != before;
}

/* How long to go on without, after a yield that took that long. */
static uint64_t next_pause(uint64_t took)
{
	uint64_t twice = 2 * self.pause + IDLE_ALONE_MIN_NS;

	if (others_ran())
		return took < IDLE_SLICE_NS ? 0 : took / IDLE_SHARE;
	return twice < IDLE_ALONE_MAX_NS ? twice : IDLE_ALONE_MAX_NS;
}

void idle_give_way(void)
{
	const uint64_t now = clock_now();
	const bool waits = now - self.last < IDLE_POLLS * IDLE_POLL_NS;

	self.last = now;
	if (!waits || now < self.until)
		return;
	sched_yield();
	self.last = clock_now();
	self.pause = next_pause(self.last - now);
	self.until = self.last + self.pause;
}

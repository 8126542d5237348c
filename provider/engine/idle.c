// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "idle.h"

/* A thread that polls. */
static _Thread_local struct {
	uint32_t turns, wanted; /* of IDLE_POLLS; it yields after so many */
	uint64_t since; /* when they began, ns */
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

static bool self_waits(void)
{
	const uint64_t polls = (uint64_t)self.turns * IDLE_POLLS;

	return clock_now() - self.since < polls * IDLE_POLL_NS;
}

void idle_give_way(void)
{
	if (++self.turns < self.wanted)
		return;
	if (self_waits()) {
		sched_yield();
		self.wanted = others_ran() ? 1 : 2 * self.turns;
		if (self.wanted > IDLE_MAX_TURNS)
			self.wanted = IDLE_MAX_TURNS;
	}
	self.turns = 0;
	self.since = clock_now();
}

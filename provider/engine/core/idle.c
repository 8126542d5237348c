// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Yielding of threads that poll an empty CQ; idle.h has the policy.
 *
 * Polls of a CQ (poll_waits()) and reads of a completion counter call
 * idle_yield() after IDLE_POLLS of them in a row found nothing new, and after
 * fewer if the wire has no packet either.  The caller holds no lock.  Each
 * thread has its own state.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "idle.h"

/* State of the polling thread; times in ns. */
static thread_own struct {
	uint64_t last; /* end of its last call */
	uint64_t until, pause; /* no yield before `until` */
	long switches;
} self;

/*
 * Whether other threads ran in this thread's place since the last call.  The
 * kernel counts a switch by sched_yield() as involuntary.
 */
static bool others_ran(void)
{
	struct rusage usage;
	long before = self.switches;

	if (getrusage(RUSAGE_THREAD, &usage))
		return false;
	self.switches = usage.ru_nivcsw;
	return self.switches != before;
}

/*
 * Return how long to poll without a yield, after a yield that took @took ns.
 * If other threads ran: 0, or a part of the time if they used a time slice.
 * If none ran: twice the last pause (exponential backoff).
 */
static uint64_t next_pause(bool others, uint64_t took)
{
	uint64_t twice = 2 * self.pause + IDLE_ALONE_MIN_NS;

	if (others)
		return took < IDLE_SLICE_NS ? 0 : took / IDLE_SHARE;
	return twice < IDLE_ALONE_MAX_NS ? twice : IDLE_ALONE_MAX_NS;
}

bool idle_yield(uint32_t polls)
{
	const uint64_t now = clock_now();
	const bool waits = now - self.last < polls * IDLE_POLL_NS;
	bool others;

	self.last = now;
	if (!waits || now < self.until)
		return false;
	sched_yield();
	others = others_ran();
	self.last = clock_now();
	self.pause = next_pause(others, self.last - now);
	self.until = self.last + self.pause;
	return others;
}

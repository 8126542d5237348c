/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * struct patience: how long a thread has waited for another process that makes
 * no progress.
 *
 * The waiter checks at least every 10 ms while it runs, or in each turn if it
 * yields.  If a check is late, the waiter did not run: a virtual machine or a
 * container was paused, or other threads had the CPU.  The other process
 * probably did not run either, so a late check counts as PATIENCE_STEP_NS.
 * Otherwise a waiter would give up as soon as it continues.
 */
#pragma once

#include "clock.h"

/* A check that comes later than this after the previous one is late. */
#define PATIENCE_STEP_NS 40000000ull

struct patience {
	uint64_t checked; /* clock_now() of the last check */
	uint64_t spent; /* ns */
};

/* Begin to wait. */
static inline struct patience patience_begin(void)
{
	return (struct patience){ .checked = clock_now() };
}

/* Check: return how long the caller has waited, in ns. */
static inline uint64_t patience_spend(struct patience *p)
{
	const uint64_t now = clock_now(), step = now - p->checked;

	p->checked = now;
	p->spent += step < PATIENCE_STEP_NS ? step : PATIENCE_STEP_NS;
	return p->spent;
}

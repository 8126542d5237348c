/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * struct patience: how long a thread waits for another process that makes no
 * progress.
 *
 * While the waiter runs it checks after each yield, or after a sleep of 20 ms
 * at most.  If a check is late, the waiter did not run: a virtual machine or a
 * container was paused, or other threads had the CPU.  The other process
 * probably did not run either, so a late check counts as PATIENCE_STEP_NS.
 * Otherwise a waiter would give up as soon as it continues.
 */
#pragma once

#include <stdbool.h>

#include "clock.h"

/* A check that comes later than this after the previous one is late. */
#define PATIENCE_STEP_NS 40000000ull

struct patience {
	uint64_t checked; /* clock_now() of the last check */
	uint64_t left; /* ns */
};

/* Begin to wait for at most @limit ns. */
static inline struct patience patience_begin(uint64_t limit)
{
	return (struct patience){ .checked = clock_now(), .left = limit };
}

/* Check.  True: the caller has waited for the whole limit. */
static inline bool patience_ended(struct patience *p)
{
	const uint64_t now = clock_now();
	uint64_t step = now - p->checked;

	if (step > PATIENCE_STEP_NS)
		step = PATIENCE_STEP_NS;
	p->checked = now;
	p->left -= step < p->left ? step : p->left;
	return !p->left;
}

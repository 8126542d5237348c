/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Does the program do something else than to post and poll: does it watch
 * memory, or sleep?  That it was not here for a while does not tell: a busy
 * machine may keep its thread waiting for a CPU, and what it meets must be the
 * same then.  The kernel knows: a thread that waits for a CPU can be run, and
 * its CPU time stands still.  One that is found asleep may be waiting for a
 * lock of ours; so it is asked twice, with a time between in which we have
 * none.
 *
 * Neither is sure: who waits for a lock may be overtaken by us, and the host of
 * a virtual machine may keep its CPU for milliseconds, which the kernel takes
 * for CPU time of the thread.  So the first time in a process takes longer than
 * those last.  A program that was quiet once is of the kind that is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

#define QUIET_FIRST_NS 50000000
#define QUIET_NS 1000000
#define QUIET_AGAIN_NS 200000

struct quiet {
	_Atomic uint64_t seen; /* when the program was here */
	_Atomic int32_t thread; /* which one */
	/* who asks: when it was first asked after seen */
	uint64_t asked, cpu;
	char state;
};

/* This thread of the program is here. */
void quiet_visit(struct quiet *q, uint64_t now);
/* Was the program not here for a while? */
bool quiet_is_long(const struct quiet *q, uint64_t now);

/* To be asked again after QUIET_AGAIN_NS if not. */
bool quiet_is(struct quiet *q, uint64_t now);

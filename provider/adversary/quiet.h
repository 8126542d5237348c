/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Detection of a program that neither posts nor polls: it polls memory, or
 * sleeps. Only then does the service thread advance the adversary's ticks
 * (transport.h).
 *
 * That the last post or poll is long ago is not enough. A thread that waits
 * for a CPU also has an old last post or poll. It must not count as quiet, or
 * the steps that it sees would depend on the load of the machine. So the
 * service thread also checks the thread that posted or polled last: its state
 * in /proc/self/task/TID/stat and its CPU time. A thread that waits for a CPU
 * is in state R and its CPU time does not advance. A thread that sleeps may
 * wait for a lock that the service thread holds. So it is checked twice, with
 * time in between in which the service thread holds none.
 *
 * Two cases are not excluded: a thread that waits for a lock may be overtaken
 * by the service thread; and the host of a virtual machine may take its CPU
 * away for milliseconds, which the guest's kernel counts as CPU time of the
 * thread. So a process is first found quiet after QUIET_FIRST_NS, which is
 * longer than such pauses; afterwards QUIET_NS suffices.
 *
 * quiet_note_call() is called with qp->lock held, by threads that begin WRs or
 * poll. Only the service thread calls quiet_is(), without qp->lock.
 * quiet_note_call() stores `seen` with release after `thread`; quiet_is() loads
 * `seen` with acquire before `thread`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

#define QUIET_FIRST_NS 50000000
#define QUIET_NS 1000000
#define QUIET_RECHECK_NS 200000

struct quiet {
	_Atomic uint64_t seen; /* time of the last post or poll */
	_Atomic int32_t thread; /* TID of that thread */
	/*
	 * of the service thread: `seen`, CPU time and state at the first
	 * check
	 */
	uint64_t seen_before, cpu;
	char state;
};

/* Note that the calling thread posts or polls at @now (ns of clock_now()). */
void quiet_note_call(struct quiet *q, uint64_t now);
/*
 * Return whether the last post or poll is longer ago than QUIET_NS (the first
 * time in a process: QUIET_FIRST_NS).
 */
bool quiet_is_long(const struct quiet *q, uint64_t now);

/*
 * Return whether the program is quiet. If not, call it again after
 * QUIET_RECHECK_NS. errno is kept.
 */
bool quiet_is(struct quiet *q, uint64_t now);

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Back-off of idle pollers: sched_yield() with an adaptive interval.
 *
 * If there are more polling threads than CPUs, the thread that a poller waits
 * for may need the CPU of the poller.  It would get that CPU at the end of
 * the time slice, after some milliseconds.  So a poller that has found a CQ
 * empty IDLE_POLLS times in a row yields.
 *
 * A thread that is alone on its CPU gains nothing by yielding, and sees a
 * completion later by the time of the system calls.  So the interval until it
 * yields again doubles, up to IDLE_ALONE_MAX_NS.  The kernel's count of
 * involuntary context switches (getrusage()) tells whether it was alone.
 *
 * If other threads run for a whole time slice, they do not poll, and the
 * thread that is waited for may be on another CPU.  Then a fast reaction is
 * worth more than yielding at each message.  The interval is the time that
 * the others ran, divided by IDLE_SHARE.
 *
 * A thread that works between its polls is not idle and does not yield: its
 * polls took longer than IDLE_POLL_NS each.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define IDLE_POLLS 256
#define IDLE_POLL_NS 5000
#define IDLE_ALONE_MIN_NS 2500
#define IDLE_ALONE_MAX_NS 160000
#define IDLE_SLICE_NS 500000
#define IDLE_SHARE 8

/*
 * Yield if that is useful.  Called without any lock, @polls empty polls after
 * the last call; the caller polls again afterwards.  Return whether other
 * threads ran meanwhile.
 */
bool idle_yield(uint32_t polls);

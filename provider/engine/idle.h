/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pollers that find nothing give way.
 *
 * Where there are more pollers than CPUs, the one that a poller waits for may
 * need the very CPU that it polls on, and would get it when the time slice is
 * over, after some milliseconds.  So whoever found a CQ empty IDLE_POLLS times
 * in a row yields.
 *
 * A thread that has its CPU to itself gains nothing by that, and a completion
 * that comes meanwhile is seen later, by as much as the system calls take.  So
 * a thread that was alone polls twice as long before it yields again, up to
 * IDLE_ALONE_MAX_NS; the kernel counts how often others took its place.
 *
 * Where others use all of a time slice they are no pollers, and whom the thread
 * waits for is perhaps on another CPU: to be there when he runs is worth more
 * than to give way at each message.  Then it polls a part,
 * IDLE_SHARE, of the time that they ran.
 *
 * Who does other things between two polls shall not lose his CPU for it: what
 * took longer than IDLE_POLL_NS for each poll was no waiting.
 */
#pragma once

#define IDLE_POLLS 256
#define IDLE_POLL_NS 5000
#define IDLE_ALONE_MIN_NS 2500
#define IDLE_ALONE_MAX_NS 160000
#define IDLE_SLICE_NS 500000
#define IDLE_SHARE 8

/* The caller found nothing, IDLE_POLLS times; it has no lock, and looks anew.
 */
void idle_give_way(void);

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
 * a thread that was alone yields half as often the next time, down to once in
 * IDLE_POLLS * IDLE_MAX_TURNS polls; and as often as before once it was not.
 * The kernel knows: it counts how often others took a thread's place.
 *
 * Who does other things between two polls shall not lose his CPU for it: what
 * took longer than IDLE_POLL_NS for each poll was no waiting.
 */
#pragma once

#define IDLE_POLLS 256
#define IDLE_MAX_TURNS 64
#define IDLE_POLL_NS 5000

/* The caller found nothing, IDLE_POLLS times.  It has no lock, and looks anew.
 */
void idle_give_way(void);

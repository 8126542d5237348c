/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Threads, and loops in which they wait for each other.
 *
 * The threads of urxe do what a NIC does while the program computes.  A program
 * with real-time priority that polls its memory would keep them from its CPU
 * for ever.  So they have a higher priority than the thread that starts them,
 * if that is a real-time priority and the process may set it (sched(7)).  Then
 * they do not poll while they wait for work: they would keep the program from
 * the CPU.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Start a thread with all signals blocked: they are the application's.  Store
 * it in *out, or detach it if @out is NULL.  Return false if the thread cannot
 * be created.
 */
bool thread_start(pthread_t *out, void *(*fn)(void *), void *arg);

/* Whether this thread has a real-time priority. */
bool thread_is_realtime(void);

#define THREAD_YIELDS 256

/*
 * End turn @turn (1, 2, ...) of a loop that waits for another thread: let other
 * threads run.  From turn THREAD_YIELDS on sleep for 0.05 to 1.6 ms, because
 * sched_yield(2) does not let a thread of lower priority run.  Keeps errno.
 */
void thread_give_way(uint32_t turn);

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "thread.h"

#define SLEEP_MIN_NS 50000l
#define DOUBLINGS 5

/*
 * Return the real-time policy of this thread, or -1.  System calls, because
 * musl lacks the functions, and pthread_getschedparam() returns what it has
 * found before.
 */
static int realtime_policy(struct sched_param *param)
{
	const int saved = errno;
	int policy = (int)syscall(SYS_sched_getscheduler, 0);

	if (policy < 0 || syscall(SYS_sched_getparam, 0, param))
		policy = -1;
	else
		policy &= ~SCHED_RESET_ON_FORK;
	errno = saved;
	return policy == SCHED_FIFO || policy == SCHED_RR ? policy : -1;
}

bool thread_is_realtime(void)
{
	struct sched_param param;

	return realtime_policy(&param) >= 0;
}

/* If this thread has real-time priority: *attr has the next higher one. */
static bool priority_above(pthread_attr_t *attr)
{
	struct sched_param param;
	const int policy = realtime_policy(&param);

	if (policy < 0 ||
	    param.sched_priority >= sched_get_priority_max(policy))
		return false;
	param.sched_priority++;
	return !pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED) &&
	       !pthread_attr_setschedpolicy(attr, policy) &&
	       !pthread_attr_setschedparam(attr, &param);
}

static bool thread_create(pthread_t *out, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	bool ok = false;

	if (!pthread_attr_init(&attr)) {
		ok = priority_above(&attr) &&
		     !pthread_create(out, &attr, fn, arg);
		pthread_attr_destroy(&attr);
	}
	return ok || !pthread_create(out, NULL, fn, arg);
}

bool thread_start(pthread_t *out, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	pthread_t thread;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ok = thread_create(out ? out : &thread, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ok && !out)
		pthread_detach(thread);
	return ok;
}

void thread_give_way(uint32_t turn)
{
	const uint32_t slept = turn < THREAD_YIELDS ? 0 : turn - THREAD_YIELDS;
	const struct timespec ts = {
		.tv_nsec = SLEEP_MIN_NS
			   << (slept < DOUBLINGS ? slept : DOUBLINGS)
	};
	int saved = errno;

	if (turn < THREAD_YIELDS)
		sched_yield();
	else
		nanosleep(&ts, NULL);
	errno = saved;
}

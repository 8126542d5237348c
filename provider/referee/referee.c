// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Installation of the referee, its lock, and its fork handlers. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "failed.h"
#include "referee/report/finding.h"
#include "leave.h"
#include "memory.h"
#include "referee.h"
#include "shadow.h"
#include "referee/report/suppress.h"
#include "unmapped.h"
#include "unpolled.h"

struct pabi_ops referee_next;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void referee_lock(void)
{
	pthread_mutex_lock(&lock);
}

void referee_unlock(void)
{
	unmapped_report();
	pthread_mutex_unlock(&lock);
	finding_write_out();
}

bool referee_lock_at_last(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	return !pthread_mutex_timedlock(&lock, &until);
}

static void before_fork(void)
{
	referee_lock();
	unmapped_before_fork();
}

static void after_fork_parent(void)
{
	unmapped_after_fork_parent();
	referee_unlock();
}

static void after_fork_child(void)
{
	unmapped_after_fork_child();
	referee_unlock();
	shadow_after_fork();
	queue_after_fork();
	finding_after_fork();
	memory_after_fork();
}

int referee_wrap(struct pabi_ops *ops)
{
	const char *level = getenv("URXE_CHECK");
	int ret;

	if (!level || !*level)
		return 0;
	ret = finding_init(level);
	if (ret) {
		fprintf(stderr,
			"urxe: no device: URXE_CHECK=%s: use error, warning or note\n",
			level);
		return ret;
	}
	ret = suppress_init();
	if (ret)
		return ret;
	referee_next = *ops;
	stack_init((const void *)pabi.set_ops);
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	referee_wrap_events(ops);
	referee_wrap_objects(ops);
	referee_wrap_posts(ops);
	referee_wrap_polls(ops);
	memory_init();
	unmapped_init();
	failed_watch();
	leave_watch();
	unacked_watch_cm();
	return 0;
}

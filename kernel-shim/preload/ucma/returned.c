// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An event that a command causes, and other threads of the same process.
 *
 * A kernel raises such an event from a work queue.  In practice the command has
 * returned to the application long before another thread has the event.  Here
 * the event is in its queue before the command returns, and a thread that
 * handles it at once might destroy the id that librdmacm still uses in the
 * first thread.  So GET_EVENT in another thread returns the event only when the
 * first thread has left librdmacm's function.  After its command, librdmacm
 * does a microsecond's work there and does not sleep.  A thread that sleeps, or
 * that has run for RETURN_NS since then, has left it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "chaos/adversary.h"
#include "command.h"

#define THREADS 256 /* more at a time than commands are likely to run in */
#define RETURN_NS 50000 /* of CPU time */
#define LOOK_NS 20000
#define PATIENCE_NS 1000000000ull /* with a thread that is stopped */
#define INSIDE UINT64_MAX

/* The last command of a thread that has raised events for this process. */
static struct {
	_Atomic uint32_t tid;
	_Atomic uint32_t command;
	_Atomic uint64_t end; /* in the thread's CPU time, or INSIDE */
} last[THREADS];

/* As pthread_getcpuclockid makes it. */
static bool thread_time(uint32_t tid, uint64_t *ns)
{
	const clockid_t clock = (clockid_t)(~tid << 3 | 6);
	struct timespec t;

	if (clock_gettime(clock, &t))
		return false;
	*ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	return true;
}

/* Does it wait in the kernel?  One that runs, or could, does not. */
static bool thread_sleeps(uint32_t tid)
{
	char path[48], stat[64], *name_end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	n = read(fd, stat, sizeof(stat) - 1);
	close(fd);
	stat[n > 0 ? n : 0] = 0;
	name_end = strrchr(stat, ')');
	return !name_end || name_end[1] != ' ' || name_end[2] != 'R';
}

static bool command_has_returned(const struct cm_cause *c)
{
	const uint32_t i = c->thread % THREADS;
	uint64_t end, time;

	/* another process's, or it has ended */
	if (!thread_time(c->thread, &time))
		return true;
	end = load_acquire(&last[i].end);
	/* a thread that is in another command has left this one */
	if (load_acquire(&last[i].command) != c->command ||
	    load_relaxed(&last[i].tid) != c->thread)
		return true;
	return end != INSIDE &&
	       (time - end >= RETURN_NS || thread_sleeps(c->thread));
}

void ucma_await_return(const struct cm_cause *c)
{
	const uint64_t start = clock_now();
	const struct timespec look = { .tv_nsec = LOOK_NS };

	if (c->thread == (uint32_t)syscall(SYS_gettid))
		return;
	while (!command_has_returned(c) && clock_now() - start < PATIENCE_NS)
		nanosleep(&look, NULL);
}

struct cm_cause ucma_cause(void)
{
	static thread_own uint32_t commands;

	return (struct cm_cause){ (uint32_t)syscall(SYS_gettid), ++commands };
}

static void last_set(const struct cm_cause *c, uint64_t end)
{
	const uint32_t i = c->thread % THREADS;

	store_relaxed(&last[i].tid, c->thread);
	store_release(&last[i].command, c->command);
	store_release(&last[i].end, end);
}

void ucma_raised(struct ucma *u)
{
	u->early = ucma_meet_early();
	last_set(&u->cm.cause, u->early ? 0 : INSIDE);
}

void ucma_return(const struct ucma *u)
{
	const struct timespec early = { .tv_nsec = (long)u->early };
	const int saved = errno;
	uint64_t time = 0;

	if (!u->cm.raised)
		return;
	if (u->early)
		nanosleep(&early, NULL);
	else
		last_set(&u->cm.cause,
			 thread_time(u->cm.cause.thread, &time) ? time : 0);
	errno = saved;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Order between the return of a command and its events in other threads of
 * the same process.
 *
 * A kernel raises an event of a command from a work queue.  In practice the
 * command has returned to the application long before another thread takes
 * the event.  Here the event is queued before the command returns.  An event
 * thread that handles it at once could destroy the id that librdmacm still
 * uses in the first thread.
 *
 * Therefore GET_EVENT in another thread returns the event only when the first
 * thread has returned from librdmacm's function.  After its command,
 * librdmacm works there for about a microsecond and does not sleep.  So a
 * thread that sleeps, or that has used RETURN_NS of CPU time since then, has
 * returned.  This is a heuristic.
 *
 *	thread of the command		thread in GET_EVENT
 *	ucma_cause()
 *	ucma_raised(): end = INSIDE
 *	unlock the tables		lock, take event and cause, unlock
 *	ucma_return(): end = CPU time	ucma_await_return(): poll `last`
 *
 * `last` has a slot for each thread ID modulo THREADS, which is overwritten
 * by the next command that raises events.  A command whose slot was
 * overwritten counts as returned.
 *
 * Memory order: ucma_raised() stores the slot before the tables are unlocked,
 * so a waiter that has the event reads INSIDE or a later value of `end`.  It
 * loads `end` (acquire) before `command`, which is stored first (release).
 * So if `end` is of a later command, `command` is, too.
 *
 * The adversary's option `early` turns this off for a command (delay.c).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/patience.h"
#include "chaos/adversary.h"
#include "command.h"

#define THREADS 256 /* more than threads that run commands at a time */
/* of CPU time, which may include interrupts that are handled meanwhile */
#define RETURN_NS 200000
#define CHECK_NS 20000 /* polling interval of a waiter */
/* limit of the wait, in case the thread is stopped */
#define TIMEOUT_NS 1000000000ull
#define INSIDE UINT64_MAX

/* The last command of a thread that has raised events for this process. */
static struct {
	_Atomic uint32_t tid;
	_Atomic uint32_t command;
	/* CPU time of the thread at the end of the command, or INSIDE */
	_Atomic uint64_t end;
} last[THREADS];

/*
 * Store the CPU time of a thread of this process; false: no such thread.  The
 * clock ID is constructed as pthread_getcpuclockid(3) does.
 */
static bool thread_time(uint32_t tid, uint64_t *ns)
{
	const clockid_t clock = (clockid_t)(~tid << 3 | 6);
	struct timespec t;

	if (clock_gettime(clock, &t))
		return false;
	*ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	return true;
}

/*
 * Return whether the thread sleeps interruptibly (S), or has exited.  A page
 * fault (D) or a debugger (T, t) may also stop it within librdmacm.
 */
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
	return !name_end || name_end[1] != ' ' || !strchr("RDTt", name_end[2]);
}

static bool command_has_returned(const struct cm_cause *c)
{
	const uint32_t i = c->thread % THREADS;
	uint64_t end, time;

	/* the thread has exited, or is of another process */
	if (!thread_time(c->thread, &time))
		return true;
	end = load_acquire(&last[i].end);
	/* a thread that is in a later command has returned from this one */
	if (load_acquire(&last[i].command) != c->command ||
	    load_relaxed(&last[i].tid) != c->thread)
		return true;
	return end != INSIDE &&
	       (time - end >= RETURN_NS || thread_sleeps(c->thread));
}

void ucma_await_return(const struct cm_cause *c)
{
	struct patience patience = patience_begin(TIMEOUT_NS);
	const struct timespec look = { .tv_nsec = CHECK_NS };

	if (c->thread == (uint32_t)syscall(SYS_gettid))
		return;
	while (!command_has_returned(c) && !patience_ended(&patience))
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
	u->early = ucma_delay_return();
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

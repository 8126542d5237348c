// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Detection of a program that neither posts nor polls; quiet.h describes it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "engine/core/process.h"
#include "quiet.h"

void quiet_note_call(struct quiet *q, uint64_t now)
{
	static thread_own int32_t self, of;

	if (of != urxe_pid) { /* first call, or first after a fork */
		of = urxe_pid;
		self = syscall(SYS_gettid);
	}
	store_relaxed(&q->thread, self);
	store_release(&q->seen, now);
}

/*
 * Return the state of @thread as in /proc/PID/stat, for example R: running or
 * runnable; 0 if it has exited or cannot be read.
 */
static char thread_state(int32_t thread)
{
	char path[64], text[64], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	at = strrchr(text, ')');
	return at && at[1] ? at[2] : 0;
}

/* Return the CPU time of @thread in ns, or UINT64_MAX if it has exited. */
static uint64_t thread_cpu(int32_t thread)
{
	/*
	 * the kernel's clock ID of the CPU time of a thread: CPUCLOCK_SCHED,
	 * per thread
	 */
	clockid_t id = (clockid_t)(~(uint32_t)thread << 3 | 6);
	struct timespec ts = { 0 };

	if (clock_gettime(id, &ts))
		return UINT64_MAX;
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static _Atomic bool was_quiet; /* the process was quiet before */

bool quiet_is_long(const struct quiet *q, uint64_t now)
{
	uint64_t ns = load_relaxed(&was_quiet) ? QUIET_NS : QUIET_FIRST_NS;

	return now >= load_acquire(&q->seen) + ns;
}

bool quiet_is(struct quiet *q, uint64_t now)
{
	uint64_t seen = load_acquire(&q->seen), cpu;
	int32_t thread = load_relaxed(&q->thread);
	int saved = errno;
	char state;

	if (!quiet_is_long(q, now))
		return false;
	state = thread_state(thread);
	cpu = thread_cpu(thread);
	errno = saved;
	if (q->seen_before != seen || q->state != state) {
		q->seen_before = seen;
		q->cpu = cpu;
		q->state = state;
		return false;
	}
	if (state == 'R' && cpu - q->cpu < QUIET_RECHECK_NS)
		return false;
	store_relaxed(&was_quiet, true);
	return true;
}

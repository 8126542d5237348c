// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The relay is a pipe and a thread that copies it to standard error. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "relay.h"

#define TIMEOUT_S 2 /* s */

static struct {
	int from, to; /* read end of the pipe; the real standard error */
	pthread_t thread;
	bool runs, registered;
} relay;

bool relay_takes(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, ms) != 0;
}

/*
 * The relay thread.  It always drains the pipe, so a writer blocks for
 * TIMEOUT_S seconds at most.  After the first timeout it no longer waits, and
 * drops what standard error does not accept at once.
 */
static void *relay_run(void *arg)
{
	int timeout = TIMEOUT_S * 1000;
	char buf[PIPE_BUF], *p;
	ssize_t n, done;

	while ((n = read(relay.from, buf, sizeof(buf))) > 0) {
		for (p = buf; n > 0; p += done, n -= done) {
			if (!relay_takes(relay.to, timeout)) {
				timeout = 0;
				break;
			}
			done = write(relay.to, p, (size_t)n);
			if (done <= 0)
				break;
		}
	}
	return arg;
}

static bool relay_start(int to)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC))
		return false;
	relay.from = p[0];
	relay.to = to;
	if (pthread_create(&relay.thread, NULL, relay_run, NULL)) {
		close(p[0]);
		close(p[1]);
		return false;
	}
	dup2(p[1], STDERR_FILENO);
	close(p[1]);
	return true;
}

void relay_begin(void)
{
	int to = relay.runs ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

	if (to < 0)
		return;
	relay.runs = relay_start(to);
	if (!relay.runs)
		close(to);
	if (!relay.registered)
		relay.registered = !atexit(relay_end);
}

void relay_end(void)
{
	struct timespec until;

	if (!relay.runs)
		return;
	relay.runs = false;
	dup2(relay.to, STDERR_FILENO); /* the thread reads EOF */
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2 * TIMEOUT_S;
	if (pthread_timedjoin_np(relay.thread, NULL, &until)) {
		pthread_detach(relay.thread);
		return;
	}
	close(relay.from);
	close(relay.to);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe bench: run urxe-bench (tests/bench) in a fabric of its own.
 *
 * The fabric is removed in every case, also if urxe or urxe-bench is killed.
 * A sweeper process in a session of its own does that: it waits for the end
 * of file on a pipe whose only writer is this process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fabric/fabric.h"
#include "common/commands.h"
#include "run/supervise.h"

/* Attempts to remove the fabric, 10 ms apart: killed processes exit soon. */
#define TRIES 500

/* Remove the fabric at dir.  Retry while processes still use it. */
static void sweep(const char *dir)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	int i, ret;

	for (i = 0; i < TRIES; i++) {
		ret = fabric_remove_unused(dir, false);
		if (ret != -EBUSY && ret != -EAGAIN && ret != -ESTALE)
			return;
		nanosleep(&nap, NULL);
	}
}

/*
 * Start the sweeper.  It removes the fabric at dir when the write end of its
 * pipe, returned in *end, is closed: by this process, or because this process
 * has ended.  No executed program inherits the write end (O_CLOEXEC).
 *
 * When this returns, the sweeper is in a session of its own: a signal to this
 * terminal or process group does not reach it.
 *
 * Return the PID, or -1 with errno set.
 */
static pid_t sweeper_start(const char *dir, int *end)
{
	int p[2], ready[2], null;
	pid_t pid;
	char c;

	if (pipe2(p, O_CLOEXEC) || pipe2(ready, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid) {
		close(p[0]);
		close(ready[1]);
		while (pid > 0 && read(ready[0], &c, 1) < 0 && errno == EINTR)
			;
		close(ready[0]);
		*end = p[1];
		return pid;
	}
	setsid();
	close(ready[0]);
	close(ready[1]);
	close(p[1]);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(null, 0);
	dup2(null, 1); /* a reader of our output gets EOF without it */
	dup2(null, 2);
	while (read(p[0], &c, 1) < 0 && errno == EINTR)
		;
	sweep(dir);
	_exit(0);
}

static int run_bench(char **argv, const char *dir)
{
	const struct attention none = { 0 };
	struct ending e;
	int end, err;
	pid_t pid;

	pid = sweeper_start(dir, &end);
	if (pid < 0)
		return fail(1, "fork: %s", strerror(errno));
	err = supervise(argv, 0, &none, &e);
	close(end);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (err)
		return cannot_run(argv[0], err);
	if (WIFEXITED(e.status) && WEXITSTATUS(e.status) == EXIT_USAGE)
		return usage();
	return ending_pass_on(&e);
}

/* clang-format off */
static const struct command_option options[] = {
	{ 'q', "quick", NULL, "fewer and shorter rounds, only to test the benchmark", "full" },
	{ 'r', "rounds", "N", "measure each row N times", "11" },
	{ 'R', "rt", NULL, "measure at real-time priority as well", "no" },
	{ 'j', "json", "FILE", "write all results as JSON", "a table" },
	{ 's', "svg", "FILE", "draw the results", "no" },
	{ 'm', "markdown", "FILE", "write the table as Markdown", "no" },
	OPTIONS_END,
};
/* clang-format on */

/* The options are passed to urxe-bench, which parses them. */
static int cmd_bench(int argc, char **argv)
{
	char path[4096], dir[256], fabric[32];
	int ret;

	(void)argc;
	if (find_helper("urxe-bench", "../tests/bench", path, sizeof(path)))
		return 1;
	snprintf(fabric, sizeof(fabric), "bench-%d", (int)getpid());
	ret = set_environment(fabric, false);
	if (!ret)
		ret = choose_fabric(fabric, dir);
	if (ret)
		return ret;
	argv[0] = path;
	return run_bench(argv, dir);
}

/* clang-format off */
const struct command command_bench = {
	.name = "bench",
	.run = cmd_bench,
	.operands = "",
	.what = "Measure latency, bandwidth and message rate next to the limits of the machine.",
	.options = options,
};
/* clang-format on */

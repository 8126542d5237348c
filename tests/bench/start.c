/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Cost of the preload library for a program that does not use RDMA: start-up
 * time of /bin/true
 */
#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define MAX_VARIABLES 1000

static bool run_true(const posix_spawnattr_t *attr, char **environment)
{
	char *argv[] = { "true", NULL };
	int status;
	pid_t pid;

	return !posix_spawn(&pid, "/bin/true", NULL, attr, argv, environment) &&
	       waitpid(pid, &status, 0) == pid && !status;
}

/*
 * Spawn at the priority of the caller: regime_enter() sets
 * SCHED_RESET_ON_FORK, so a child does not inherit it.
 */
static void attr_init(posix_spawnattr_t *attr)
{
	struct sched_param p = { 0 };

	sched_getparam(0, &p);
	posix_spawnattr_init(attr);
	posix_spawnattr_setschedpolicy(attr, sched_getscheduler(0) &
						     ~SCHED_RESET_ON_FORK);
	posix_spawnattr_setschedparam(attr, &p);
	posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSCHEDULER);
}

static double starts(struct end *e, uint32_t n, char **environment)
{
	posix_spawnattr_t attr;
	bool ok = true;
	uint64_t t;
	uint32_t i;

	if (e->rank == 1)
		return 0;
	attr_init(&attr);
	t = bench_now();
	for (i = 0; i < n && ok; i++)
		ok = run_true(&attr, environment);
	t = bench_now() - t;
	posix_spawnattr_destroy(&attr);
	return ok ? (double)t / n : NAN;
}

/* Start with the environment of this process, but without LD_PRELOAD. */
double raw_start(struct end *e, uint32_t n)
{
	char *plain[MAX_VARIABLES + 1];
	int i, k = 0;

	for (i = 0; environ[i] && k < MAX_VARIABLES; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", 11))
			plain[k++] = environ[i];
	plain[k] = NULL;
	return starts(e, n, plain);
}

double start_preloaded(struct end *e, uint32_t n)
{
	return getenv("LD_PRELOAD") ? starts(e, n, environ) : NAN;
}

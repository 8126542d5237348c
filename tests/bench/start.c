/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the preload library costs a program that uses no RDMA. */
#define _GNU_SOURCE
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static bool run_true(char **environment)
{
	char *argv[] = { "true", NULL };
	int status;
	pid_t pid;

	return !posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environment) &&
	       waitpid(pid, &status, 0) == pid && !status;
}

static double starts(struct end *e, uint32_t n, char **environment)
{
	uint64_t t;
	uint32_t i;

	if (e->rank == 1)
		return 0;
	t = bench_now();
	for (i = 0; i < n; i++)
		if (!run_true(environment))
			return NAN;
	return (double)(bench_now() - t) / n;
}

double raw_start(struct end *e, uint32_t n)
{
	char *none[] = { NULL };

	return starts(e, n, none);
}

double start_preloaded(struct end *e, uint32_t n)
{
	return getenv("LD_PRELOAD") ? starts(e, n, environ) : NAN;
}

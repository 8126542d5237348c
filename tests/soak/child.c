// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Children of a worker.  A child keeps the worker's context, opens the device
 * itself, or executes a program that imports the worker's context.  Children
 * exit by themselves, even if the worker is killed first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soak.h"

#define CHILDREN 2

static uint32_t children;
/*
 * me->limits when the first of the current children was forked.  If it has
 * changed since, a signal may have killed a child during exec.
 */
static uint32_t limits;
static struct slot own;

/* Keep the inherited context of the parent open for a while. */
static void child_hold(void)
{
	usleep(1000 * rnd(800));
}

static void child_cycle(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	w.ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (list)
		ibv_free_device_list(list);
	if (!made("ibv_open_device", w.ctx))
		return;
	must("ibv_query_gid", !ibv_query_gid(w.ctx, 1, 0, &w.gid));
	cycle();
	must("ibv_close_device", !ibv_close_device(w.ctx));
}

static void child_exec(void)
{
	char fd[12], pd[12], slot[12];

	fcntl(w.ctx->cmd_fd, F_SETFD, 0);
	snprintf(fd, sizeof(fd), "%d", w.ctx->cmd_fd);
	snprintf(pd, sizeof(pd), "%u", w.pd->handle);
	snprintf(slot, sizeof(slot), "%u", my_slot);
	execl("/proc/self/exe", "soak", "--import", fd, pd, slot, NULL);
	_exit(1);
}

/* Import the worker's context and PD in another program. */
int child_import(int argc, char **argv)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	char mem[4096];

	if (argc != 5)
		return 2;
	watch_crashes();
	ctx = ibv_import_device(atoi(argv[2]));
	if (!ctx)
		return 1;
	/* fails if the exporter has closed it */
	pd = ibv_import_pd(ctx, (uint32_t)atoi(argv[3]));
	mr = pd ? ibv_reg_mr(pd, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE) :
		  NULL;
	if (mr && ibv_dereg_mr(mr))
		return 3;
	if (pd)
		ibv_unimport_pd(pd);
	return ibv_close_device(ctx) ? 3 : 0;
}

static void children_reap(void)
{
	int status;

	while (children && waitpid(-1, &status, WNOHANG) > 0) {
		children--;
		if (WIFSIGNALED(status) && me->limits == limits)
			broken("a child ended with signal %d",
			       WTERMSIG(status));
		if (WEXITSTATUS(status) == 3)
			broken("a child failed");
		me->children++;
	}
}

void children_step(void)
{
	uint32_t what = rnd(3);
	pid_t pid;

	children_reap();
	if (children == CHILDREN)
		return;
	if (!children)
		limits = me->limits - !!me->starved;
	w.imported |= what == 2;
	me->doing = "fork";
	pid = fork();
	if (pid) {
		children += pid > 0;
		return;
	}
	rnd_seed(now_ms() + (uint64_t)getpid());
	own = *me; /* the child must not change the worker's slot */
	me = &own;
	if (what == 0)
		child_hold();
	else if (what == 1)
		child_cycle();
	else
		child_exec();
	_exit(0);
}

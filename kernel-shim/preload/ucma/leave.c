// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The end of a process: disconnect its connections with other hosts.
 *
 * The kernel closes the event channels of a process that ends, and so
 * disconnects their ids.  Here another process of the fabric does that, within
 * 0.1 s.  If there is none, the program on the other host would wait 139 s for
 * the answer to its DREQ.  Therefore a destructor, _exit(2) and _Exit(3) call
 * ucma_leave().  If the wire is on, it closes the channels of the process, and
 * destroys those that no process has open any more, which sends the DREQs.  It
 * waits a moment for the answers (cm/ended.c).
 *
 * For a child that was killed or has crashed, its parent does the same in
 * ucma_child_killed(), when it waits for the child: a server that forks for
 * each client need not use RDMA itself.
 *
 * Not covered are a channel that another thread is reading at that moment, and
 * other processes that are killed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cm/wire.h"
#include "command.h"

/* Close the descriptor with this name if it is a channel of the fabric. */
static void channel_close(const char *name)
{
	const int fd = atoi(name);
	struct stat st;

	if (*name != '.' && !fstat(fd, &st) && st.st_mode == CM_FIFO_MODE &&
	    shim_has_file(&st))
		close(fd);
}

/* Without malloc(3): the caller may be a signal handler. */
static void channels_close(void)
{
	_Alignas(struct dirent64) char buf[4096];
	const struct dirent64 *e;
	long n, at;
	int fd;

	fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
		for (at = 0; at < n; at += e->d_reclen) {
			e = (const void *)(buf + at);
			channel_close(e->d_name);
		}
	close(fd);
}

void ucma_leave(void)
{
	union cm_addr wire;
	int saved;

	/* not in the child of a vfork(2), which has the memory of its parent */
	if (load_relaxed(&ucma_used) != getpid() || !cm_wire_address(&wire))
		return;
	saved = shim_enter();
	channels_close();
	ucma_sweep();
	if (shim_fabric_if_any())
		cm_ended_linger(shim_fabric_if_any());
	shim_leave(saved);
}

void ucma_child_killed(void)
{
	union cm_addr wire;
	int saved;

	if (!cm_wire_address(&wire))
		return;
	saved = shim_enter();
	if (shim_fabric_if_any())
		ucma_sweep();
	shim_leave(saved);
}

__attribute__((destructor)) static void leave_at_exit(void)
{
	/* first: a program without RDMA need not look for its fabric */
	if (load_relaxed(&ucma_used) && shim_active())
		ucma_leave();
}

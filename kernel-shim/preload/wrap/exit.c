// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wrappers about the end of a process (ucma/leave.c):
 *
 *	_exit, _Exit		no exit handlers run
 *	wait, waitpid, wait3,	a child was killed, or has crashed: no code of
 *	wait4, waitid		it ran
 *
 * Calls with WNOHANG are not considered, because signal handlers make them.
 * exit(3) runs a destructor of leave.c.
 */
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/ucma/ucma.h"
#include "wrap.h"

WRAP(void, _exit, (int status))
{
	if (shim_active())
		ucma_leave();
	NEXT(_exit)(status);
}

WRAP(void, _Exit, (int status))
{
	if (shim_active())
		ucma_leave();
	NEXT(_Exit)(status);
}

/* Handle @pid, the result of a wait with this status; return it. */
static pid_t child_ended(pid_t pid, int status, int *out, int options)
{
	if (pid <= 0)
		return pid;
	if (out)
		*out = status;
	if (WIFSIGNALED(status) && !(options & WNOHANG) && shim_active())
		ucma_child_killed();
	return pid;
}

WRAP(pid_t, wait, (int *out))
{
	int status = 0;
	pid_t pid = NEXT(wait)(&status);

	return child_ended(pid, status, out, 0);
}

WRAP(pid_t, waitpid, (pid_t pid, int *out, int options))
{
	int status = 0;

	pid = NEXT(waitpid)(pid, &status, options);
	return child_ended(pid, status, out, options);
}

WRAP(pid_t, wait3, (int *out, int options, struct rusage *usage))
{
	int status = 0;
	pid_t pid = NEXT(wait3)(&status, options, usage);

	return child_ended(pid, status, out, options);
}

WRAP(pid_t, wait4, (pid_t pid, int *out, int options, struct rusage *usage))
{
	int status = 0;

	pid = NEXT(wait4)(pid, &status, options, usage);
	return child_ended(pid, status, out, options);
}

WRAP(int, waitid, (idtype_t type, id_t id, siginfo_t *out, int options))
{
	siginfo_t info = { 0 };
	int ret = NEXT(waitid)(type, id, out ? out : &info, options);

	if (out)
		info = *out;
	if (!ret && (info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED))
		child_ended(info.si_pid, info.si_status, NULL, options);
	return ret;
}

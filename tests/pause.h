/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A pause of all processes of a test, as in a virtual machine or a container
 * (base/patience.h).
 */
#pragma once

#include <signal.h>
#include <unistd.h>

#define PAUSE_US 700000 /* longer than the limit of the wait, 500 ms */

/*
 * For a child of the process that waits.  @arg is the pid_t of the stopped
 * process that it waits for.  Stop the parent as well; continue it after
 * PAUSE_US, and then the other.
 */
static inline int pause_parent(void *arg)
{
	const pid_t stopped = *(pid_t *)arg, parent = getppid();

	usleep(20000); /* the parent begins to wait */
	kill(parent, SIGSTOP);
	usleep(PAUSE_US);
	kill(parent, SIGCONT);
	usleep(20000); /* it checks the time first */
	kill(stopped, SIGCONT);
	return 0;
}

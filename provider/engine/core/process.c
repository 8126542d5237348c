// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PID and PID namespace of this process. process_identify() runs when the
 * provider is initialized and in a forked child.
 */
#include <unistd.h>

#include "fabric/fabric.h"
#include "process.h"

int32_t urxe_pid;
uint64_t urxe_pidns;

void process_identify(void)
{
	urxe_pid = getpid();
	urxe_pidns = fabric_pidns();
}

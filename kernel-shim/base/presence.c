// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "presence.h"

bool presence_cheap;

static bool membarrier(int command)
{
	int saved = errno;
	bool ok = !syscall(SYS_membarrier, command, 0, 0);

	errno = saved;
	return ok;
}

/* Before anybody is inside; a forked child inherits it. */
__attribute__((constructor)) static void ask_for_membarrier(void)
{
	presence_cheap = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

void presence_barrier(void)
{
	static _Atomic int here; /* a fence would be unknown to TSan */

	if (!presence_cheap)
		fetch_add_seq_cst(&here, 0);
	else if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		ask_for_membarrier(); /* cannot be: see above */
}

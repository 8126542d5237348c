// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "presence.h"
#include "thread.h"

bool presence_cheap;

static bool membarrier(int command)
{
	int saved = errno;
	bool ok = !syscall(SYS_membarrier, command, 0, 0);

	errno = saved;
	return ok;
}

/*
 * Runs before any thread can be in a critical section.  A forked child
 * inherits the registration.
 */
__attribute__((constructor)) static void register_membarrier(void)
{
	presence_cheap = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

void presence_barrier(void)
{
	static _Atomic int here; /* TSan does not know fences */

	if (!presence_cheap)
		fetch_add_seq_cst(&here, 0);
	else if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		register_membarrier(); /* cannot fail once registered */
}

/*
 * Iterations of the wait loop between two calls of is_dead(), which takes
 * longer than an iteration.  On a busy machine a yield may take as long as the
 * time slices of the other threads.
 */
#define DEAD_CHECK_TURNS 16

bool presence_wait_within(const struct presence *p, struct patience *patience,
			  bool (*is_dead)(void *), void *arg)
{
	uint32_t seq = load_seq_cst(&p->seq);
	uint32_t turns;

	for (turns = 1; seq & 1; turns++) {
		if (load_acquire(&p->seq) != seq)
			break;
		if (is_dead && turns % DEAD_CHECK_TURNS == 0 && is_dead(arg))
			break;
		if (patience && patience_ended(patience))
			return is_dead && is_dead(arg);
		thread_give_way(turns);
	}
	return true;
}

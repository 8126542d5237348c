// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
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
 * Wait loop: the number of iterations between two calls of is_dead(), which
 * takes longer than an iteration, and the number of iterations that yield
 * before the loop sleeps.  On a busy machine a yield may take as long as the
 * time slices of the other threads.
 */
#define DEAD_CHECK_TURNS 16
#define YIELD_TURNS 256
#define SLEEP_MIN_NS 50000ull
#define SLEEP_MAX_NS 5000000ull

static void presence_sleep(uint64_t ns)
{
	const struct timespec ts = { .tv_nsec = (long)ns };
	int saved = errno;

	nanosleep(&ts, NULL);
	errno = saved;
}

bool presence_wait_within(const struct presence *p, struct patience *patience,
			  bool (*is_dead)(void *), void *arg)
{
	uint32_t seq = load_seq_cst(&p->seq);
	uint64_t ns = SLEEP_MIN_NS;
	uint32_t turns;

	for (turns = 1; seq & 1; turns++) {
		if (load_acquire(&p->seq) != seq)
			break;
		if (is_dead && turns % DEAD_CHECK_TURNS == 0 && is_dead(arg))
			break;
		if (patience && patience_ended(patience))
			return is_dead && is_dead(arg);
		if (turns < YIELD_TURNS) {
			sched_yield();
			continue;
		}
		presence_sleep(
			patience && patience->left < ns ? patience->left : ns);
		ns = ns * 2 < SLEEP_MAX_NS ? ns * 2 : SLEEP_MAX_NS;
	}
	return true;
}

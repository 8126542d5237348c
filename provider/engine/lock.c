// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lock.h"

bool gate_cheap;

static bool membarrier(int command)
{
	int saved = errno;
	bool ok = !syscall(SYS_membarrier, command, 0, 0);

	errno = saved;
	return ok;
}

/* Before there is any gate; a forked child inherits it. */
__attribute__((constructor)) static void ask_for_membarrier(void)
{
	gate_cheap = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

void gate_barrier(void)
{
	static _Atomic int here; /* a fence would be unknown to TSan */

	if (!gate_cheap)
		atomic_fetch_add_explicit(&here, 0, memory_order_seq_cst);
	else if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		ask_for_membarrier(); /* cannot be: see above */
}

void gate_init(struct urxe_gate *g)
{
	pthread_mutex_init(&g->mutex, NULL);
	atomic_init(&g->seq, 0);
	atomic_init(&g->claimed, false);
	g->by_mutex = false;
}

void gate_destroy(struct urxe_gate *g)
{
	pthread_mutex_destroy(&g->mutex);
}

void gate_enter_slow(struct urxe_gate *g)
{
	gate_step(g, memory_order_release);
	pthread_mutex_lock(&g->mutex);
	g->by_mutex = true;
}

static bool is_inside(struct urxe_gate *g)
{
	return atomic_load_explicit(&g->seq, memory_order_acquire) & 1;
}

static void claim(struct urxe_gate *g)
{
	atomic_store_explicit(&g->claimed, true, memory_order_seq_cst);
	gate_barrier();
}

void gate_lock(struct urxe_gate *g)
{
	pthread_mutex_lock(&g->mutex);
	claim(g);
	while (is_inside(g))
		sched_yield();
}

bool gate_trylock(struct urxe_gate *g)
{
	if (pthread_mutex_trylock(&g->mutex))
		return false;
	claim(g);
	if (!is_inside(g))
		return true;
	gate_unlock(g);
	return false;
}

void gate_unlock(struct urxe_gate *g)
{
	atomic_store_explicit(&g->claimed, false, memory_order_release);
	pthread_mutex_unlock(&g->mutex);
}

void gate_after_fork(struct urxe_gate *g)
{
	gate_init(g);
}

void gate_wait(struct urxe_gate *g)
{
	uint32_t seq = atomic_load_explicit(&g->seq, memory_order_acquire);

	/* who came by the mutex leaves by it */
	pthread_mutex_lock(&g->mutex);
	pthread_mutex_unlock(&g->mutex);
	while (seq & 1 && atomic_load_explicit(&g->seq,
					       memory_order_acquire) == seq)
		sched_yield();
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lock.h"

static bool membarrier(int command)
{
	int saved = errno;
	bool ok = !syscall(SYS_membarrier, command, 0, 0);

	errno = saved;
	return ok;
}

static bool ask_for_membarrier(void)
{
	return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

static void barrier_everywhere(void)
{
	/* a forked child may have to ask again */
	if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) &&
	    ask_for_membarrier())
		membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

void urxe_lock_init(struct urxe_lock *l, bool single_threaded)
{
	pthread_mutex_init(&l->mutex, NULL);
	l->single_threaded = single_threaded && ask_for_membarrier();
	l->by_mutex = false;
	atomic_init(&l->inside, false);
	atomic_init(&l->claimed, false);
}

void urxe_lock_destroy(struct urxe_lock *l)
{
	pthread_mutex_destroy(&l->mutex);
}

void urxe_lock_slow(struct urxe_lock *l)
{
	atomic_store_explicit(&l->inside, false, memory_order_release);
	pthread_mutex_lock(&l->mutex);
	l->by_mutex = true;
}

static bool is_inside(struct urxe_lock *l)
{
	return atomic_load_explicit(&l->inside, memory_order_acquire);
}

static void claim(struct urxe_lock *l)
{
	atomic_store_explicit(&l->claimed, true, memory_order_seq_cst);
	barrier_everywhere();
}

void urxe_lock_outside(struct urxe_lock *l)
{
	pthread_mutex_lock(&l->mutex);
	if (!l->single_threaded)
		return;
	claim(l);
	while (is_inside(l))
		sched_yield();
}

bool urxe_trylock_outside(struct urxe_lock *l)
{
	if (pthread_mutex_trylock(&l->mutex))
		return false;
	if (!l->single_threaded)
		return true;
	claim(l);
	if (!is_inside(l))
		return true;
	urxe_unlock_outside(l);
	return false;
}

void urxe_unlock_outside(struct urxe_lock *l)
{
	if (l->single_threaded)
		atomic_store_explicit(&l->claimed, false,
				      memory_order_release);
	pthread_mutex_unlock(&l->mutex);
}

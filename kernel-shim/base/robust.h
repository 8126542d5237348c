/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A lock in memory that processes share.  A holder that dies leaves it to the
 * next, with whatever he had half done.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct robust_lock {
	pthread_mutex_t mutex;
};

void robust_init(struct robust_lock *l);
/* True: the holder before us died. */
bool robust_lock(struct robust_lock *l);
/* True: it is ours.  False: somebody alive has it. */
bool robust_trylock(struct robust_lock *l);
void robust_unlock(struct robust_lock *l);

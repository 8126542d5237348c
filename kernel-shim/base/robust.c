// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>

#include "robust.h"

void robust_init(struct robust_lock *l)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&l->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
}

bool robust_lock(struct robust_lock *l)
{
	if (pthread_mutex_lock(&l->mutex) != EOWNERDEAD)
		return false;
	/* who dies while he mends things leaves it to the next again */
	pthread_mutex_consistent(&l->mutex);
	return true;
}

bool robust_trylock(struct robust_lock *l)
{
	int ret = pthread_mutex_trylock(&l->mutex);

	if (ret == EOWNERDEAD)
		ret = pthread_mutex_consistent(&l->mutex);
	return !ret;
}

void robust_unlock(struct robust_lock *l)
{
	pthread_mutex_unlock(&l->mutex);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <signal.h>

#include "thread.h"

bool thread_start(pthread_t *out, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	pthread_t thread;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ok = !pthread_create(out ? out : &thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ok && !out)
		pthread_detach(thread);
	return ok;
}

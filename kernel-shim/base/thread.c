// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <semaphore.h>
#include <signal.h>

#include "thread.h"

struct beginning {
	void *(*fn)(void *);
	void *arg;
	sem_t begun;
};

static void *thread_begin(void *arg)
{
	struct beginning *b = arg;
	void *(*fn)(void *) = b->fn;
	void *its = b->arg;

	sem_post(&b->begun); /* *b is gone */
	return fn(its);
}

/* Until then it allocates: a child forked meanwhile could hang (ASan's locks). */
static void thread_await(struct beginning *b)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	while (sem_wait(&b->begun) && errno == EINTR)
		;
	pthread_setcancelstate(cancel, &cancel);
}

bool thread_start(pthread_t *out, void *(*fn)(void *), void *arg)
{
	struct beginning b = { .fn = fn, .arg = arg };
	sigset_t all, old;
	pthread_t thread;
	bool ok;

	sem_init(&b.begun, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ok = !pthread_create(out ? out : &thread, NULL, thread_begin, &b);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ok)
		thread_await(&b);
	sem_destroy(&b.begun);
	if (ok && !out)
		pthread_detach(thread);
	return ok;
}

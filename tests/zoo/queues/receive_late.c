// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <pthread.h>
#include <sched.h>

#include "../zoo.h"

struct server {
	struct pair p;
	bool corrected;
	_Atomic bool ready;
};

static void *serve(void *arg)
{
	struct server *s = arg;

	if (s->corrected)
		post_receive(&s->p.b, 1, 0, 64);
	s->ready = true; /* "connected" */
	if (!s->corrected)
		post_receive(&s->p.b, 1, 0, 64);
	return NULL;
}

PROGRAM(.name = "receive-late",
	.wrong =
		"the first receive is posted after the connection is established, when the peer may already send",
	.seen = "pmem/rpma#350, spdk/spdk#2429", .found = "rnr")
{
	struct server s = { .corrected = corrected };
	pthread_t t;

	PAIR(&s.p); /* rnr_retry is 0 */
	expect(!pthread_create(&t, NULL, serve, &s), "pthread_create fails");
	while (!s.ready)
		sched_yield();
	POST(&s.p.a, .op = IBV_WR_SEND, .len = 64, .flags = IBV_SEND_SIGNALED);
	wait_for(&s.p.a);
	pthread_join(t, NULL);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <pthread.h>

#include "../zoo.h"

#define TIMES 200

struct both {
	uint64_t *counter;
	_Atomic int stop;
	uint64_t added;
};

/* The CPU of the counter's node increments it, too. */
static void *count(void *arg)
{
	struct both *b = arg;

	while (!b->stop) {
		__atomic_fetch_add(b->counter, 1, __ATOMIC_SEQ_CST);
		b->added++;
	}
	return NULL;
}

PROGRAM(.name = "atomic-and-cpu",
	.wrong =
		"RDMA atomics and CPU atomics change the same word (IBV_ATOMIC_HCA)",
	.seen = "linux-rdma/rdma-core#1320", .found = "atomic")
{
	struct both b = { 0 };
	uint64_t *total, i;
	pthread_t t;
	struct pair p;

	PAIR(&p);
	total = (uint64_t *)(void *)p.b.buf;
	b.counter = corrected ? total + 8 : total; /* or one for each */
	expect(!pthread_create(&t, NULL, count, &b), "pthread_create fails");
	for (i = 0; i < TIMES; i++) {
		POST(&p.a, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .add = 1,
		     .flags = IBV_SEND_SIGNALED);
		wait_for(&p.a);
	}
	b.stop = 1;
	pthread_join(t, NULL);
	expect(total[0] + total[8] == TIMES + b.added, "increments are lost");
}

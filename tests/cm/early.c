// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * early_events(): count the events that a second thread receives before the
 * command that caused them returns.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"

struct commands {
	struct rdma_event_channel *ch;
	_Atomic int returned; /* number of commands that returned */
	int early;
	sem_t handled;
};

/*
 * Bind this thread, and those it creates, to one CPU, so that a thread that
 * is woken preempts the thread that woke it.
 */
static void share_one_cpu(void)
{
	const int cpu = sched_getcpu();
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : (unsigned int)cpu, &set);
	ck_ok(sched_setaffinity(0, sizeof(set), &set));
}

static void *handle_events(void *arg)
{
	struct commands *c = arg;
	struct rdma_cm_event *e;
	int n = 0;

	may_leak();
	for (;;) {
		ck_ok(rdma_get_cm_event(c->ch, &e));
		if (e->event == RDMA_CM_EVENT_REJECTED) {
			ck_ok(rdma_ack_cm_event(e));
			continue;
		}
		if (c->returned <= n++)
			c->early++;
		if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			ck_ok(rdma_reject(e->id, NULL, 0));
			ck_ok(rdma_destroy_id(e->id));
		}
		ck_ok(rdma_ack_cm_event(e));
		sem_post(&c->handled);
	}
	return NULL;
}

static void command_has_returned(struct commands *c)
{
	c->returned++;
	while (sem_wait(&c->handled))
		;
}

int early_events(int rounds)
{
	struct commands c = { .ch = new_channel() };
	struct rdma_cm_id *listener = new_id(c.ch, RDMA_PS_TCP), *id;
	struct sockaddr_in a = ip4(0);
	struct rdma_conn_param p = param(NULL, 0);
	pthread_t handler;

	ck_ok(rdma_bind_addr(listener, SA(&a)));
	ck_ok(rdma_listen(listener, 0));
	a.sin_port = rdma_get_src_port(listener);
	share_one_cpu();
	sem_init(&c.handled, 0, 0);
	ck_ok(pthread_create(&handler, NULL, handle_events, &c));
	/* the handler thread has a higher priority */
	ck_ok(setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10));
	while (rounds--) {
		id = new_id(c.ch, RDMA_PS_TCP);
		ck_ok(rdma_resolve_addr(id, NULL, SA(&a), 1000));
		command_has_returned(&c);
		ck_ok(rdma_resolve_route(id, 1000));
		command_has_returned(&c);
		p.qp_num = 7;
		ck_ok(rdma_connect(id, &p));
		command_has_returned(&c);
		ck_ok(rdma_destroy_id(id));
	}
	/* it uses c */
	ck_ok(pthread_cancel(handler));
	ck_ok(pthread_join(handler, NULL));
	sem_destroy(&c.handled);
	return c.early;
}

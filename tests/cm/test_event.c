// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Event channels as descriptors, and the delivery of events. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "harness.h"

static void resolve(struct rdma_cm_id *id)
{
	struct sockaddr_in a = ip4(7471);

	ck_ok(rdma_resolve_addr(id, NULL, SA(&a), 1000));
}

/* The descriptor of a channel is a character device with FD_CLOEXEC. */
START_TEST(channel_descriptor)
{
	struct rdma_event_channel *ch = new_channel();
	struct stat st;

	ck_ok(fstat(ch->fd, &st));
	ck_assert(S_ISCHR(st.st_mode));
	ck_assert_int_eq(fcntl(ch->fd, F_GETFD), FD_CLOEXEC);
	ck_ok(stat("/dev/infiniband/rdma_cm", &st));
	ck_assert(S_ISCHR(st.st_mode));
	rdma_destroy_event_channel(ch);
}
END_TEST

/*
 * With O_NONBLOCK, rdma_get_cm_event() fails with EAGAIN if there is no
 * event.
 */
START_TEST(nonblocking)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch, RDMA_PS_TCP);
	struct rdma_cm_event *e;

	ck_ok(fcntl(ch->fd, F_SETFL, fcntl(ch->fd, F_GETFL) | O_NONBLOCK));
	ck_fails(rdma_get_cm_event(ch, &e), EAGAIN);
	resolve(id);
	ck_ok(rdma_get_cm_event(ch, &e));
	ck_ok(rdma_ack_cm_event(e));
	ck_fails(rdma_get_cm_event(ch, &e), EAGAIN);
	ck_ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(ch);
}
END_TEST

static int readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timeval zero = { 0 };
	fd_set set;
	int n;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	n = poll(&p, 1, 0);
	ck_assert_int_eq(select(fd + 1, &set, NULL, NULL, &zero), n);
	return n;
}

/*
 * A channel is readable, for poll(), select() and epoll, exactly while it has
 * events.
 */
START_TEST(pollers)
{
	enum { N = 100 };
	struct rdma_event_channel *ch = new_channel();
	struct epoll_event ev = { .events = EPOLLIN }, got;
	struct rdma_cm_id *id[N];
	int ep = epoll_create1(0), i;

	ck_ok(epoll_ctl(ep, EPOLL_CTL_ADD, ch->fd, &ev));
	ck_assert_int_eq(readable(ch->fd), 0);
	for (i = 0; i < N; i++) {
		id[i] = new_id(ch, RDMA_PS_TCP);
		resolve(id[i]);
	}
	/* readable while an event is queued, and not afterwards */
	for (i = 0; i < N; i++) {
		ck_assert_int_eq(readable(ch->fd), 1);
		ck_assert_int_eq(epoll_wait(ep, &got, 1, 0), 1);
		pass(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	}
	ck_assert_int_eq(readable(ch->fd), 0);
	ck_assert_int_eq(epoll_wait(ep, &got, 1, 0), 0);
	/* not readable after the ids of all its events were destroyed */
	for (i = 0; i < N; i++)
		ck_ok(rdma_resolve_route(id[i], 1000));
	ck_assert_int_eq(readable(ch->fd), 1);
	for (i = 0; i < N; i++)
		ck_ok(rdma_destroy_id(id[i]));
	ck_assert_int_eq(readable(ch->fd), 0);
	close(ep);
	rdma_destroy_event_channel(ch);
}
END_TEST

/* Each event wakes an edge-triggered epoll. */
START_TEST(edge_triggered)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET }, got;
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id[3];
	int ep = epoll_create1(0), i;

	ck_ok(epoll_ctl(ep, EPOLL_CTL_ADD, ch->fd, &ev));
	for (i = 0; i < 3; i++) {
		id[i] = new_id(ch, RDMA_PS_TCP);
		resolve(id[i]);
		ck_assert_int_eq(epoll_wait(ep, &got, 1, PATIENCE_MS), 1);
		ck_assert_int_eq(epoll_wait(ep, &got, 1, 0), 0);
	}
	for (i = 0; i < 3; i++) {
		pass(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		ck_ok(rdma_destroy_id(id[i]));
	}
	close(ep);
	rdma_destroy_event_channel(ch);
}
END_TEST

/*
 * The events of a channel are fetched in the order in which they were raised.
 */
START_TEST(events_in_order)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *a = new_id(ch, RDMA_PS_TCP),
			  *b = new_id(ch, RDMA_PS_TCP);
	struct rdma_cm_event *e;
	int i;

	resolve(a);
	resolve(b);
	e = expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_ptr_eq(e->id, a);
	ck_ok(rdma_ack_cm_event(e));
	ck_ok(rdma_resolve_route(a, 1000));
	for (i = 0; i < 2; i++) {
		ck_ok(rdma_get_cm_event(ch, &e));
		ck_assert_ptr_eq(e->id, i ? a : b);
		ck_ok(rdma_ack_cm_event(e));
	}
	ck_ok(rdma_destroy_id(a));
	ck_ok(rdma_destroy_id(b));
	rdma_destroy_event_channel(ch);
}
END_TEST

/* rdma_migrate_id() takes queued and later events to the new channel. */
START_TEST(migrate)
{
	struct rdma_event_channel *from = new_channel(), *to = new_channel();
	struct rdma_cm_id *id = new_id(from, RDMA_PS_TCP),
			  *stays = new_id(from, RDMA_PS_TCP);

	resolve(id);
	resolve(stays);
	/* queued events move with the id */
	ck_ok(rdma_migrate_id(id, to));
	ck_assert_ptr_eq(id->channel, to);
	pass(to, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	pass(from, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_int_eq(readable(from->fd), 0);
	ck_assert_int_eq(readable(to->fd), 0);
	ck_ok(rdma_resolve_route(id, 1000));
	expect_nothing(from, 20);
	pass(to, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	/* back to the first channel, after the id was synchronous */
	ck_ok(rdma_migrate_id(id, NULL));
	ck_ok(rdma_migrate_id(id, from));
	ck_ok(rdma_destroy_id(id));
	ck_ok(rdma_destroy_id(stays));
	rdma_destroy_event_channel(from);
	rdma_destroy_event_channel(to);
}
END_TEST

/* When a listener migrates, requests that were not fetched move with it. */
START_TEST(migrate_listener)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *l = listen_on(SA(&a), RDMA_PS_TCP, 0), *c, *s;
	struct rdma_event_channel *from = l->channel, *to = new_channel();

	a = ip4(port_of(l));
	c = client_to(SA(&a), RDMA_PS_TCP);
	start_connect(c);
	ck_ok(rdma_migrate_id(l, to));
	expect_nothing(from, 0);
	s = next_request(l);
	ck_assert_ptr_eq(s->channel, to);
	accept_it(s);
	pass(c->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	ck_ok(rdma_establish(c));
	pass(to, RDMA_CM_EVENT_ESTABLISHED, 0);
	end_id(c, true);
	pass(to, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_id(s, false);
	end_id(l, true);
	rdma_destroy_event_channel(from);
}
END_TEST

/* ------------------------------------------------------------ threads */

static void *ack_late(void *arg)
{
	usleep(200000);
	ck_ok(rdma_ack_cm_event(arg));
	return NULL;
}

/* rdma_destroy_id() waits until fetched events are acknowledged. */
START_TEST(destroy_waits_for_acks)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch, RDMA_PS_TCP);
	double start = now();
	pthread_t t;

	resolve(id);
	ck_ok(pthread_create(&t, NULL, ack_late,
			     expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0)));
	ck_ok(rdma_destroy_id(id));
	ck_assert(now() - start > 0.15);
	pthread_join(t, NULL);
	rdma_destroy_event_channel(ch);
}
END_TEST

static void *wait_one(void *arg)
{
	struct rdma_cm_event *e;

	if (rdma_get_cm_event(arg, &e))
		return (void *)(uintptr_t)errno;
	ck_ok(rdma_ack_cm_event(e));
	return NULL;
}

/* Threads that sleep in rdma_get_cm_event() get one event each. */
START_TEST(one_event_for_each_sleeper)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id[4];
	pthread_t t[4];
	void *ret;
	int i;

	for (i = 0; i < 4; i++) {
		id[i] = new_id(ch, RDMA_PS_TCP);
		ck_ok(pthread_create(&t[i], NULL, wait_one, ch));
	}
	usleep(50000);
	for (i = 0; i < 4; i++)
		resolve(id[i]);
	for (i = 0; i < 4; i++) {
		ck_ok(pthread_join(t[i], &ret));
		ck_assert_ptr_null(ret);
	}
	for (i = 0; i < 4; i++)
		ck_ok(rdma_destroy_id(id[i]));
	rdma_destroy_event_channel(ch);
}
END_TEST

/*
 * An id that migrates with a queued event wakes a thread that sleeps on the
 * new channel.
 */
START_TEST(migrate_to_sleeper)
{
	struct rdma_event_channel *from = new_channel(), *to = new_channel();
	struct rdma_cm_id *id = new_id(from, RDMA_PS_TCP);
	pthread_t t;
	void *ret;

	resolve(id);
	ck_ok(pthread_create(&t, NULL, wait_one, to));
	usleep(50000);
	ck_ok(rdma_migrate_id(id, to));
	ck_ok(pthread_join(t, &ret));
	ck_assert_ptr_null(ret);
	ck_ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(from);
	rdma_destroy_event_channel(to);
}
END_TEST

static void *wait_to_be_cancelled(void *arg)
{
	may_leak();
	return wait_one(arg);
}

/* pthread_cancel() ends a thread that sleeps in rdma_get_cm_event(). */
START_TEST(cancelled_in_get_event)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch, RDMA_PS_TCP);
	pthread_t t;
	void *ret;

	ck_ok(pthread_create(&t, NULL, wait_to_be_cancelled, ch));
	usleep(50000);
	ck_ok(pthread_cancel(t));
	ck_ok(pthread_join(t, &ret));
	ck_assert_ptr_eq(ret, PTHREAD_CANCELED);
	/* the cancelled thread held no lock */
	resolve(id);
	pass(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(ch);
}
END_TEST

static void *wait_when_cancelled(void *arg)
{
	may_leak();
	pthread_cancel(pthread_self());
	return wait_one(arg);
}

/*
 * A thread with a pending cancellation is cancelled in rdma_get_cm_event()
 * even if an event is queued.  The event stays queued.
 */
START_TEST(cancellation_pending)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch, RDMA_PS_TCP);
	pthread_t t;
	void *ret;

	resolve(id);
	ck_ok(pthread_create(&t, NULL, wait_when_cancelled, ch));
	ck_ok(pthread_join(t, &ret));
	ck_assert_ptr_eq(ret, PTHREAD_CANCELED);
	pass(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(ch);
}
END_TEST

static _Atomic int signals_taken;

static void on_signal(int sig)
{
	(void)sig;
	signals_taken++;
}

struct interruptible {
	struct rdma_event_channel *ch;
	_Atomic pid_t tid;
};

static void *wait_interruptible(void *arg)
{
	struct interruptible *s = arg;

	s->tid = (pid_t)syscall(SYS_gettid);
	return wait_one(s->ch);
}

/*
 * Return the state letter of a thread of this process; S: interruptible
 * sleep.
 */
static char thread_state(pid_t tid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
	fclose(f);
	return state;
}

/*
 * Send a signal to a thread that sleeps in rdma_get_cm_event() and return the
 * result of that thread: NULL, or its errno.
 */
static void *interrupted(int flags)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch, RDMA_PS_TCP);
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };
	struct interruptible s = { .ch = ch };
	const int before = signals_taken;
	pthread_t t;
	void *ret;

	ck_ok(sigaction(SIGUSR1, &sa, NULL));
	ck_ok(pthread_create(&t, NULL, wait_interruptible, &s));
	while (!s.tid || thread_state(s.tid) != 'S')
		usleep(1000);
	ck_ok(pthread_kill(t, SIGUSR1));
	while (signals_taken == before)
		usleep(1000);
	/* An event that is queued in time would hide the EINTR. */
	if (!(flags & SA_RESTART))
		ck_ok(pthread_join(t, &ret));
	resolve(id);
	if (flags & SA_RESTART)
		ck_ok(pthread_join(t, &ret));
	else
		pass(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(ch);
	return ret;
}

/* A signal handler without SA_RESTART ends rdma_get_cm_event() with EINTR. */
START_TEST(signal_interrupts_get_event)
{
	ck_assert_ptr_eq(interrupted(0), (void *)(uintptr_t)EINTR);
	ck_assert_ptr_null(interrupted(SA_RESTART));
}
END_TEST

/*
 * No other thread gets an event of a command before the command has returned:
 * librdmacm uses the id until then.
 */
START_TEST(event_after_command_returns)
{
	ck_assert_int_eq(early_events(100), 0);
}
END_TEST

/* ------------------------------------------------------------ processes */

static void child_serves(int fd, void *arg)
{
	struct rdma_cm_id *l = arg, *s;

	s = next_request(l);
	accept_it(s);
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	send_int(fd, 1);
	pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
}

/* A forked child can use the ids and channels that its parent opened. */
START_TEST(child_uses_ids)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *l = listen_on(SA(&a), RDMA_PS_TCP, 0), *c;
	struct other o;

	a = ip4(port_of(l));
	o = spawn(child_serves, l);
	c = client_to(SA(&a), RDMA_PS_TCP);
	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	ck_ok(rdma_establish(c));
	receive_int(o.fd);
	end_id(c, true);
	finish(o);
	/*
	 * the child fetched the events: destroying l here would wait for them
	 */
}
END_TEST

/* Creating and destroying many channels leaks no descriptors. */
START_TEST(no_leak)
{
	int i, fd = -1, last = -1;

	for (i = 0; i < 300; i++) {
		struct rdma_event_channel *ch = new_channel();

		ck_ok(rdma_destroy_id(new_id(ch, RDMA_PS_TCP)));
		if (i)
			ck_assert_int_eq(ch->fd, last);
		last = ch->fd;
		rdma_destroy_event_channel(ch);
	}
	fd = dup(0);
	ck_assert_int_le(fd, last);
	close(fd);
}
END_TEST

/*
 * write() to other descriptors is unchanged, and write() of an invalid
 * command to a channel fails as in the kernel.
 */
START_TEST(write_to_other_descriptors)
{
	struct rdma_event_channel *ch = new_channel();
	char out[304], in[304];
	void *nowhere =
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int p[2];

	memset(out, 0, sizeof(out));
	out[4] = 24;
	ck_ok(pipe(p));
	ck_assert_int_eq(write(p[1], out, 32), 32);
	ck_assert_int_eq(read(p[0], in, sizeof(in)), 32);
	ck_fails(write(p[1], nowhere, 32), EFAULT);
	ck_fails(write(-1, out, 32), EBADF);
	ck_fails(write(ch->fd, out, 8), EINVAL);
	out[0] = 77;
	ck_fails(write(ch->fd, out, 32), EINVAL);
	out[0] = 13; /* GET_OPTION, which is not implemented */
	ck_fails(write(ch->fd, out, 32), ENOSYS);
	close(p[0]);
	close(p[1]);
	rdma_destroy_event_channel(ch);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm events");

	add(s, channel_descriptor);
	add(s, nonblocking);
	add(s, pollers);
	add(s, edge_triggered);
	add(s, events_in_order);
	add(s, migrate);
	add(s, migrate_listener);
	add(s, migrate_to_sleeper);
	add(s, destroy_waits_for_acks);
	add(s, one_event_for_each_sleeper);
	add(s, cancelled_in_get_event);
	add(s, cancellation_pending);
	add(s, signal_interrupts_get_event);
	add(s, event_after_command_returns);
	add(s, child_uses_ids);
	add(s, no_leak);
	add(s, write_to_other_descriptors);
	return run_suite(s);
}

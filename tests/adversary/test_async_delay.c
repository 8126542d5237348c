// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Option "async": asynchronous events that are delayed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "with.h"

#define TRIES 200 /* attempts; at least one must show the effect, most do */

/* A QP with an SRQ.  Its transition to ERR raises LAST_WQE_REACHED. */
struct last_wqe {
	struct node n;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
};

static void last_wqe_open(struct last_wqe *l)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4,
						    .max_sge = 1 } };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };
	struct opts o = default_opts();

	node_open(&l->n, NULL, MEM_HEAP, &o);
	l->srq = ibv_create_srq(l->n.pd, &init);
	ck_nonnull(l->srq);
	attr.srq = l->srq;
	attr.send_cq = attr.recv_cq = l->n.scq;
	attr.cap = o.cap;
	l->qp = ibv_create_qp(l->n.pd, &attr);
	ck_nonnull(l->qp);
}

static void last_wqe_close(struct last_wqe *l)
{
	ck_ok(ibv_destroy_qp(l->qp));
	ck_ok(ibv_destroy_srq(l->srq));
	node_close(&l->n);
}

/* Return whether the event was not readable after the QP entered ERR. */
static bool is_late(struct last_wqe *l)
{
	bool late;

	ck_ok(qp_to(l->qp, IBV_QPS_RESET));
	qp_to_init(l->qp, &l->n.o);
	ck_ok(qp_to(l->qp, IBV_QPS_ERR));
	late = !fd_readable(l->n.ctx->async_fd, 0);
	expect_async(l->n.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, l->qp);
	ck_assert(!fd_readable(l->n.ctx->async_fd, 0));
	return late;
}

/* With "async", an event is raised after the state change it announces. */
START_TEST(option_async)
{
	struct last_wqe l;
	int i;

	with_options("async=1000");
	last_wqe_open(&l);
	for (i = 0; !is_late(&l); i++)
		ck_assert_int_lt(i, TRIES);
	for (i = 0; i < 20; i++)
		is_late(&l);
	last_wqe_close(&l);
}
END_TEST

/* Without "async" it is readable at once. */
START_TEST(no_delay_without_async)
{
	struct last_wqe l;
	int i;

	with_options("rnr=1");
	last_wqe_open(&l);
	for (i = 0; i < 20; i++)
		ck_assert(!is_late(&l));
	last_wqe_close(&l);
}
END_TEST

/* On b: wait in epoll_wait() for the event that a's WR caused. */
static void do_wait(struct node *b, void *arg)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd = epoll_create1(EPOLL_CLOEXEC);

	(void)arg;
	ck_assert_int_ge(fd, 0);
	ck_ok(epoll_ctl(fd, EPOLL_CTL_ADD, b->ctx->async_fd, &e));
	ck_assert_int_eq(epoll_wait(fd, &e, 1, WAIT_MS), 1);
	expect_async(b->ctx, IBV_EVENT_QP_ACCESS_ERR, b->qp);
	close(fd);
}

/* A delayed event that a peer caused wakes a thread in epoll_wait(). */
START_TEST(delayed_event_of_a_peer)
{
	struct opts o = default_opts();
	struct duo d;

	with_options("async=1000");
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 1 << 20, 0));
	expect(d.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	on_b(&d, do_wait, NULL, 0);
	duo_close(&d);
}
END_TEST

/* Shared by the processes of a and b. */
struct stopped {
	pid_t pid; /* of a */
	int fd; /* async_fd of a */
	atomic_bool begin, readable, over;
};
static struct stopped *stopped;

static void port(char *word)
{
	char *urxe = getenv("URXE");
	char *argv[] = { urxe, (char *)"port", word, (char *)DEVICE, NULL };
	int status;
	pid_t pid;

	ck_nonnull(urxe);
	ck_ok(posix_spawn(&pid, urxe, NULL, NULL, argv, environ));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

/*
 * In b's process: stop a, with its service thread, so that delayed events
 * stay undelivered, and change the port state.
 */
static void *stop_and_change(void *arg)
{
	struct stopped *s = arg;
	char path[64];
	int fd;

	while (!s->begin) /* SIGSTOP would interrupt a's wait in on_b() */
		sleep_ms(1);
	ck_ok(kill(s->pid, SIGSTOP));
	port((char *)"down");
	port((char *)"up");
	port((char *)"down");
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)s->pid, s->fd);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	s->readable = fd_readable(fd, QUIET_MS);
	close(fd);
	ck_ok(kill(s->pid, SIGCONT));
	s->over = true;
	return NULL;
}

static void do_start(struct node *b, void *arg)
{
	pthread_t t;

	(void)b;
	(void)arg;
	ck_ok(pthread_create(&t, NULL, stop_and_change, stopped));
	ck_ok(pthread_detach(t));
}

/*
 * Port events: each one is delivered, and the last one corresponds to the
 * state of the port.
 */
START_TEST(delayed_port_events)
{
	static const enum ibv_event_type type[] = { IBV_EVENT_PORT_ERR,
						    IBV_EVENT_PORT_ACTIVE,
						    IBV_EVENT_PORT_ERR };
	struct opts o = default_opts();
	struct ibv_async_event ev;
	struct duo d;
	int i;

	stopped = mmap(NULL, sizeof(*stopped), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(stopped, MAP_FAILED);
	with_options(_i ? "rnr=1" : "async=1000");
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	stopped->pid = getpid();
	stopped->fd = d.a.ctx->async_fd;
	on_b(&d, do_start, NULL, 0);
	stopped->begin = true;
	while (!stopped->over)
		sleep_ms(1);
	ck_assert(stopped->readable == !!_i);
	for (i = 0; i < 3; i++) {
		ev = wait_async(d.a.ctx, true);
		ck_assert_int_eq(ev.event_type, type[i]);
		ck_assert_int_eq(ev.element.port_num, 1);
	}
	expect_no_async(d.a.ctx);
	port((char *)"up");
	ev = wait_async(d.a.ctx, true);
	ck_assert_int_eq(ev.event_type, IBV_EVENT_PORT_ACTIVE);
	duo_close(&d);
}
END_TEST

#define PAGE 4096
#define FULL (PAGE / 8) /* events that fit in a channel of one page */

/* Raise one event more than the channel has room for. */
static void raise_many(struct duo *d)
{
	int i;

	for (i = 0; i <= FULL; i++) {
		ck_ok(ibv_req_notify_cq(d->b.rcq, 0));
		b_recv(d, 1, 0, 8);
		ck_ok(post(d, IBV_WR_SEND, 1, 0, 8, 0, 0));
		expect(d->a.scq, 1, IBV_WC_SUCCESS);
		expect(d->b.rcq, 1, IBV_WC_SUCCESS);
	}
}

/* Return how long the last event takes after the others were read, in ms. */
static double read_many(int i)
{
	static struct duo d;
	struct opts o = default_opts();
	struct ibv_cq *cq;
	double begin = 0;
	void *arg;

	if (!d.a.qp) {
		with_options("async=1000");
		o.channel = true;
		duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
		ck_assert_int_eq(fcntl(d.b.chan->fd, F_SETPIPE_SZ, PAGE), PAGE);
	}
	raise_many(&d);
	for (i = 0; i <= FULL; i++) {
		begin = now_ms();
		ck_assert(fd_readable(d.b.chan->fd, WAIT_MS));
		ck_ok(ibv_get_cq_event(d.b.chan, &cq, &arg));
	}
	begin = now_ms() - begin;
	ibv_ack_cq_events(d.b.rcq, FULL + 1);
	ck_assert(!fd_readable(d.b.chan->fd, 0));
	return begin;
}

/*
 * An event that did not fit is delivered when the others are read, not only
 * by the periodic check of the service thread, after 1 s.
 */
START_TEST(queued_event_delivered_at_read)
{
	int i;

	may_leak();
	for (i = 0; i < 30; i++)
		expect_within(500, read_many, i);
}
END_TEST

/*
 * If the object is destroyed before its delayed event is delivered, the
 * descriptor does not become readable.
 */
START_TEST(destroy_removes_delayed_event)
{
	struct last_wqe l;
	int i;

	with_options("async=1000");
	for (i = 0; i < 20; i++) {
		last_wqe_open(&l);
		qp_to_init(l.qp, &l.n.o);
		ck_ok(qp_to(l.qp, IBV_QPS_ERR));
		ck_ok(ibv_destroy_qp(l.qp));
		if (i % 5 == 0)
			sleep_ms(5);
		ck_assert(!fd_readable(l.n.ctx->async_fd, 0));
		ck_ok(ibv_destroy_srq(l.srq));
		node_close(&l.n);
	}
}
END_TEST

/* Child of a process that has exited: raise an event and wait for it. */
static void orphan(struct last_wqe *l, int parent, int report)
{
	char byte;

	ck_assert_int_eq(read(parent, &byte, 1), 0);
	ck_ok(qp_to(l->qp, IBV_QPS_ERR));
	if (!fd_readable(l->n.ctx->async_fd, WAIT_MS))
		_exit(1);
	expect_async(l->n.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, l->qp);
	ck_assert_int_eq(write(report, "", 1), 1);
	_exit(0);
}

/*
 * After a fork the child may be the only process that has the context.  It
 * has no service thread; its delayed events are delivered nevertheless.
 */
START_TEST(delayed_events_after_fork)
{
	int life[2], report[2];
	struct last_wqe l;
	char byte;
	pid_t pid;

	with_options("async=1000");
	ck_ok(pipe(report));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		close(report[0]);
		ck_ok(pipe(life));
		last_wqe_open(&l);
		qp_to_init(l.qp, &l.n.o);
		if (!fork()) {
			close(life[1]);
			orphan(&l, life[0], report[1]);
		}
		_exit(0);
	}
	close(report[1]);
	ck_assert_int_eq(reap_child(pid), 0);
	ck_assert_int_eq(read(report[0], &byte, 1), 1);
}
END_TEST

int main(void)
{
	Suite *s = suite("adversary, delayed async events");

	add(s, option_async);
	add(s, no_delay_without_async);
	add_loop(s, delayed_event_of_a_peer, WHERE_COUNT);
	add_loop(s, delayed_port_events, 2);
	add(s, queued_event_delivered_at_read);
	add(s, destroy_removes_delayed_event);
	add(s, delayed_events_after_fork);
	return run(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Processes are killed: their listeners and ids are freed, and the peers of
 * their connections get an event, whether they wait in poll() or in
 * rdma_get_cm_event().
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness.h"

/* A server that continues until the given stage, then waits to be killed. */
enum stage { LISTENING, REQUESTED, ACCEPTED, ESTABLISHED };

static void server(int fd, void *arg)
{
	enum stage until = *(enum stage *)arg;
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *l = listen_on(SA(&a), RDMA_PS_TCP, 0), *s;

	send_int(fd, port_of(l));
	if (until >= REQUESTED)
		s = next_request(l);
	if (until >= ACCEPTED) {
		give_qp(s);
		accept_it(s);
	}
	if (until >= ESTABLISHED)
		pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	send_int(fd, 1);
	pause();
}

static struct other start(enum stage until, struct rdma_cm_id **client)
{
	struct other o = spawn(server, &until);
	struct sockaddr_in a = ip4(receive_int(o.fd));
	struct rdma_cm_id *c = client_to(SA(&a), RDMA_PS_TCP);

	give_qp(c);
	start_connect(c);
	if (until == ESTABLISHED)
		pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	receive_int(o.fd);
	*client = c;
	return o;
}

/* The server is killed when connected: the client gets DISCONNECTED. */
START_TEST(server_after_established)
{
	struct rdma_cm_id *c;
	struct other o = start(ESTABLISHED, &c);

	kill_it(o);
	pass(c->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	ck_ok(rdma_disconnect(c));
	pass(c->channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	end_id(c, true);
}
END_TEST

/*
 * Wait until the ids of a killed process are freed.  One of them has @port.
 */
static void await_port(int port)
{
	struct rdma_event_channel *ch = new_channel();
	struct sockaddr_in a = ip4(port);
	struct rdma_cm_id *id;
	int ret;

	do {
		id = new_id(ch, RDMA_PS_TCP);
		ret = rdma_bind_addr(id, SA(&a));
		ck_assert(!ret || errno == EADDRINUSE);
		ck_ok(rdma_destroy_id(id));
		usleep(1000);
	} while (ret);
	rdma_destroy_event_channel(ch);
}

/* The server is killed after its REP: the client gets CONNECT_ERROR. */
START_TEST(server_after_accept)
{
	struct rdma_cm_id *c;
	struct other o = start(ACCEPTED, &c);

	kill_it(o);
	await_port(ntohs(rdma_get_dst_port(c)));
	/* the REP is still queued, but cannot be confirmed */
	pass(c->channel, RDMA_CM_EVENT_CONNECT_ERROR, -1);
	end_id(c, true);
}
END_TEST

/* The server is killed before its REP: the client gets REJECTED. */
START_TEST(server_before_accept)
{
	struct rdma_cm_id *c;
	struct other o = start(REQUESTED, &c);

	kill_it(o);
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	end_id(c, true);
}
END_TEST

/*
 * The server is killed before it fetched the request: the client gets
 * REJECTED.
 */
START_TEST(server_before_get_event)
{
	struct rdma_cm_id *c;
	struct other o = start(LISTENING, &c);

	kill_it(o);
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	end_id(c, true);
}
END_TEST

static void receives_and_waits(int fd, void *arg)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *l = listen_on(SA(&a), RDMA_PS_TCP, 0);

	(void)arg;
	send_int(fd, port_of(l));
	accept_it(next_request(l));
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	send_int(fd, 1);
	pause();
}

/*
 * A killed server does not answer a DREQ.  The connection manager answers it,
 * as the kernel of its host would.
 */
START_TEST(server_after_disconnect)
{
	struct other o = spawn(receives_and_waits, NULL);
	struct sockaddr_in a = ip4(receive_int(o.fd));
	struct rdma_cm_id *c = client_to(SA(&a), RDMA_PS_TCP);

	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	ck_ok(rdma_establish(c));
	ck_ok(rdma_disconnect(c));
	receive_int(o.fd);
	expect_nothing(c->channel, 20);
	kill_it(o);
	pass(c->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	pass(c->channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	end_id(c, true);
}
END_TEST

static void datagram_server(int fd, void *arg)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *l = listen_on(SA(&a), RDMA_PS_UDP, 0);

	(void)arg;
	send_int(fd, port_of(l));
	next_request(l);
	send_int(fd, 1);
	pause();
}

/* A UD server is killed before it answers: the client gets UNREACHABLE. */
START_TEST(datagram_server_before_accept)
{
	struct other o = spawn(datagram_server, NULL);
	struct sockaddr_in a = ip4(receive_int(o.fd));
	struct rdma_cm_id *c = client_to(SA(&a), RDMA_PS_UDP);

	start_connect(c);
	receive_int(o.fd);
	kill_it(o);
	pass(c->channel, RDMA_CM_EVENT_UNREACHABLE, SIDR_REJECT);
	end_id(c, true);
}
END_TEST

static void small_server(int fd, void *arg)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *l = listen_on(SA(&a), RDMA_PS_TCP, 1);

	(void)arg;
	send_int(fd, port_of(l));
	pause();
}

/* Requests that wait for backlog of a killed server find no listener. */
START_TEST(server_with_full_backlog)
{
	struct other o = spawn(small_server, NULL);
	struct sockaddr_in a = ip4(receive_int(o.fd));
	struct rdma_cm_id *c[3];
	int i;

	for (i = 0; i < 3; i++) {
		c[i] = client_to(SA(&a), RDMA_PS_TCP);
		start_connect(c[i]);
	}
	kill_it(o);
	pass(c[0]->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	pass(c[1]->channel, RDMA_CM_EVENT_REJECTED, REJ_NO_LISTENER);
	pass(c[2]->channel, RDMA_CM_EVENT_REJECTED, REJ_NO_LISTENER);
	for (i = 0; i < 3; i++)
		end_id(c[i], true);
}
END_TEST

static void *sleeper(void *ch)
{
	struct rdma_cm_event *e;

	ck_ok(rdma_get_cm_event(ch, &e));
	ck_assert_int_eq(e->event, RDMA_CM_EVENT_DISCONNECTED);
	ck_ok(rdma_ack_cm_event(e));
	return NULL;
}

/* A thread that sleeps in rdma_get_cm_event() gets DISCONNECTED. */
START_TEST(wakes_a_sleeping_thread)
{
	struct rdma_cm_id *c;
	struct other o = start(ESTABLISHED, &c);
	pthread_t thread;

	ck_ok(pthread_create(&thread, NULL, sleeper, c->channel));
	kill_it(o);
	ck_ok(pthread_join(thread, NULL));
	end_id(c, true);
}
END_TEST

/* A killed listener gets no requests, and its port is free. */
START_TEST(listener_is_gone)
{
	enum stage until = LISTENING;
	struct other o = spawn(server, &until);
	int port = receive_int(o.fd);
	struct sockaddr_in a = ip4(port);
	struct rdma_cm_id *c, *l;

	receive_int(o.fd);
	kill_it(o);
	c = client_to(SA(&a), RDMA_PS_TCP);
	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_NO_LISTENER);
	end_id(c, true);
	/* its port can be bound again */
	l = listen_on(SA(&a), RDMA_PS_TCP, 0);
	end_id(l, true);
}
END_TEST

/* ------------------------------------------------------------ clients */

struct plan {
	enum stage until;
	int port;
};

static void client(int fd, void *arg)
{
	const struct plan *p = arg;
	struct sockaddr_in a = ip4(p->port);
	struct rdma_cm_id *c = client_to(SA(&a), RDMA_PS_TCP);

	give_qp(c);
	start_connect(c);
	if (p->until == ESTABLISHED)
		pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	send_int(fd, 1);
	pause();
}

static struct rdma_cm_id *listener(struct plan *p)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *l;

	/*
	 * clients use librdmacm state that they inherit, which stays
	 * allocated
	 */
	may_leak();
	l = listen_on(SA(&a), RDMA_PS_TCP, 0);
	p->port = port_of(l);
	return l;
}

/* The client is killed when connected: the server gets DISCONNECTED. */
START_TEST(client_after_established)
{
	struct plan p = { .until = ESTABLISHED };
	struct rdma_cm_id *l = listener(&p), *s;
	struct other o = spawn(client, &p);

	s = next_request(l);
	give_qp(s);
	accept_it(s);
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	receive_int(o.fd);
	kill_it(o);
	pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_id(s, false);
	end_id(l, true);
}
END_TEST

/* The client is killed before the REP: rdma_accept() fails with EINVAL. */
START_TEST(client_before_accept)
{
	struct plan p = { .until = REQUESTED };
	struct rdma_cm_id *l = listener(&p), *s;
	struct rdma_conn_param cp = param(NULL, 0);
	struct other o = spawn(client, &p);

	s = next_request(l);
	receive_int(o.fd);
	kill_it(o);
	await_port(ntohs(rdma_get_dst_port(s)));
	ck_fails(rdma_accept(s, &cp), EINVAL);
	expect_nothing(l->channel, 0);
	end_id(s, false);
	end_id(l, true);
}
END_TEST

/* The client is killed before its RTU: the server gets REJECTED. */
START_TEST(client_before_confirming)
{
	struct plan p = { .until = REQUESTED };
	struct rdma_cm_id *l = listener(&p), *s;
	struct other o = spawn(client, &p);

	s = next_request(l);
	receive_int(o.fd);
	accept_it(s);
	kill_it(o);
	pass(l->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	end_id(s, false);
	end_id(l, true);
}
END_TEST

/* ------------------------------------------------------------ others */

static void closer(int fd, void *arg)
{
	const struct plan *p = arg;
	struct sockaddr_in a = ip4(p->port);
	struct rdma_cm_id *c = client_to(SA(&a), RDMA_PS_TCP);

	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	ck_ok(rdma_establish(c));
	receive_int(fd);
	/* the process continues without its channel */
	close(c->channel->fd);
	receive_int(fd);
}

/*
 * A process closes the descriptor of its channel: its peer gets DISCONNECTED.
 */
START_TEST(channel_closed)
{
	struct plan p = { 0 };
	struct rdma_cm_id *l = listener(&p), *s;
	struct other o = spawn(closer, &p);

	s = next_request(l);
	accept_it(s);
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	send_int(o.fd, 1);
	pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	send_int(o.fd, 1);
	finish(o);
	end_id(s, false);
	end_id(l, true);
}
END_TEST

/*
 * A client that for a while has no free descriptor to open the FIFO of the
 * listener's channel with.
 */
static void poor(int fd, void *arg)
{
	const struct plan *p = arg;
	struct sockaddr_in a = ip4(p->port);
	struct rdma_cm_id *c = client_to(SA(&a), RDMA_PS_TCP);
	struct rlimit limit, none;

	ck_ok(getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = 3;
	ck_ok(setrlimit(RLIMIT_NOFILE, &none));
	start_connect(c);
	usleep(50000);
	ck_ok(setrlimit(RLIMIT_NOFILE, &limit));
	receive_int(fd);
}

/* A listener gets a REQ whose sender had no free descriptor. */
START_TEST(out_of_descriptors)
{
	struct plan p = { 0 };
	struct rdma_cm_id *l = listener(&p);
	struct other o = spawn(poor, &p);

	end_id(next_request(l), false);
	send_int(o.fd, 1);
	finish(o);
	end_id(l, true);
}
END_TEST

/* A process with many connections, each on a channel of its own. */
static void group(int fd, void *arg)
{
	const struct plan *p = arg;
	struct sockaddr_in a = ip4(p->port);
	struct rdma_cm_id *c;
	int i;

	for (i = 0; i < 100; i++) {
		c = client_to(SA(&a), RDMA_PS_TCP);
		start_connect(c);
		pass(c->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		ck_ok(rdma_establish(c));
	}
	send_int(fd, 1);
	pause();
}

/* A process with 100 connections is killed: each peer gets DISCONNECTED. */
START_TEST(many_connections)
{
	struct plan p = { 0 };
	struct rdma_cm_id *l = listener(&p), *s[100];
	struct other o = spawn(group, &p);
	int i;

	for (i = 0; i < 100; i++) {
		s[i] = next_request(l);
		accept_it(s[i]);
		pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	}
	receive_int(o.fd);
	kill_it(o);
	for (i = 0; i < 100; i++)
		pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	for (i = 0; i < 100; i++)
		end_id(s[i], false);
	end_id(l, true);
}
END_TEST

static void next_event(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *e;

	if (!rdma_get_cm_event(ch, &e))
		rdma_ack_cm_event(e);
}

/*
 * Without Check's macros: they write to a file that all processes share, and
 * a process killed during such a write would damage it.
 */
static void busy(int fd, void *arg)
{
	const struct plan *p = arg;
	struct sockaddr_in a = ip4(p->port);
	struct rdma_conn_param none = { 0 };
	struct rdma_event_channel *ch;
	struct rdma_cm_id *c;

	send_int(fd, 1);
	for (;;) {
		ch = rdma_create_event_channel();
		if (!ch || rdma_create_id(ch, &c, NULL, RDMA_PS_TCP) ||
		    rdma_resolve_addr(c, NULL, SA(&a), 1000))
			_exit(1);
		next_event(ch);
		rdma_resolve_route(c, 1000);
		next_event(ch);
		rdma_connect(c, &none);
		rdma_destroy_id(c);
		rdma_destroy_event_channel(ch);
	}
}

/*
 * Processes are killed at random points, also while they hold the lock of the
 * tables.  The listener continues to work.
 */
START_TEST(killed_at_random_points)
{
	struct plan p = { 0 };
	struct rdma_cm_id *l = listener(&p);
	struct rdma_cm_event *e;
	struct other o[3];
	int round, i;

	ck_ok(fcntl(l->channel->fd, F_SETFL, O_RDWR | O_NONBLOCK));
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 3; i++) {
			o[i] = spawn(busy, &p);
			receive_int(o[i].fd);
		}
		usleep((useconds_t)(20000 + random() % 5000));
		for (i = 0; i < 3; i++)
			kill_it(o[i]);
		while (!rdma_get_cm_event(l->channel, &e)) {
			struct rdma_cm_id *s = e->id;

			ck_assert_int_eq(e->event,
					 RDMA_CM_EVENT_CONNECT_REQUEST);
			ck_ok(rdma_ack_cm_event(e));
			ck_ok(rdma_destroy_id(s));
		}
		ck_assert_int_eq(errno, EAGAIN);
	}
	end_id(l, true);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm death");

	add(s, server_after_established);
	add(s, server_after_accept);
	add(s, server_before_accept);
	add(s, server_before_get_event);
	add(s, server_after_disconnect);
	add(s, datagram_server_before_accept);
	add(s, server_with_full_backlog);
	add(s, wakes_a_sleeping_thread);
	add(s, listener_is_gone);
	add(s, client_after_established);
	add(s, client_before_accept);
	add(s, client_before_confirming);
	add(s, channel_closed);
	add(s, out_of_descriptors);
	add(s, many_connections);
	add(s, killed_at_random_points);
	return run_suite(s);
}

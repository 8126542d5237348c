// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Beside the host's rdma_cm.  host/kernel.c plays the host: an address in
 * 198.51.100.0/24 is reached through it, and so are listeners at it, which
 * are those of the same programs.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"

#define HERE 0
#define THERE 1

#define FDS 1024 /* more than any test has open */

static struct sockaddr_in address(int side, int port)
{
	struct sockaddr_in a = ip4(port);

	if (side == THERE)
		inet_pton(AF_INET, "198.51.100.7", &a.sin_addr);
	return a;
}

static struct rdma_cm_id *listener(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port) };

	return listen_on(SA(&a), RDMA_PS_TCP, 0);
}

static struct rdma_cm_id *client(int side, struct rdma_cm_id *l)
{
	struct sockaddr_in a = address(side, port_of(l));

	return client_to(SA(&a), RDMA_PS_TCP);
}

/* What a descriptor of this process is; "" if there is none. */
static const char *what_is(int fd)
{
	static char to[512];
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, to, sizeof(to) - 1);
	to[n > 0 ? n : 0] = 0;
	return to;
}

/* Descriptors of the host's rdma_cm in this process; the last is *last. */
static int find_beside(int *last)
{
	const char *host = getenv("HOSTCM_DIR"), *what;
	int fd, flags, found = 0;

	for (fd = 3; fd < FDS; fd++) {
		what = what_is(fd);
		if (strncmp(what, host, strlen(host)) ||
		    !strstr(what, "/cm.d/"))
			continue;
		flags = fcntl(fd, F_GETFD);
		if (flags < 0)
			continue; /* it has just been closed */
		ck_assert_int_eq(flags, FD_CLOEXEC);
		found++;
		*last = fd;
	}
	return found;
}

static int beside(void)
{
	int last;

	return find_beside(&last);
}

/* They are closed by a thread: soon, not at once. */
static void expect_beside(int want)
{
	int i;

	for (i = 0; i < 500 && beside() != want; i++)
		usleep(10000);
	ck_assert_int_eq(beside(), want);
}

/* Takes the request at l, whose channel may be another's by now. */
static void serve(struct rdma_cm_id *l, struct rdma_cm_id *c)
{
	struct rdma_cm_id *s = next_request(l);

	ck_assert_ptr_eq(s->verbs, c->verbs);
	give_qp(s);
	accept_it(s);
	pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_assert_int_eq(rdma_get_dst_port(s), rdma_get_src_port(c));
	ck_ok(rdma_disconnect(c));
	pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	ck_ok(rdma_disconnect(s));
	pass(c->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_id(s, false);
}

static void connect_to(int side, struct rdma_cm_id *l)
{
	struct rdma_cm_id *c = client(side, l);
	char name[32];

	inet_ntop(AF_INET, &c->route.addr.src_sin.sin_addr, name, sizeof(name));
	ck_assert_int_eq(!strcmp(name, "198.51.100.1"), side == THERE);
	give_qp(c);
	start_connect(c);
	serve(l, c);
	end_id(c, true);
}

/* A listener that is bound to no address hears both. */
START_TEST(both_sides)
{
	struct rdma_cm_id *l = listener(0);

	connect_to(HERE, l);
	connect_to(THERE, l);
	connect_to(HERE, l);
	end_id(l, true);
}
END_TEST

START_TEST(chosen_port)
{
	struct rdma_cm_id *l = listener(7471);

	connect_to(THERE, l);
	connect_to(HERE, l);
	end_id(l, true);
}
END_TEST

/* To listen without binding is to bind. */
START_TEST(unbound)
{
	struct rdma_cm_id *l = new_id(new_channel(), RDMA_PS_TCP);

	ck_ok(rdma_listen(l, 0));
	connect_to(THERE, l);
	connect_to(HERE, l);
	end_id(l, true);
}
END_TEST

/* An address of this machine is not the host's here: it has no such device. */
START_TEST(bound_to_here)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *l = listen_on(SA(&a), RDMA_PS_TCP, 0), *c;

	connect_to(HERE, l);
	c = client(THERE, l);
	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_NO_LISTENER);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

/* And one that is the host's is not ours. */
START_TEST(bound_to_there)
{
	struct sockaddr_in a = address(THERE, 0);
	struct rdma_cm_id *l = listen_on(SA(&a), RDMA_PS_TCP, 0), *c;

	ck_assert_int_ne(port_of(l), 0);
	connect_to(THERE, l);
	c = client(HERE, l);
	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_NO_LISTENER);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

/*
 * The host's own applications have ports, too.  CREATE_ID and BIND_IP, as
 * <rdma/rdma_user_cm.h> has them, which does not go with rdma_cma.h.
 */
static int bind_at_host(int port)
{
	uint32_t id;
	struct {
		uint32_t cmd;
		uint16_t in, out;
		uint64_t uid, response;
		uint16_t ps;
		uint8_t pad[6];
	} create = { 0, 24, 4, 1, (uintptr_t)&id, RDMA_PS_TCP, { 0 } };
	struct {
		uint32_t cmd;
		uint16_t in, out;
		uint64_t response;
		struct sockaddr_in addr;
		uint8_t pad[sizeof(struct sockaddr_in6) -
			    sizeof(struct sockaddr_in)];
		uint32_t id;
	} bind = { 2, 40, 0, 0, { .sin_family = AF_INET }, { 0 }, 0 };
	int fd;

	ck_ok(setenv("URXE_RDMA_CM", "host", 1));
	fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	ck_ok(unsetenv("URXE_RDMA_CM"));
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, &create, sizeof(create)), sizeof(create));
	bind.id = id;
	bind.addr.sin_port = htons((uint16_t)port);
	ck_assert_int_eq(write(fd, &bind, sizeof(bind)), sizeof(bind));
	return fd;
}

START_TEST(port_taken)
{
	int fd = bind_at_host(7472);
	struct rdma_cm_id *id = new_id(new_channel(), RDMA_PS_TCP);
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(7472) };

	ck_fails(rdma_bind_addr(id, SA(&a)), EADDRNOTAVAIL);
	/* nothing of it is left */
	a.sin_port = htons(7473);
	ck_ok(rdma_bind_addr(id, SA(&a)));
	ck_assert_int_eq(port_of(id), 7473);
	ck_ok(rdma_listen(id, 0));
	connect_to(THERE, id);
	connect_to(HERE, id);
	end_id(id, true);
	close(fd);
}
END_TEST

/* What has become ours is the host's no more. */
START_TEST(decided)
{
	struct rdma_cm_id *c = new_id(new_channel(), RDMA_PS_TCP);
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_port = htons(7476) };
	struct sockaddr_in a = address(HERE, 7471);

	ck_ok(rdma_bind_addr(c, SA(&any)));
	ck_ok(rdma_resolve_addr(c, NULL, SA(&a), 1000));
	pass(c->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	close(bind_at_host(7476));
	end_id(c, true);
}
END_TEST

/* Options reach both: else the second one could not be bound at the host. */
START_TEST(options)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(7475) };
	struct rdma_cm_id *id[2];
	int i, one = 1;

	for (i = 0; i < 2; i++) {
		id[i] = new_id(new_channel(), RDMA_PS_TCP);
		ck_ok(rdma_set_option(id[i], RDMA_OPTION_ID,
				      RDMA_OPTION_ID_REUSEADDR, &one,
				      sizeof(one)));
		ck_ok(rdma_bind_addr(id[i], SA(&a)));
	}
	for (i = 0; i < 2; i++)
		end_id(id[i], true);
}
END_TEST

/* Requests of the host's take no place in our backlog, and give none back. */
START_TEST(backlog)
{
	struct rdma_cm_id *l = new_id(new_channel(), RDMA_PS_TCP), *c[3];
	int i;

	ck_ok(rdma_listen(l, 1));
	for (i = 0; i < 3; i++) {
		c[i] = client(i ? HERE : THERE, l);
		start_connect(c[i]);
		if (!i)
			ck_ok(rdma_destroy_id(next_request(l)));
	}
	end_id(l, true);
	pass(c[0]->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	pass(c[1]->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	pass(c[2]->channel, RDMA_CM_EVENT_REJECTED, REJ_NO_LISTENER);
	for (i = 0; i < 3; i++)
		end_id(c[i], true);
}
END_TEST

/* Nobody's address: what the host says of it.  Then another one. */
START_TEST(unreachable)
{
	struct rdma_cm_id *l = listener(0);
	struct rdma_cm_id *c = new_id(new_channel(), RDMA_PS_TCP);
	struct sockaddr_in a = address(THERE, port_of(l));

	inet_pton(AF_INET, "192.0.2.1", &a.sin_addr);
	ck_fails(rdma_resolve_addr(c, NULL, SA(&a), 1000), ENETUNREACH);
	inet_pton(AF_INET, "203.0.113.1", &a.sin_addr);
	ck_ok(rdma_resolve_addr(c, NULL, SA(&a), 1000));
	pass(c->channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	a = address(HERE, port_of(l));
	ck_ok(rdma_resolve_addr(c, NULL, SA(&a), 1000));
	pass(c->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_ok(rdma_resolve_route(c, 1000));
	pass(c->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	give_qp(c);
	start_connect(c);
	serve(l, c);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

START_TEST(private_data)
{
	struct rdma_cm_id *l = listener(0), *c = client(THERE, l), *s;
	struct rdma_conn_param p = param("hello", 5);
	struct rdma_cm_event *e;

	ck_ok(rdma_connect(c, &p));
	e = expect(l->channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	ck_assert_str_eq(e->param.conn.private_data, "hello");
	s = e->id;
	ck_ok(rdma_ack_cm_event(e));
	ck_ok(rdma_reject(s, "no", 2));
	e = expect(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	ck_assert_str_eq(e->param.conn.private_data, "no");
	ck_ok(rdma_ack_cm_event(e));
	end_id(s, false);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

START_TEST(datagram)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct rdma_cm_id *l = listen_on(SA(&a), RDMA_PS_UDP, 0), *c, *s;
	struct rdma_conn_param p = { .private_data = NULL };
	struct rdma_cm_event *e;

	a = address(THERE, port_of(l));
	c = client_to(SA(&a), RDMA_PS_UDP);
	give_qp(c);
	ck_ok(rdma_connect(c, &p));
	s = next_request(l);
	give_qp(s);
	p.qp_num = s->qp->qp_num;
	ck_ok(rdma_accept(s, &p));
	e = expect(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_assert_uint_eq(e->param.ud.qp_num, s->qp->qp_num);
	ck_ok(rdma_ack_cm_event(e));
	end_id(c, true);
	end_id(s, false);
	end_id(l, true);
}
END_TEST

static void join(struct sockaddr_in *towards)
{
	struct rdma_cm_id *id = new_id(new_channel(), RDMA_PS_UDP);
	struct sockaddr_in group = *towards;
	struct rdma_cm_event *e;
	int mark;

	inet_pton(AF_INET, "239.1.2.3", &group.sin_addr);
	ck_ok(rdma_resolve_addr(id, NULL, SA(towards), 1000));
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	give_qp(id);
	ck_ok(rdma_join_multicast(id, SA(&group), &mark));
	e = expect(id->channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	ck_assert_ptr_eq(e->id, id);
	ck_assert_ptr_eq(e->param.ud.private_data, &mark);
	ck_ok(rdma_ack_cm_event(e));
	ck_ok(rdma_leave_multicast(id, SA(&group)));
	/* one that ends with its id, its event unread */
	ck_ok(rdma_join_multicast(id, SA(&group), &mark));
	end_id(id, true);
}

/* Groups of an id that the host has are the host's; others are ours. */
START_TEST(multicast)
{
	struct sockaddr_in here = address(HERE, 7474);
	struct sockaddr_in there = address(THERE, 7474), group = here;

	join(&here);
	join(&there);
	inet_pton(AF_INET, "239.1.2.3", &group.sin_addr);
	join(&group);
}
END_TEST

/* ---------------------------------------------------------------- events */

START_TEST(nonblocking)
{
	struct rdma_cm_id *l = listener(0), *c = client(THERE, l), *s;
	struct rdma_cm_event *e;
	int fd = l->channel->fd;

	ck_ok(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
	ck_fails(rdma_get_cm_event(l->channel, &e), EAGAIN);
	start_connect(c);
	/* there is no need to wait for whoever wakes pollers */
	ck_ok(rdma_get_cm_event(l->channel, &e));
	ck_assert_int_eq(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	s = e->id;
	ck_ok(rdma_ack_cm_event(e));
	ck_ok(rdma_destroy_id(s));
	ck_fails(rdma_get_cm_event(l->channel, &e), EAGAIN);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

static void *wait_request(void *channel)
{
	struct rdma_cm_event *e;

	ck_ok(rdma_get_cm_event(channel, &e));
	ck_assert_int_eq(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	ck_ok(rdma_ack_cm_event(e));
	return NULL;
}

START_TEST(sleeper)
{
	struct rdma_cm_id *l = listener(0), *c = client(THERE, l);
	pthread_t t;

	may_leak();
	ck_ok(pthread_create(&t, NULL, wait_request, l->channel));
	usleep(100000);
	start_connect(c);
	ck_ok(pthread_join(t, NULL));
	end_id(c, true);
	end_id(l, true);
}
END_TEST

/* More events than are taken from the host ahead of time. */
START_TEST(many)
{
	enum { N = 200 };
	struct rdma_cm_id *l = listener(0), *c[N], *s;
	int i;

	for (i = 0; i < N; i++)
		c[i] = client(THERE, l);
	for (i = 0; i < N; i++)
		start_connect(c[i]);
	for (i = 0; i < N; i++) {
		s = next_request(l);
		ck_assert_int_eq(rdma_get_dst_port(s), rdma_get_src_port(c[i]));
		ck_ok(rdma_destroy_id(s));
		pass(c[i]->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
		end_id(c[i], true);
	}
	expect_nothing(l->channel, 50);
	end_id(l, true);
}
END_TEST

START_TEST(migrate)
{
	struct rdma_event_channel *from = new_channel(), *to = new_channel();
	struct rdma_cm_id *l = new_id(from, RDMA_PS_TCP), *c;
	struct sockaddr_in a = { .sin_family = AF_INET };

	/* one that both have */
	ck_ok(rdma_bind_addr(l, SA(&a)));
	ck_ok(rdma_listen(l, 0));
	c = client(THERE, l);
	start_connect(c);
	usleep(50000);
	ck_ok(rdma_migrate_id(l, to));
	/* what waits goes with it; the other end sees it die with its channel
	 */
	ck_ok(rdma_destroy_id(next_request(l)));
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	end_id(c, true);
	rdma_destroy_event_channel(from);
	expect_beside(1);
	connect_to(THERE, l);
	connect_to(HERE, l);
	/* one that the host alone has */
	c = client(THERE, l);
	from = c->channel;
	ck_ok(rdma_migrate_id(c, to));
	rdma_destroy_event_channel(from);
	expect_beside(1);
	give_qp(c);
	start_connect(c);
	ck_ok(rdma_destroy_id(next_request(l)));
	pass(to, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	end_id(c, false);
	end_id(l, true);
}
END_TEST

/* -------------------------------------------------------------- endings */

/* Requests that nobody has fetched die with their listener. */
START_TEST(destroy)
{
	struct rdma_cm_id *l = listener(0), *c[3];
	int i;

	for (i = 0; i < 3; i++) {
		c[i] = client(THERE, l);
		start_connect(c[i]);
	}
	usleep(50000);
	end_id(l, false);
	for (i = 0; i < 3; i++) {
		pass(c[i]->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
		end_id(c[i], true);
	}
}
END_TEST

START_TEST(closed)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *l, *c;
	int copy, i;

	ch = new_channel();
	expect_beside(1);
	copy = dup(ch->fd);
	rdma_destroy_event_channel(ch);
	usleep(50000);
	ck_assert_int_eq(beside(), 1);
	close(copy);
	expect_beside(0);
	/* with all that is in it */
	l = listener(0);
	c = client(THERE, l);
	start_connect(c);
	usleep(50000);
	close(l->channel->fd);
	expect_beside(1);
	/* who plays the host looks for the dead when channels are opened */
	for (i = 0; i < 20; i++)
		new_channel();
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
}
END_TEST

/* Some programs close all that they do not know, and use the numbers. */
START_TEST(closed_by_others)
{
	enum { N = 32 };
	struct rdma_cm_id *l = listener(0), *c;
	struct sockaddr_in a = address(HERE, port_of(l));
	struct rdma_cm_event *e;
	struct pollfd p[2 * N];
	int fd, i, pair[2];

	expect_beside(1);
	for (fd = 3; fd < FDS; fd++)
		if (fd != l->channel->fd && (strstr(what_is(fd), "/cm.d/") ||
					     strstr(what_is(fd), "eventpoll")))
			close(fd);
	for (i = 0; i < N; i++) {
		ck_ok(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
		p[2 * i] = (struct pollfd){ pair[0], POLLIN, 0 };
		p[2 * i + 1] = (struct pollfd){ pair[1], POLLIN, 0 };
	}
	/* the host is gone, and we are not */
	fd = l->channel->fd;
	ck_ok(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
	ck_fails(rdma_get_cm_event(l->channel, &e), EAGAIN);
	c = client_to(SA(&a), RDMA_PS_TCP);
	start_connect(c);
	ck_ok(rdma_destroy_id(next_request(l)));
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	end_id(c, true);
	end_id(l, true);
	/* nothing was written to what is there now, nor was it closed */
	ck_assert_int_eq(poll(p, 2 * N, 100), 0);
	/* other channels have the host again */
	l = listener(0);
	connect_to(THERE, l);
	end_id(l, true);
	expect_beside(0);
}
END_TEST

/* Such a number may become that of another channel's. */
START_TEST(number_again)
{
	struct rdma_event_channel *ch = new_channel();
	int low, number, again;
	struct rdma_cm_id *l;

	expect_beside(1);
	find_beside(&number);
	while ((low = dup(0)) < number)
		;
	close(low);
	low = 0; /* the standard input is not used */
	/* the lowest one is the channel's own, the next one the host's */
	close(number);
	close(low);
	l = listener(0);
	expect_beside(1);
	find_beside(&again);
	ck_assert_int_eq(again, number);
	rdma_destroy_event_channel(ch);
	usleep(50000);
	connect_to(THERE, l);
	end_id(l, true);
	expect_beside(0);
}
END_TEST

/* ------------------------------------------------------------ processes */

/* Its first call is poll: nothing has been asked of the library before. */
static void child_serves(int fd, void *arg)
{
	struct rdma_cm_id *l = arg, *s;

	tell(fd, 1);
	hear(fd);
	s = next_request(l);
	accept_it(s);
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	tell(fd, 1);
	pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
}

START_TEST(forked)
{
	struct rdma_cm_id *l = listener(0), *c;
	struct other o = spawn(child_serves, l);

	hear(o.fd);
	c = client(THERE, l);
	start_connect(c);
	tell(o.fd, 1);
	pass(c->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	ck_ok(rdma_establish(c));
	hear(o.fd);
	end_id(c, true);
	finish(o);
}
END_TEST

/* A daemon: who has opened the channel exits. */
static void parent_of_daemon(int fd, void *arg)
{
	struct rdma_cm_id *l = listener(0);

	(void)arg;
	tell(fd, port_of(l));
	if (!fork()) {
		child_serves(fd, l);
		tell(fd, 2);
	}
}

START_TEST(daemonized)
{
	struct other o = spawn(parent_of_daemon, NULL);
	struct sockaddr_in a = address(THERE, hear(o.fd));
	struct rdma_cm_id *c;
	int daemon;

	hear(o.fd);
	daemon = dup(o.fd);
	finish(o);
	c = client_to(SA(&a), RDMA_PS_TCP);
	tell(daemon, 1);
	usleep(100000); /* it sleeps in poll now */
	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	ck_ok(rdma_establish(c));
	hear(daemon);
	end_id(c, true);
	ck_assert_int_eq(hear(daemon), 2);
	close(daemon);
}
END_TEST

static void server(int fd, void *arg)
{
	struct rdma_cm_id *l = listener(0);

	(void)arg;
	tell(fd, port_of(l));
	accept_it(next_request(l));
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	tell(fd, 1);
	pause();
}

START_TEST(killed)
{
	struct other o = spawn(server, NULL);
	struct sockaddr_in a = address(THERE, hear(o.fd));
	struct rdma_cm_id *c = client_to(SA(&a), RDMA_PS_TCP);

	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	ck_ok(rdma_establish(c));
	hear(o.fd);
	kill_it(o);
	pass(c->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_id(c, true);
}
END_TEST

/* Without --with-host-devices. */
START_TEST(hidden)
{
	struct rdma_cm_id *l = listener(0), *c = client(HERE, l);
	struct rdma_cm_id *far = new_id(new_channel(), RDMA_PS_TCP);
	struct sockaddr_in a = address(THERE, port_of(l));

	start_connect(c);
	ck_ok(rdma_destroy_id(next_request(l)));
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	if (!rdma_resolve_addr(far, NULL, SA(&a), 1000))
		pass(far->channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	ck_assert_int_eq(beside(), 0);
	end_id(far, true);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("cm beside the host's");

	if (argc > 1 && !strcmp(argv[1], "hidden")) {
		add(s, hidden);
		return run_suite(s);
	}
	add(s, both_sides);
	add(s, chosen_port);
	add(s, unbound);
	add(s, bound_to_here);
	add(s, bound_to_there);
	add(s, port_taken);
	add(s, decided);
	add(s, options);
	add(s, backlog);
	add(s, unreachable);
	add(s, private_data);
	add(s, datagram);
	add(s, multicast);
	add(s, nonblocking);
	add(s, sleeper);
	add(s, many);
	add(s, migrate);
	add(s, destroy);
	add(s, closed);
	add(s, closed_by_others);
	add(s, number_again);
	add(s, forked);
	add(s, daemonized);
	add(s, killed);
	return run_suite(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The character devices for management datagrams, by their system calls:
 * agents, delivery, timeouts, lengths and errors are those of the kernel
 * (drivers/infiniband/core/user_mad.c).  umad50 is that of urxe0, with LID 1.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "packet.h"

#define PING_CLASS 0x32 /* a vendor class, with an OUI */
#define NODE_INFO 0x11
#define NODE_RECORD 0x11
#define UNSUPPORTED 0x0c

/* ------------------------------------------------------- devices */

START_TEST(device_files)
{
	struct packet p;
	struct stat st;
	int fd;

	ck_assert_int_eq(stat("/dev/infiniband/umad50", &st), 0);
	ck_assert(S_ISCHR(st.st_mode));
	ck_assert_uint_eq(major(st.st_rdev), 231);
	ck_assert_int_eq(stat("/dev/infiniband/issm51", &st), 0);
	ck_assert(S_ISCHR(st.st_mode));
	/* an Ethernet device has none */
	ck_assert_int_eq(stat("/dev/infiniband/umad52", &st), -1);
	fd = open_umad("/dev/infiniband/umad50", O_NONBLOCK);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
	ck_assert(!readable(fd, 0));
	ck_assert_int_eq(read(fd, &p, sizeof(p)), -1);
	ck_assert_int_eq(errno, EAGAIN);
	close(fd);
}
END_TEST

/* One process at a time is the subnet manager of a port. */
START_TEST(issm)
{
	const char *name = "/dev/infiniband/issm50";
	int fd = open(name, O_RDWR | O_NONBLOCK), other;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(open(name, O_RDWR | O_NONBLOCK), -1);
	ck_assert_int_eq(errno, EAGAIN);
	other = open("/dev/infiniband/issm51", O_RDWR | O_NONBLOCK);
	ck_assert_int_ge(other, 0);
	close(fd);
	fd = open(name, O_RDWR | O_NONBLOCK);
	ck_assert_int_ge(fd, 0);
	close(fd);
	close(other);
}
END_TEST

/* ------------------------------------------------------- agents */

START_TEST(registration)
{
	int fd = open_umad("/dev/infiniband/umad50", 0), i;
	int other = open_umad("/dev/infiniband/umad50", 0);
	int far = open_umad("/dev/infiniband/umad51", 0);
	uint32_t id;

	ck_assert_int_eq(try_register(fd, 2, 1, 0, 0), -EINVAL);
	ck_assert_int_eq(try_register(fd, 1, 3, 0, 2), -EINVAL);
	ck_assert_int_eq(try_register(fd, 1, 1, 0, 0), -EINVAL);
	ck_assert_int_eq(try_register(fd, 0, 4, 0, 0), -EINVAL);
	ck_assert_int_eq(try_register(fd, 1, 0x60, 0, 0), -EINVAL);
	ck_assert_int_eq(try_register(fd, 1, 4, 0, 1), -EINVAL);
	id = (uint32_t)register_agent(fd, 1, PING_CLASS, GET, 0);
	/* one agent of a port receives a method of a class */
	ck_assert_int_eq(try_register(other, 1, PING_CLASS, GET, 0), -EINVAL);
	register_agent(other, 1, PING_CLASS, 0, 0);
	register_agent(far, 1, PING_CLASS, GET, 0);
	ck_assert_int_eq(ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &id), 0);
	ck_assert_int_eq(ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &id), -1);
	ck_assert_int_eq(errno, EINVAL);
	register_agent(other, 1, PING_CLASS, GET, 0);
	/* 32 agents of a descriptor */
	for (i = 0; i < 32; i++)
		register_agent(fd, 1, 4, 0, 0);
	ck_assert_int_eq(try_register(fd, 1, 4, 0, 0), -ENOMEM);
	close(fd);
	close(other);
	close(far);
}
END_TEST

/* The second form of the registration, and its flags. */
START_TEST(registration2)
{
	struct ib_user_mad_reg_req2 req = { .qpn = 1,
					    .mgmt_class = PING_CLASS,
					    .mgmt_class_version = 1,
					    .method_mask = { 1u << GET },
					    .oui = 0x1405 };
	int fd = open_umad("/dev/infiniband/umad50", 0);
	int server, client = open_umad("/dev/infiniband/umad51", 0);
	struct packet p;

	req.flags = 0x80000000;
	ck_assert_int_eq(ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &req), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_uint_eq(req.flags, IB_USER_MAD_REG_FLAGS_CAP);
	req.flags = 0;
	req.oui = 0x1000000;
	ck_assert_int_eq(ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &req), -1);
	req.oui = 0x1405;
	ck_assert_int_eq(ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &req), 0);
	server = (int)req.id;
	p = request(register_agent(client, 1, PING_CLASS, 0, 0), 1, PING_CLASS,
		    GET, 0);
	send_packet(client, &p);
	p = receive(fd);
	ck_assert_int_eq((int)p.hdr.id, server);
	close(fd);
	close(client);
}
END_TEST

/* ------------------------------------------------------- delivery */

/* The agents of a port answer at once. */
START_TEST(built_in)
{
	int fd = open_umad("/dev/infiniband/umad50", 0);
	struct packet p =
		request(register_agent(fd, 0, 1, 0, 0), 2, 1, GET, NODE_INFO);

	send_packet(fd, &p);
	p = receive(fd);
	ck_assert_uint_eq(p.hdr.status, 0);
	ck_assert_uint_eq(be16toh(p.hdr.lid), 2);
	ck_assert_uint_eq(p.mad[3], GET_RESPONSE);
	ck_assert_uint_eq(p.mad[15], 0x77);
	ck_assert_uint_eq(status_of(&p), 0);
	ck_assert_uint_eq(p.mad[64 + 2], 1); /* NodeType: a CA */
	/* an attribute that it lacks */
	p = request((int)p.hdr.id, 2, 1, GET, 0xff90);
	send_packet(fd, &p);
	p = receive(fd);
	ck_assert_uint_eq(status_of(&p), UNSUPPORTED);
	close(fd);
}
END_TEST

/* A request reaches the agent of another device, and its response returns. */
START_TEST(to_another_program)
{
	int server = open_umad("/dev/infiniband/umad51", 0);
	int client = open_umad("/dev/infiniband/umad50", 0);
	int id = register_agent(client, 1, PING_CLASS, 0, 0);
	struct packet p, q;

	register_agent(server, 1, PING_CLASS, GET, 0);
	p = request(id, 2, PING_CLASS, GET, 0);
	p.mad[100] = 42;
	send_packet(client, &p);
	q = receive(server);
	ck_assert_uint_eq(be16toh(q.hdr.lid), 1);
	ck_assert_uint_eq(be32toh(q.hdr.qpn), 1);
	ck_assert_uint_eq(q.mad[100], 42);
	ck_assert(!readable(client, 10));
	q.mad[3] = GET_RESPONSE;
	q.mad[100] = 43;
	send_packet(server, &q);
	p = receive(client);
	ck_assert_int_eq((int)p.hdr.id, id);
	ck_assert_uint_eq(p.mad[100], 43);
	ck_assert_uint_eq(p.mad[15], 0x77);
	/* a second response belongs to no request */
	send_packet(server, &q);
	ck_assert(!readable(client, 10));
	close(server);
	close(client);
}
END_TEST

/* A Get for which no agent has registered is refused; others are lost. */
START_TEST(no_agent)
{
	int client = open_umad("/dev/infiniband/umad50", 0);
	int server = open_umad("/dev/infiniband/umad51", 0);
	int id = register_agent(client, 1, PING_CLASS, 0, 0);
	struct packet p = request(id, 2, PING_CLASS, GET, 0);

	send_packet(client, &p);
	p = receive(client);
	ck_assert_uint_eq(status_of(&p), UNSUPPORTED);
	/* an agent of another OUI does not receive it */
	register_agent(server, 1, PING_CLASS, GET, 0);
	p = request(id, 2, PING_CLASS, GET, 0);
	p.mad[39] = 6;
	send_packet(client, &p);
	p = receive(client);
	ck_assert_uint_eq(status_of(&p), UNSUPPORTED);
	ck_assert(!readable(server, 10));
	close(client);
	close(server);
}
END_TEST

/* ------------------------------------------------------- timeouts */

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* A request without a response returns with ETIMEDOUT, after its retries. */
START_TEST(timeout)
{
	int server = open_umad("/dev/infiniband/umad51", O_NONBLOCK), i;
	int client = open_umad("/dev/infiniband/umad50", 0);
	const double start = now_ms();
	struct packet p, q;

	register_agent(server, 1, PING_CLASS, GET, 0);
	p = request(register_agent(client, 1, PING_CLASS, 0, 0), _i ? 99 : 2,
		    PING_CLASS, GET, 0);
	p.hdr.timeout_ms = 30;
	p.hdr.retries = 2;
	p.mad[100] = 42;
	send_packet(client, &p);
	ck_assert(readable(client, PATIENCE_MS));
	/* the header of the request */
	ck_assert_int_eq(read(client, &q, sizeof(q)), sizeof(q.hdr) + 24);
	ck_assert(now_ms() - start >= 3 * 30);
	ck_assert_uint_eq(q.hdr.status, ETIMEDOUT);
	ck_assert_uint_eq(q.hdr.id, p.hdr.id);
	ck_assert_uint_eq(q.mad[3], GET);
	ck_assert_uint_eq(q.mad[15], 0x77);
	ck_assert(!readable(client, 50));
	/* it was sent three times, unless no port has the LID */
	for (i = 0; readable(server, 0); i++)
		q = receive(server);
	ck_assert_int_eq(i, _i ? 0 : 3);
	if (!_i) { /* too late */
		q.mad[3] = GET_RESPONSE;
		send_packet(server, &q);
		ck_assert(!readable(client, 10));
	}
	close(server);
	close(client);
}
END_TEST

/* The agents of a process that was killed receive nothing any more. */
START_TEST(killed_agent)
{
	int client, sync[2], status;
	struct packet p;
	pid_t pid;
	char c = 0;

	ck_assert_int_eq(pipe(sync), 0);
	pid = fork();
	if (!pid) {
		int fd = open_umad("/dev/infiniband/umad51", 0);

		register_agent(fd, 1, PING_CLASS, GET, 0);
		if (write(sync[1], &c, 1) == 1)
			pause();
		_exit(1);
	}
	ck_assert_int_eq(read(sync[0], &c, 1), 1);
	client = open_umad("/dev/infiniband/umad50", 0);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	p = request(register_agent(client, 1, PING_CLASS, 0, 0), 2, PING_CLASS,
		    GET, 0);
	send_packet(client, &p);
	p = receive(client);
	ck_assert_uint_eq(status_of(&p), UNSUPPORTED);
	close(client);
	close(sync[0]);
	close(sync[1]);
}
END_TEST

/* ------------------------------------------------------- lengths */

/* A query of all nodes, with RMPP; the response is longer than a MAD. */
static struct packet node_query(int fd)
{
	return request(register_agent(fd, 1, 3, 0, 1), 1, 3, GET_TABLE,
		       NODE_RECORD);
}

START_TEST(long_response)
{
	int fd = open_umad("/dev/infiniband/umad50", 0);
	struct packet p = node_query(fd);
	const size_t all = sizeof(p.hdr) + 56 + 3 * 112;
	struct {
		struct packet head;
		char rest[4096];
	} big;
	int i;

	send_packet(fd, &p);
	ck_assert(readable(fd, PATIENCE_MS));
	/* too short for one MAD; then for the message: it stays queued */
	ck_assert_int_eq(read(fd, &big, 319), -1);
	ck_assert_int_eq(errno, EINVAL);
	for (i = 0; i < 2; i++) {
		ck_assert(readable(fd, 0));
		ck_assert_int_eq(read(fd, &big, sizeof(p)), -1);
		ck_assert_int_eq(errno, ENOSPC);
		ck_assert_uint_eq(big.head.hdr.length, all);
	}
	ck_assert_int_eq(read(fd, &big, sizeof(big)), (ssize_t)all);
	/* the last record is that of the switch: NodeType 2 */
	ck_assert_uint_eq(big.head.mad[56 + 4 + 2], 1);
	ck_assert_uint_eq(((uint8_t *)&big)[all - 112 + 4 + 2], 2);
	ck_assert(!readable(fd, 0));
	close(fd);
}
END_TEST

START_TEST(bad_writes)
{
	int fd = open_umad("/dev/infiniband/umad50", 0);
	struct packet p =
		request(register_agent(fd, 0, 1, 0, 0), 1, 1, GET, NODE_INFO);

	ck_assert_int_eq(write(fd, &p, sizeof(p.hdr) + 35), -1);
	ck_assert_int_eq(errno, EINVAL);
	p.hdr.id = 1;
	ck_assert_int_eq(write(fd, &p, sizeof(p)), -1);
	ck_assert_int_eq(errno, EINVAL);
	p.hdr.id = 1000000;
	ck_assert_int_eq(write(fd, &p, sizeof(p)), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert(!readable(fd, 0));
	close(fd);
}
END_TEST

/* A directed route that leads nowhere, or has too many hops. */
START_TEST(bad_routes)
{
	static const uint8_t routes[][4] = {
		{ 1, 2 }, { 2, 1, 8 }, { 3, 1, 2, 1 }, { 64 }, { 255 },
	};
	int fd = open_umad("/dev/infiniband/umad50", 0);
	struct packet p = request(register_agent(fd, 0, 0x81, 0, 0), 0xffff,
				  0x81, GET, NODE_INFO);

	p.hdr.timeout_ms = 20;
	p.mad[7] = routes[_i][0];
	memcpy(p.mad + 129, routes[_i] + 1, 3);
	memset(p.mad + 32, 0xff, 4);
	send_packet(fd, &p);
	ck_assert(readable(fd, PATIENCE_MS));
	ck_assert_int_eq(read(fd, &p, sizeof(p)), sizeof(p.hdr) + 24);
	ck_assert_uint_eq(p.hdr.status, ETIMEDOUT);
	close(fd);
}
END_TEST

/* A response that is read after the timeout has come in time. */
START_TEST(slow_reader)
{
	const struct timespec pause = { 0, 600000000 };
	int fd = open_umad("/dev/infiniband/umad50", 0);
	struct packet p =
		request(register_agent(fd, 0, 1, 0, 0), 2, 1, GET, NODE_INFO);
	int i;

	p.hdr.timeout_ms = 500;
	for (i = 0; i < 400; i++) {
		p.mad[14] = (uint8_t)(i >> 8);
		p.mad[15] = (uint8_t)i;
		send_packet(fd, &p);
	}
	nanosleep(&pause, NULL);
	for (i = 0; i < 400; i++) {
		p = receive(fd);
		ck_assert_uint_eq(p.hdr.status, 0);
		ck_assert_int_eq(p.mad[14] << 8 | p.mad[15], i);
	}
	ck_assert(!readable(fd, 0));
	close(fd);
}
END_TEST

/*
 * A TID may be used again.  The request then has a timeout of its own, not that
 * of the first one, which was answered.
 */
START_TEST(same_tid)
{
	int fd = open_umad("/dev/infiniband/umad50", 0);
	struct packet p =
		request(register_agent(fd, 0, 1, 0, 0), 2, 1, GET, NODE_INFO);
	double start;

	p.hdr.timeout_ms = 200;
	send_packet(fd, &p);
	ck_assert_uint_eq(receive(fd).hdr.status, 0);
	p.hdr.lid = htobe16(99);
	p.hdr.timeout_ms = 2000;
	start = now_ms();
	send_packet(fd, &p);
	ck_assert(readable(fd, PATIENCE_MS));
	ck_assert_int_eq(read(fd, &p, sizeof(p)), sizeof(p.hdr) + 24);
	ck_assert_uint_eq(p.hdr.status, ETIMEDOUT);
	ck_assert(now_ms() - start >= 2000);
	close(fd);
}
END_TEST

/* A closed device, and an agent that was unregistered, get no timeouts. */
START_TEST(cancelled)
{
	int fd = open_umad("/dev/infiniband/umad50", 0);
	uint32_t id = (uint32_t)register_agent(fd, 1, PING_CLASS, 0, 0);
	struct packet p = request((int)id, 99, PING_CLASS, GET, 0);

	p.hdr.timeout_ms = 30;
	send_packet(fd, &p);
	if (_i) {
		ck_assert_int_eq(ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &id),
				 0);
	} else {
		close(fd);
		fd = open_umad("/dev/infiniband/umad50", 0);
	}
	register_agent(fd, 1, PING_CLASS, 0, 0);
	ck_assert(!readable(fd, 100));
	close(fd);
}
END_TEST

/*
 * A child sends while the parent has a request without an answer.  The thread
 * of the parent has reported another timeout before: with ASan, a child cannot
 * allocate memory if a thread of the parent did so during fork().
 */
START_TEST(forked)
{
	int fd = open_umad("/dev/infiniband/umad50", 0), own, status;
	struct packet p = request(register_agent(fd, 1, PING_CLASS, 0, 0), 99,
				  PING_CLASS, GET, 0),
		      q;
	pid_t pid;

	p.hdr.timeout_ms = 300;
	send_packet(fd, &p);
	p.mad[15] = 0x77;
	p.hdr.timeout_ms = 1;
	send_packet(fd, &p);
	ck_assert(readable(fd, PATIENCE_MS));
	ck_assert_int_eq(read(fd, &q, sizeof(q)), sizeof(q.hdr) + 24);
	ck_assert_uint_eq(q.hdr.status, ETIMEDOUT);
	pid = fork();
	if (!pid) {
		own = open_umad("/dev/infiniband/umad50", 0);
		p.hdr.id = (uint32_t)register_agent(own, 1, PING_CLASS, 0, 0);
		p.hdr.timeout_ms = 10;
		send_packet(own, &p);
		send_packet(own, &p);
		_exit(!readable(own, PATIENCE_MS));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert(readable(fd, PATIENCE_MS));
	close(fd);
}
END_TEST

/* Reads and writes that are shorter than a header do not reach the queue. */
START_TEST(short_calls)
{
	int fd = open_umad("/dev/infiniband/umad50", 0);
	struct packet p =
		request(register_agent(fd, 0, 1, 0, 0), 2, 1, GET, NODE_INFO);

	ck_assert_int_eq(write(fd, "abc", 3), -1);
	ck_assert_int_eq(errno, EINVAL);
	send_packet(fd, &p);
	ck_assert_int_eq(read(fd, &p, 16), -1);
	ck_assert_int_eq(errno, EINVAL);
	p = receive(fd);
	ck_assert_uint_eq(p.mad[3], GET_RESPONSE);
	close(fd);
}
END_TEST

/* Without the ioctl for P_Keys, the header has 56 bytes. */
START_TEST(short_header)
{
	int fd = open("/dev/infiniband/umad50", O_RDWR | O_CLOEXEC);
	struct packet p;
	uint8_t old[56 + MAD];

	ck_assert_int_ge(fd, 0);
	p = request(register_agent(fd, 0, 1, 0, 0), 1, 1, GET, NODE_INFO);
	memcpy(old, &p, 56);
	memcpy(old + 56, p.mad, MAD);
	ck_assert_int_eq(write(fd, old, sizeof(old)), sizeof(old));
	ck_assert(readable(fd, PATIENCE_MS));
	ck_assert_int_eq(read(fd, old, sizeof(old)), sizeof(old));
	ck_assert_uint_eq(old[56 + 3], GET_RESPONSE);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("umad");

	/* before the first process of the fabric creates it */
	setenv("URXE_DEVICES", "3", 1);
	setenv("URXE_LINK_LAYER", "infiniband,infiniband,ethernet", 1);
	add(s, device_files);
	add(s, issm);
	add(s, registration);
	add(s, registration2);
	add(s, built_in);
	add(s, to_another_program);
	add(s, no_agent);
	add_loop(s, timeout, 2);
	add(s, killed_agent);
	add(s, slow_reader);
	add(s, same_tid);
	add_loop(s, cancelled, 2);
	add(s, forked);
	add(s, short_calls);
	add(s, long_response);
	add(s, bad_writes);
	add_loop(s, bad_routes, 5);
	add(s, short_header);
	return run_cases(srunner_create(s));
}

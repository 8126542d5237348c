// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Events that the application writes, as rdma_write_cm_event() and
 * rdma_resolve_addrinfo() of rdma-core 60 do: command WRITE_CM_EVENT (24).
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw.h"

#define STATUS (-7)
#define ARG 0x1122334455667788ull
#define MANY 4096 /* queued events that fill a channel: docs/rdma_cm.md */

static int write_event(int fd, uint32_t id, uint32_t event, uint64_t arg)
{
	struct {
		uint32_t id, reserved, event;
		int32_t status;
		uint64_t arg;
		char rest[296]; /* room for the parameters of any event */
	} cmd = { .id = id, .event = event, .status = STATUS, .arg = arg };

	return raw_command(fd, WRITE_CM_EVENT, &cmd, sizeof(cmd), 0);
}

static void expect_written(int fd, uint32_t id, uint64_t uid, uint64_t arg)
{
	struct rdma_ucm_event_resp e = raw_next(fd, USER);
	uint64_t got;

	memcpy(&got, &e.param, sizeof(got));
	ck_assert_uint_eq(e.id, id);
	ck_assert_uint_eq(e.uid, uid);
	ck_assert_int_eq((int)e.status, STATUS);
	ck_assert_uint_eq(got, arg);
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

/*
 * Written events are delivered in order, only on the channel of their id, and
 * are counted as reported.
 */
START_TEST(written_events_delivered)
{
	const int ch = raw_open(), other = raw_open();
	const uint32_t id = raw_create(ch, RDMA_PS_TCP, 0, 5);

	ck_ok(write_event(ch, id, USER, ARG));
	ck_ok(raw_resolve(ch, id, ip4(9)));
	ck_ok(write_event(ch, id, INTERNAL, ARG + 1));
	ck_ok(write_event(ch, id, USER, ARG + 2));
	ck_assert(readable(ch));
	ck_assert(!readable(other));
	expect_written(ch, id, 5, ARG);
	raw_next(ch, ADDR_RESOLVED);
	raw_next(ch, INTERNAL);
	ck_assert(readable(ch));
	expect_written(ch, id, 5, ARG + 2);
	ck_assert(!readable(ch));
	ck_assert_uint_eq(raw_destroy(ch, id), 4);
	close(other);
	close(ch);
}
END_TEST

struct sleeper {
	int fd;
	uint32_t id;
	bool polls;
};

static void *sleep_for_event(void *arg)
{
	struct sleeper *s = arg;
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	if (s->polls)
		ck_assert_int_eq(poll(&p, 1, -1), 1);
	expect_written(s->fd, s->id, 1, ARG);
	return NULL;
}

static void write_from_child(const struct sleeper *s)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid)
		_exit(write_event(s->fd, s->id, USER, ARG) ? 1 : 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

/*
 * A written event wakes a thread in poll() or in GET_EVENT, also if another
 * process writes it.
 */
START_TEST(written_event_wakes)
{
	struct sleeper s = { .fd = raw_open(), .polls = _i & 1 };
	pthread_t t;

	s.id = raw_create(s.fd, RDMA_PS_TCP, 0, 1);
	ck_ok(pthread_create(&t, NULL, sleep_for_event, &s));
	usleep(50000);
	if (_i & 2)
		write_from_child(&s);
	else
		ck_ok(write_event(s.fd, s.id, USER, ARG));
	ck_ok(pthread_join(t, NULL));
	close(s.fd);
}
END_TEST

/*
 * Only USER and INTERNAL events can be written, and only to an id of the
 * channel.
 */
START_TEST(invalid_write_refused)
{
	const int ch = raw_open(), other = raw_open();
	const uint32_t id = raw_create(ch, RDMA_PS_TCP, 0, 1);
	uint32_t event;

	for (event = 0; event < 32; event++)
		if (event != USER && event != INTERNAL)
			ck_assert_int_eq(write_event(ch, id, event, 0),
					 -EINVAL);
	/* the event type is checked first */
	ck_assert_int_eq(write_event(ch, 9999, ADDR_RESOLVED, 0), -EINVAL);
	ck_assert_int_eq(write_event(ch, 9999, USER, 0), -ENOENT);
	ck_assert_int_eq(write_event(other, id, USER, 0), -EINVAL);
	ck_assert_int_eq(raw_command(ch, WRITE_CM_EVENT, &id, sizeof(id), 0),
			 -EINVAL);
	ck_assert(!readable(ch) && !readable(other));
	close(other);
	close(ch);
}
END_TEST

/*
 * The id of a request has uid 0 until it is accepted, also in written events;
 * librdmacm handles that.
 */
START_TEST(id_not_accepted_yet)
{
	const int ch = raw_open();
	const uint32_t l = raw_create(ch, RDMA_PS_TCP, 0, 1);
	const uint32_t client = raw_create(ch, RDMA_PS_TCP, 0, 2);
	uint32_t id;

	ck_ok(raw_listen(ch, l));
	ck_ok(raw_resolve(ch, client, ip4(raw_port(ch, l))));
	raw_next(ch, ADDR_RESOLVED);
	ck_ok(raw_route(ch, client));
	raw_next(ch, ROUTE_RESOLVED);
	ck_ok(raw_connect(ch, client));
	id = raw_next(ch, CONNECT_REQUEST).id;
	ck_ok(write_event(ch, id, USER, ARG));
	expect_written(ch, id, 0, ARG);
	close(ch);
}
END_TEST

/* Written events move with their id, and are removed with it. */
START_TEST(migrate_and_destroy_written_events)
{
	const int from = raw_open(), to = raw_open();
	const uint32_t id = raw_create(from, RDMA_PS_TCP, 0, 1);
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id cmd = { .response = raw_to(&resp),
					   .id = id,
					   .fd = (uint32_t)from };

	ck_ok(write_event(from, id, USER, ARG));
	ck_ok(write_event(from, id, USER, ARG + 1));
	ck_ok(raw_send(to, MIGRATE_ID, &cmd, sizeof(resp)));
	ck_assert(!readable(from));
	expect_written(to, id, 1, ARG);
	ck_assert_uint_eq(raw_destroy(to, id), 1);
	ck_assert(!readable(to));
	close(from);
	close(to);
}
END_TEST

/*
 * Written events that are not fetched fill only their own channel; the next
 * write fails with ENOMEM.
 */
START_TEST(too_many_written_events)
{
	const int ch = raw_open(), other = raw_open();
	const uint32_t id = raw_create(ch, RDMA_PS_TCP, 0, 1);
	const uint32_t far = raw_create(other, RDMA_PS_TCP, 0, 2);
	uint64_t n = 0;
	int ret;

	while (!(ret = write_event(ch, id, USER, n)))
		ck_assert_uint_le(++n, MANY);
	ck_assert_int_eq(ret, -ENOMEM);
	ck_assert_uint_eq(n, MANY);
	ck_ok(write_event(other, far, USER, ARG));
	expect_written(other, far, 2, ARG);
	/* events of the connection manager are still delivered */
	ck_ok(raw_resolve(ch, id, ip4(9)));
	expect_written(ch, id, 1, 0);
	expect_written(ch, id, 1, 1);
	ck_ok(write_event(ch, id, USER, n));
	ck_assert_int_eq(write_event(ch, id, USER, n), -ENOMEM);
	close(other);
	close(ch);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm written");

	add(s, written_events_delivered);
	add_loop(s, written_event_wakes, 4);
	add(s, invalid_write_refused);
	add(s, id_not_accepted_yet);
	add(s, migrate_and_destroy_written_events);
	add(s, too_many_written_events);
	return run_suite(s);
}

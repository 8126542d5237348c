// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The commands themselves, as librdmacm writes them: sizes, numbers that name
 * nothing, and what each of them answers in each state of an id.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_user_cm.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

/* librdmacm's header, which names these, cannot be had with the kernel's */
enum {
	ADDR_RESOLVED = 0,
	ROUTE_RESOLVED = 2,
	CONNECT_REQUEST = 4,
	CONNECT_RESPONSE = 5,
	REJECTED = 8,
	ESTABLISHED = 9,
	DISCONNECTED = 10
};

static int channel(void)
{
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* -errno or 0; in and out are what the header says. */
static int command(int fd, uint32_t nr, const void *body, size_t in, size_t out)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		char body[400];
	} buf = { .hdr = { nr, (uint16_t)in, (uint16_t)out } };
	ssize_t ret;

	memcpy(buf.body, body, in);
	ret = write(fd, &buf, sizeof(buf.hdr) + in);
	if (ret < 0)
		return -errno;
	ck_assert_int_eq(ret, sizeof(buf.hdr) + in);
	return 0;
}

#define send(fd, name, cmd, out) \
	command(fd, RDMA_USER_CM_CMD_##name, cmd, sizeof(*(cmd)), out)

static uint64_t to(void *p)
{
	return (uintptr_t)p;
}

static uint32_t create(int fd, int ps, uint8_t type, uint64_t uid)
{
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_create_id cmd = { .uid = uid,
					  .response = to(&resp),
					  .ps = (uint16_t)ps,
					  .qp_type = type };

	ck_ok(send(fd, CREATE_ID, &cmd, sizeof(resp)));
	return resp.id;
}

static uint32_t destroy(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct rdma_ucm_destroy_id cmd = { .response = to(&resp), .id = id };

	ck_ok(send(fd, DESTROY_ID, &cmd, sizeof(resp)));
	return resp.events_reported;
}

static int bind_to(int fd, uint32_t id, struct sockaddr_in a)
{
	struct rdma_ucm_bind_ip cmd = { .id = id };

	memcpy(&cmd.addr, &a, sizeof(a));
	return send(fd, BIND_IP, &cmd, 0);
}

static int resolve(int fd, uint32_t id, struct sockaddr_in a)
{
	struct rdma_ucm_resolve_ip cmd = { .id = id, .timeout_ms = 1000 };

	memcpy(&cmd.dst_addr, &a, sizeof(a));
	return send(fd, RESOLVE_IP, &cmd, 0);
}

static int route(int fd, uint32_t id)
{
	struct rdma_ucm_resolve_route cmd = { .id = id, .timeout_ms = 1000 };

	return send(fd, RESOLVE_ROUTE, &cmd, 0);
}

static int listen_with(int fd, uint32_t id)
{
	struct rdma_ucm_listen cmd = { .id = id, .backlog = 5 };

	return send(fd, LISTEN, &cmd, 0);
}

static int connect_id(int fd, uint32_t id)
{
	struct rdma_ucm_connect cmd = { .id = id, .conn_param.valid = 1 };

	return send(fd, CONNECT, &cmd, 0);
}

static int accept_id(int fd, uint32_t id)
{
	struct rdma_ucm_accept cmd = { .id = id,
				       .uid = 77,
				       .conn_param.valid = 1 };

	return send(fd, ACCEPT, &cmd, 0);
}

/* What a client does with the answer. */
static int confirm(int fd, uint32_t id)
{
	struct rdma_ucm_accept cmd = { .id = id };

	return send(fd, ACCEPT, &cmd, 0);
}

static int reject(int fd, uint32_t id)
{
	struct rdma_ucm_reject cmd = { .id = id };

	return send(fd, REJECT, &cmd, 0);
}

static int disconnect(int fd, uint32_t id)
{
	struct rdma_ucm_disconnect cmd = { .id = id };

	return send(fd, DISCONNECT, &cmd, 0);
}

static int notify(int fd, uint32_t id)
{
	struct rdma_ucm_notify cmd = { .id = id, .event = IBV_EVENT_COMM_EST };

	return send(fd, NOTIFY, &cmd, 0);
}

static int qp_attr(int fd, uint32_t id, uint32_t state)
{
	struct ib_uverbs_qp_attr resp;
	struct rdma_ucm_init_qp_attr cmd = { .response = to(&resp),
					     .id = id,
					     .qp_state = state };

	return send(fd, INIT_QP_ATTR, &cmd, sizeof(resp));
}

static int attr_init(int fd, uint32_t id)
{
	return qp_attr(fd, id, IBV_QPS_INIT);
}

static int attr_rtr(int fd, uint32_t id)
{
	return qp_attr(fd, id, IBV_QPS_RTR);
}

static int attr_rts(int fd, uint32_t id)
{
	return qp_attr(fd, id, IBV_QPS_RTS);
}

static int bind_again(int fd, uint32_t id)
{
	return bind_to(fd, id, ip4(0));
}

static int resolve_again(int fd, uint32_t id)
{
	return resolve(fd, id, ip4(9));
}

static int join(int fd, uint32_t id)
{
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_join_ip_mcast cmd = { .response = to(&resp), .id = id };
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(0xef010203) };

	memcpy(&cmd.addr, &a, sizeof(a));
	return send(fd, JOIN_IP_MCAST, &cmd, sizeof(resp));
}

static struct rdma_ucm_event_resp next(int fd, uint32_t type)
{
	struct rdma_ucm_event_resp e;
	struct rdma_ucm_get_event cmd = { .response = to(&e) };

	ck_ok(send(fd, GET_EVENT, &cmd, sizeof(e)));
	ck_assert_uint_eq(e.event, type);
	return e;
}

static int port(int fd, uint32_t id)
{
	struct rdma_ucm_query_route_resp resp;
	struct rdma_ucm_query cmd = { .response = to(&resp), .id = id };

	ck_ok(send(fd, QUERY_ROUTE, &cmd, sizeof(resp)));
	return ntohs(resp.src_addr.sin6_port);
}

/* ------------------------------------------------------------- states */

enum state {
	IDLE,
	ANY, /* bound to the wildcard: no device yet */
	BOUND,
	RESOLVED,
	ROUTED,
	LISTENING,
	REQUESTING, /* the other end has not looked yet */
	REQUESTED,
	ACCEPTED, /* the server's end */
	ANSWERED, /* the client's end of that */
	CONNECTED,
	STATES
};

/* An id in that state, and what it needs beside it. */
struct scene {
	int fd;
	uint32_t id, listener, client, server;
};

static void set_up_client(struct scene *s, enum state st, int to_port)
{
	s->client = create(s->fd, RDMA_PS_TCP, 0, 3);
	ck_ok(resolve(s->fd, s->client, ip4(to_port)));
	next(s->fd, ADDR_RESOLVED);
	if (st == RESOLVED)
		return;
	ck_ok(route(s->fd, s->client));
	next(s->fd, ROUTE_RESOLVED);
	if (st == ROUTED)
		return;
	ck_ok(connect_id(s->fd, s->client));
}

static void set_up_server(struct scene *s, enum state st)
{
	s->server = next(s->fd, CONNECT_REQUEST).id;
	if (st == REQUESTED)
		return;
	ck_ok(accept_id(s->fd, s->server));
	next(s->fd, CONNECT_RESPONSE);
	if (st < CONNECTED)
		return;
	ck_ok(confirm(s->fd, s->client));
	next(s->fd, ESTABLISHED);
}

static struct scene set_up(int fd, enum state st)
{
	const struct sockaddr_in any = { .sin_family = AF_INET };
	struct scene s = { .fd = fd };

	s.listener = create(s.fd, RDMA_PS_TCP, 0, 2);
	if (st >= ANY)
		ck_ok(bind_to(s.fd, s.listener, st == ANY ? any : ip4(0)));
	if (st >= RESOLVED)
		ck_ok(listen_with(s.fd, s.listener));
	if (st >= RESOLVED && st != LISTENING)
		set_up_client(&s, st, port(s.fd, s.listener));
	if (st >= REQUESTED)
		set_up_server(&s, st);
	s.id = st < RESOLVED || st == LISTENING	 ? s.listener :
	       st == REQUESTED || st == ACCEPTED ? s.server :
						   s.client;
	return s;
}

/* E: -EINVAL, 0: it does it, S: -EISCONN */
static const struct {
	const char *name;
	int (*call)(int fd, uint32_t id);
	const char answers[STATES + 1];
} rules[] = {
	/* idle, any, bound, resolved, routed, listening, requesting,
	   requested, accepted, answered, connected */
	{ "bind", bind_again, "0EEEEEEEEEE" },
	{ "resolve address", resolve_again, "000EEEEEEEE" },
	{ "resolve route", route, "EEE0EEEEEEE" },
	{ "listen", listen_with, "000EEEEEEEE" },
	{ "connect", connect_id, "EEEE0EEEEEE" },
	{ "accept", accept_id, "EEEEEEE0EEE" },
	{ "confirm", confirm, "EEEEEEEEE0E" },
	{ "reject", reject, "EEEEEE0000E" },
	{ "disconnect", disconnect, "EEEEE000000" },
	{ "notify", notify, "EEEEEEEE0ES" },
	{ "attributes for INIT", attr_init, "EE000E00000" },
	{ "attributes for RTR", attr_rtr, "EE000EE0000" },
	{ "attributes for RTS", attr_rts, "EE000EE0000" },
	{ "join", join, "EEEEEEEEEEE" },
};

static bool is_far(void)
{
	return ip4(0).sin_addr.s_addr != htonl(INADDR_LOOPBACK);
}

START_TEST(states)
{
	int ch;
	unsigned int r, st;
	struct scene s;
	int want, got;

	for (r = 0; r < sizeof(rules) / sizeof(*rules); r++) {
		for (st = 0; st < STATES; st++) {
			/* a loopback address leads to no device */
			if ((st == BOUND || st == LISTENING) && !is_far())
				continue;
			ch = channel();
			s = set_up(ch, st);
			got = rules[r].call(s.fd, s.id);
			want = rules[r].answers[st] == 'E' ? -EINVAL :
			       rules[r].answers[st] == 'S' ? -EISCONN :
							     0;
			ck_assert_msg(got == want, "%s in state %u: %d not %d",
				      rules[r].name, st, got, want);
			close(ch);
		}
	}
}
END_TEST

/* What the other end hears of the end of each. */
START_TEST(destroyed)
{
	static const struct {
		enum state st;
		int server; /* is it the server who goes? */
		int event, status; /* at the other end; -1: nothing */
	} ends[] = {
		{ REQUESTED, 1, REJECTED, REJ_CONSUMER },
		{ REQUESTED, 0, -1, 0 },
		{ ACCEPTED, 1, REJECTED, REJ_CONSUMER },
		{ ACCEPTED, 0, REJECTED, REJ_CONSUMER },
		{ CONNECTED, 1, DISCONNECTED, 0 },
		{ CONNECTED, 0, DISCONNECTED, 0 },
	};
	const int ch = channel();
	struct rdma_ucm_get_event get = { 0 };
	struct rdma_ucm_event_resp e;
	struct scene s;
	unsigned int i;

	get.response = to(&e);
	ck_ok(fcntl(ch, F_SETFL, O_RDWR | O_NONBLOCK));
	for (i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		s = set_up(ch, ends[i].st);
		destroy(s.fd, ends[i].server ? s.server : s.client);
		if (ends[i].event >= 0) {
			e = next(s.fd, (uint32_t)ends[i].event);
			ck_assert_int_eq(e.status, ends[i].status);
			ck_assert_uint_eq(e.id,
					  ends[i].server ? s.client : s.server);
		}
		ck_assert_int_eq(send(s.fd, GET_EVENT, &get, sizeof(e)),
				 -EAGAIN);
		destroy(s.fd, ends[i].server ? s.client : s.server);
		destroy(s.fd, s.listener);
	}
	close(ch);
}
END_TEST

/* ------------------------------------------------------- disconnecting */

/* A client may not have heard yet that it is connected. */
START_TEST(disconnect_before_confirmation)
{
	const int ch = channel();
	struct scene s = set_up(ch, ACCEPTED);

	ck_ok(notify(s.fd, s.server));
	next(s.fd, ESTABLISHED);
	ck_ok(disconnect(s.fd, s.server));
	ck_ok(confirm(s.fd, s.client));
	ck_assert_uint_eq(next(s.fd, DISCONNECTED).id, s.client);
	ck_ok(disconnect(s.fd, s.client));
	ck_assert_uint_eq(next(s.fd, DISCONNECTED).id, s.server);
	close(ch);
}
END_TEST

START_TEST(reported)
{
	const int ch = channel();
	struct scene s = set_up(ch, CONNECTED);

	/* two for the addresses, one answer */
	ck_assert_uint_eq(destroy(s.fd, s.client), 3);
	ck_assert_uint_eq(destroy(s.fd, s.server), 1);
	ck_assert_uint_eq(destroy(s.fd, s.listener), 1);
	close(ch);
}
END_TEST

/* --------------------------------------------------------------- sizes */

START_TEST(sizes)
{
	const int ch = channel();
	struct scene s = set_up(ch, ROUTED);
	struct rdma_ucm_query query = { .id = s.id };
	struct rdma_ucm_init_qp_attr attr = { .id = s.id };
	struct rdma_ucm_create_id create_cmd = { .ps = RDMA_PS_TCP };
	struct rdma_ucm_destroy_id destroy_cmd = { .id = s.id };
	struct rdma_ucm_migrate_id migrate = { .id = s.id };
	struct rdma_ucm_get_event get = { 0 };
	struct rdma_ucm_join_mcast join_cmd = { .id = s.id };
	struct rdma_ucm_connect conn = { .id = s.id, .conn_param.valid = 1 };
	char resp[400];

	ck_assert_int_eq(send(s.fd, CREATE_ID, &create_cmd, 3), -ENOSPC);
	ck_assert_int_eq(send(s.fd, DESTROY_ID, &destroy_cmd, 3), -ENOSPC);
	ck_assert_int_eq(send(s.fd, LEAVE_MCAST, &destroy_cmd, 3), -ENOSPC);
	ck_assert_int_eq(send(s.fd, MIGRATE_ID, &migrate, 3), -ENOSPC);
	ck_assert_int_eq(send(s.fd, GET_EVENT, &get, 323), -ENOSPC);
	ck_assert_int_eq(send(s.fd, QUERY_ROUTE, &query, 199), -ENOSPC);
	ck_assert_int_eq(send(s.fd, INIT_QP_ATTR, &attr, 143), -ENOSPC);
	ck_assert_int_eq(send(s.fd, JOIN_MCAST, &join_cmd, 3), -ENOSPC);
	for (query.option = 0; query.option < 3; query.option++)
		ck_assert_int_eq(send(s.fd, QUERY, &query, 7), -ENOSPC);
	ck_assert_int_eq(send(s.fd, QUERY, &query, 400), -ENOSYS);
	/* no more is written than there is room for */
	memset(resp, 0x55, sizeof(resp));
	query.response = to(resp);
	ck_ok(send(s.fd, QUERY_ROUTE, &query, 200));
	ck_assert_int_eq(resp[200], 0x55);
	query.option = RDMA_USER_CM_QUERY_PATH;
	memset(resp, 0x55, sizeof(resp));
	ck_ok(send(s.fd, QUERY, &query, 8));
	ck_assert_int_eq(resp[0], 1);
	ck_assert_int_eq(resp[8], 0x55);
	/* one without the newest member, and one that is too short */
	ck_assert_int_eq(command(s.fd, RDMA_USER_CM_CMD_CONNECT, &conn,
				 offsetof(struct rdma_ucm_connect, ece) - 1, 0),
			 -EINVAL);
	ck_ok(command(s.fd, RDMA_USER_CM_CMD_CONNECT, &conn,
		      offsetof(struct rdma_ucm_connect, ece), 0));
	close(ch);
}
END_TEST

/* An event that cannot be stored is not lost. */
START_TEST(event_to_nowhere)
{
	const int ch = channel();
	struct rdma_ucm_get_event get = { 0 };
	uint32_t id = create(ch, RDMA_PS_TCP, 0, 1);
	char resp[sizeof(struct rdma_ucm_event_resp)];

	ck_ok(resolve(ch, id, ip4(9)));
	ck_assert_int_eq(send(ch, GET_EVENT, &get, sizeof(resp)), -EFAULT);
	/* as old libraries ask for it */
	memset(resp, 0x55, sizeof(resp));
	get.response = to(resp);
	ck_ok(send(ch, GET_EVENT, &get, 324));
	ck_assert_int_eq(resp[324], 0x55);
	ck_assert_uint_eq(destroy(ch, id), 1);
	close(ch);
}
END_TEST

/* ------------------------------------------------------------- numbers */

START_TEST(numbers)
{
	const int ch = channel(), other = channel();
	uint32_t id = create(ch, RDMA_PS_TCP, 0, 1), r;
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id cmd = { .response = to(&resp), .id = id };

	for (r = 0; r < sizeof(rules) / sizeof(*rules); r++) {
		ck_assert_int_eq(rules[r].call(ch, 0xfffffff0), -ENOENT);
		ck_assert_int_eq(rules[r].call(other, id), -EINVAL);
	}
	cmd.fd = 9999;
	ck_assert_int_eq(send(other, MIGRATE_ID, &cmd, 4), -ENOENT);
	cmd.fd = 0;
	ck_assert_int_eq(send(other, MIGRATE_ID, &cmd, 4), -EINVAL);
	cmd.fd = (uint32_t)other;
	ck_assert_int_eq(send(ch, MIGRATE_ID, &cmd, 4), -EINVAL);
	cmd.fd = (uint32_t)ch;
	ck_ok(send(other, MIGRATE_ID, &cmd, 4));
	ck_assert_int_eq(listen_with(ch, id), -EINVAL);
	ck_ok(listen_with(other, id));
	close(other);
	close(ch);
}
END_TEST

/* The number that comes back in events may be 0, for a listener. */
START_TEST(listener_without_uid)
{
	const int ch = channel();
	uint32_t l = create(ch, RDMA_PS_TCP, 0, 0);
	struct scene s = { .fd = ch };
	struct rdma_ucm_event_resp e;

	ck_ok(listen_with(s.fd, l));
	set_up_client(&s, REQUESTING, port(s.fd, l));
	e = next(s.fd, CONNECT_REQUEST);
	ck_assert_uint_eq(e.uid, 0);
	ck_ok(reject(s.fd, e.id));
	next(s.fd, REJECTED);
	close(ch);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm commands");

	add(s, states);
	add(s, destroyed);
	add(s, disconnect_before_confirmation);
	add(s, reported);
	add(s, sizes);
	add(s, event_to_nowhere);
	add(s, numbers);
	add(s, listener_without_uid);
	return run_suite(s);
}

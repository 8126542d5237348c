// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The commands of /dev/infiniband/rdma_cm, as librdmacm writes them: sizes,
 * invalid ids and descriptors, and the result of each command in each state
 * of an id.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "raw.h"

static int bind_again(int fd, uint32_t id)
{
	return raw_bind(fd, id, ip4(0));
}

static int resolve_again(int fd, uint32_t id)
{
	return raw_resolve(fd, id, ip4(9));
}

static int resolve_service(int fd, uint32_t id)
{
	struct {
		uint32_t id, reserved;
		uint64_t service;
		char name[64];
		uint32_t flags, reserved1;
	} cmd = { .id = id, .service = 7, .flags = 1 };

	return raw_command(fd, RESOLVE_IB_SERVICE, &cmd, sizeof(cmd), 0);
}

/* ------------------------------------------------------------- states */

enum state {
	IDLE,
	ANY, /* bound to the wildcard: no device yet */
	BOUND,
	RESOLVED,
	ROUTED,
	LISTENING,
	REQUESTING, /* client; the CONNECT_REQUEST was not fetched */
	REQUESTED,
	ACCEPTED, /* server, REP sent */
	ANSWERED, /* client, REP received */
	CONNECTED,
	STATES
};

/* The id under test, @id, and the other ids that its state needs. */
struct scene {
	int fd;
	uint32_t id, listener, client, server;
};

static void set_up_client(struct scene *s, enum state st, int to_port)
{
	s->client = raw_create(s->fd, RDMA_PS_TCP, 0, 3);
	ck_ok(raw_resolve(s->fd, s->client, ip4(to_port)));
	raw_next(s->fd, ADDR_RESOLVED);
	if (st == RESOLVED)
		return;
	ck_ok(raw_route(s->fd, s->client));
	raw_next(s->fd, ROUTE_RESOLVED);
	if (st == ROUTED)
		return;
	ck_ok(raw_connect(s->fd, s->client));
}

static void set_up_server(struct scene *s, enum state st)
{
	s->server = raw_next(s->fd, CONNECT_REQUEST).id;
	if (st == REQUESTED)
		return;
	ck_ok(raw_accept(s->fd, s->server));
	raw_next(s->fd, CONNECT_RESPONSE);
	if (st < CONNECTED)
		return;
	ck_ok(raw_confirm(s->fd, s->client));
	raw_next(s->fd, ESTABLISHED);
}

static struct scene set_up(int fd, enum state st)
{
	const struct sockaddr_in any = { .sin_family = AF_INET };
	struct scene s = { .fd = fd };

	s.listener = raw_create(s.fd, RDMA_PS_TCP, 0, 2);
	if (st >= ANY)
		ck_ok(raw_bind(s.fd, s.listener, st == ANY ? any : ip4(0)));
	if (st >= RESOLVED)
		ck_ok(raw_listen(s.fd, s.listener));
	if (st >= RESOLVED && st != LISTENING)
		set_up_client(&s, st, raw_port(s.fd, s.listener));
	if (st >= REQUESTED)
		set_up_server(&s, st);
	s.id = st < RESOLVED || st == LISTENING	 ? s.listener :
	       st == REQUESTED || st == ACCEPTED ? s.server :
						   s.client;
	return s;
}

/* E: -EINVAL, 0: success, S: -EISCONN, N: -EOPNOTSUPP */
static const struct {
	const char *name;
	int (*call)(int fd, uint32_t id);
	const char answers[STATES + 1];
} rules[] = {
	/*
	 * columns: idle, any, bound, resolved, routed, listening, requesting,
	 * requested, accepted, answered, connected
	 */
	{ "bind", bind_again, "0EEEEEEEEEE" },
	{ "resolve address", resolve_again, "000EEEEEEEE" },
	{ "resolve route", raw_route, "EEE0EEEEEEE" },
	{ "listen", raw_listen, "000EEEEEEEE" },
	{ "connect", raw_connect, "EEEE0EEEEEE" },
	{ "accept", raw_accept, "EEEEEEE0EEE" },
	{ "confirm", raw_confirm, "EEEEEEEEE0E" },
	{ "reject", raw_reject, "EEEEEE0000E" },
	{ "disconnect", raw_disconnect, "EEEEE000000" },
	{ "notify", raw_notify, "EEEEEEEE0ES" },
	{ "attributes for INIT", raw_attr_init, "EE000E00000" },
	{ "attributes for RTR", raw_attr_rtr, "EE000EE0000" },
	{ "attributes for RTS", raw_attr_rts, "EE000EE0000" },
	{ "join", raw_join, "EEEEEEEEEEE" },
	/* RoCE has no subnet administrator */
	{ "resolve service", resolve_service, "EENEEEEEEEE" },
};

static bool is_far(void)
{
	return ip4(0).sin_addr.s_addr != htonl(INADDR_LOOPBACK);
}

/* Each command in each state of an id returns what rules[] says. */
START_TEST(commands_in_each_state)
{
	int ch;
	unsigned int r, st;
	struct scene s;
	int want, got;

	for (r = 0; r < sizeof(rules) / sizeof(*rules); r++) {
		for (st = 0; st < STATES; st++) {
			/* a loopback address does not select a device */
			if ((st == BOUND || st == LISTENING) && !is_far())
				continue;
			ch = raw_open();
			s = set_up(ch, st);
			got = rules[r].call(s.fd, s.id);
			want = rules[r].answers[st] == 'E' ? -EINVAL :
			       rules[r].answers[st] == 'S' ? -EISCONN :
			       rules[r].answers[st] == 'N' ? -EOPNOTSUPP :
							     0;
			ck_assert_msg(got == want, "%s in state %u: %d not %d",
				      rules[r].name, st, got, want);
			close(ch);
		}
	}
}
END_TEST

/*
 * Destroying an id of a connection sends its peer the right event, or none.
 */
START_TEST(peer_event_of_destroy)
{
	static const struct {
		enum state st;
		int server; /* 1: the server is destroyed, 0: the client */
		int event, status; /* at the peer; -1: none */
	} ends[] = {
		{ REQUESTED, 1, REJECTED, REJ_CONSUMER },
		{ REQUESTED, 0, -1, 0 },
		{ ACCEPTED, 1, REJECTED, REJ_CONSUMER },
		{ ACCEPTED, 0, REJECTED, REJ_CONSUMER },
		{ CONNECTED, 1, DISCONNECTED, 0 },
		{ CONNECTED, 0, DISCONNECTED, 0 },
	};
	const int ch = raw_open();
	struct rdma_ucm_get_event get = { 0 };
	struct rdma_ucm_event_resp e;
	struct scene s;
	unsigned int i;

	get.response = raw_to(&e);
	ck_ok(fcntl(ch, F_SETFL, O_RDWR | O_NONBLOCK));
	for (i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		s = set_up(ch, ends[i].st);
		raw_destroy(s.fd, ends[i].server ? s.server : s.client);
		if (ends[i].event >= 0) {
			e = raw_next(s.fd, (uint32_t)ends[i].event);
			ck_assert_int_eq(e.status, ends[i].status);
			ck_assert_uint_eq(e.id,
					  ends[i].server ? s.client : s.server);
		}
		ck_assert_int_eq(raw_send(s.fd, GET_EVENT, &get, sizeof(e)),
				 -EAGAIN);
		raw_destroy(s.fd, ends[i].server ? s.client : s.server);
		raw_destroy(s.fd, s.listener);
	}
	close(ch);
}
END_TEST

/* ------------------------------------------------------- disconnecting */

/*
 * The server may disconnect before the client has confirmed the connection.
 */
START_TEST(disconnect_before_confirmation)
{
	const int ch = raw_open();
	struct scene s = set_up(ch, ACCEPTED);

	ck_ok(raw_notify(s.fd, s.server));
	raw_next(s.fd, ESTABLISHED);
	ck_ok(raw_disconnect(s.fd, s.server));
	ck_ok(raw_confirm(s.fd, s.client));
	ck_assert_uint_eq(raw_next(s.fd, DISCONNECTED).id, s.client);
	ck_ok(raw_disconnect(s.fd, s.client));
	ck_assert_uint_eq(raw_next(s.fd, DISCONNECTED).id, s.server);
	close(ch);
}
END_TEST

/* DESTROY_ID returns how many events of the id were fetched. */
START_TEST(destroy_id_events_reported)
{
	const int ch = raw_open();
	struct scene s = set_up(ch, CONNECTED);

	/* ADDR_RESOLVED, ROUTE_RESOLVED, CONNECT_RESPONSE */
	ck_assert_uint_eq(raw_destroy(s.fd, s.client), 3);
	ck_assert_uint_eq(raw_destroy(s.fd, s.server), 1);
	ck_assert_uint_eq(raw_destroy(s.fd, s.listener), 1);
	close(ch);
}
END_TEST

/* --------------------------------------------------------------- sizes */

/*
 * Commands and response buffers that are too short are refused, and longer
 * response buffers are not overwritten.
 */
START_TEST(command_sizes)
{
	const int ch = raw_open();
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

	ck_assert_int_eq(raw_send(s.fd, CREATE_ID, &create_cmd, 3), -ENOSPC);
	ck_assert_int_eq(raw_send(s.fd, DESTROY_ID, &destroy_cmd, 3), -ENOSPC);
	ck_assert_int_eq(raw_send(s.fd, LEAVE_MCAST, &destroy_cmd, 3), -ENOSPC);
	ck_assert_int_eq(raw_send(s.fd, MIGRATE_ID, &migrate, 3), -ENOSPC);
	ck_assert_int_eq(raw_send(s.fd, GET_EVENT, &get, 323), -ENOSPC);
	ck_assert_int_eq(raw_send(s.fd, QUERY_ROUTE, &query, 199), -ENOSPC);
	ck_assert_int_eq(raw_send(s.fd, INIT_QP_ATTR, &attr, 143), -ENOSPC);
	ck_assert_int_eq(raw_send(s.fd, JOIN_MCAST, &join_cmd, 3), -ENOSPC);
	for (query.option = 0; query.option < 4; query.option++)
		ck_assert_int_eq(raw_send(s.fd, QUERY, &query, 7), -ENOSPC);
	ck_assert_int_eq(raw_send(s.fd, QUERY, &query, 400), -ENOSYS);
	query.option = QUERY_IB_SERVICE;
	ck_assert_int_eq(raw_send(s.fd, QUERY, &query, 8), -ENODATA);
	/* not more than the size of the response buffer is written */
	memset(resp, 0x55, sizeof(resp));
	query.response = raw_to(resp);
	ck_ok(raw_send(s.fd, QUERY_ROUTE, &query, 200));
	ck_assert_int_eq(resp[200], 0x55);
	query.option = RDMA_USER_CM_QUERY_PATH;
	memset(resp, 0x55, sizeof(resp));
	ck_ok(raw_send(s.fd, QUERY, &query, 8));
	ck_assert_int_eq(resp[0], 1);
	ck_assert_int_eq(resp[8], 0x55);
	/* CONNECT without its newest member succeeds; one byte less fails */
	ck_assert_int_eq(raw_command(s.fd, RDMA_USER_CM_CMD_CONNECT, &conn,
				     offsetof(struct rdma_ucm_connect, ece) - 1,
				     0),
			 -EINVAL);
	ck_ok(raw_command(s.fd, RDMA_USER_CM_CMD_CONNECT, &conn,
			  offsetof(struct rdma_ucm_connect, ece), 0));
	close(ch);
}
END_TEST

/*
 * An event that cannot be copied to the response buffer (EFAULT) stays
 * queued.
 */
START_TEST(get_event_efault)
{
	const int ch = raw_open();
	struct rdma_ucm_get_event get = { 0 };
	uint32_t id = raw_create(ch, RDMA_PS_TCP, 0, 1);
	char resp[sizeof(struct rdma_ucm_event_resp)];

	ck_ok(raw_resolve(ch, id, ip4(9)));
	ck_assert_int_eq(raw_send(ch, GET_EVENT, &get, sizeof(resp)), -EFAULT);
	/* size of the response in old versions of librdmacm */
	memset(resp, 0x55, sizeof(resp));
	get.response = raw_to(resp);
	ck_ok(raw_send(ch, GET_EVENT, &get, 324));
	ck_assert_int_eq(resp[324], 0x55);
	ck_assert_uint_eq(raw_destroy(ch, id), 1);
	close(ch);
}
END_TEST

/* ------------------------------------------------------------- numbers */

/*
 * Unknown ids fail with ENOENT, ids of another channel with EINVAL;
 * MIGRATE_ID checks its descriptor.
 */
START_TEST(invalid_ids)
{
	const int ch = raw_open(), other = raw_open();
	uint32_t id = raw_create(ch, RDMA_PS_TCP, 0, 1), r;
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id cmd = { .response = raw_to(&resp),
					   .id = id };

	for (r = 0; r < sizeof(rules) / sizeof(*rules); r++) {
		ck_assert_int_eq(rules[r].call(ch, 0xfffffff0), -ENOENT);
		ck_assert_int_eq(rules[r].call(other, id), -EINVAL);
	}
	cmd.fd = 9999;
	ck_assert_int_eq(raw_send(other, MIGRATE_ID, &cmd, 4), -ENOENT);
	cmd.fd = 0;
	ck_assert_int_eq(raw_send(other, MIGRATE_ID, &cmd, 4), -EINVAL);
	cmd.fd = (uint32_t)other;
	ck_assert_int_eq(raw_send(ch, MIGRATE_ID, &cmd, 4), -EINVAL);
	cmd.fd = (uint32_t)ch;
	ck_ok(raw_send(other, MIGRATE_ID, &cmd, 4));
	ck_assert_int_eq(raw_listen(ch, id), -EINVAL);
	ck_ok(raw_listen(other, id));
	close(other);
	close(ch);
}
END_TEST

/* A listener may have uid 0, which its events return. */
START_TEST(listener_without_uid)
{
	const int ch = raw_open();
	uint32_t l = raw_create(ch, RDMA_PS_TCP, 0, 0);
	struct scene s = { .fd = ch };
	struct rdma_ucm_event_resp e;

	ck_ok(raw_listen(s.fd, l));
	set_up_client(&s, REQUESTING, raw_port(s.fd, l));
	e = raw_next(s.fd, CONNECT_REQUEST);
	ck_assert_uint_eq(e.uid, 0);
	ck_ok(raw_reject(s.fd, e.id));
	raw_next(s.fd, REJECTED);
	close(ch);
}
END_TEST

/* -------------------------------------------------------------- Q_Keys */

#define KEY 0x11

static struct sockaddr_ib own_address(int port)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;
	struct sockaddr_ib a = { .sib_family = AF_IB,
				 .sib_sid = htobe64(0x01110000ull |
						    (uint64_t)port),
				 .sib_sid_mask = ~0ull };
	union ibv_gid gid;

	ck_assert_ptr_nonnull(list);
	ctx = ibv_open_device(list[0]);
	ck_assert_ptr_nonnull(ctx);
	ck_ok(ibv_query_gid(ctx, 1, 0, &gid));
	memcpy(&a.sib_addr, &gid, 16);
	ck_ok(ibv_close_device(ctx));
	ibv_free_device_list(list);
	return a;
}

/*
 * Send a SIDR_REQ to an AF_IB address, where the application may choose the
 * Q_Key.
 */
static struct scene set_up_datagrams(int fd, int port)
{
	struct sockaddr_ib a = own_address(port);
	struct rdma_ucm_bind bind_cmd = { .addr_size = sizeof(a) };
	struct rdma_ucm_resolve_addr cmd = { .dst_size = sizeof(a) };
	struct scene s = { .fd = fd };

	s.listener = bind_cmd.id = raw_create(fd, RDMA_PS_UDP, 0, 1);
	s.client = cmd.id = raw_create(fd, RDMA_PS_UDP, 0, 2);
	memcpy(&bind_cmd.addr, &a, sizeof(a));
	memcpy(&cmd.dst_addr, &a, sizeof(a));
	ck_ok(raw_send(fd, BIND, &bind_cmd, 0));
	ck_ok(raw_listen(fd, s.listener));
	ck_ok(raw_send(fd, RESOLVE_ADDR, &cmd, 0));
	raw_next(fd, ADDR_RESOLVED);
	ck_ok(raw_route(fd, s.client));
	raw_next(fd, ROUTE_RESOLVED);
	ck_ok(raw_connect(fd, s.client));
	s.server = raw_next(fd, CONNECT_REQUEST).id;
	return s;
}

static int accept_with_key(const struct scene *s)
{
	struct rdma_ucm_accept cmd = { .id = s->server,
				       .uid = 3,
				       .conn_param = { .valid = 1,
						       .qkey = KEY } };

	return raw_send(s->fd, ACCEPT, &cmd, 0);
}

/*
 * An id has one Q_Key.  Querying the attributes for INIT fixes it; a
 * different Q_Key in rdma_accept() or in the SIDR_REP is an error then.
 */
START_TEST(qkeys)
{
	const int ch = raw_open();
	struct rdma_ucm_event_resp e;
	struct scene s;

	s = set_up_datagrams(ch, 5001);
	ck_ok(accept_with_key(&s));
	e = raw_next(ch, ESTABLISHED);
	ck_assert_uint_eq(e.param.ud.qkey, KEY);

	s = set_up_datagrams(ch, 5002);
	ck_ok(raw_attr_init(ch, s.server));
	ck_assert_int_eq(accept_with_key(&s), -EINVAL);
	e = raw_next(ch, UNREACHABLE);
	ck_assert_int_eq(e.status, SIDR_REJECT);

	s = set_up_datagrams(ch, 5003);
	ck_ok(raw_attr_init(ch, s.client));
	ck_ok(accept_with_key(&s));
	e = raw_next(ch, ADDR_ERROR);
	ck_assert_int_eq((int)e.status, -EINVAL);
	close(ch);
}
END_TEST

/* ----------------------------------------------------------- too much */

static int try_create(int fd, uint32_t *id)
{
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_create_id cmd = { .uid = 1,
					  .response = raw_to(&resp),
					  .ps = RDMA_PS_TCP };
	int ret = raw_send(fd, CREATE_ID, &cmd, sizeof(resp));

	*id = resp.id;
	return ret;
}

/*
 * If the table of ids is full, CREATE_ID fails with ENOMEM, as in the kernel.
 * Freed ids can be used again.
 */
START_TEST(too_many_ids)
{
	const int ch = raw_open();
	uint32_t id, n = 0;
	int ret, other;

	while (!(ret = try_create(ch, &id)))
		ck_assert_uint_lt(n++, 1 << 20);
	ck_assert_int_eq(ret, -ENOMEM);
	ck_assert_uint_ge(n, 10000);
	raw_destroy(ch, n / 2);
	ck_ok(try_create(ch, &id));
	ck_assert_uint_eq(id, n / 2);
	/* closing a channel frees all its ids */
	other = raw_open();
	close(ch);
	ck_ok(try_create(other, &id));
	ck_assert_uint_eq(id, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm commands");

	add(s, commands_in_each_state);
	add(s, peer_event_of_destroy);
	add(s, disconnect_before_confirmation);
	add(s, destroy_id_events_reported);
	add(s, command_sizes);
	add(s, get_event_efault);
	add(s, invalid_ids);
	add(s, listener_without_uid);
	add(s, qkeys);
	add(s, too_many_ids);
	return run_suite(s);
}

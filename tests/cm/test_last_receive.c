// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* DISCONNECTED is delivered after the data that was sent before it. */
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <string.h>

#include "harness.h"

#define HELD 0.1 /* seconds: the longest delay of DISCONNECTED */

enum end { BY_DISCONNECT, BY_DESTROY, BY_EXIT, ENDS };

static void send_one(struct rdma_cm_id *id)
{
	struct ibv_sge sge = { 0 };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	ck_ok(ibv_post_send(id->qp, &wr, &bad));
	ck_assert_int_eq(rdma_get_send_comp(id, &wc), 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
}

struct client {
	int port;
	enum end end;
};

/* A client that sends once and ends the connection immediately. */
static void client(int fd, void *arg)
{
	const struct client *how = arg;
	struct sockaddr_in a = ip4(how->port);
	struct rdma_cm_id *c = client_to(SA(&a), RDMA_PS_TCP);

	give_qp(c);
	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	receive_int(fd); /* a receive is posted */
	send_one(c);
	if (how->end == BY_DISCONNECT)
		ck_ok(rdma_disconnect(c));
	if (how->end == BY_DESTROY)
		end_id(c, true);
	if (how->end != BY_EXIT)
		send_int(fd, 1);
	if (how->end == BY_DISCONNECT)
		receive_int(fd);
}

struct server {
	struct rdma_cm_id *listener, *id;
	struct inbox in;
	struct other client;
	double sent; /* time before the data was sent */
};

static void server_open(struct server *s, enum end end)
{
	struct sockaddr_in a = ip4(0);
	struct client how = { .end = end };

	s->listener = listen_on(SA(&a), RDMA_PS_TCP, 0);
	how.port = port_of(s->listener);
	s->client = spawn(client, &how);
	s->id = next_request(s->listener);
	ck_ok(rdma_migrate_id(s->id, new_channel()));
	give_qp(s->id);
	post_inbox(s->id, &s->in);
	accept_it(s->id);
	pass(s->id->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	s->sent = now();
	send_int(s->client.fd, 1);
}

static void server_close(struct server *s)
{
	ck_ok(rdma_dereg_mr(s->in.mr));
	end_id(s->id, true);
	end_id(s->listener, true);
}

/*
 * The client has ended the connection.  Assert that DISCONNECTED is still
 * delayed, unless the delay has expired because this process did not run.
 */
static void expect_held_back(struct server *s)
{
	struct pollfd p = { .fd = s->id->channel->fd, .events = POLLIN };

	if (poll(&p, 1, 0))
		ck_assert_msg(now() - s->sent >= HELD, "%s",
			      "the end came before the data");
}

/*
 * DISCONNECTED is delivered when the data has been polled, whether the client
 * disconnected, destroyed its id or exited.
 */
START_TEST(data_before_disconnected)
{
	struct server s;

	server_open(&s, _i);
	if (_i == BY_EXIT)
		finish(s.client);
	else
		receive_int(s.client.fd);
	expect_held_back(&s);
	ck_assert(inbox_filled(s.id, PATIENCE_MS));
	pass(s.id->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	if (_i == BY_DISCONNECT)
		send_int(s.client.fd, 1);
	if (_i != BY_EXIT)
		finish(s.client);
	server_close(&s);
}
END_TEST

/*
 * A thread that waits for DISCONNECTED is woken after the delay even if the
 * CQ is not polled.
 */
START_TEST(disconnected_without_poll)
{
	struct server s;

	server_open(&s, _i);
	pass(s.id->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	if (_i != BY_EXIT)
		receive_int(s.client.fd);
	if (_i == BY_DISCONNECT)
		send_int(s.client.fd, 1);
	finish(s.client);
	ck_assert(inbox_filled(s.id, 0));
	server_close(&s);
}
END_TEST

/*
 * If the server disconnects, too, DISCONNECTED is not delayed for its data.
 */
START_TEST(both_disconnect)
{
	struct server s;

	server_open(&s, BY_DISCONNECT);
	receive_int(s.client.fd);
	ck_ok(rdma_disconnect(s.id));
	pass(s.id->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	send_int(s.client.fd, 1);
	finish(s.client);
	server_close(&s);
}
END_TEST

/* The id is destroyed while its DISCONNECTED is delayed. */
START_TEST(id_destroyed_while_delayed)
{
	struct server s;

	server_open(&s, BY_DISCONNECT);
	receive_int(s.client.fd);
	server_close(&s);
	send_int(s.client.fd, 1);
	finish(s.client);
}
END_TEST

/* The same with both ends in one process. */
START_TEST(both_ends_in_one_process)
{
	struct both b = connect_both();
	struct inbox in;

	post_inbox(b.server, &in);
	send_one(b.client);
	if (_i)
		ck_ok(rdma_disconnect(b.client));
	else
		end_id(b.client, true);
	pass(b.server->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	ck_assert(inbox_filled(b.server, 0));
	if (_i)
		end_id(b.client, true);
	ck_ok(rdma_dereg_mr(in.mr));
	end_id(b.server, true);
	end_id(b.listener, true);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("last_receive");

	add_loop(s, data_before_disconnected, ENDS);
	add_loop(s, disconnected_without_poll, ENDS);
	add(s, both_disconnect);
	add(s, id_destroyed_while_delayed);
	add_loop(s, both_ends_in_one_process, 2);
	return run_suite(s);
}

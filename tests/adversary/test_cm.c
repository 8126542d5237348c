// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Options "cm" and "early": rdma_cm events that are delayed, or that are
 * delivered before their command returns.
 */
#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "../cm/harness.h"

#define TRIES 200 /* attempts; at least one must show the effect, most do */

static void with_knob(int value)
{
	setenv("URXE_ADVERSARY", value ? "7,none,cm=1000" : "7,none,rnr=1000",
	       1);
}

static bool readable(struct rdma_event_channel *ch)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/*
 * Call rdma_connect() without waiting for ROUTE_RESOLVED.  Return whether it
 * failed with EINVAL.
 */
static bool connects_too_early(void)
{
	struct rdma_cm_id *id = new_id(new_channel(), RDMA_PS_TCP);
	struct rdma_conn_param p = param(NULL, 0);
	struct sockaddr_in a = ip4(7471);
	bool early;

	ck_ok(rdma_resolve_addr(id, NULL, SA(&a), 1000));
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	give_qp(id);
	ck_ok(rdma_resolve_route(id, 1000));
	early = rdma_connect(id, &p) && errno == EINVAL;
	pass(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	if (early)
		ck_ok(rdma_connect(id, &p));
	end_id(id, true);
	return early;
}

/* With "cm", rdma_connect() before ROUTE_RESOLVED fails. */
START_TEST(connect_before_route)
{
	int i;

	with_knob(1);
	for (i = 0; !connects_too_early(); i++)
		ck_assert_int_lt(i, TRIES);
}
END_TEST

/* Without "cm" it succeeds. */
START_TEST(connect_before_route_without_cm)
{
	int i;

	with_knob(0);
	for (i = 0; i < 20; i++)
		ck_assert(!connects_too_early());
}
END_TEST

/*
 * Return whether the event of the second of two ids on a channel is delivered
 * first.
 */
static bool second_is_first(void)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *first = new_id(ch, RDMA_PS_TCP);
	struct rdma_cm_id *second = new_id(ch, RDMA_PS_TCP);
	struct sockaddr_in a = ip4(7471);
	struct rdma_cm_event *e;
	bool is;

	ck_ok(rdma_resolve_addr(first, NULL, SA(&a), 1000));
	ck_ok(rdma_resolve_addr(second, NULL, SA(&a), 1000));
	e = expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	is = e->id == second;
	ck_ok(rdma_ack_cm_event(e));
	e = expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_ptr_eq(e->id, is ? first : second);
	ck_ok(rdma_ack_cm_event(e));
	ck_assert(!readable(ch));
	end_id(first, false);
	end_id(second, true);
	return is;
}

/* With "cm", events of different ids of a channel overtake each other. */
START_TEST(events_of_ids_reordered)
{
	int i;

	with_knob(1);
	for (i = 0; !second_is_first(); i++)
		ck_assert_int_lt(i, TRIES);
}
END_TEST

/* Without "cm" they do not. */
START_TEST(events_of_ids_in_order_without_cm)
{
	int i;

	with_knob(0);
	for (i = 0; i < 20; i++)
		ck_assert(!second_is_first());
}
END_TEST

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

static void end_both(struct both *b)
{
	end_id(b->client, true);
	end_id(b->server, true);
	end_id(b->listener, true);
}

/*
 * Return whether the client's first message arrives before the server's
 * ESTABLISHED event.
 */
static bool message_is_first(void)
{
	struct sockaddr_in a = ip4(0);
	struct inbox in;
	struct both b;
	bool is;

	b.listener = listen_on(SA(&a), RDMA_PS_TCP, 0);
	a = ip4(port_of(b.listener));
	b.client = client_to(SA(&a), RDMA_PS_TCP);
	give_qp(b.client);
	start_connect(b.client);
	b.server = next_request(b.listener);
	ck_ok(rdma_migrate_id(b.server, new_channel()));
	give_qp(b.server);
	post_inbox(b.server, &in);
	accept_it(b.server);
	pass(b.client->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	send_one(b.client);
	ck_assert(inbox_filled(b.server, PATIENCE_MS));
	is = !readable(b.server->channel);
	pass(b.server->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	end_both(&b);
	ibv_dereg_mr(in.mr);
	return is;
}

/* With "cm", a message may be received before ESTABLISHED. */
START_TEST(message_before_established)
{
	int i;

	with_knob(1);
	for (i = 0; !message_is_first(); i++)
		ck_assert_int_lt(i, TRIES);
}
END_TEST

/* Without "cm" ESTABLISHED is first. */
START_TEST(established_before_message_without_cm)
{
	int i;

	with_knob(0);
	for (i = 0; i < 20; i++)
		ck_assert(!message_is_first());
}
END_TEST

/*
 * Return whether DISCONNECTED is delivered while a receive completion is not
 * polled.  Without the option it is delayed.
 */
static bool end_is_first(void)
{
	struct both b = connect_both();
	struct inbox in;
	bool is;

	post_inbox(b.server, &in);
	send_one(b.client);
	ck_ok(rdma_disconnect(b.client));
	is = readable(b.server->channel);
	ck_assert(inbox_filled(b.server, PATIENCE_MS));
	pass(b.server->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_both(&b);
	ibv_dereg_mr(in.mr);
	return is;
}

/* With "cm", DISCONNECTED may be delivered before the data is polled. */
START_TEST(disconnected_before_data)
{
	int i;

	with_knob(1);
	for (i = 0; i < 5; i++)
		ck_assert(end_is_first());
}
END_TEST

/* Without "cm" it is delayed until the data is polled. */
START_TEST(data_before_disconnected_without_cm)
{
	int i;

	with_knob(0);
	for (i = 0; end_is_first(); i++) /* delayed by at most 0.1 s */
		ck_assert_int_lt(i, 20);
}
END_TEST

/*
 * The client connects and disconnects before the server has received an event
 * of either.  The server's events must arrive in order.
 */
static void connect_and_end(void)
{
	struct sockaddr_in a = ip4(0);
	struct both b;

	b.listener = listen_on(SA(&a), RDMA_PS_TCP, 0);
	a = ip4(port_of(b.listener));
	b.client = client_to(SA(&a), RDMA_PS_TCP);
	give_qp(b.client);
	start_connect(b.client);
	b.server = next_request(b.listener);
	ck_ok(rdma_migrate_id(b.server, new_channel()));
	give_qp(b.server);
	accept_it(b.server);
	pass(b.client->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_ok(rdma_disconnect(b.client));
	pass(b.server->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pass(b.server->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	ck_ok(rdma_disconnect(b.server));
	pass(b.client->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	ck_assert(!readable(b.server->channel));
	end_both(&b);
}

/* With "cm", the events of one id stay in order. */
START_TEST(events_of_one_id_in_order)
{
	int i;

	with_knob(1);
	for (i = 0; i < 40; i++)
		connect_and_end();
}
END_TEST

/* Delayed events are removed when their id is destroyed. */
START_TEST(destroy_removes_delayed_events)
{
	struct rdma_event_channel *ch;
	struct sockaddr_in a = ip4(7471);
	struct rdma_cm_id *id;
	int i;

	with_knob(1);
	ch = new_channel();
	for (i = 0; i < 20; i++) {
		id = new_id(ch, RDMA_PS_TCP);
		ck_ok(rdma_resolve_addr(id, NULL, SA(&a), 1000));
		end_id(id, false);
	}
	expect_nothing(ch, 20);
	rdma_destroy_event_channel(ch);
}
END_TEST

/* Delayed events move with their id to another channel. */
START_TEST(migrate_moves_delayed_events)
{
	struct sockaddr_in a = ip4(7471);
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	int i;

	with_knob(1);
	for (i = 0; i < 20; i++) {
		ch = new_channel();
		id = new_id(ch, RDMA_PS_TCP);
		ck_ok(rdma_resolve_addr(id, NULL, SA(&a), 1000));
		ck_ok(rdma_migrate_id(id, new_channel()));
		pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		expect_nothing(ch, 0);
		rdma_destroy_event_channel(ch);
		end_id(id, true);
	}
}
END_TEST

static void die_connecting(int fd, void *arg)
{
	struct sockaddr_in a = ip4(*(int *)arg);
	struct rdma_cm_id *id = client_to(SA(&a), RDMA_PS_TCP);

	(void)fd;
	give_qp(id);
	start_connect(id);
	kill(getpid(), SIGKILL);
}

/*
 * A sleeping listener gets a delayed event although the process that caused
 * it was killed.
 */
START_TEST(delayed_event_of_killed_process)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *listener;
	struct other client;
	int i, port;

	with_knob(1);
	listener = listen_on(SA(&a), RDMA_PS_TCP, 0);
	port = port_of(listener);
	for (i = 0; i < 5; i++) {
		client = spawn(die_connecting, &port);
		end_id(next_request(listener), false);
		kill_it(client);
	}
	end_id(listener, true);
}
END_TEST

/* With "early", another thread gets events before the command returns. */
START_TEST(event_before_command_returns)
{
	setenv("URXE_ADVERSARY", "7,none,early=1000", 1);
	ck_assert_int_gt(early_events(20), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm");

	may_leak();
	add(s, connect_before_route);
	add(s, connect_before_route_without_cm);
	add(s, events_of_ids_reordered);
	add(s, events_of_ids_in_order_without_cm);
	add(s, message_before_established);
	add(s, established_before_message_without_cm);
	add(s, disconnected_before_data);
	add(s, data_before_disconnected_without_cm);
	add(s, events_of_one_id_in_order);
	add(s, destroy_removes_delayed_events);
	add(s, migrate_moves_delayed_events);
	add(s, delayed_event_of_killed_process);
	add(s, event_before_command_returns);
	return run_suite(s);
}

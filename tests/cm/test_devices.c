// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rdma_cm in a fabric with several devices: the device of an id, and
 * connections between two devices.  Device k has the address 127.0.0.(1 + k).
 */
#include <arpa/inet.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static struct sockaddr_in address(int k, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port) };

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)k);
	return a;
}

static void check_device(struct rdma_cm_id *id, int k)
{
	char name[16];

	snprintf(name, sizeof(name), "urxe%d", k);
	ck_assert_ptr_nonnull(id->verbs);
	ck_assert_str_eq(ibv_get_device_name(id->verbs->device), name);
}

static void port(const char *word, const char *name)
{
	char line[600];

	ck_assert_ptr_nonnull(getenv("URXE"));
	snprintf(line, sizeof(line), "%s port %s %s", getenv("URXE"), word,
		 name);
	ck_ok(system(line));
}

START_TEST(list)
{
	struct ibv_context **all;
	char name[16];
	int i, n;

	all = rdma_get_devices(&n);
	ck_assert_ptr_nonnull(all);
	ck_assert_int_eq(n, 3);
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "urxe%d", i);
		ck_assert_str_eq(ibv_get_device_name(all[i]->device), name);
	}
	rdma_free_devices(all);
}
END_TEST

/* The address selects the device; each device has a port space of its own. */
START_TEST(bind_device)
{
	struct sockaddr_in one = address(1, 0), two;
	struct rdma_cm_id *a = new_id(new_channel(), RDMA_PS_TCP);
	struct rdma_cm_id *b = new_id(new_channel(), RDMA_PS_TCP);
	struct rdma_cm_id *c = new_id(new_channel(), RDMA_PS_TCP);

	ck_ok(rdma_bind_addr(a, SA(&one)));
	check_device(a, 1);
	two = address(2, port_of(a));
	ck_ok(rdma_bind_addr(b, SA(&two)));
	check_device(b, 2);
	ck_fails(rdma_bind_addr(c, SA(&two)), EADDRINUSE);
	end_id(a, true);
	end_id(b, true);
	end_id(c, true);
}
END_TEST

/* Return an id that was bound to @from, if it is not 0, and resolved @to. */
static struct rdma_cm_id *resolved(int from, struct sockaddr_in to)
{
	struct sockaddr_in a = address(from, 0);
	struct rdma_cm_id *id = new_id(new_channel(), RDMA_PS_TCP);

	ck_ok(rdma_resolve_addr(id, from ? SA(&a) : NULL, SA(&to), 2000));
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_ok(rdma_resolve_route(id, 2000));
	pass(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return id;
}

/* Connect @client to listener @l, and send a message. */
static struct rdma_cm_id *connected(struct rdma_cm_id *l,
				    struct rdma_cm_id *client)
{
	static char text[64] = "between devices";
	struct rdma_cm_id *server;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	struct inbox in;

	give_qp(client);
	start_connect(client);
	server = next_request(l);
	ck_ok(rdma_migrate_id(server, new_channel()));
	give_qp(server);
	post_inbox(server, &in);
	accept_it(server);
	pass(client->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pass(server->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	mr = rdma_reg_msgs(client, text, sizeof(text));
	ck_assert_ptr_nonnull(mr);
	ck_ok(rdma_post_send(client, NULL, text, sizeof(text), mr,
			     IBV_SEND_SIGNALED));
	ck_assert(inbox_filled(server, PATIENCE_MS));
	ck_assert_str_eq(in.data, text);
	while (!ibv_poll_cq(client->send_cq, 1, &wc))
		;
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_ok(rdma_dereg_mr(mr));
	ck_ok(rdma_dereg_mr(in.mr));
	return server;
}

/* from, to, and the device of the client; 0: no address is bound */
static const int cases[][3] = {
	{ 0, 0, 0 }, { 0, 1, 1 }, { 0, 2, 2 }, { 1, 1, 1 },
	{ 1, 2, 1 }, { 2, 1, 2 }, { 1, 0, 1 },
};

/*
 * The child of a wildcard listener has the device that was addressed.  The
 * client has that of its source address, or else that of the destination.
 */
START_TEST(wildcard_listener)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct rdma_cm_id *l, *c, *s;

	may_leak();
	l = listen_on(SA(&any), RDMA_PS_TCP, 0);
	ck_assert_ptr_null(l->verbs);
	c = resolved(cases[_i][0], address(cases[_i][1], port_of(l)));
	check_device(c, cases[_i][2]);
	s = connected(l, c);
	check_device(s, cases[_i][1]);
	end_id(c, true);
	end_id(s, true);
	end_id(l, true);
}
END_TEST

/* 127.0.0.1 is replaced as the source by the address of the destination. */
START_TEST(loopback_source)
{
	struct sockaddr_in from = address(0, 0), to = address(1, 7471);
	struct rdma_cm_id *id = new_id(new_channel(), RDMA_PS_TCP);

	ck_ok(rdma_resolve_addr(id, SA(&from), SA(&to), 2000));
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	check_device(id, 1);
	ck_assert_uint_eq(((struct sockaddr_in *)rdma_get_local_addr(id))
				  ->sin_addr.s_addr,
			  to.sin_addr.s_addr);
	end_id(id, true);
}
END_TEST

/* A listener that is bound to a device is not found at another one. */
START_TEST(bound_listener)
{
	struct sockaddr_in a = address(1, 0);
	struct rdma_cm_id *l, *c, *s;

	may_leak();
	l = listen_on(SA(&a), RDMA_PS_TCP, 0);
	check_device(l, 1);
	c = resolved(0, address(2, port_of(l)));
	give_qp(c);
	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	end_id(c, true);
	c = resolved(2, address(1, port_of(l)));
	s = connected(l, c);
	check_device(s, 1);
	end_id(c, true);
	end_id(s, true);
	end_id(l, true);
}
END_TEST

/* While the port of either end is down, no request arrives. */
START_TEST(port_down)
{
	const char *down = _i ? "urxe2" : "urxe1";
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct rdma_cm_id *l, *c, *s;

	may_leak();
	l = listen_on(SA(&any), RDMA_PS_TCP, 0);
	c = resolved(2, address(1, port_of(l)));
	give_qp(c);
	port("down", down);
	start_connect(c);
	expect_nothing(l->channel, 100);
	port("up", down);
	s = next_request(l);
	ck_ok(rdma_reject(s, NULL, 0));
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	end_id(s, false);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

/* The device of a multicast join is that of the bound address. */
START_TEST(multicast)
{
	struct sockaddr_in a = address(1, 0);
	struct sockaddr_in group = { .sin_family = AF_INET };
	struct rdma_cm_id *id = new_id(new_channel(), RDMA_PS_UDP);
	struct rdma_cm_event *e;
	struct ibv_ah *ah;

	may_leak();
	inet_pton(AF_INET, "239.1.2.3", &group.sin_addr);
	ck_ok(rdma_resolve_addr(id, SA(&a), SA(&group), 2000));
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	check_device(id, 1);
	give_qp(id);
	ck_ok(rdma_join_multicast(id, SA(&group), NULL));
	e = expect(id->channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	ah = ibv_create_ah(id->pd, &e->param.ud.ah_attr);
	ck_assert_ptr_nonnull(ah);
	ck_ok(ibv_destroy_ah(ah));
	ck_ok(rdma_ack_cm_event(e));
	ck_ok(rdma_leave_multicast(id, SA(&group)));
	end_id(id, true);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm devices");

	/* before the first process of the fabric creates it */
	setenv("URXE_DEVICES", "3", 1);
	add(s, list);
	add(s, bind_device);
	add_loop(s, wildcard_listener, sizeof(cases) / sizeof(*cases));
	add(s, loopback_source);
	add(s, bound_listener);
	add_loop(s, port_down, 2);
	add(s, multicast);
	return run_suite(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fault injection (URXE_FAULTS) in rdma_cm: errors, timeouts, lost requests.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include <rdma/rdma_verbs.h>

#include "harness.h"

#define QUIET_MS 100

static void fault(const char *rules)
{
	ck_ok(setenv("URXE_FAULTS", rules, 1));
}

static struct rdma_cm_id *listener(struct sockaddr_in *a)
{
	struct rdma_cm_id *l;

	*a = ip4(0);
	l = listen_on(SA(a), RDMA_PS_TCP, 0);
	a->sin_port = htons(port_of(l));
	return l;
}

/*
 * The second resolution of an address or route fails with the event and
 * status of the rule.  It can then be repeated.
 */
START_TEST(resolution_fails)
{
	static const struct {
		const char *rule;
		bool route;
		int status;
	} cases[] = {
		{ "rdma_resolve_addr:nth=2:ETIMEDOUT", false, -ETIMEDOUT },
		{ "rdma_resolve_addr:nth=2:ADDR_ERROR=ENODEV", false, -ENODEV },
		{ "rdma_resolve_route:nth=2:ETIMEDOUT", true, -ETIMEDOUT },
		{ "rdma_resolve_route:nth=2:ROUTE_ERROR=ENETUNREACH", true,
		  -ENETUNREACH },
	};
	struct sockaddr_in a = ip4(5555);
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;

	fault(cases[_i].rule);
	end_id(client_to(SA(&a), RDMA_PS_TCP), true);
	ch = new_channel();
	id = new_id(ch, RDMA_PS_TCP);
	ck_ok(rdma_resolve_addr(id, NULL, SA(&a), 1000));
	if (cases[_i].route) {
		pass(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		ck_ok(rdma_resolve_route(id, 1000));
		pass(ch, RDMA_CM_EVENT_ROUTE_ERROR, cases[_i].status);
		ck_ok(rdma_resolve_route(id, 1000)); /* once more */
	} else {
		pass(ch, RDMA_CM_EVENT_ADDR_ERROR, cases[_i].status);
		ck_ok(rdma_resolve_addr(id, NULL, SA(&a), 1000));
		pass(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		ck_ok(rdma_resolve_route(id, 1000));
	}
	pass(ch, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	end_id(id, true);
}
END_TEST

/*
 * rdma_connect() fails with the event and status of the rule, and the
 * listener gets no request.
 */
START_TEST(connect_fails)
{
	static const struct {
		const char *rule;
		enum rdma_cm_event_type event;
		int status;
	} cases[] = {
		{ "rdma_connect:nth=1:REJECTED", RDMA_CM_EVENT_REJECTED,
		  REJ_CONSUMER },
		{ "rdma_connect:nth=1:REJECTED=8", RDMA_CM_EVENT_REJECTED,
		  REJ_NO_LISTENER },
		{ "rdma_connect:nth=1:ETIMEDOUT", RDMA_CM_EVENT_UNREACHABLE,
		  -ETIMEDOUT },
		{ "rdma_connect:nth=1:UNREACHABLE=EHOSTUNREACH",
		  RDMA_CM_EVENT_UNREACHABLE, -EHOSTUNREACH },
	};
	struct sockaddr_in a;
	struct rdma_cm_id *l, *c, *s;

	fault(cases[_i].rule);
	l = listener(&a);
	c = client_to(SA(&a), RDMA_PS_TCP);
	give_qp(c);
	start_connect(c);
	pass(c->channel, cases[_i].event, cases[_i].status);
	expect_nothing(l->channel, QUIET_MS); /* the REQ was not delivered */
	end_id(c, true);
	/* the rule matches only the first rdma_connect() */
	c = client_to(SA(&a), RDMA_PS_TCP);
	give_qp(c);
	start_connect(c);
	s = next_request(l);
	give_qp(s);
	accept_it(s);
	pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	end_id(c, true);
	pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_id(s, false);
	end_id(l, true);
}
END_TEST

/* SILENT: the REQ is lost, and neither end gets an event. */
START_TEST(silent_req_lost)
{
	struct sockaddr_in a;
	struct rdma_cm_id *l, *c;

	fault("rdma_connect:SILENT");
	l = listener(&a);
	c = client_to(SA(&a), RDMA_PS_TCP);
	give_qp(c);
	start_connect(c);
	expect_nothing(c->channel, QUIET_MS);
	expect_nothing(l->channel, 0);
	ck_fails(rdma_resolve_route(c, 1000), EINVAL); /* it is connecting */
	end_id(c, true);
	end_id(l, true);
}
END_TEST

/* Calls fail with the errno of their rule, without an event. */
START_TEST(calls_fail_with_errno)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id, *l;

	/*
	 * nth=2: librdmacm creates and binds an id itself during
	 * initialization
	 */
	fault("rdma_create_id:nth=2:ENOMEM;rdma_bind_addr:nth=2:EADDRINUSE;"
	      "rdma_listen:nth=1:EIO;rdma_resolve_addr:nth=1:ENODEV");
	ch = new_channel();
	ck_fails(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), ENOMEM);
	l = new_id(ch, RDMA_PS_TCP);
	ck_fails(rdma_bind_addr(l, SA(&a)), EADDRINUSE);
	ck_ok(rdma_bind_addr(l, SA(&a)));
	ck_fails(rdma_listen(l, 1), EIO);
	ck_ok(rdma_listen(l, 1));
	id = new_id(ch, RDMA_PS_TCP);
	ck_fails(rdma_resolve_addr(id, NULL, SA(&a), 1000), ENODEV);
	expect_nothing(ch, QUIET_MS);
	end_id(id, false);
	end_id(l, true);
}
END_TEST

/* If rdma_accept() fails, the request is rejected, as in the kernel. */
START_TEST(accept_fails)
{
	struct rdma_conn_param p = param(NULL, 0);
	struct sockaddr_in a;
	struct rdma_cm_id *l, *c, *s;

	fault("rdma_accept:nth=1:ENOMEM");
	l = listener(&a);
	c = client_to(SA(&a), RDMA_PS_TCP);
	give_qp(c);
	start_connect(c);
	s = next_request(l);
	give_qp(s);
	ck_fails(rdma_accept(s, &p), ENOMEM);
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	end_id(c, true);
	end_id(s, false);
	/*
	 * the next one succeeds; the client's confirmation is an ACCEPT, too
	 */
	c = client_to(SA(&a), RDMA_PS_TCP);
	give_qp(c);
	start_connect(c);
	s = next_request(l);
	give_qp(s);
	accept_it(s);
	pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	end_id(c, true);
	pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_id(s, false);
	end_id(l, true);
}
END_TEST

/*
 * A REQ that is sent while the port is down is delivered when the port is up
 * again.  The rules take the port down, and up, when a receive is posted.
 */
START_TEST(port_down)
{
	static const char *const rules[] = {
		"port:at=recv:nth=1:DOWN;port:at=recv:nth=2:UP",
		"port:at=recv:nth=1:DOWN=300",
	};
	struct inbox in[2];
	struct sockaddr_in a;
	struct rdma_cm_id *l, *c, *s;

	fault(rules[_i]);
	l = listener(&a);
	c = client_to(SA(&a), RDMA_PS_TCP);
	give_qp(c);
	post_inbox(c, &in[0]);
	start_connect(c);
	if (!_i) {
		expect_nothing(l->channel, QUIET_MS);
		expect_nothing(c->channel, 0);
		post_inbox(c, &in[1]);
	}
	s = next_request(l);
	give_qp(s);
	accept_it(s);
	pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	end_id(c, true);
	pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_id(s, false);
	end_id(l, true);
	ibv_dereg_mr(in[0].mr);
	if (!_i)
		ibv_dereg_mr(in[1].mr);
}
END_TEST

/* An id that is destroyed while the port is down sends no REQ later. */
START_TEST(id_destroyed_while_port_down)
{
	struct inbox in[2];
	struct sockaddr_in a;
	struct rdma_cm_id *l, *c, *other;

	fault("port:at=recv:nth=1:DOWN;port:at=recv:nth=2:UP");
	l = listener(&a);
	other = client_to(SA(&a), RDMA_PS_TCP);
	give_qp(other);
	c = client_to(SA(&a), RDMA_PS_TCP);
	give_qp(c);
	post_inbox(other, &in[0]);
	start_connect(c);
	end_id(c, true);
	post_inbox(other, &in[1]);
	expect_nothing(l->channel, QUIET_MS);
	ck_ok(rdma_dereg_mr(in[0].mr));
	ck_ok(rdma_dereg_mr(in[1].mr));
	end_id(other, true);
	end_id(l, true);
}
END_TEST

/* Each call fails once, with the errno of its rule, and then succeeds. */
START_TEST(each_call_fails_once)
{
	struct rdma_conn_param p = param(NULL, 0);
	struct sockaddr_in a = ip4(0);
	struct rdma_event_channel *ch;
	struct rdma_cm_id *l, *c, *s;
	uint8_t tos = 8;

	fault("rdma_set_option:nth=1:EACCES;rdma_resolve_route:nth=1:ENOMEM;"
	      "rdma_connect:nth=1:EIO;rdma_reject:nth=1:EBUSY;"
	      "rdma_migrate_id:nth=1:EMFILE;rdma_notify:nth=1:ENOSPC;"
	      "rdma_disconnect:nth=1:EAGAIN");
	l = listener(&a);
	c = new_id(new_channel(), RDMA_PS_TCP);
	ck_fails(rdma_set_option(c, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos,
				 sizeof(tos)),
		 EACCES);
	ck_ok(rdma_resolve_addr(c, NULL, SA(&a), 1000));
	pass(c->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_fails(rdma_resolve_route(c, 1000), ENOMEM);
	expect_nothing(c->channel, 0);
	ck_ok(rdma_resolve_route(c, 1000));
	pass(c->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	give_qp(c);
	ck_fails(rdma_connect(c, &p), EIO);
	expect_nothing(l->channel, 0);
	ck_ok(rdma_connect(c, &p));
	s = next_request(l);
	ck_fails(rdma_reject(s, NULL, 0), EBUSY);
	ch = new_channel();
	ck_fails(rdma_migrate_id(s, ch), EMFILE);
	ck_ok(rdma_migrate_id(s, ch));
	give_qp(s);
	accept_it(s);
	ck_fails(rdma_notify(s, IBV_EVENT_COMM_EST), ENOSPC);
	pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pass(ch, RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_fails(rdma_disconnect(c), EAGAIN);
	expect_nothing(ch, QUIET_MS);
	ck_ok(rdma_disconnect(c));
	pass(ch, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_id(s, true);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

/*
 * rdma_join_multicast() fails with the errno of its rule, without an event.
 */
START_TEST(join_fails)
{
	struct sockaddr_in a = ip4(5555), group = { .sin_family = AF_INET };
	struct rdma_cm_id *id;

	fault("rdma_join_multicast:nth=1:ENOMEM");
	ck_assert_int_eq(inet_pton(AF_INET, "239.1.2.3", &group.sin_addr), 1);
	id = client_to(SA(&a), RDMA_PS_UDP);
	ck_fails(rdma_join_multicast(id, SA(&group), NULL), ENOMEM);
	expect_nothing(id->channel, 0);
	end_id(id, true);
}
END_TEST

/* For UD the fault is an UNREACHABLE event, with a SIDR status or -errno. */
START_TEST(ud_connect_fails)
{
	static const struct {
		const char *rule;
		int status;
	} cases[] = {
		{ "rdma_connect:nth=1:REJECTED", 2 }, /* as in a SIDR_REP */
		{ "rdma_connect:nth=1:UNREACHABLE=ENETUNREACH", -ENETUNREACH },
	};
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *l, *c;

	fault(cases[_i].rule);
	l = listen_on(SA(&a), RDMA_PS_UDP, 0);
	a.sin_port = htons(port_of(l));
	c = client_to(SA(&a), RDMA_PS_UDP);
	give_qp(c);
	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_UNREACHABLE, cases[_i].status);
	expect_nothing(l->channel, QUIET_MS);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

/* A synchronous call fails with the errno of its event. */
START_TEST(synchronous_call_fails)
{
	static const struct {
		const char *rule;
		int err;
	} cases[] = {
		{ "rdma_connect:REJECTED", ECONNREFUSED },
		{ "rdma_connect:ETIMEDOUT", ETIMEDOUT },
		{ "rdma_connect:UNREACHABLE=EHOSTUNREACH", EHOSTUNREACH },
	};
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };
	struct rdma_conn_param p = param(NULL, 0);
	struct rdma_cm_id *l, *c;
	struct sockaddr_in a;
	char rules[256];

	snprintf(rules, sizeof(rules),
		 "rdma_resolve_addr:nth=1:ETIMEDOUT;ibv_create_qp:nth=1:ENOMEM;"
		 "rdma_resolve_route:nth=1:ROUTE_ERROR=ENETUNREACH;%s",
		 cases[_i].rule);
	fault(rules);
	l = listener(&a);
	ck_ok(rdma_create_id(NULL, &c, NULL, RDMA_PS_TCP));
	ck_fails(rdma_resolve_addr(c, NULL, SA(&a), 1000), ETIMEDOUT);
	ck_ok(rdma_resolve_addr(c, NULL, SA(&a), 1000));
	ck_fails(rdma_resolve_route(c, 1000), ENETUNREACH);
	ck_ok(rdma_resolve_route(c, 1000));
	ck_fails(rdma_create_qp(c, NULL, &attr), ENOMEM);
	give_qp(c);
	ck_fails(rdma_connect(c, &p), cases[_i].err);
	end_id(c, false);
	end_id(l, true);
}
END_TEST

/*
 * Faults of verbs apply to the posts and polls of librdmacm, on a QP that it
 * created.
 */
START_TEST(verbs_faults_on_qp_of_id)
{
	struct ibv_mr *mr;
	struct ibv_wc wc;
	struct both b;
	char data[64];

	fault("ibv_post_send:nth=1:EIO;wr:type=RC:nth=2:REM_OP_ERR;"
	      "ibv_poll_cq:nth=1:EIO");
	b = connect_both();
	mr = rdma_reg_msgs(b.client, data, sizeof(data));
	ck_assert_ptr_nonnull(mr);
	ck_ok(rdma_post_recv(b.server, NULL, data, sizeof(data), mr));
	ck_ok(rdma_post_recv(b.server, NULL, data, sizeof(data), mr));
	ck_fails(rdma_post_send(b.client, NULL, data, 8, mr, 0), EIO);
	ck_ok(rdma_post_send(b.client, NULL, data, 8, mr, 0));
	ck_ok(rdma_post_send(b.client, NULL, data, 8, mr, 0));
	ck_assert_int_lt(rdma_get_send_comp(b.client, &wc), 0);
	ck_assert_int_eq(rdma_get_send_comp(b.client, &wc), 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_int_eq(rdma_get_send_comp(b.client, &wc), 1);
	ck_assert_int_eq(wc.status, IBV_WC_REM_OP_ERR);
	ck_assert_int_eq(rdma_get_recv_comp(b.server, &wc), 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_int_eq(rdma_get_recv_comp(b.server, &wc), 1);
	ck_assert_int_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	ck_ok(rdma_disconnect(b.client));
	pass(b.server->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	ck_ok(ibv_dereg_mr(mr));
	end_id(b.client, true);
	end_id(b.server, true);
	end_id(b.listener, true);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm faults");

	add_loop(s, resolution_fails, 4);
	add_loop(s, connect_fails, 4);
	add(s, silent_req_lost);
	add(s, calls_fail_with_errno);
	add(s, accept_fails);
	add(s, each_call_fails_once);
	add(s, join_fails);
	add_loop(s, ud_connect_fails, 2);
	add_loop(s, synchronous_call_fails, 3);
	add(s, verbs_faults_on_qp_of_id);
	add_loop(s, port_down, 2);
	add(s, id_destroyed_while_port_down);
	return run_suite(s);
}

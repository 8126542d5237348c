// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma_cm that refuses, times out and does not answer, by a rule. */
#include <stdlib.h>

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

/* The address or the route of a new id; the status of what comes. */
START_TEST(resolving)
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

START_TEST(connecting)
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
	expect_nothing(l->channel, QUIET_MS); /* it never heard of it */
	end_id(c, true);
	/* the second one gets through */
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

START_TEST(no_answer)
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
	ck_fails(rdma_resolve_route(c, 1000), EINVAL); /* it is on its way */
	end_id(c, true);
	end_id(l, true);
}
END_TEST

START_TEST(refused_at_once)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id, *l;

	/* librdmacm makes and binds one itself when it begins */
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

/* As a kernel does, who fails to accept has refused. */
START_TEST(accepting)
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
	/* and a confirmation is no accept */
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
 * A request that meets no port is sent again when it is there.  What takes the
 * port down, and up, is that a receive is posted.
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

/* Who gives up meanwhile leaves nothing behind. */
START_TEST(port_down_and_gone)
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
	end_id(other, true);
	end_id(l, true);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm faults");

	add_loop(s, resolving, 4);
	add_loop(s, connecting, 4);
	add(s, no_answer);
	add(s, refused_at_once);
	add(s, accepting);
	add_loop(s, port_down, 2);
	add(s, port_down_and_gone);
	return run_suite(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rdma_cm connections: the events of connecting, rejecting and disconnecting.
 */
#include <rdma/rdma_verbs.h>
#include <string.h>

#include "harness.h"

/* Bytes of private data of each message between ids with IP addresses. */
#define REQ_ROOM 56
#define REP_ROOM 196
#define REJ_ROOM 148

/* The QPs of a connection are in RTS, with matching QPNs, PSNs and ports. */
START_TEST(establish)
{
	struct both b = connect_both();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr c, s;

	ck_ok(ibv_query_qp(b.client->qp, &c, -1, &init));
	ck_ok(ibv_query_qp(b.server->qp, &s, -1, &init));
	ck_assert_int_eq(c.qp_state, IBV_QPS_RTS);
	ck_assert_int_eq(s.qp_state, IBV_QPS_RTS);
	ck_assert_uint_eq(c.dest_qp_num, b.server->qp->qp_num);
	ck_assert_uint_eq(s.dest_qp_num, b.client->qp->qp_num);
	ck_assert_uint_eq(c.rq_psn, s.sq_psn);
	ck_assert_uint_eq(s.rq_psn, c.sq_psn);
	ck_assert_int_eq(s.retry_cnt, 5);
	ck_assert_int_eq(s.rnr_retry, 6);
	ck_assert_uint_eq(rdma_get_dst_port(b.client),
			  rdma_get_src_port(b.listener));
	ck_assert_uint_eq(rdma_get_src_port(b.client),
			  rdma_get_dst_port(b.server));
	end_id(b.client, true);
	end_id(b.server, true);
	end_id(b.listener, true);
}
END_TEST

static struct rdma_cm_id *new_listener(struct sockaddr_in *a, int backlog)
{
	struct rdma_cm_id *l;

	*a = ip4(0);
	l = listen_on(SA(a), RDMA_PS_TCP, backlog);
	*a = ip4(port_of(l));
	return l;
}

static void check_data(const struct rdma_cm_event *e, const char *data,
		       size_t room)
{
	static const char zeros[256];
	size_t n = strlen(data);

	ck_assert_uint_eq(e->param.conn.private_data_len, room);
	ck_assert_mem_eq(e->param.conn.private_data, data, n);
	ck_assert_mem_eq((char *)e->param.conn.private_data + n, zeros,
			 room - n);
}

/* The connection parameters and private data reach the peer in the events. */
START_TEST(parameters)
{
	struct sockaddr_in a;
	struct rdma_cm_id *l = new_listener(&a, 0), *c, *s;
	struct rdma_conn_param p = param("hello", 5);
	struct rdma_cm_event *e;

	c = client_to(SA(&a), RDMA_PS_TCP);
	p.qp_num = 0x123456;
	p.srq = 1;
	p.flow_control = 1;
	ck_ok(rdma_connect(c, &p));
	e = expect(l->channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	check_data(e, "hello", REQ_ROOM);
	/* the receiver sees both values exchanged */
	ck_assert_int_eq(e->param.conn.responder_resources, 2);
	ck_assert_int_eq(e->param.conn.initiator_depth, 3);
	ck_assert_int_eq(e->param.conn.retry_count, 5);
	ck_assert_int_eq(e->param.conn.rnr_retry_count, 6);
	ck_assert_int_eq(e->param.conn.srq, 1);
	ck_assert_int_eq(e->param.conn.flow_control, 1);
	ck_assert_uint_eq(e->param.conn.qp_num, 0x123456);
	s = e->id;
	ck_assert_ptr_eq(s->channel, l->channel);
	ck_ok(rdma_ack_cm_event(e));
	p = param("world!", 6);
	p.qp_num = 0x654321;
	ck_ok(rdma_accept(s, &p));
	/*
	 * without a QP librdmacm leaves the confirmation to the application
	 */
	e = expect(c->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	check_data(e, "world!", REP_ROOM);
	ck_assert_uint_eq(e->param.conn.qp_num, 0x654321);
	ck_assert_int_eq(e->param.conn.responder_resources, 2);
	ck_assert_int_eq(e->param.conn.initiator_depth, 3);
	ck_assert_int_eq(e->param.conn.rnr_retry_count, 6);
	ck_ok(rdma_ack_cm_event(e));
	expect_nothing(l->channel, 50);
	ck_ok(rdma_establish(c));
	e = expect(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_assert_ptr_eq(e->id, s);
	ck_ok(rdma_ack_cm_event(e));
	end_id(c, true);
	end_id(s, false);
	end_id(l, true);
}
END_TEST

/* Private data that does not fit in the message fails with EINVAL. */
START_TEST(private_data_limits)
{
	char data[256] = { 0 };
	struct sockaddr_in a;
	struct rdma_cm_id *l = new_listener(&a, 0), *c, *s;
	struct rdma_conn_param p = param(data, REQ_ROOM + 1);

	c = client_to(SA(&a), RDMA_PS_TCP);
	ck_fails(rdma_connect(c, &p), EINVAL);
	p.private_data_len = REQ_ROOM;
	ck_ok(rdma_connect(c, &p));
	s = next_request(l);
	ck_fails(rdma_reject(s, data, REJ_ROOM + 1), EINVAL);
	p.private_data_len = REP_ROOM + 1;
	ck_fails(rdma_accept(s, &p), EINVAL);
	/* as in the kernel, a failed accept rejects the request */
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	end_id(c, true);
	end_id(s, false);
	end_id(l, true);
}
END_TEST

/* The ECE options of both ends reach the peer; the client can reject them. */
START_TEST(ece)
{
	struct ibv_ece ece = { .vendor_id = 0x1234, .options = 77 }, got;
	struct sockaddr_in a;
	struct rdma_cm_id *l = new_listener(&a, 0), *c, *s;

	c = client_to(SA(&a), RDMA_PS_TCP);
	ck_ok(rdma_set_local_ece(c, &ece));
	start_connect(c);
	s = next_request(l);
	ck_ok(rdma_get_remote_ece(s, &got));
	ck_assert_uint_eq(got.vendor_id, 0x1234);
	ck_assert_uint_eq(got.options, 77);
	ece.options = 78;
	ck_ok(rdma_set_local_ece(s, &ece));
	accept_it(s);
	pass(c->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	ck_ok(rdma_get_remote_ece(c, &got));
	ck_assert_uint_eq(got.vendor_id, 0x1234);
	ck_assert_uint_eq(got.options, 78);
	ck_ok(rdma_reject_ece(c, NULL, 0));
	pass(l->channel, RDMA_CM_EVENT_REJECTED, REJ_VENDOR_OPTION);
	end_id(c, true);
	end_id(s, false);
	end_id(l, true);
}
END_TEST

/* A REQ without a listener is rejected, after a while. */
START_TEST(no_listener)
{
	struct sockaddr_in a = ip4(4321);
	struct rdma_cm_id *c = client_to(SA(&a), RDMA_PS_TCP);
	double start = now();

	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_NO_LISTENER);
	ck_assert(now() - start > 0.05);
	/* an id can connect only once */
	ck_fails(rdma_connect(c, NULL), EINVAL);
	end_id(c, true);
}
END_TEST

/*
 * Start listening shortly after a REQ was sent.  If that takes less than 0.1
 * s, as programs that do not synchronize listen and connect may rely on, the
 * REQ is delivered.  False: it took longer.
 */
static bool listen_in_time(void)
{
	struct sockaddr_in a = ip4(4322);
	struct rdma_cm_id *c = client_to(SA(&a), RDMA_PS_TCP), *l;
	double start = now();
	bool in_time;

	start_connect(c);
	l = listen_on(SA(&a), RDMA_PS_TCP, 0);
	in_time = now() - start < 0.1;
	if (in_time) {
		end_id(next_request(l), false);
		pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	}
	end_id(c, true);
	end_id(l, true);
	return in_time;
}

/* A REQ is delivered to a listener that is created shortly after it. */
START_TEST(listener_created_after_req)
{
	int i;

	for (i = 0; i < 50; i++)
		if (listen_in_time())
			return;
	ck_abort_msg("this machine is too slow");
}
END_TEST

/* rdma_reject() sends its private data, and can be called once. */
START_TEST(reject)
{
	struct sockaddr_in a;
	struct rdma_cm_id *l = new_listener(&a, 0), *c, *s;
	struct rdma_cm_event *e;

	c = client_to(SA(&a), RDMA_PS_TCP);
	start_connect(c);
	s = next_request(l);
	ck_ok(rdma_reject(s, "no", 2));
	e = expect(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	check_data(e, "no", REJ_ROOM);
	ck_ok(rdma_ack_cm_event(e));
	ck_fails(rdma_reject(s, NULL, 0), EINVAL);
	end_id(s, false);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

/* rdma_disconnect() of both ends: DISCONNECTED, then TIMEWAIT_EXIT. */
START_TEST(disconnect)
{
	struct both b = connect_both();

	ck_ok(rdma_disconnect(b.client));
	/* the peer is notified, then disconnects as well */
	pass(b.server->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	expect_nothing(b.client->channel, 100);
	ck_ok(rdma_disconnect(b.server));
	pass(b.client->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	ck_ok(rdma_disconnect(b.client));
	pass(b.client->channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	pass(b.server->channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	end_id(b.client, true);
	end_id(b.server, true);
	end_id(b.listener, true);
}
END_TEST

/* Destroying a connected id disconnects its peer. */
START_TEST(destroy_disconnects)
{
	struct both b = connect_both();

	end_id(b.server, true);
	pass(b.client->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	ck_ok(rdma_disconnect(b.client));
	pass(b.client->channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	end_id(b.client, true);
	end_id(b.listener, true);
}
END_TEST

/* Destroying an id that has got a DREQ answers the DREQ. */
START_TEST(destroy_answers_a_disconnect)
{
	struct both b = connect_both();

	ck_ok(rdma_disconnect(b.client));
	end_id(b.server, true);
	pass(b.client->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_id(b.client, true);
	end_id(b.listener, true);
}
END_TEST

/* The client destroys its id before, or after, the server has accepted. */
START_TEST(client_destroys_id)
{
	struct sockaddr_in a;
	struct rdma_cm_id *l = new_listener(&a, 0), *c, *s;
	struct rdma_conn_param p = param(NULL, 0);

	c = client_to(SA(&a), RDMA_PS_TCP);
	start_connect(c);
	s = next_request(l);
	end_id(c, true);
	/* no event for a request that is not accepted yet */
	expect_nothing(l->channel, 50);
	ck_fails(rdma_accept(s, &p), EINVAL);
	end_id(s, false);

	c = client_to(SA(&a), RDMA_PS_TCP);
	start_connect(c);
	s = next_request(l);
	accept_it(s);
	pass(c->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	end_id(c, true);
	pass(l->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	end_id(s, false);
	end_id(l, true);
}
END_TEST

/* A request whose id, or whose listener, is destroyed is rejected. */
START_TEST(server_destroys_the_request)
{
	struct sockaddr_in a;
	struct rdma_cm_id *l = new_listener(&a, 0), *c;

	c = client_to(SA(&a), RDMA_PS_TCP);
	start_connect(c);
	end_id(next_request(l), false);
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	end_id(c, true);
	/* destroying a listener rejects the requests that were not fetched */
	c = client_to(SA(&a), RDMA_PS_TCP);
	start_connect(c);
	end_id(l, true);
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	end_id(c, true);
}
END_TEST

/* Requests beyond the backlog wait until the listener has room. */
START_TEST(backlog)
{
	struct sockaddr_in a;
	struct rdma_cm_id *l = new_listener(&a, 2), *c[4], *s[4];
	int i;

	for (i = 0; i < 4; i++) {
		c[i] = client_to(SA(&a), RDMA_PS_TCP);
		start_connect(c[i]);
	}
	/* two are queued; two do not fit and are sent again */
	for (i = 0; i < 4; i++) {
		s[i] = next_request(l);
		ck_assert_uint_eq(rdma_get_dst_port(s[i]),
				  rdma_get_src_port(c[i]));
	}
	expect_nothing(l->channel, 50);
	for (i = 0; i < 4; i++) {
		end_id(s[i], false);
		pass(c[i]->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
		end_id(c[i], true);
	}
	/* parked requests find no listener after it is destroyed */
	for (i = 0; i < 3; i++) {
		c[i] = client_to(SA(&a), RDMA_PS_TCP);
		start_connect(c[i]);
	}
	end_id(l, true);
	pass(c[0]->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	pass(c[1]->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	pass(c[2]->channel, RDMA_CM_EVENT_REJECTED, REJ_NO_LISTENER);
	for (i = 0; i < 3; i++)
		end_id(c[i], true);
}
END_TEST

/*
 * rdma_notify(IBV_EVENT_COMM_EST) establishes a connection before the RTU,
 * and fails in other states.
 */
START_TEST(notify)
{
	struct sockaddr_in a;
	struct rdma_cm_id *l = new_listener(&a, 0), *c, *s;

	c = client_to(SA(&a), RDMA_PS_TCP);
	ck_fails(rdma_notify(c, IBV_EVENT_COMM_EST), EINVAL);
	start_connect(c);
	s = next_request(l);
	ck_fails(rdma_notify(s, IBV_EVENT_COMM_EST), EINVAL);
	accept_it(s);
	ck_fails(rdma_notify(s, IBV_EVENT_QP_FATAL), EINVAL);
	/* data may arrive before the RTU */
	ck_ok(rdma_notify(s, IBV_EVENT_COMM_EST));
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_fails(rdma_notify(s, IBV_EVENT_COMM_EST), EISCONN);
	pass(c->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	ck_ok(rdma_establish(c));
	expect_nothing(l->channel, 50);
	end_id(c, true);
	pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_id(s, false);
	end_id(l, true);
}
END_TEST

static void say(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
	static char hello[] = "hello";
	struct ibv_mr *mr = rdma_reg_msgs(from, hello, sizeof(hello));
	struct inbox in;

	ck_assert_ptr_nonnull(mr);
	post_inbox(to, &in);
	ck_ok(rdma_post_send(from, NULL, hello, sizeof(hello), mr,
			     IBV_SEND_SIGNALED));
	ck_assert(inbox_filled(to, PATIENCE_MS));
	ck_assert_str_eq(in.data, hello);
	rdma_dereg_mr(in.mr);
	rdma_dereg_mr(mr);
}

/* IB port space: the application chooses the QP type. */
static void connect_type(enum ibv_qp_type type)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *l = ib_listen_on(SA(&a), type), *c, *s;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	a = ip4(port_of(l));
	c = ib_client_to(SA(&a), type);
	ck_assert_int_eq(c->qp_type, type);
	give_qp(c);
	start_connect(c);
	s = next_request(l);
	ck_assert_int_eq(s->qp_type, type);
	give_qp(s);
	accept_it(s);
	pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_ok(ibv_query_qp(s->qp, &attr, -1, &init));
	ck_assert_int_eq(attr.qp_state, IBV_QPS_RTS);
	say(c, s);
	say(s, c);
	end_id(c, true);
	pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_id(s, false);
	end_id(l, true);
}

/* RC and UC connections in the IB port space carry messages. */
START_TEST(qp_types)
{
	connect_type(IBV_QPT_RC);
	connect_type(IBV_QPT_UC);
}
END_TEST

/* A REQ for another QP type than the listener's is rejected. */
START_TEST(other_qp_type)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *l = ib_listen_on(SA(&a), IBV_QPT_UC), *c;

	a = ip4(port_of(l));
	c = ib_client_to(SA(&a), IBV_QPT_RC);
	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	end_id(c, true);
	/* an XRC target QP cannot send a REQ */
	c = ib_client_to(SA(&a), IBV_QPT_XRC_RECV);
	ck_fails(rdma_connect(c, NULL), EINVAL);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

/*
 * An XRC initiator QP connects to an XRC target QP, which several may share.
 */
START_TEST(xrc)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *l = ib_listen_on(SA(&a), IBV_QPT_XRC_RECV), *c, *s;
	struct rdma_cm_event *e;

	a = ip4(port_of(l));
	c = ib_client_to(SA(&a), IBV_QPT_XRC_SEND);
	start_connect(c);
	e = expect(l->channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	s = e->id;
	ck_assert_int_eq(s->qp_type, IBV_QPT_XRC_RECV);
	/* an XRC initiator does not respond to RDMA READs and atomics */
	ck_assert_int_eq(e->param.conn.responder_resources, 2);
	ck_assert_int_eq(e->param.conn.initiator_depth, 0);
	ck_assert_int_eq(e->param.conn.retry_count, 0);
	ck_ok(rdma_ack_cm_event(e));
	accept_it(s);
	pass(c->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	ck_ok(rdma_establish(c));
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	end_id(s, false);
	expect_nothing(c->channel, 50);
	/* a DREQ for an unknown connection is answered with a DREP */
	ck_ok(rdma_disconnect(c));
	pass(c->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	pass(c->channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

/* Synchronous ids (no channel given): each call waits for its event. */
static void sync_server(int fd, void *arg)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *l, *s;

	(void)arg;
	ck_ok(rdma_create_id(NULL, &l, NULL, RDMA_PS_TCP));
	ck_ok(rdma_bind_addr(l, SA(&a)));
	ck_ok(rdma_listen(l, 0));
	send_int(fd, port_of(l));
	ck_ok(rdma_get_request(l, &s));
	give_qp(s);
	ck_ok(rdma_accept(s, NULL));
	ck_ok(rdma_disconnect(s));
	rdma_destroy_ep(s);
	rdma_destroy_ep(l);
}

/*
 * rdma_connect() and the other calls of synchronous ids, with and without a
 * listener.
 */
START_TEST(synchronous_ids)
{
	struct other o = spawn(sync_server, NULL);
	struct sockaddr_in a = ip4(receive_int(o.fd));
	struct rdma_cm_id *c;

	ck_ok(rdma_create_id(NULL, &c, NULL, RDMA_PS_TCP));
	ck_ok(rdma_resolve_addr(c, NULL, SA(&a), 1000));
	ck_ok(rdma_resolve_route(c, 1000));
	give_qp(c);
	ck_ok(rdma_connect(c, NULL));
	ck_ok(rdma_disconnect(c));
	rdma_destroy_ep(c);
	finish(o);
	ck_ok(rdma_create_id(NULL, &c, NULL, RDMA_PS_TCP));
	ck_ok(rdma_resolve_addr(c, NULL, SA(&a), 1000));
	ck_ok(rdma_resolve_route(c, 1000));
	give_qp(c);
	ck_fails(rdma_connect(c, NULL), ECONNREFUSED);
	rdma_destroy_ep(c);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm connections");

	add(s, establish);
	add(s, parameters);
	add(s, private_data_limits);
	add(s, ece);
	add(s, no_listener);
	add(s, listener_created_after_req);
	add(s, reject);
	add(s, disconnect);
	add(s, destroy_disconnects);
	add(s, destroy_answers_a_disconnect);
	add(s, client_destroys_id);
	add(s, server_destroys_the_request);
	add(s, backlog);
	add(s, notify);
	add(s, qp_types);
	add(s, other_qp_type);
	add(s, xrc);
	add(s, synchronous_ids);
	return run_suite(s);
}

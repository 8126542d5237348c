// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma_cm with UD: service ID resolution (SIDR) and multicast. */
#include <arpa/inet.h>
#include <rdma/rdma_verbs.h>
#include <string.h>

#include "harness.h"

#define REQ_ROOM 180
#define REP_ROOM 136

static struct rdma_cm_id *new_listener(struct sockaddr_in *a)
{
	struct rdma_cm_id *l;

	*a = ip4(0);
	l = listen_on(SA(a), RDMA_PS_UDP, 0);
	*a = ip4(port_of(l));
	return l;
}

static void check_ah(struct rdma_cm_id *id, struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah;

	ck_assert_int_eq(attr->is_global, 1);
	ck_assert_int_eq(attr->port_num, 1);
	ah = ibv_create_ah(id->pd, attr);
	ck_assert_ptr_nonnull(ah);
	ck_ok(ibv_destroy_ah(ah));
}

/*
 * SIDR: QPN, Q_Key, address handle and private data of the server reach the
 * client.
 */
START_TEST(resolve_service)
{
	struct rdma_conn_param p = param("who?", 4);
	struct sockaddr_in a;
	struct rdma_cm_id *l = new_listener(&a), *c, *s;
	struct ibv_qp_init_attr init;
	struct rdma_cm_event *e;
	struct ibv_qp_attr attr;

	c = client_to(SA(&a), RDMA_PS_UDP);
	give_qp(c);
	ck_ok(ibv_query_qp(c->qp, &attr, -1, &init));
	ck_assert_int_eq(attr.qp_state, IBV_QPS_RTS);
	ck_assert_uint_eq(attr.qkey, UDP_QKEY);
	ck_ok(rdma_connect(c, &p));
	e = expect(l->channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	ck_assert_int_eq(e->param.ud.private_data_len, REQ_ROOM);
	ck_assert_mem_eq(e->param.ud.private_data, "who?", 5);
	s = e->id;
	ck_ok(rdma_ack_cm_event(e));
	give_qp(s);
	p = param("me", 2);
	ck_ok(rdma_accept(s, &p));
	e = expect(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_assert_uint_eq(e->param.ud.qp_num, s->qp->qp_num);
	ck_assert_uint_eq(e->param.ud.qkey, UDP_QKEY);
	ck_assert_int_eq(e->param.ud.private_data_len, REP_ROOM);
	ck_assert_mem_eq(e->param.ud.private_data, "me", 3);
	check_ah(c, &e->param.ud.ah_attr);
	ck_ok(rdma_ack_cm_event(e));
	/* UD has no connection, so no DISCONNECTED either */
	end_id(s, false);
	expect_nothing(c->channel, 100);
	end_id(c, true);
	expect_nothing(l->channel, 0);
	end_id(l, true);
}
END_TEST

/*
 * A SIDR_REQ that is rejected, destroyed, or for which no listener exists
 * ends with UNREACHABLE and the SIDR status.
 */
START_TEST(unresolved)
{
	struct sockaddr_in a, b;
	struct rdma_cm_id *l = new_listener(&a), *c;

	c = client_to(SA(&a), RDMA_PS_UDP);
	start_connect(c);
	ck_ok(rdma_reject(next_request(l), NULL, 0));
	pass(c->channel, RDMA_CM_EVENT_UNREACHABLE, SIDR_REJECT);
	end_id(c, true);

	c = client_to(SA(&a), RDMA_PS_UDP);
	start_connect(c);
	end_id(next_request(l), false);
	pass(c->channel, RDMA_CM_EVENT_UNREACHABLE, SIDR_REJECT);
	end_id(c, true);

	b = ip4(4323);
	c = client_to(SA(&b), RDMA_PS_UDP);
	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_UNREACHABLE, SIDR_UNSUPPORTED);
	end_id(c, true);

	/* the same number in RDMA_PS_TCP is another port */
	c = client_to(SA(&a), RDMA_PS_TCP);
	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_NO_LISTENER);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

/* The private data of a rejection reaches the client. */
START_TEST(reject_with_data)
{
	struct sockaddr_in a;
	struct rdma_cm_id *l = new_listener(&a), *c, *s;
	char data[REP_ROOM + 1] = "no";
	struct rdma_cm_event *e;

	c = client_to(SA(&a), RDMA_PS_UDP);
	start_connect(c);
	s = next_request(l);
	ck_fails(rdma_reject(s, data, REP_ROOM + 1), EINVAL);
	ck_ok(rdma_reject(s, data, 2));
	e = expect(c->channel, RDMA_CM_EVENT_UNREACHABLE, SIDR_REJECT);
	ck_assert_int_eq(e->param.ud.private_data_len, REP_ROOM);
	ck_assert_mem_eq(e->param.ud.private_data, "no", 3);
	ck_ok(rdma_ack_cm_event(e));
	end_id(s, false);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

/* A SIDR_REQ that the listener cannot take is refused, not dropped. */
START_TEST(sidr_refused)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *l = ib_listen_on(SA(&a), IBV_QPT_RC), *c, *first;

	a = ip4(port_of(l));
	c = ib_client_to(SA(&a), IBV_QPT_UD);
	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_UNREACHABLE, SIDR_REJECT);
	end_id(c, true);
	end_id(l, true);

	/* a SIDR_REQ does not wait for free backlog */
	a = ip4(0);
	l = listen_on(SA(&a), RDMA_PS_UDP, 1);
	a = ip4(port_of(l));
	first = client_to(SA(&a), RDMA_PS_UDP);
	start_connect(first);
	c = client_to(SA(&a), RDMA_PS_UDP);
	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_UNREACHABLE, SIDR_REJECT);
	end_id(c, true);
	end_id(l, true);
	pass(first->channel, RDMA_CM_EVENT_UNREACHABLE, SIDR_REJECT);
	end_id(first, true);
}
END_TEST

/* Private data that does not fit in the message fails with EINVAL. */
START_TEST(private_data_limits)
{
	char data[256] = { 0 };
	struct sockaddr_in a;
	struct rdma_cm_id *l = new_listener(&a), *c, *s;
	struct rdma_conn_param p = param(data, REQ_ROOM + 1);

	c = client_to(SA(&a), RDMA_PS_UDP);
	ck_fails(rdma_connect(c, &p), EINVAL);
	p.private_data_len = REQ_ROOM;
	ck_ok(rdma_connect(c, &p));
	s = next_request(l);
	p.private_data_len = REP_ROOM + 1;
	ck_fails(rdma_accept(s, &p), EINVAL);
	pass(c->channel, RDMA_CM_EVENT_UNREACHABLE, SIDR_REJECT);
	end_id(s, false);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

static struct rdma_cm_id *member(void)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *id = new_id(new_channel(), RDMA_PS_UDP);

	ck_ok(rdma_resolve_addr(id, NULL, SA(&a), 1000));
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	give_qp(id);
	return id;
}

/*
 * Full members receive what others send.  A send-only member receives
 * nothing, and neither does a member after it has left.
 */
static void speak(struct sockaddr *group)
{
	struct rdma_cm_id *id[3] = { member(), member(), member() };
	char ping[] = "ping", pong[] = "pong", alone[] = "alone?";
	struct ibv_ah *ah[3];
	struct inbox in[3];
	int i;

	for (i = 0; i < 3; i++) {
		ah[i] = group_join(
			id[i], group,
			i == 2 ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER :
				 RDMA_MC_JOIN_FLAG_FULLMEMBER,
			NULL);
		post_inbox(id[i], &in[i]);
	}
	group_send(id[0], ah[0], ping);
	ck_assert(inbox_filled(id[1], PATIENCE_MS));
	ck_assert_str_eq(in[1].data + 40, ping);
	rdma_dereg_mr(in[1].mr);
	post_inbox(id[1], &in[1]);
	group_send(id[2], ah[2], pong);
	ck_assert(inbox_filled(id[0], PATIENCE_MS));
	ck_assert(inbox_filled(id[1], PATIENCE_MS));
	ck_assert_str_eq(in[1].data + 40, pong);
	ck_assert(!inbox_filled(id[2], 20));
	ck_ok(rdma_leave_multicast(id[1], group));
	rdma_dereg_mr(in[1].mr);
	post_inbox(id[1], &in[1]);
	group_send(id[0], ah[0], alone);
	ck_assert(!inbox_filled(id[1], 20));
	for (i = 0; i < 3; i++) {
		rdma_dereg_mr(in[i].mr);
		ibv_destroy_ah(ah[i]);
		end_id(id[i], true);
	}
}

/* Messages to IPv4 and IPv6 groups. */
START_TEST(multicast_data)
{
	struct sockaddr_in group = { .sin_family = AF_INET };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };

	may_leak();
	inet_pton(AF_INET, "239.4.5.6", &group.sin_addr);
	inet_pton(AF_INET6, "ff12::4:5", &six.sin6_addr);
	speak(SA(&group));
	speak(SA(&six));
}
END_TEST

static void join(struct rdma_cm_id *id, struct sockaddr *group,
		 const uint8_t mgid[16])
{
	struct rdma_cm_event *e;

	ck_ok(rdma_join_multicast(id, group, &e));
	e = expect(id->channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	ck_assert_ptr_eq(e->id, id);
	ck_assert_ptr_eq(e->param.ud.private_data, &e);
	ck_assert_uint_eq(e->param.ud.qp_num, 0xffffff);
	ck_assert_uint_eq(e->param.ud.qkey, UDP_QKEY);
	ck_assert_mem_eq(&e->param.ud.ah_attr.grh.dgid, mgid, 16);
	check_ah(id, &e->param.ud.ah_attr);
	ck_ok(rdma_ack_cm_event(e));
}

/* The MULTICAST_JOIN event has the group's GID, QPN and Q_Key. */
START_TEST(multicast)
{
	struct sockaddr_in group = { .sin_family = AF_INET };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	static const uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff, 239,
					    1,		 2,	      3 };
	struct rdma_cm_id *id = member();

	may_leak();
	inet_pton(AF_INET, "239.1.2.3", &group.sin_addr);
	inet_pton(AF_INET6, "ff12::77", &six.sin6_addr);
	join(id, SA(&group), mapped);
	join(id, SA(&six), six.sin6_addr.s6_addr);
	ck_ok(rdma_leave_multicast(id, SA(&group)));
	ck_fails(rdma_leave_multicast(id, SA(&group)), EADDRNOTAVAIL);
	join(id, SA(&group), mapped);
	end_id(id, true);
}
END_TEST

/* Joining fails for an invalid group, an unbound id, and a TCP id. */
START_TEST(multicast_errors)
{
	struct sockaddr_in group = { .sin_family = AF_INET }, a = ip4(0);
	struct rdma_cm_id *id = member();

	ck_fails(rdma_join_multicast(id, SA(&group), NULL), EINVAL);
	end_id(id, true);
	inet_pton(AF_INET, "239.1.2.3", &group.sin_addr);
	id = new_id(new_channel(), RDMA_PS_UDP);
	ck_fails(rdma_join_multicast(id, SA(&group), NULL), EINVAL);
	end_id(id, true);
	id = new_id(new_channel(), RDMA_PS_TCP);
	ck_ok(rdma_resolve_addr(id, NULL, SA(&a), 1000));
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_fails(rdma_join_multicast(id, SA(&group), NULL), EINVAL);
	end_id(id, true);
}
END_TEST

/*
 * An id can be destroyed, and a group left, while its MULTICAST_JOIN event is
 * queued.
 */
START_TEST(leave_with_event)
{
	struct sockaddr_in group = { .sin_family = AF_INET };
	struct rdma_cm_id *id = member();

	may_leak();
	inet_pton(AF_INET, "239.1.2.3", &group.sin_addr);
	ck_ok(rdma_join_multicast(id, SA(&group), NULL));
	ck_ok(rdma_leave_multicast(id, SA(&group)));
	expect_nothing(id->channel, 20);
	ck_ok(rdma_join_multicast(id, SA(&group), NULL));
	end_id(id, true);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm datagram");

	add(s, resolve_service);
	add(s, unresolved);
	add(s, reject_with_data);
	add(s, sidr_refused);
	add(s, private_data_limits);
	add(s, multicast);
	add(s, multicast_data);
	add(s, multicast_errors);
	add(s, leave_with_event);
	return run_suite(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Unreliable datagrams: service resolution and multicast. */
#include <arpa/inet.h>
#include <string.h>

#include "harness.h"

#define REQ_ROOM 180
#define REP_ROOM 136
#define UDP_QKEY 0x01234567

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
	/* there is no connection, and so no end of one */
	end_id(s, false);
	expect_nothing(c->channel, 100);
	end_id(c, true);
	expect_nothing(l->channel, 0);
	end_id(l, true);
}
END_TEST

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

	/* the same port for streams is another one */
	c = client_to(SA(&a), RDMA_PS_TCP);
	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_NO_LISTENER);
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

/* An id can go while events of its groups wait. */
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
	add(s, multicast);
	add(s, multicast_errors);
	add(s, leave_with_event);
	return run_suite(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rdma_cm over InfiniBand: path records, address handles and multicast groups
 * have LIDs.  127.0.0.1 is the address of urxe0, 127.0.0.2 that of urxe1.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

#define IPOIB_QKEY 0x0b1b

static struct sockaddr_in address(int k, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port) };

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)k);
	return a;
}

static uint16_t lid_of(struct ibv_context *ctx)
{
	struct ibv_port_attr attr;

	ck_ok(ibv_query_port(ctx, 1, &attr));
	ck_assert_int_eq(attr.link_layer, IBV_LINK_LAYER_INFINIBAND);
	return attr.lid;
}

/* An id of urxek, from its address to that of urxe1. */
static struct rdma_cm_id *resolved(int k, int port, enum rdma_port_space ps)
{
	struct sockaddr_in from = address(k, 0), to = address(1, port);
	struct rdma_cm_id *id = new_id(new_channel(), ps);

	/* 127.0.0.1 is no source address, since it may mean any device */
	ck_ok(rdma_resolve_addr(id, k ? SA(&from) : NULL, SA(&to), 1000));
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_ok(rdma_resolve_route(id, 1000));
	pass(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return id;
}

static struct rdma_cm_id *listener(struct sockaddr_in *a,
				   enum rdma_port_space ps)
{
	struct rdma_cm_id *l;

	*a = address(1, 0);
	l = listen_on(SA(a), ps, 0);
	*a = address(1, port_of(l));
	return l;
}

/* The path record and the GIDs; the QP is connected by LID, without a GRH. */
START_TEST(path_record)
{
	struct sockaddr_in a;
	struct rdma_cm_id *l = listener(&a, RDMA_PS_TCP), *s;
	struct rdma_cm_id *c = resolved(2, port_of(l), RDMA_PS_TCP);
	struct ibv_sa_path_rec *path = c->route.path_rec;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ck_assert_str_eq(ibv_get_device_name(c->verbs->device), "urxe2");
	ck_assert_int_eq(c->route.num_paths, 1);
	ck_assert_uint_eq(be16toh(path->slid), lid_of(c->verbs));
	ck_assert_uint_eq(be16toh(path->dlid), lid_of(l->verbs));
	ck_assert_uint_ne(path->slid, path->dlid);
	ck_assert_int_eq(path->hop_limit, 0);
	ck_assert_int_eq(path->rate, IBV_RATE_200_GBPS);
	ck_assert_uint_eq(be16toh(path->pkey), 0xffff);
	ck_assert_uint_eq(path->sgid.raw[0], 0xfe);
	ck_assert_uint_eq(path->dgid.raw[0], 0xfe);
	ck_assert(path->dgid.global.interface_id ==
		  ibv_get_device_guid(l->verbs->device));
	give_qp(c);
	start_connect(c);
	s = next_request(l);
	give_qp(s);
	accept_it(s);
	pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_ok(ibv_query_qp(c->qp, &attr, IBV_QP_AV, &init));
	ck_assert_int_eq(attr.ah_attr.is_global, 0);
	ck_assert_uint_eq(attr.ah_attr.dlid, lid_of(l->verbs));
	ck_ok(ibv_query_qp(s->qp, &attr, IBV_QP_AV, &init));
	ck_assert_uint_eq(attr.ah_attr.dlid, lid_of(c->verbs));
	end_id(s, false);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

static void set_pkeys(const char *device, const char *pkeys)
{
	const char *urxe = getenv("URXE");
	int status;
	pid_t pid;

	ck_assert_ptr_nonnull(urxe);
	pid = fork();
	if (!pid) {
		execl(urxe, urxe, "port", "set", device, pkeys, (char *)NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

/* Ports without a common partition have no path. */
START_TEST(no_path)
{
	struct sockaddr_in from = address(2, 0), to = address(1, 7);
	struct rdma_cm_id *id = new_id(new_channel(), RDMA_PS_TCP);

	set_pkeys("urxe1", _i ? "pkeys=0x7fff" : "pkeys=0x8001");
	set_pkeys("urxe2", _i ? "pkeys=0x7fff" : "pkeys=0xffff");
	ck_ok(rdma_resolve_addr(id, SA(&from), SA(&to), 1000));
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_ok(rdma_resolve_route(id, 1000));
	pass(id->channel, RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL);
	/* it can be tried again */
	set_pkeys("urxe1", "pkeys=0xffff");
	set_pkeys("urxe2", "pkeys=0xffff");
	ck_ok(rdma_resolve_route(id, 1000));
	pass(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	end_id(id, true);
}
END_TEST

/* The address handle that SIDR returns has the LID of the server. */
START_TEST(service)
{
	struct rdma_conn_param p = param("who?", 4);
	struct sockaddr_in a;
	struct rdma_cm_id *l = listener(&a, RDMA_PS_UDP), *c, *s;
	struct rdma_cm_event *e;

	c = resolved(2, port_of(l), RDMA_PS_UDP);
	give_qp(c);
	ck_ok(rdma_connect(c, &p));
	s = next_request(l);
	give_qp(s);
	ck_ok(rdma_accept(s, &p));
	e = expect(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_assert_int_eq(e->param.ud.ah_attr.is_global, 0);
	ck_assert_uint_eq(e->param.ud.ah_attr.dlid, lid_of(l->verbs));
	ck_ok(rdma_ack_cm_event(e));
	end_id(s, false);
	end_id(c, true);
	end_id(l, true);
}
END_TEST

/* ------------------------------------------------------- multicast */

/* An id of urxek with a QP. */
static struct rdma_cm_id *member(int k, enum rdma_port_space ps)
{
	struct sockaddr_in from = address(k, 0);
	struct sockaddr_in to = address(k, 7);
	struct rdma_cm_id *id = new_id(new_channel(), ps);

	ck_ok(rdma_resolve_addr(id, k ? SA(&from) : NULL, SA(&to), 1000));
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	give_qp(id);
	return id;
}

static const struct mapping {
	enum rdma_port_space ps;
	int family;
	const char *group, *mgid;
	uint32_t qkey;
} mappings[] = {
	{ RDMA_PS_UDP, AF_INET, "239.129.2.3", "ff12:4001:ffff::f81:203",
	  UDP_QKEY },
	{ RDMA_PS_IPOIB, AF_INET, "239.129.2.3", "ff12:401b:ffff::f81:203",
	  IPOIB_QKEY },
	{ RDMA_PS_UDP, AF_INET6, "ff15::1:77", "ff12:6001:ffff::1:77",
	  UDP_QKEY },
	{ RDMA_PS_IPOIB, AF_INET6, "ff15::1:77", "ff12:601b:ffff::1:77",
	  IPOIB_QKEY },
	{ RDMA_PS_UDP, AF_INET6, "ff12:a01b:fe80::5", "ff12:a01b:fe80::5",
	  UDP_QKEY },
};
#define MAPPINGS (int)(sizeof(mappings) / sizeof(*mappings))

/* MGID, MLID and Q_Key of a join; the MLID is that of the group. */
START_TEST(group)
{
	const struct mapping *m = &mappings[_i];
	struct sockaddr_storage to = { .ss_family = (sa_family_t)m->family };
	struct rdma_ud_param first, second;
	struct rdma_cm_id *id[2];
	struct ibv_ah *ah[2];
	uint8_t mgid[16];

	may_leak();
	ck_assert_int_eq(
		inet_pton(
			m->family, m->group,
			m->family == AF_INET ?
				(void *)&((struct sockaddr_in *)&to)->sin_addr :
				(void *)&((struct sockaddr_in6 *)&to)
					->sin6_addr),
		1);
	ck_assert_int_eq(inet_pton(AF_INET6, m->mgid, mgid), 1);
	id[0] = member(0, m->ps);
	id[1] = member(1, m->ps);
	ah[0] = group_join(id[0], SA(&to), RDMA_MC_JOIN_FLAG_FULLMEMBER,
			   &first);
	ah[1] = group_join(id[1], SA(&to), RDMA_MC_JOIN_FLAG_FULLMEMBER,
			   &second);
	ck_assert_mem_eq(&first.ah_attr.grh.dgid, mgid, 16);
	ck_assert_int_eq(first.ah_attr.is_global, 1);
	ck_assert_uint_eq(first.qp_num, 0xffffff);
	ck_assert_uint_eq(first.qkey, m->qkey);
	ck_assert_uint_ge(first.ah_attr.dlid, 0xc000);
	ck_assert_uint_lt(first.ah_attr.dlid, 0xffff);
	ck_assert_uint_eq(first.ah_attr.dlid, second.ah_attr.dlid);
	ibv_destroy_ah(ah[0]);
	ibv_destroy_ah(ah[1]);
	end_id(id[0], true);
	end_id(id[1], true);
}
END_TEST

static struct sockaddr_in group_address(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET };

	inet_pton(AF_INET, "239.7.8.9", &to.sin_addr);
	return to;
}

/*
 * A QP that is attached receives only while its port is a full member of the
 * group: not if the port joined for sending only, and not after it has left.
 */
START_TEST(membership)
{
	struct sockaddr_in to = group_address();
	char ping[] = "ping", pong[] = "pong", gone[] = "gone";
	struct rdma_cm_id *a, *b, *other;
	struct rdma_ud_param at_a, at_b;
	struct ibv_ah *from_a, *from_b;
	struct inbox in;

	may_leak();
	a = member(0, RDMA_PS_UDP);
	b = member(1, RDMA_PS_UDP);
	other = member(1, RDMA_PS_UDP);
	from_a = group_join(a, SA(&to), RDMA_MC_JOIN_FLAG_FULLMEMBER, &at_a);
	from_b = group_join(b, SA(&to), RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
			    &at_b);
	post_inbox(other, &in);
	ck_ok(ibv_attach_mcast(other->qp, &at_a.ah_attr.grh.dgid,
			       at_a.ah_attr.dlid));
	group_send(a, from_a, ping);
	ck_assert(!inbox_filled(other, 20));
	ibv_destroy_ah(from_b);
	ck_ok(rdma_leave_multicast(b, SA(&to)));
	/* the port joins for b: its other QP receives as well */
	from_b = group_join(b, SA(&to), RDMA_MC_JOIN_FLAG_FULLMEMBER, &at_b);
	group_send(a, from_a, pong);
	ck_assert(inbox_filled(other, PATIENCE_MS));
	ck_assert_str_eq(in.data + 40, pong);
	rdma_dereg_mr(in.mr);
	post_inbox(other, &in);
	ck_ok(rdma_leave_multicast(b, SA(&to)));
	group_send(a, from_a, gone);
	ck_assert(!inbox_filled(other, 20));
	ck_ok(ibv_detach_mcast(other->qp, &at_a.ah_attr.grh.dgid,
			       at_a.ah_attr.dlid));
	rdma_dereg_mr(in.mr);
	ibv_destroy_ah(from_a);
	ibv_destroy_ah(from_b);
	end_id(a, true);
	end_id(b, true);
	end_id(other, true);
}
END_TEST

static void join_and_wait(int fd, void *arg)
{
	struct sockaddr_in to = group_address();
	struct rdma_cm_id *id = member(1, RDMA_PS_UDP);
	struct rdma_ud_param param;

	(void)arg;
	group_join(id, SA(&to), RDMA_MC_JOIN_FLAG_FULLMEMBER, &param);
	send_int(fd, param.ah_attr.dlid);
	receive_int(fd);
}

/* The joins of a process that is killed end. */
START_TEST(killed_member)
{
	struct sockaddr_in to = group_address();
	char ping[] = "ping", gone[] = "gone";
	struct rdma_cm_id *a, *b;
	struct rdma_ud_param at;
	struct ibv_ah *ah;
	struct inbox in;
	struct other o;
	const double start = now();
	int lid;

	may_leak();
	o = spawn(join_and_wait, NULL);
	lid = receive_int(o.fd);
	a = member(0, RDMA_PS_UDP);
	b = member(1, RDMA_PS_UDP);
	ah = group_join(a, SA(&to), RDMA_MC_JOIN_FLAG_FULLMEMBER, &at);
	ck_assert_int_eq(at.ah_attr.dlid, lid);
	post_inbox(b, &in);
	ck_ok(ibv_attach_mcast(b->qp, &at.ah_attr.grh.dgid, at.ah_attr.dlid));
	group_send(a, ah, ping);
	ck_assert(inbox_filled(b, PATIENCE_MS));
	rdma_dereg_mr(in.mr);
	kill_it(o);
	/* later commands find that the process is dead */
	for (;;) {
		end_id(member(1, RDMA_PS_UDP), true);
		post_inbox(b, &in);
		group_send(a, ah, gone);
		if (!inbox_filled(b, 20))
			break;
		ck_assert(now() - start < PATIENCE_MS / 1000);
		rdma_dereg_mr(in.mr);
	}
	ck_ok(ibv_detach_mcast(b->qp, &at.ah_attr.grh.dgid, at.ah_attr.dlid));
	rdma_dereg_mr(in.mr);
	ibv_destroy_ah(ah);
	end_id(a, true);
	end_id(b, true);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm infiniband");

	/* before the first process of the fabric creates it */
	setenv("URXE_DEVICES", "3", 1);
	setenv("URXE_LINK_LAYER", "infiniband", 1);
	add(s, path_record);
	add_loop(s, no_path, 2);
	add(s, service);
	add_loop(s, group, MAPPINGS);
	add(s, membership);
	add(s, killed_member);
	return run_suite(s);
}

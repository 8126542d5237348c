// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma_cm addresses and ports: binding, resolution, options. */
#include <arpa/inet.h>
#include <endian.h>
#include <ifaddrs.h>
#include <infiniband/ib.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

static struct sockaddr_in wildcard(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port) };

	return a;
}

static struct sockaddr_in loopback(int port)
{
	struct sockaddr_in a = wildcard(port);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static struct rdma_cm_id *bound(struct rdma_event_channel *ch,
				struct sockaddr *a)
{
	struct rdma_cm_id *id = new_id(ch, RDMA_PS_TCP);

	ck_ok(rdma_bind_addr(id, a));
	return id;
}

static void cannot_bind(struct rdma_event_channel *ch, void *a, int err)
{
	struct rdma_cm_id *id = new_id(ch, RDMA_PS_TCP);

	ck_fails(rdma_bind_addr(id, a), err);
	ck_ok(rdma_destroy_id(id));
}

/*
 * An id is bound to the device by an address of an interface, not by the
 * wildcard or a loopback address; a second rdma_bind_addr() fails (EINVAL).
 */
START_TEST(bind_device)
{
	struct rdma_event_channel *ch = new_channel();
	struct sockaddr_in a = ip4(0), w = wildcard(0), l = loopback(0);
	struct rdma_cm_id *id;

	/* wildcard and loopback addresses do not select a device */
	id = bound(ch, SA(&w));
	ck_assert_ptr_null(id->verbs);
	ck_assert_int_ne(port_of(id), 0);
	ck_ok(rdma_destroy_id(id));
	id = bound(ch, SA(&l));
	ck_assert_ptr_null(id->verbs);
	ck_ok(rdma_destroy_id(id));
	if (a.sin_addr.s_addr == l.sin_addr.s_addr)
		return;
	id = bound(ch, SA(&a));
	ck_assert_ptr_nonnull(id->verbs);
	ck_assert_str_eq(id->verbs->device->name, "urxe0");
	ck_assert_int_eq(id->port_num, 1);
	ck_assert_mem_eq(
		&((struct sockaddr_in *)rdma_get_local_addr(id))->sin_addr,
		&a.sin_addr, 4);
	ck_fails(rdma_bind_addr(id, SA(&a)), EINVAL);
	ck_ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(ch);
}
END_TEST

/*
 * rdma_bind_addr() of foreign addresses, unknown families and privileged
 * ports.
 */
START_TEST(bind_errors)
{
	struct rdma_event_channel *ch = new_channel();
	struct sockaddr_in a = wildcard(0);
	struct sockaddr_in6 ll = { .sin6_family = AF_INET6 };

	inet_pton(AF_INET, "203.0.113.77", &a.sin_addr);
	cannot_bind(ch, &a, EADDRNOTAVAIL);
	a.sin_family = AF_UNIX;
	cannot_bind(ch, &a, EINVAL);
	/* link-local without scope id */
	inet_pton(AF_INET6, "fe80::1", &ll.sin6_addr);
	cannot_bind(ch, &ll, EINVAL);
	if (!geteuid() && !seteuid(65534)) {
		a = wildcard(80);
		cannot_bind(ch, &a, EACCES);
		ck_ok(seteuid(0));
	}
	rdma_destroy_event_channel(ch);
}
END_TEST

/* A port that is bound cannot be bound again in the same port space. */
START_TEST(port_in_use)
{
	struct rdma_event_channel *ch = new_channel();
	struct sockaddr_in a = ip4(0), w, l;
	struct rdma_cm_id *first = bound(ch, SA(&a)), *udp;
	int port = port_of(first);

	a = ip4(port);
	w = wildcard(port);
	l = loopback(port);
	if (a.sin_addr.s_addr != l.sin_addr.s_addr)
		cannot_bind(ch, &a, EADDRINUSE);
	/*
	 * as in the kernel, if one of the addresses is the wildcard or a
	 * loopback address (cma_any_addr())
	 */
	cannot_bind(ch, &w, EADDRNOTAVAIL);
	cannot_bind(ch, &l, EADDRNOTAVAIL);
	/* each port space has its own ports */
	udp = new_id(ch, RDMA_PS_UDP);
	ck_ok(rdma_bind_addr(udp, SA(&a)));
	ck_ok(rdma_destroy_id(udp));
	ck_ok(rdma_destroy_id(first));
	ck_ok(rdma_destroy_id(bound(ch, SA(&w))));
	rdma_destroy_event_channel(ch);
}
END_TEST

static void set_int(struct rdma_cm_id *id, int option, int value)
{
	ck_ok(rdma_set_option(id, RDMA_OPTION_ID, option, &value,
			      sizeof(value)));
}

/* RDMA_OPTION_ID_REUSEADDR: ids share a port until one of them listens. */
START_TEST(reuse_address)
{
	struct rdma_event_channel *ch = new_channel();
	struct sockaddr_in w = wildcard(0);
	struct rdma_cm_id *a = new_id(ch, RDMA_PS_TCP),
			  *b = new_id(ch, RDMA_PS_TCP);

	set_int(a, RDMA_OPTION_ID_REUSEADDR, 1);
	ck_ok(rdma_bind_addr(a, SA(&w)));
	w = wildcard(port_of(a));
	/* both ids must set the option */
	cannot_bind(ch, &w, EADDRNOTAVAIL);
	set_int(b, RDMA_OPTION_ID_REUSEADDR, 1);
	ck_ok(rdma_bind_addr(b, SA(&w)));
	/* a listener does not share its port */
	ck_fails(rdma_listen(a, 0), EADDRNOTAVAIL);
	ck_ok(rdma_destroy_id(b));
	ck_ok(rdma_listen(a, 0));
	b = new_id(ch, RDMA_PS_TCP);
	set_int(b, RDMA_OPTION_ID_REUSEADDR, 1);
	ck_fails(rdma_bind_addr(b, SA(&w)), EADDRNOTAVAIL);
	ck_ok(rdma_destroy_id(b));
	ck_ok(rdma_destroy_id(a));
	rdma_destroy_event_channel(ch);
}
END_TEST

/*
 * Errors of rdma_set_option(): wrong size, level, option, QP type or pointer.
 */
START_TEST(set_option_errors)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch, RDMA_PS_TCP),
			  *ud = new_id(ch, RDMA_PS_UDP);
	uint8_t byte = 20;
	int number = 1;

	ck_ok(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte,
			      1));
	ck_fails(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS,
				 &number, 4),
		 EINVAL);
	ck_ok(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
			      &byte, 1));
	ck_fails(rdma_set_option(ud, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
				 &byte, 1),
		 EINVAL);
	ck_fails(rdma_set_option(id, RDMA_OPTION_ID, 99, &number, 4), ENOSYS);
	ck_fails(rdma_set_option(id, 99, RDMA_OPTION_ID_TOS, &byte, 1), ENOSYS);
	ck_fails(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL,
				 1),
		 EFAULT);
	ck_ok(rdma_destroy_id(id));
	ck_ok(rdma_destroy_id(ud));
	rdma_destroy_event_channel(ch);
}
END_TEST

/* RDMA_OPTION_ID_TOS and _ACK_TIMEOUT take effect in the QPs of both ends. */
START_TEST(options_reach_qps)
{
	struct sockaddr_in a = ip4(0);
	struct rdma_cm_id *l = listen_on(SA(&a), RDMA_PS_TCP, 0), *c, *s;
	uint8_t tos = 0x40, timeout = 9;
	uint32_t flow;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	a = ip4(port_of(l));
	c = new_id(new_channel(), RDMA_PS_TCP);
	ck_ok(rdma_set_option(c, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1));
	ck_ok(rdma_set_option(c, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
			      &timeout, 1));
	ck_ok(rdma_resolve_addr(c, NULL, SA(&a), 1000));
	pass(c->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_ok(rdma_resolve_route(c, 1000));
	pass(c->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	ck_assert_int_eq(c->route.num_paths, 1);
	ck_assert_int_eq(c->route.path_rec->traffic_class, tos);
	ck_assert_int_eq(c->route.path_rec->packet_life_time, timeout - 1);
	ck_assert_uint_eq(c->route.path_rec->pkey, htons(0xffff));
	give_qp(c);
	start_connect(c);
	s = next_request(l);
	give_qp(s);
	accept_it(s);
	pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_ok(ibv_query_qp(c->qp, &attr, -1, &init));
	ck_assert_int_eq(attr.timeout, timeout);
	ck_assert_int_eq(attr.ah_attr.grh.traffic_class, tos);
	/* RoCE v2 derives the UDP source port from it */
	flow = (uint32_t)(port_of(c) * 31 + port_of(l)) & 0xfffff;
	ck_assert_uint_eq(attr.ah_attr.grh.flow_label, flow);
	ck_assert_uint_eq(ntohl(c->route.path_rec->flow_label), flow);
	/*
	 * the REQ carries the path: the server's QP has the same attributes
	 */
	ck_ok(ibv_query_qp(s->qp, &attr, -1, &init));
	ck_assert_int_eq(attr.timeout, timeout);
	ck_assert_int_eq(attr.ah_attr.grh.traffic_class, tos);
	ck_assert_uint_eq(attr.ah_attr.grh.flow_label, flow);
	end_id(c, true);
	end_id(s, false);
	end_id(l, true);
}
END_TEST

static void talk(struct rdma_cm_id *l, struct sockaddr *to)
{
	struct rdma_cm_id *c = client_to(to, RDMA_PS_TCP), *s;

	give_qp(c);
	start_connect(c);
	s = next_request(l);
	ck_assert_int_eq(rdma_get_peer_addr(s)->sa_family, to->sa_family);
	give_qp(s);
	accept_it(s);
	pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	end_id(c, true);
	pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_id(s, false);
}

/*
 * Assert that a request is rejected because the listener on the port is bound
 * to another address.  The service exists, so the reason is REJ_CONSUMER, not
 * REJ_NO_LISTENER.
 */
static void refused(struct sockaddr *to)
{
	struct rdma_cm_id *c = client_to(to, RDMA_PS_TCP);

	start_connect(c);
	pass(c->channel, RDMA_CM_EVENT_REJECTED, REJ_CONSUMER);
	end_id(c, true);
}

/*
 * A listener on the wildcard accepts connections to all addresses of the
 * host.
 */
START_TEST(wildcard_listener_on_all_addresses)
{
	struct sockaddr_in w = wildcard(0), a, b;
	struct rdma_cm_id *l = listen_on(SA(&w), RDMA_PS_TCP, 0);

	a = ip4(port_of(l));
	b = loopback(port_of(l));
	w = wildcard(port_of(l));
	talk(l, SA(&a));
	talk(l, SA(&b));
	talk(l, SA(&w)); /* this host, as with TCP */
	inet_pton(AF_INET, "127.1.2.3", &b.sin_addr);
	talk(l, SA(&b));
	end_id(l, true);
}
END_TEST

static bool bind_v6_only(void)
{
	FILE *f = fopen("/proc/sys/net/ipv6/bindv6only", "r");
	int only = 0;

	if (!f)
		return false;
	ck_assert_int_eq(fscanf(f, "%d", &only), 1);
	fclose(f);
	return only;
}

/* A listener on the IPv6 wildcard, with and without RDMA_OPTION_ID_AFONLY. */
START_TEST(ipv6)
{
	struct sockaddr_in6 w = { .sin6_family = AF_INET6 }, a, lo;
	struct sockaddr_in four;
	struct rdma_cm_id *l;
	int port;

	if (!ip6(&a, 0))
		return;
	l = listen_on(SA(&w), RDMA_PS_TCP, 0);
	port = port_of(l);
	a.sin6_port = htons((uint16_t)port);
	lo = a;
	lo.sin6_addr = in6addr_loopback;
	talk(l, SA(&a));
	talk(l, SA(&lo));
	/* the IPv6 wildcard accepts IPv4, too */
	four = ip4(port);
	if (!bind_v6_only())
		talk(l, SA(&four));
	end_id(l, true);
	/* unless RDMA_OPTION_ID_AFONLY is set */
	l = new_id(new_channel(), RDMA_PS_TCP);
	set_int(l, RDMA_OPTION_ID_AFONLY, 1);
	w.sin6_port = htons((uint16_t)port);
	ck_ok(rdma_bind_addr(l, SA(&w)));
	ck_ok(rdma_listen(l, 0));
	talk(l, SA(&a));
	refused(SA(&four));
	ck_ok(rdma_destroy_id(bound(l->channel, SA(&four))));
	end_id(l, true);
}
END_TEST

/* Store a link-local IPv6 address of this host in @a.  False: it has none. */
static bool link_local(struct sockaddr_in6 *a)
{
	struct ifaddrs *list, *i;
	bool found = false;

	ck_ok(getifaddrs(&list));
	for (i = list; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET6 ||
		    !(i->ifa_flags & IFF_UP))
			continue;
		memcpy(a, i->ifa_addr, sizeof(*a));
		found = IN6_IS_ADDR_LINKLOCAL(&a->sin6_addr);
	}
	freeifaddrs(list);
	return found;
}

/*
 * A link-local address is valid only on its interface: binding with another
 * scope id fails with ENODEV.
 */
START_TEST(ipv6_scope)
{
	struct rdma_event_channel *ch = new_channel();
	struct sockaddr_in6 a, wrong;
	struct rdma_cm_id *l;

	if (!link_local(&a))
		return;
	wrong = a;
	wrong.sin6_scope_id = if_nametoindex("lo");
	cannot_bind(ch, &wrong, ENODEV);
	a.sin6_port = 0;
	l = listen_on(SA(&a), RDMA_PS_TCP, 0);
	a.sin6_port = rdma_get_src_port(l);
	cannot_bind(ch, &a, EADDRINUSE);
	talk(l, SA(&a));
	end_id(l, true);
	rdma_destroy_event_channel(ch);
}
END_TEST

/*
 * Ports of the IPv6 wildcard conflict with those of the IPv4 wildcard, unless
 * RDMA_OPTION_ID_AFONLY or the sysctl bindv6only is set.
 */
START_TEST(port_conflicts_of_families)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *six = new_id(ch, RDMA_PS_TCP), *four;
	struct sockaddr_in6 w6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in w4;
	int on = 1;

	/*
	 * the IPv6 wildcard includes IPv4, unless the sysctl bindv6only is
	 * set
	 */
	ck_ok(rdma_bind_addr(six, SA(&w6)));
	w4 = wildcard(port_of(six));
	if (bind_v6_only())
		ck_ok(rdma_destroy_id(bound(ch, SA(&w4))));
	else
		cannot_bind(ch, &w4, EADDRNOTAVAIL);
	ck_ok(rdma_destroy_id(six));
	/*
	 * with RDMA_OPTION_ID_AFONLY it does not; the option is refused after
	 * binding
	 */
	six = new_id(ch, RDMA_PS_TCP);
	set_int(six, RDMA_OPTION_ID_AFONLY, 1);
	ck_ok(rdma_bind_addr(six, SA(&w6)));
	w4 = wildcard(port_of(six));
	four = bound(ch, SA(&w4));
	ck_ok(rdma_listen(six, 0));
	ck_ok(rdma_listen(four, 0));
	ck_fails(rdma_set_option(six, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY,
				 &on, sizeof(on)),
		 EINVAL);
	ck_fails(rdma_set_option(six, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR,
				 &on, sizeof(on)),
		 EINVAL);
	ck_ok(rdma_destroy_id(six));
	ck_ok(rdma_destroy_id(four));
	rdma_destroy_event_channel(ch);
}
END_TEST

/* ------------------------------------------------------------ AF_IB */

/*
 * Return an AF_IB address: service ID of port space @ps and @port, at @gid,
 * or at any GID if it is NULL.
 */
static struct sockaddr_ib ib(uint64_t ps, int port, const union ibv_gid *gid)
{
	struct sockaddr_ib a = { .sib_family = AF_IB,
				 .sib_pkey = htons(0xffff),
				 .sib_sid = htobe64(ps | (uint64_t)port),
				 .sib_sid_mask =
					 htobe64(RDMA_IB_IP_PS_MASK |
						 (port ? 0xffffull : 0)) };

	if (gid)
		memcpy(&a.sib_addr, gid, 16);
	return a;
}

static union ibv_gid own_gid(void)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	union ibv_gid gid;

	ck_assert_ptr_nonnull(list);
	ck_ok(ibv_query_gid(list[0], 1, 0, &gid));
	rdma_free_devices(list);
	return gid;
}

/*
 * Connect with AF_IB addresses.  The REQ has no IP addressing header then, so
 * all 92 bytes of private data belong to the application.
 */
static void talk_ib(struct rdma_cm_id *l, struct sockaddr_ib *to,
		    enum rdma_port_space ps)
{
	struct rdma_cm_id *c = client_to(SA(to), ps);
	char data[92] = "all of it is mine";
	struct rdma_conn_param p = param(data, sizeof(data));
	struct rdma_cm_event *e;

	ck_assert_mem_eq(&c->route.addr.addr.ibaddr.dgid, &to->sib_addr, 16);
	give_qp(c);
	ck_ok(rdma_connect(c, &p));
	e = expect(l->channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	ck_assert_int_eq(e->param.conn.private_data_len, 92);
	ck_assert_mem_eq(e->param.conn.private_data, data, 92);
	ck_assert_int_eq(rdma_get_local_addr(e->id)->sa_family, AF_IB);
	give_qp(e->id);
	accept_it(e->id);
	pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	end_id(c, true);
	pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	c = e->id;
	ck_ok(rdma_ack_cm_event(e));
	end_id(c, false);
}

/* AF_IB addresses: listeners on any or one GID, and addresses that fail. */
START_TEST(af_ib)
{
	union ibv_gid gid = own_gid(), other = { .raw = { 0xfd, 1, 2, 3 } };
	struct sockaddr_ib a = ib(RDMA_IB_IP_PS_TCP, 0, NULL);
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *l, *id;

	/* a listener on any GID, then one on this GID */
	l = listen_on(SA(&a), RDMA_PS_TCP, 0);
	a = ib(RDMA_IB_IP_PS_TCP, port_of(l), &gid);
	talk_ib(l, &a, RDMA_PS_TCP);
	/* an id of the IB port space can connect to it, too */
	talk_ib(l, &a, RDMA_PS_IB);
	end_id(l, true);
	l = listen_on(SA(&a), RDMA_PS_TCP, 0);
	ck_assert_ptr_nonnull(l->verbs);
	talk_ib(l, &a, RDMA_PS_TCP);
	end_id(l, true);

	a = ib(RDMA_IB_IP_PS_UDP, 0, NULL);
	cannot_bind(ch, &a, EPROTONOSUPPORT);
	a = ib(RDMA_IB_IP_PS_TCP, 0, &other);
	cannot_bind(ch, &a, ENODEV);
	id = new_id(ch, RDMA_PS_TCP);
	a = ib(RDMA_IB_IP_PS_TCP, 7, &other);
	ck_fails(rdma_resolve_addr(id, NULL, SA(&a), 1000), ENODEV);
	ck_ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(ch);
}
END_TEST

/* RDMA_OPTION_IB_PATH sets the path and resolves the route. */
START_TEST(ib_path)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch, RDMA_PS_TCP);
	struct ibv_path_data path = { 0 };
	struct sockaddr_in a = ip4(7471);

	path.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
		     IBV_PATH_FLAG_BIDIRECTIONAL;
	path.path.tclass = 0x28;
	path.path.packetlifetime = 2 << 6 | 11;
	ck_ok(rdma_resolve_addr(id, NULL, SA(&a), 1000));
	pass(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_fails(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path,
				 sizeof(path) - 1),
		 EINVAL);
	ck_ok(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path,
			      sizeof(path)));
	pass(ch, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	ck_assert_int_eq(id->route.path_rec->traffic_class, 0x28);
	ck_assert_int_eq(id->route.path_rec->packet_life_time, 11);
	ck_fails(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path,
				 sizeof(path)),
		 EINVAL);
	ck_ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(ch);
}
END_TEST

/*
 * RDMA_PS_IPOIB needs an IPoIB interface: resolution on an Ethernet port
 * fails with ADDR_ERROR, -EINVAL.
 */
START_TEST(ipoib)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch, RDMA_PS_IPOIB);
	struct sockaddr_in a = ip4(7471), lo = loopback(7471);

	if (a.sin_addr.s_addr != lo.sin_addr.s_addr) {
		ck_ok(rdma_resolve_addr(id, NULL, SA(&a), 1000));
		pass(ch, RDMA_CM_EVENT_ADDR_ERROR, -EINVAL);
	}
	ck_ok(rdma_resolve_addr(id, NULL, SA(&lo), 1000));
	pass(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_int_eq(id->qp_type, IBV_QPT_UD);
	ck_ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(ch);
}
END_TEST

/*
 * A listener on one address rejects requests to other addresses of the host.
 */
START_TEST(specific_listener)
{
	struct sockaddr_in a = ip4(0), lo;
	struct rdma_cm_id *l = listen_on(SA(&a), RDMA_PS_TCP, 0);

	a = ip4(port_of(l));
	lo = loopback(port_of(l));
	talk(l, SA(&a));
	if (lo.sin_addr.s_addr != a.sin_addr.s_addr)
		refused(SA(&lo));
	end_id(l, true);
}
END_TEST

/* rdma_listen() of an id that is not bound chooses a port. */
START_TEST(listen_unbound)
{
	struct rdma_cm_id *l = new_id(new_channel(), RDMA_PS_TCP);
	struct sockaddr_in a;

	ck_ok(rdma_listen(l, 1));
	ck_assert_int_ne(port_of(l), 0);
	a = ip4(port_of(l));
	talk(l, SA(&a));
	ck_fails(rdma_listen(l, 1), EINVAL);
	end_id(l, true);
}
END_TEST

/* Resolving an address without a route or next hop fails. */
START_TEST(unreachable)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch, RDMA_PS_TCP);
	struct sockaddr_in a = wildcard(7471);
	int ret;

	/* TEST-NET-3 (RFC 5737): not an address of this host */
	inet_pton(AF_INET, "203.0.113.77", &a.sin_addr);
	/* the error is returned at once, not after the timeout */
	ret = rdma_resolve_addr(id, NULL, SA(&a), 60000);
	if (ret)
		ck_assert_int_eq(errno, ENETUNREACH);
	else
		pass(ch, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	/* the state of the id is unchanged: it can resolve another address */
	a = ip4(7471);
	ck_ok(rdma_resolve_addr(id, NULL, SA(&a), 5000));
	pass(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(ch);
}
END_TEST

/*
 * rdma_resolve_addr() and rdma_resolve_route() succeed once, in this order,
 * and not for source and destination of different families.
 */
START_TEST(resolve_order)
{
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id = new_id(ch, RDMA_PS_TCP);
	struct sockaddr_in a = ip4(7471), src = ip4(0);
	struct sockaddr_in6 six;

	ck_ok(rdma_resolve_addr(id, SA(&src), SA(&a), 1000));
	pass(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_ptr_nonnull(id->verbs);
	ck_assert_mem_eq(
		&((struct sockaddr_in *)rdma_get_local_addr(id))->sin_addr,
		&a.sin_addr, 4);
	ck_assert_int_ne(port_of(id), 0);
	ck_fails(rdma_resolve_addr(id, NULL, SA(&a), 1000), EINVAL);
	ck_fails(rdma_listen(id, 1), EINVAL);
	ck_ok(rdma_resolve_route(id, 1000));
	ck_fails(rdma_resolve_route(id, 1000), EINVAL);
	pass(ch, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	ck_ok(rdma_destroy_id(id));
	/* source and destination of different families */
	id = bound(ch, SA(&src));
	if (ip6(&six, 7471))
		ck_fails(rdma_resolve_addr(id, NULL, SA(&six), 1000), EINVAL);
	ck_ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(ch);
}
END_TEST

/* The GIDs of a path are entries of the device's GID table. */
START_TEST(path_gids_are_device_gids)
{
	struct sockaddr_in a = ip4(7471), lo = loopback(7471);
	struct sockaddr *to[] = { SA(&a), SA(&lo) };
	struct ibv_sa_path_rec *p;
	struct ibv_gid_entry e[256];
	struct rdma_cm_id *id;
	ssize_t n, k;
	int i;

	for (i = 0; i < 2; i++) {
		id = client_to(to[i], RDMA_PS_TCP);
		p = id->route.path_rec;
		n = ibv_query_gid_table(id->verbs, e, 256, 0);
		for (k = 0; k < n; k++)
			if (!memcmp(&e[k].gid, &p->dgid, 16))
				break;
		ck_assert_int_lt(k, n);
		ck_assert_mem_eq(&p->dgid, &p->sgid, 16);
		end_id(id, true);
	}
}
END_TEST

static void expect_roce_v2(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_gid_entry e;
	struct ibv_qp_attr a;

	ck_ok(ibv_query_qp(id->qp, &a, IBV_QP_AV, &init));
	ck_ok(ibv_query_gid_ex(id->verbs, 1, a.ah_attr.grh.sgid_index, &e, 0));
	ck_assert_uint_eq(e.gid_type, IBV_GID_TYPE_ROCE_V2);
	ck_assert_mem_eq(&e.gid, &id->route.addr.addr.ibaddr.sgid, 16);
}

/* Connections use RoCE v2 GIDs, which is the kernel's default, too. */
START_TEST(roce_version)
{
	struct both b = connect_both();

	expect_roce_v2(b.client);
	expect_roce_v2(b.server);
	end_id(b.client, true);
	end_id(b.server, true);
	end_id(b.listener, true);
}
END_TEST

/* rdma_create_id() and rdma_bind_addr() in each port space. */
START_TEST(port_spaces)
{
	static const struct {
		int ps, ok;
	} spaces[] = { { RDMA_PS_TCP, 1 },
		       { RDMA_PS_UDP, 1 },
		       { RDMA_PS_IB, 1 },
		       { RDMA_PS_IPOIB, 0 } };
	struct sockaddr_in a = ip4(0), lo = loopback(0);
	struct rdma_event_channel *ch = new_channel();
	struct rdma_cm_id *id;
	int i;

	ck_fails(rdma_create_id(ch, &id, NULL, 0x999), EINVAL);
	for (i = 0; i < 4; i++) {
		id = new_id(ch, spaces[i].ps);
		if (spaces[i].ok)
			ck_ok(rdma_bind_addr(id, SA(&a)));
		else if (a.sin_addr.s_addr != lo.sin_addr.s_addr)
			ck_fails(rdma_bind_addr(id, SA(&a)), EINVAL);
		ck_ok(rdma_destroy_id(id));
	}
	rdma_destroy_event_channel(ch);
}
END_TEST

/*
 * The ephemeral ports of many ids differ, and are in the range of
 * ip_local_port_range.
 */
START_TEST(many_ports)
{
	enum { N = 300 };
	struct rdma_event_channel *ch = new_channel();
	struct sockaddr_in w = wildcard(0);
	static struct rdma_cm_id *id[N];
	static bool seen[65536];
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
	int i, port, low = 1024, high = 65535;

	if (f) {
		ck_assert_int_eq(fscanf(f, "%d %d", &low, &high), 2);
		fclose(f);
	}
	for (i = 0; i < N; i++) {
		id[i] = bound(ch, SA(&w));
		port = port_of(id[i]);
		ck_assert_int_ge(port, low);
		ck_assert_int_le(port, high);
		ck_assert(!seen[port]);
		seen[port] = true;
	}
	for (i = 0; i < N; i++)
		ck_ok(rdma_destroy_id(id[i]));
	rdma_destroy_event_channel(ch);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm addresses");

	add(s, bind_device);
	add(s, bind_errors);
	add(s, port_in_use);
	add(s, reuse_address);
	add(s, set_option_errors);
	add(s, options_reach_qps);
	add(s, wildcard_listener_on_all_addresses);
	add(s, ipv6);
	add(s, ipv6_scope);
	add(s, port_conflicts_of_families);
	add(s, af_ib);
	add(s, ib_path);
	add(s, ipoib);
	add(s, specific_listener);
	add(s, listen_unbound);
	add(s, unreachable);
	add(s, resolve_order);
	add(s, path_gids_are_device_gids);
	add(s, roce_version);
	add(s, port_spaces);
	add(s, many_ports);
	return run_suite(s);
}

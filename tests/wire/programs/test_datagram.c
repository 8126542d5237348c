// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UD datagrams and multicast between the device and a remote host, which is
 * this test, at 10.91.0.2 or fd91::2.  The tests read sent packets from
 * packet(7) sockets, so they check all headers.
 *
 * own-net runs it.  Most tests run once for IPv4 and once for IPv6, if the
 * kernel has it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../verbs/types.h"
#include "wire/parse.h"
#include "wire/sender.h"

#define GROUP_QPN 0xffffffu
#define PEER_QPN 0xabcdefu
#define BYTES 100u

/* ------------------------------------------------------- addresses */

enum { IPV4, IPV6, VERSIONS };

static const char *const wire_env[] = { "10.91.0.1", "fd91::1" };
static const uint8_t heres[][16] = {
	{ [10] = 0xff, 0xff, 10, 91, 0, 1 },
	{ 0xfd, 0x91, [15] = 1 },
};
static const uint8_t theres[][16] = {
	{ [10] = 0xff, 0xff, 10, 91, 0, 2 },
	{ 0xfd, 0x91, [15] = 2 },
};
static const union ibv_gid groups[] = {
	{ .raw = { [10] = 0xff, 0xff, 239, 91, 1, 2 } },
	{ .raw = { 0xff, 0x0e, [14] = 1, 2 } },
};
/* Groups without members. */
static const union ibv_gid others[] = {
	{ .raw = { [10] = 0xff, 0xff, 239, 91, 1, 3 } },
	{ .raw = { 0xff, 0x0e, [14] = 1, 3 } },
};

static int version;
static const uint8_t *here, *there;
static union ibv_gid group;

/* Select the IP version. */
static void use(int v)
{
	version = v;
	here = heres[v];
	there = theres[v];
	group = groups[v];
	setenv("URXE_WIRE", wire_env[v], 1);
}

/* ------------------------------------------------------- the other host */

static struct wire_socket sock = { .fd = -1 };
static struct wire_sender sender;

/*
 * Open the remote host's socket.  Its multicast packets are sent on eth0 and
 * looped back there, so the device receives them as if from the network.
 */
static void host_open(void)
{
	const int eth0 = (int)if_nametoindex("eth0");
	const struct ip_mreqn at = { .imr_ifindex = eth0 };

	ck_assert_int_eq(wire_socket_open(&sock, there, 0, WIRE_LOOPS), 0);
	if (version == IPV4)
		ck_ok(setsockopt(sock.fd, IPPROTO_IP, IP_MULTICAST_IF, &at,
				 sizeof(at)));
	else
		ck_ok(setsockopt(sock.fd, IPPROTO_IPV6, IPV6_MULTICAST_IF,
				 &eth0, sizeof(eth0)));
	sock.interface = (uint32_t)eth0;
}

static uint8_t text[4096];

static struct wire_packet packet(uint32_t qpn, uint32_t n)
{
	return (struct wire_packet){
		.bth = { .opcode = WIRE_UD | WIRE_SEND_ONLY,
			 .pkey = 0xffff,
			 .qpn = qpn,
			 .psn = 1 },
		.deth = { .qkey = QKEY, .qpn = PEER_QPN },
		.payload = text,
		.length = n,
		.known = n,
	};
}

/* Send a packet from the remote host.  check_grh() expects these headers. */
static void say(const uint8_t *to, const struct wire_packet *p)
{
	struct wire_path path = {
		.traffic_class = 0x48,
		.hop_limit = 9,
		.flow_label = 0xd1234,
	};

	memcpy(path.dgid, to, 16);
	ck_assert_ptr_nonnull(wire_sender_add(&sender, &path, p));
	ck_assert_int_eq(wire_sender_flush(&sender, &sock, NULL), 0);
}

/* Return a socket that receives the frames of an interface (packet(7)). */
static int watch_interface(const char *name)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(name),
	};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_ok(bind(fd, (struct sockaddr *)&at, sizeof(at)));
	return fd;
}

static uint8_t frame[65536];

struct seen {
	struct wire_path path;
	struct wire_packet packet; /* its payload is in frame */
	uint64_t mac;
};

static uint64_t mac_of(const uint8_t *p)
{
	uint64_t mac = 0;
	int i;

	for (i = 0; i < 6; i++)
		mac = mac << 8 | p[i];
	return mac;
}

/*
 * Receive the next datagram with source GID @from.  Returns false if no frame
 * arrives for ms.
 */
static bool see_within(int fd, const uint8_t *from, struct seen *out, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct sockaddr_ll at;
	socklen_t len;
	ssize_t n;

	while (poll(&p, 1, ms) == 1) {
		len = sizeof(at);
		n = recvfrom(fd, frame, sizeof(frame), 0,
			     (struct sockaddr *)&at, &len);
		if (n > ETH_HLEN && at.sll_pkttype != PACKET_OUTGOING &&
		    !wire_parse_ip(&out->path, &out->packet, frame + ETH_HLEN,
				   (size_t)n - ETH_HLEN) &&
		    !memcmp(out->path.sgid, from, 16)) {
			out->mac = mac_of(frame);
			return true;
		}
	}
	return false;
}

static struct seen see(int fd)
{
	struct seen s;

	ck_assert(see_within(fd, here, &s, WAIT_MS));
	return s;
}

static void see_nothing(int fd)
{
	struct seen s;

	ck_assert(!see_within(fd, here, &s, QUIET_MS));
}

/* ------------------------------------------------------- the device */

static struct node n;

static void device_open(void)
{
	struct opts o = default_opts();

	o.channel = true;
	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(ibv_destroy_qp(n.qp));
	n.qp = make_qp(&n, IBV_QPT_UD, NULL);
	type_connect(n.qp, &n.o, NULL);
}

static void device_close(void)
{
	node_close(&n);
	wire_socket_close(&sock);
}

static uint8_t own_index(void)
{
	union ibv_gid gid;
	int i;

	for (i = 1; i < 256; i += 2)
		if (!ibv_query_gid(n.ctx, 1, i, &gid) &&
		    !memcmp(gid.raw, here, 16))
			return (uint8_t)i;
	ck_abort_msg("the device has not our address");
}

/*
 * Check the 40 bytes before the payload, where a receive has the GRH, against
 * the headers of say().  An IPv4 header is in the last 20 of them.
 */
static void check_grh(size_t off, const uint8_t *to, uint32_t bytes)
{
	struct {
		uint8_t grh[40], zero[20];
	} h = { 0 };
	const uint32_t udp = 8 + 12 + 8 + bytes + 4;

	node_get(&n, off, h.grh, sizeof(h.grh));
	if (version == IPV6) {
		ck_assert_uint_eq(h.grh[0] << 8 | h.grh[1], 0x648d);
		ck_assert_uint_eq(h.grh[2] << 8 | h.grh[3], 0x1234);
		ck_assert_uint_eq(h.grh[4] << 8 | h.grh[5], udp);
		ck_assert_uint_eq(h.grh[6], IPPROTO_UDP);
		ck_assert_uint_eq(h.grh[7], 9);
		ck_assert_int_eq(memcmp(h.grh + 8, there, 16), 0);
		ck_assert_int_eq(memcmp(h.grh + 24, to, 16), 0);
		return;
	}
	ck_assert_int_eq(memcmp(h.grh, h.zero, 20), 0);
	ck_assert_uint_eq(h.grh[20], 0x45);
	ck_assert_uint_eq(h.grh[21], 0x48);
	ck_assert_uint_eq(h.grh[22] << 8 | h.grh[23], 20 + udp);
	ck_assert_uint_eq(h.grh[28], 9);
	ck_assert_uint_eq(h.grh[29], IPPROTO_UDP);
	ck_assert_int_eq(memcmp(h.grh + 32, there + 12, 4), 0);
	ck_assert_int_eq(memcmp(h.grh + 36, to + 12, 4), 0);
}

/* Expect the completion of receive wr_id with the packet of say() at off. */
static void expect_said(struct ibv_qp *qp, uint64_t wr_id, size_t off,
			const uint8_t *to, uint32_t bytes)
{
	struct ibv_wc wc = expect_ok(n.rcq, wr_id, IBV_WC_RECV);
	uint8_t got[sizeof(text)];

	ck_assert_uint_eq(wc.qp_num, qp->qp_num);
	ck_assert_uint_eq(wc.src_qp, PEER_QPN);
	ck_assert_uint_eq(wc.byte_len, GRH + bytes);
	ck_assert(wc.wc_flags & IBV_WC_GRH);
	check_grh(off, to, bytes);
	node_get(&n, off + GRH, got, bytes);
	ck_assert_int_eq(memcmp(got, text, bytes), 0);
}

/* ------------------------------------------------------- multicast */

/* Return whether eth0 receives frames to the group's Ethernet address. */
static bool is_joined(void)
{
	char line[256], want[16];
	bool found = false;
	FILE *f = fopen("/proc/net/dev_mcast", "re");

	ck_assert_ptr_nonnull(f);
	snprintf(want, sizeof(want), "%s",
		 version == IPV4 ? "01005e5b0102" : "333300000102");
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, "eth0") && strstr(line, want);
	fclose(f);
	return found;
}

static void wait_joined(bool yes)
{
	const double end = now_ms() + WAIT_MS;

	while (is_joined() != yes) {
		ck_assert(now_ms() < end);
		sleep_ms(1);
	}
}

/*
 * Send datagrams with len bytes of payload until one is received.  Those of an
 * earlier call, with another length, may arrive before.
 */
static void insist(struct ibv_qp *qp, uint64_t wr_id, size_t off, uint32_t len)
{
	const double end = now_ms() + WAIT_MS;
	const struct wire_packet p = packet(GROUP_QPN, len);
	struct ibv_wc wc = { .byte_len = 0 };

	do {
		ck_ok(qp_recv(qp, &n, wr_id, off, 1024));
		do {
			ck_assert(now_ms() < end);
			say(group.raw, &p);
			sleep_ms(1);
		} while (!ibv_poll_cq(n.rcq, 1, &wc));
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.wr_id, wr_id);
	} while (wc.byte_len != GRH + len);
}

static struct ibv_port_attr port_attr(void)
{
	struct ibv_port_attr a;

	ck_ok(ibv_query_port(n.ctx, 1, &a));
	return a;
}

/*
 * Each attached QP receives a copy, from the first datagram after
 * ibv_attach_mcast() on.  A datagram with a wrong QPN, Q_Key, P_Key or group
 * is not delivered.  The host joins the group for the first member and leaves
 * it after the last.
 */
START_TEST(group_received)
{
	struct wire_packet p = packet(GROUP_QPN, BYTES);
	struct ibv_qp *second, *third;
	struct ibv_port_attr before;

	use(_i);
	host_open();
	device_open();
	before = port_attr();
	second = make_qp(&n, IBV_QPT_UD, NULL);
	third = make_qp(&n, IBV_QPT_UD, NULL);
	type_connect(second, &n.o, NULL);
	type_connect(third, &n.o, NULL);
	ck_assert(!is_joined());
	ck_ok(ibv_attach_mcast(n.qp, &group, 0));
	wait_joined(true);
	ck_ok(ibv_attach_mcast(second, &group, 0));
	ck_ok(qp_recv(n.qp, &n, 1, 0, 1024));
	ck_ok(qp_recv(second, &n, 2, 1024, 1024));
	ck_ok(qp_recv(third, &n, 3, 2048, 1024));

	p.bth.qpn = third->qp_num; /* not the multicast QPN */
	say(group.raw, &p);
	p = packet(GROUP_QPN, BYTES);
	p.deth.qkey ^= 1;
	say(group.raw, &p);
	p = packet(GROUP_QPN, BYTES);
	say(others[version].raw, &p);
	say(here, &p);
	p.bth.pkey = 0x1234;
	say(group.raw, &p);
	p.bth.pkey = 0xffff;
	say(group.raw, &p);
	expect_said(n.qp, 1, 0, group.raw, BYTES);
	expect_said(second, 2, 1024, group.raw, BYTES);
	expect_none(n.rcq, QUIET_MS);
	/* counted once for each member */
	ck_assert_uint_eq(port_attr().qkey_viol_cntr,
			  before.qkey_viol_cntr + 2);
	ck_assert_uint_eq(port_attr().bad_pkey_cntr, before.bad_pkey_cntr + 1);

	ck_ok(ibv_detach_mcast(n.qp, &group, 0));
	ck_ok(qp_recv(second, &n, 4, 1024, 1024));
	say(group.raw, &p);
	expect_said(second, 4, 1024, group.raw, BYTES);
	ck_assert(is_joined());
	ck_ok(ibv_detach_mcast(second, &group, 0));
	wait_joined(false);
	ck_ok(ibv_destroy_qp(second));
	ck_ok(ibv_destroy_qp(third));
	device_close();
}
END_TEST

/* A payload that is stored in the CQE, and one that is not. */
static const uint32_t lengths[] = { 8, BYTES };

/*
 * A datagram arrives for a receive whose registered memory was unmapped, as
 * at the exit of a program.  The receive completes with IBV_WC_LOC_PROT_ERR,
 * and the program does not crash.
 */
START_TEST(receive_memory_unmapped)
{
	char *mem = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_recv_wr wr = { .wr_id = 1, .num_sge = 1 }, *bad;
	struct wire_packet p;
	struct ibv_sge sge;
	struct ibv_mr *mr;

	use(_i / 2);
	host_open();
	device_open();
	ck_assert_ptr_ne(mem, MAP_FAILED);
	mr = ibv_reg_mr(n.pd, mem, 4096, IBV_ACCESS_LOCAL_WRITE);
	ck_nonnull(mr);
	sge = (struct ibv_sge){ (uintptr_t)mem, 4096, mr->lkey };
	wr.sg_list = &sge;
	ck_ok(ibv_post_recv(n.qp, &wr, &bad));
	leave_hole(mem, 4096);
	p = packet(n.qp->qp_num, lengths[_i % 2]);
	say(here, &p);
	expect(n.rcq, 1, IBV_WC_LOC_PROT_ERR);
	ck_ok(ibv_dereg_mr(mr));
	device_close();
}
END_TEST

/*
 * A datagram to a group is sent to the network once, and delivered to each
 * member on this host once.
 */
START_TEST(group_sent)
{
	static const uint64_t macs[] = { 0x01005e5b0102, 0x333300000102 };
	struct ibv_ah *ah;
	struct ibv_qp *member;
	struct seen s;
	int cable;

	use(_i);
	host_open();
	cable = watch_interface("eth1");
	device_open();
	member = make_qp(&n, IBV_QPT_UD, NULL);
	type_connect(member, &n.o, NULL);
	ck_ok(ibv_attach_mcast(member, &group, 0));
	ck_ok(qp_recv(member, &n, 1, 2048, 1024));
	ck_ok(qp_recv(member, &n, 2, 3072, 1024));
	ah = make_ah(&n, &group, own_index());
	node_fill(&n, 0, BYTES, 7);
	ck_ok(post_ud(&n, 3, 0, BYTES, ah, GROUP_QPN, QKEY));
	expect_ok(n.scq, 3, IBV_WC_SEND);
	s = see(cable);
	ck_assert_uint_eq(s.mac, macs[version]);
	ck_assert_int_eq(memcmp(s.path.dgid, group.raw, 16), 0);
	ck_assert_uint_eq(s.path.hop_limit, 7);
	ck_assert_uint_eq(s.path.traffic_class, 0x28);
	ck_assert_uint_eq(s.path.flow_label, version == IPV6 ? 0x12345 : 0);
	ck_assert_uint_eq(s.packet.bth.qpn, GROUP_QPN);
	ck_assert_uint_eq(s.packet.deth.qpn, n.qp->qp_num);
	ck_assert_uint_eq(s.packet.deth.qkey, QKEY);
	ck_assert_uint_eq(s.packet.length, BYTES);
	ck_assert_int_eq(memcmp(s.packet.payload, n.buf, BYTES), 0);
	expect_ok(n.rcq, 1, IBV_WC_RECV);
	ck_assert(node_has(&n, 2048 + GRH, BYTES, 7));
	see_nothing(cable);
	expect_none(n.rcq, 0);
	ck_ok(ibv_destroy_ah(ah));
	ck_ok(ibv_detach_mcast(member, &group, 0));
	ck_ok(ibv_destroy_qp(member));
	close(cable);
	device_close();
}
END_TEST

/* ------------------------------------------------------- unicast */

static union ibv_gid gid_of(int v)
{
	union ibv_gid gid;

	memcpy(gid.raw, theres[v], 16);
	return gid;
}

/*
 * Hold an exclusive IPv6 flow label.  Until the socket is closed, other
 * sockets can send only flow labels that they have leased.
 */
static int keep_a_label(void)
{
	const struct {
		uint8_t to[16];
		uint32_t label;
		uint8_t action, share;
		uint16_t flags, expires, linger;
		uint32_t pad;
	} r = { .to = { 0xfd, 0x91, [15] = 2 },
		.label = htonl(0x777),
		.share = 1,
		.flags = 1 };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_ok(setsockopt(fd, IPPROTO_IPV6, 32, &r, sizeof(r)));
	return fd;
}

/* Send a datagram to PEER_QPN.  Return it as received on interface @lo. */
static struct seen tell(int lo, struct ibv_ah *ah, uint32_t qkey)
{
	struct seen s;

	node_fill(&n, 0, BYTES, 7);
	ck_ok(post_ud(&n, 1, 0, BYTES, ah, PEER_QPN, qkey));
	expect_ok(n.scq, 1, IBV_WC_SEND);
	s = see(lo);
	ck_assert_int_eq(memcmp(s.path.dgid, there, 16), 0);
	ck_assert_uint_eq(s.packet.bth.qpn, PEER_QPN);
	ck_assert_uint_eq(s.packet.deth.qpn, n.qp->qp_num);
	ck_assert_uint_eq(s.packet.length, BYTES);
	ck_assert_int_eq(memcmp(s.packet.payload, n.buf, BYTES), 0);
	return s;
}

/*
 * The packet has the traffic class, hop limit and flow label of the address
 * handle, and the Q_Key of the WR.  If the high bit of the WR's Q_Key is set,
 * the Q_Key is that of the QP.
 */
START_TEST(datagram_headers_sent)
{
	const uint32_t label = _i == IPV6 ? 0x12345 : 0;
	const union ibv_gid to = gid_of(_i);
	struct ibv_ah_attr plain = { .is_global = 1, .port_num = 1 };
	struct ibv_ah *ah;
	struct seen s;
	int lo, kept;

	use(_i);
	lo = watch_interface("lo");
	device_open();
	ah = make_ah(&n, &to, own_index());
	s = tell(lo, ah, 0x1234);
	ck_assert_uint_eq(s.path.hop_limit, 7);
	ck_assert_uint_eq(s.path.traffic_class, 0x28);
	ck_assert_uint_eq(s.path.flow_label, label);
	ck_assert_uint_eq(s.packet.deth.qkey, 0x1234);
	/* high bit set: the QP's Q_Key */
	s = tell(lo, ah, 0x80001234);
	ck_assert_uint_eq(s.packet.deth.qkey, QKEY);
	if (_i == IPV6) {
		kept = keep_a_label();
		s = tell(lo, ah, 1);
		ck_assert_uint_eq(s.path.flow_label, label);
		close(kept);
	}
	ck_ok(ibv_destroy_ah(ah));
	plain.grh.dgid = to;
	plain.grh.sgid_index = own_index();
	plain.grh.hop_limit = 1;
	ah = ibv_create_ah(n.pd, &plain);
	ck_nonnull(ah);
	s = tell(lo, ah, 1);
	ck_assert_uint_eq(s.path.hop_limit, 1);
	ck_assert_uint_eq(s.path.traffic_class, 0);
	ck_assert_uint_eq(s.path.flow_label, 0);
	ck_ok(ibv_destroy_ah(ah));
	close(lo);
	device_close();
}
END_TEST

/*
 * ibv_init_ah_from_wc() and ibv_create_ah_from_wc() derive the address of the
 * sender from a received datagram.
 */
START_TEST(reply_to_sender)
{
	struct wire_packet p;
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct seen s;
	int lo;

	use(_i);
	host_open();
	lo = watch_interface("lo");
	device_open();
	p = packet(n.qp->qp_num, BYTES);
	ck_ok(qp_recv(n.qp, &n, 1, 2048, 1024));
	say(here, &p);
	wc = wait_wc(n.rcq);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.src_qp, PEER_QPN);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_GRH);
	check_grh(2048, here, BYTES);
	ck_ok(ibv_init_ah_from_wc(n.ctx, 1, &wc, (void *)((char *)n.buf + 2048),
				  &attr));
	ck_assert(attr.is_global);
	ck_assert_uint_eq(attr.grh.sgid_index, own_index());
	ck_assert_uint_eq(attr.grh.traffic_class, 0x48);
	ck_assert_int_eq(memcmp(attr.grh.dgid.raw, there, 16), 0);
	ah = ibv_create_ah_from_wc(n.pd, &wc, (void *)((char *)n.buf + 2048),
				   1);
	ck_nonnull(ah);
	s = tell(lo, ah, QKEY);
	ck_assert_uint_eq(s.path.traffic_class, 0x48);
	ck_assert_uint_eq(s.path.flow_label, _i == IPV6 ? 0xd1234 : 0);
	ck_ok(ibv_destroy_ah(ah));
	close(lo);
	device_close();
}
END_TEST

/*
 * A CQ armed for solicited completions gets no event for an unsolicited
 * datagram.
 */
START_TEST(solicited)
{
	struct wire_packet p;
	struct ibv_cq *cq;
	void *context;

	use(_i);
	host_open();
	device_open();
	p = packet(n.qp->qp_num, BYTES);
	ck_ok(qp_recv(n.qp, &n, 1, 0, 1024));
	ck_ok(qp_recv(n.qp, &n, 2, 1024, 1024));
	ck_ok(ibv_req_notify_cq(n.rcq, 1));
	say(here, &p);
	expect_said(n.qp, 1, 0, here, BYTES);
	ck_assert(!fd_readable(n.chan->fd, QUIET_MS));
	p.bth.solicited = true;
	say(here, &p);
	ck_assert(fd_readable(n.chan->fd, WAIT_MS));
	ck_ok(ibv_get_cq_event(n.chan, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	expect_said(n.qp, 2, 1024, here, BYTES);
	device_close();
}
END_TEST

/* ------------------------------------------------- socket owner changes */

/*
 * Start a process that has the device open; attaches: with a QP in the group.
 */
static pid_t start_process(bool attaches)
{
	int ready[2];
	pid_t pid;
	char c;

	ck_ok(pipe(ready));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		leave_check();
		device_open();
		if (attaches)
			ck_ok(ibv_attach_mcast(n.qp, &group, 0));
		c = write(ready[1], "", 1) == 1;
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end_process(pid_t pid)
{
	ck_ok(kill(pid, SIGKILL));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/*
 * When the socket owner is killed, its successor joins the groups of all
 * attached QPs.
 */
START_TEST(socket_owner_killed)
{
	pid_t pid;

	use(_i);
	host_open();
	pid = start_process(false);
	device_open();
	ck_ok(ibv_attach_mcast(n.qp, &group, 0));
	insist(n.qp, 1, 0, 100);
	end_process(pid);
	insist(n.qp, 2, 1024, 200);
	ck_ok(ibv_detach_mcast(n.qp, &group, 0));
	wait_joined(false);
	device_close();
}
END_TEST

/* After a process with the only attached QP is killed, the group is left. */
START_TEST(member_killed)
{
	pid_t pid;

	use(_i);
	device_open();
	pid = start_process(true);
	wait_joined(true);
	end_process(pid);
	wait_joined(false);
	device_close();
}
END_TEST

/*
 * A stopped socket owner does not block ibv_attach_mcast().  Its successor
 * joins the group, and packets arrive also after the old one continues.
 */
START_TEST(socket_owner_stopped)
{
	pid_t pid;

	use(_i);
	host_open();
	pid = start_process(false);
	device_open();
	ck_ok(kill(pid, SIGSTOP));
	ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);
	ck_ok(ibv_attach_mcast(n.qp, &group, 0));
	insist(n.qp, 1, 0, 100);
	ck_ok(kill(pid, SIGCONT));
	insist(n.qp, 2, 1024, 200);
	ck_ok(ibv_detach_mcast(n.qp, &group, 0));
	end_process(pid);
	device_close();
}
END_TEST

/* Return whether the kernel has IPv6. */
static bool has_ipv6(void)
{
	struct wire_socket s;
	bool yes = !wire_socket_open(&s, heres[IPV6], 0, 0);

	if (yes)
		wire_socket_close(&s);
	return yes;
}

int main(void)
{
	const int versions = has_ipv6() ? VERSIONS : 1;
	Suite *s = suite("datagram");
	uint32_t i;

	for (i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * 7 + i / 251);
	add_loop(s, group_received, versions);
	add_loop(s, group_sent, versions);
	add_loop(s, datagram_headers_sent, versions);
	add_loop(s, reply_to_sender, versions);
	add_loop(s, solicited, versions);
	add_loop(s, receive_memory_unmapped, 2 * versions);
	add_loop(s, socket_owner_killed, versions);
	add_loop(s, member_killed, versions);
	add_loop(s, socket_owner_stopped, versions);
	return run(s);
}

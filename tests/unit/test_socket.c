// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* RoCE packets through UDP sockets on the loopback interface. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit_base.h"
#include "wire/address.h"
#include "wire/receiver.h"
#include "wire/sender.h"

static const uint8_t localhost[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
static const uint8_t localhost6[16] = { [15] = 1 };

/* A sender and a receiver with their sockets. */
static struct {
	struct wire_socket from, to;
	struct wire_sender sender;
	struct wire_receiver receiver;
	struct wire_received got;
} * w;
static struct wire_path path;
static uint8_t payload[WIRE_MAX_PAYLOAD];

static bool begin(bool v6)
{
	const uint8_t *gid = v6 ? localhost6 : localhost;

	w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(w, MAP_FAILED);
	if (wire_socket_open(&w->to, gid, 0, WIRE_NONBLOCKING)) {
		ck_assert(v6); /* no IPv6 in this container */
		puts("no IPv6 here");
		return false;
	}
	ck_assert_int_eq(wire_socket_open(&w->from, gid, 0, WIRE_SENDS_ONLY),
			 0);
	wire_receiver_begin(&w->receiver);
	memset(&path, 0, sizeof(path));
	memcpy(path.dgid, gid, 16);
	path.port = w->to.port;
	return true;
}

static void end(void)
{
	wire_socket_close(&w->from);
	wire_socket_close(&w->to);
	munmap(w, sizeof(*w));
}

static struct wire_packet packet(uint32_t psn, uint32_t length)
{
	struct wire_packet p = {
		.bth = { .opcode = WIRE_RC | WIRE_SEND_MIDDLE, .psn = psn },
		.length = length,
		.known = length,
		.payload = payload,
	};

	return p;
}

static void push(uint32_t psn, uint32_t length)
{
	struct wire_packet p = packet(psn, length);

	ck_assert_ptr_nonnull(wire_sender_add(&w->sender, &path, &p));
}

static unsigned int flush(void)
{
	unsigned int sent;

	ck_assert_int_eq(wire_sender_flush(&w->sender, &w->from, &sent), 0);
	return sent;
}

static void wait_for(const struct wire_socket *s)
{
	struct pollfd p = { s->fd, POLLIN, 0 };

	ck_assert_int_eq(poll(&p, 1, -1), 1);
}

/* Return the next packet; wait for it. */
static const struct wire_received *next(void)
{
	while (!wire_received(&w->receiver, &w->got)) {
		wait_for(&w->to);
		ck_assert_int_eq(wire_receive(&w->receiver, &w->to), 0);
	}
	return &w->got;
}

static void expect(uint32_t psn, uint32_t length)
{
	const struct wire_received *r = next();

	ck_assert_msg(r->refusal == WIRE_TAKEN, "%u: %s", psn,
		      wire_refusal_name(r->refusal));
	ck_assert_uint_eq(r->packet.bth.psn, psn);
	ck_assert_uint_eq(r->packet.length, length);
	ck_assert_mem_eq(r->packet.payload, payload, length);
	ck_assert_mem_eq(r->path.sgid, w->from.gid, 16);
	ck_assert_mem_eq(r->path.dgid, path.dgid, 16);
	ck_assert_uint_eq(r->path.source_port, w->from.port);
	ck_assert_uint_eq(r->path.traffic_class, path.traffic_class);
	if (path.hop_limit)
		ck_assert_uint_eq(r->path.hop_limit, path.hop_limit);
}

static void expect_nothing(void)
{
	ck_assert(!wire_received(&w->receiver, &w->got));
	ck_assert_int_eq(wire_receive(&w->receiver, &w->to), -EAGAIN);
	ck_assert(!wire_received(&w->receiver, &w->got));
}

/* Single packets of each length, and the fields of the IP header. */
START_TEST(single_packets)
{
	uint32_t length;

	if (!begin(_i))
		return;
	path.traffic_class = 0x4b;
	path.hop_limit = 7;
	for (length = 0; length <= 64; length++) {
		push(length, length);
		ck_assert_uint_eq(flush(), 1);
		expect(length, length);
		ck_assert_uint_eq(w->got.path.ip_id, 0);
		ck_assert(wire_is_congested(&w->got.path));
	}
	expect_nothing();
	end();
}
END_TEST

/* Lists of packets of equal and of different lengths. */
START_TEST(packet_lists)
{
	static const uint32_t length[] = { 4096, 4096, 4096, 256, 256, 300, 256,
					   255,	 0,    0,    1,	  4,   4096 };
	unsigned int i, round, n;

	if (!begin(_i & 1))
		return;
	w->sender.no_gso = _i & 2;
	for (round = 0; round < 3; round++) {
		for (n = 0; !wire_sender_is_full(&w->sender); n++)
			push(n, length[n % 13]);
		ck_assert_ptr_null(wire_sender_add(&w->sender, &path,
						   &(struct wire_packet){ 0 }));
		ck_assert_uint_eq(flush(), n);
		for (i = 0; i < n; i++)
			expect(i, length[i % 13]);
	}
	expect_nothing();
	end();
}
END_TEST

/* More equal packets than one GSO datagram holds. */
START_TEST(equal_packets_beyond_gso)
{
	unsigned int i;

	if (!begin(_i))
		return;
	for (i = 0; i < WIRE_SENDER_PACKETS; i++)
		push(i, 1024);
	ck_assert_uint_eq(flush(), WIRE_SENDER_PACKETS);
	for (i = 0; i < WIRE_SENDER_PACKETS; i++)
		expect(i, 1024);
	ck_assert(!w->sender.no_gso);
	end();
}
END_TEST

/* Packets to two destinations alternately: one system call, without GSO. */
START_TEST(two_destinations)
{
	struct wire_socket other, to;
	unsigned int i;

	if (!begin(_i))
		return;
	ck_assert_int_eq(
		wire_socket_open(&other, w->to.gid, 0, WIRE_NONBLOCKING), 0);
	for (i = 0; i < 20; i++) {
		path.port = i & 1 ? other.port : w->to.port;
		push(i, 64);
	}
	ck_assert_uint_eq(flush(), 20);
	for (i = 0; i < 20; i += 2)
		expect(i, 64);
	expect_nothing();
	to = w->to;
	w->to = other;
	for (i = 1; i < 20; i += 2)
		expect(i, 64);
	expect_nothing();
	w->to = to;
	wire_socket_close(&other);
	end();
}
END_TEST

/* The caller may fill in the payload itself, or drop the packet again. */
START_TEST(payload_filled_in_place)
{
	struct wire_packet p = packet(1, 77);
	uint8_t *at;

	ck_assert(begin(false));
	push(0, 5);
	p.payload = NULL;
	at = wire_sender_add(&w->sender, &path, &p);
	ck_assert_ptr_nonnull(at);
	memcpy(at, payload, 77);
	push(2, 1);
	wire_sender_drop(&w->sender);
	push(3, 2);
	/* invalid packets */
	p.length = WIRE_MAX_PAYLOAD + 1;
	ck_assert_ptr_null(wire_sender_add(&w->sender, &path, &p));
	p.length = 0;
	p.bth.opcode = 0xff;
	ck_assert_ptr_null(wire_sender_add(&w->sender, &path, &p));
	ck_assert_uint_eq(flush(), 3);
	expect(0, 5);
	expect(1, 77);
	expect(3, 2);
	expect_nothing();
	end();
}
END_TEST

/* Damaged and truncated packets are refused: every byte is checked. */
START_TEST(damaged_packets_refused)
{
	struct wire_packet p = packet(9, 13);
	union wire_sockaddr to;
	uint8_t bytes[128];
	struct wire_front f;
	socklen_t len;
	size_t n, k;

	if (!begin(_i))
		return;
	len = wire_sockaddr_of(&to, w->to.gid, w->to.port, 0);
	memcpy(path.sgid, w->from.gid, 16);
	path.source_port = w->from.port;
	wire_front_begin(&f, &path);
	n = (size_t)(wire_put_transport(&p, bytes) - bytes);
	wire_put_icrc(wire_front_icrc(&f, 0, bytes, n), bytes + n);
	n += WIRE_ICRC_BYTES;
	for (k = 0; k < n * 8; k++) {
		bytes[k / 8] ^= 1u << k % 8;
		ck_assert_int_eq(sendto(w->from.fd, bytes, n, 0, &to.sa, len),
				 (ssize_t)n);
		next();
		/* the byte that routers may change */
		ck_assert_int_eq(w->got.refusal == WIRE_TAKEN, k / 8 == 4);
		bytes[k / 8] ^= 1u << k % 8;
	}
	for (k = 0; k < n; k++) {
		ck_assert_int_eq(sendto(w->from.fd, bytes, k, 0, &to.sa, len),
				 (ssize_t)k);
		if (!k) /* a datagram of 0 bytes contains no packet */
			continue;
		ck_assert_int_ne(next()->refusal, WIRE_TAKEN);
		ck_assert_uint_eq(w->got.bytes, k);
	}
	expect_nothing();
	end();
}
END_TEST

static void push_some(uint32_t length)
{
	uint32_t i;

	for (i = 0; i < 10; i++)
		push(i, length);
}

/*
 * If the kernel does not support GSO on the socket, packets are sent one by
 * one from then on.
 */
START_TEST(without_gso)
{
	const int one = 1;
	uint32_t i, round;

	ck_assert(begin(false));
	ck_assert_int_eq(setsockopt(w->from.fd, SOL_SOCKET, SO_NO_CHECK, &one,
				    sizeof(one)),
			 0);
	for (round = 0; round < 2; round++) {
		push(77, 9); /* sent before the one that fails */
		push_some(600);
		ck_assert_uint_eq(flush(), 11);
		ck_assert(w->sender.no_gso);
		expect(77, 9);
		for (i = 0; i < 10; i++)
			expect(i, 600);
	}
	expect_nothing();
	end();
}
END_TEST

/* Create a network namespace whose loopback interface has this MTU. */
static bool own_network(int mtu)
{
	struct ifreq r = { .ifr_name = "lo" };
	int fd;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	r.ifr_mtu = mtu;
	ck_assert_int_eq(ioctl(fd, SIOCSIFMTU, &r), 0);
	r.ifr_flags = IFF_UP;
	ck_assert_int_eq(ioctl(fd, SIOCSIFFLAGS, &r), 0);
	close(fd);
	return true;
}

/* A packet longer than the MTU is not sent.  This does not disable GSO. */
START_TEST(packet_longer_than_mtu)
{
	unsigned int sent;
	uint32_t i;

	if (!own_network(1500)) {
		puts("no network namespaces here");
		return;
	}
	if (!begin(_i))
		return;
	push_some(4096);
	ck_assert_int_eq(wire_sender_flush(&w->sender, &w->from, &sent),
			 -EMSGSIZE);
	ck_assert_uint_eq(sent, 0);
	ck_assert(!w->sender.no_gso);
	push_some(1024);
	ck_assert_uint_eq(flush(), 10);
	for (i = 0; i < 10; i++)
		expect(i, 1024);
	ck_assert(!w->sender.no_gso);
	end();
}
END_TEST

/* A packet without a route does not keep the others from being sent. */
START_TEST(packet_without_route)
{
	unsigned int sent;

	ck_assert(begin(false));
	push(0, 1);
	path.dgid[12] = 0; /* 0.0.0.1 */
	push(1, 1);
	path.dgid[12] = 127;
	push(2, 1);
	ck_assert_int_lt(wire_sender_flush(&w->sender, &w->from, &sent), 0);
	ck_assert_uint_eq(sent, 2);
	ck_assert_uint_eq(w->sender.sent.packets, 2);
	ck_assert_uint_eq(w->sender.sent.lost, 1);
	expect(0, 1);
	expect(2, 1);
	expect_nothing();
	end();
}
END_TEST

/*
 * Packets that the receive buffer has no room for are counted, and so are the
 * packets sent.
 */
START_TEST(receive_buffer_full)
{
	const int room = 1;
	const unsigned int all = 100;
	unsigned int i, came = 0;

	if (!begin(_i))
		return;
	/* the kernel's minimum */
	ck_assert_int_eq(setsockopt(w->to.fd, SOL_SOCKET, SO_RCVBUF, &room,
				    sizeof(room)),
			 0);
	w->sender.no_gso = true;
	for (i = 0; i < all; i++) {
		push(i, 512);
		flush();
	}
	ck_assert_uint_eq(w->sender.sent.packets, all);
	ck_assert_uint_eq(w->sender.sent.lost, 0);
	ck_assert_uint_eq(w->sender.sent.bytes,
			  all * (512 + WIRE_BTH_BYTES + WIRE_ICRC_BYTES));
	while (!wire_receive(&w->receiver, &w->to))
		while (wire_received(&w->receiver, &w->got))
			came++;
	ck_assert_uint_lt(came, all);
	push(i, 0); /* brings the count of dropped packets */
	flush();
	expect(i, 0);
	ck_assert_uint_eq(w->receiver.dropped, all - came);
	end();
}
END_TEST

START_TEST(options)
{
	struct wire_socket s, again;

	ck_assert(begin(false));
	ck_assert(fcntl(w->to.fd, F_GETFD) & FD_CLOEXEC);
	ck_assert(fcntl(w->to.fd, F_GETFL) & O_NONBLOCK);
	ck_assert(!(fcntl(w->from.fd, F_GETFL) & O_NONBLOCK));
	ck_assert_uint_gt(w->to.room, 0);
	ck_assert_uint_ne(w->to.interface, 0);
	/* the port is in use; the address is not local */
	ck_assert_int_eq(wire_socket_open(&s, localhost, w->to.port, 0),
			 -EADDRINUSE);
	ck_assert_int_eq(s.fd, -1);
	ck_assert_int_eq(
		wire_socket_open(
			&again,
			(const uint8_t[16]){ [10] = 0xff, 0xff, 192, 0, 2, 1 },
			0, 0),
		-EADDRNOTAVAIL);
	wire_socket_close(&s);
	/* a socket that only sends does not receive */
	path.port = w->from.port;
	push(0, 1);
	ck_assert_uint_eq(flush(), 1);
	ck_assert_int_eq(recv(w->from.fd, &s, sizeof(s), MSG_DONTWAIT), -1);
	end();
}
END_TEST

/* Both members of a multicast group get each packet. */
START_TEST(groups)
{
	static const uint8_t group[16] = { [10] = 0xff, 0xff, 239, 1, 2, 3 };
	static const uint8_t group6[16] = { 0xff, 0x12, [15] = 0x77 };
	const uint8_t *g = _i ? group6 : group;
	struct wire_socket member[2], from;
	int err;

	if (!begin(_i))
		return;
	ck_assert_int_eq(wire_socket_open_group(&member[0], w->to.gid, g, 0,
						WIRE_NONBLOCKING),
			 0);
	ck_assert_int_eq(wire_socket_open_group(&member[1], w->to.gid, g,
						member[0].port,
						WIRE_NONBLOCKING),
			 0);
	ck_assert_int_eq(
		wire_socket_open_group(&from, w->to.gid, w->to.gid, 0, 0),
		-EINVAL);
	ck_assert_int_eq(wire_socket_open(&from, w->to.gid, 0,
					  WIRE_LOOPS | WIRE_SENDS_ONLY),
			 0);
	wire_socket_close(&w->from);
	w->from = from;
	memcpy(path.dgid, g, 16);
	path.port = member[0].port;
	push(1, 44);
	err = wire_sender_flush(&w->sender, &w->from, NULL);
	if (err == -ENETUNREACH && _i) {
		puts("no route to groups of IPv6 on this loopback");
		wire_socket_close(&member[0]);
		wire_socket_close(&member[1]);
		end();
		return;
	}
	ck_assert_int_eq(err, 0);
	wire_socket_close(&w->to);
	w->to = member[0];
	expect(1, 44);
	wire_socket_close(&w->to);
	w->to = member[1];
	expect(1, 44);
	expect_nothing();
	end();
}
END_TEST

/*
 * GRH of a UD receive as of rxe: for IPv4 20 zeros and the IP header, for
 * IPv6 the IP header.
 */
START_TEST(grhs)
{
	uint8_t grh[WIRE_GRH_BYTES];
	struct wire_ipv4 ip;
	struct wire_ipv6 ip6;

	if (!begin(_i))
		return;
	path.traffic_class = 0x20;
	path.hop_limit = 9;
	push(1, 10);
	flush();
	expect(1, 10);
	wire_put_grh(&w->got, grh);
	if (_i) {
		wire_get_ipv6(&ip6, grh);
		ck_assert_uint_eq(ip6.version, 6);
		ck_assert_uint_eq(ip6.bytes, 8 + 12 + 12 + 4);
		ck_assert_uint_eq(ip6.hop_limit, 9);
		ck_assert_uint_eq(ip6.traffic_class, 0x20);
		ck_assert_mem_eq(grh + 8, localhost6, 16);
		ck_assert_mem_eq(grh + 24, localhost6, 16);
	} else {
		ck_assert_mem_eq(grh, ((const uint8_t[20]){ 0 }), 20);
		wire_get_ipv4(&ip, grh + 20);
		ck_assert_uint_eq(ip.version, 4);
		ck_assert_uint_eq(ip.bytes, 20 + 8 + 12 + 12 + 4);
		ck_assert_uint_eq(ip.hop_limit, 9);
		ck_assert_uint_eq(ip.traffic_class, 0x20);
		ck_assert_mem_eq(grh + 32, localhost + 12, 4);
		ck_assert_mem_eq(grh + 36, localhost + 12, 4);
	}
	end();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("socket");
	unsigned int i;

	for (i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 37 + 11);
	add_loop(s, single_packets, 2);
	add_loop(s, packet_lists, 4);
	add_loop(s, equal_packets_beyond_gso, 2);
	add_loop(s, two_destinations, 2);
	add(s, payload_filled_in_place);
	add_loop(s, damaged_packets_refused, 2);
	add(s, without_gso);
	add_loop(s, packet_longer_than_mtu, 2);
	add(s, packet_without_route);
	add_loop(s, receive_buffer_full, 2);
	add(s, options);
	add_loop(s, groups, 2);
	add_loop(s, grhs, 2);
	return run_suite(s);
}

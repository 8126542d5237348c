// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Cost of RoCE packets with an ICRC, compared with UDP datagrams of the same
 * size whose content is ignored ("bare"):
 *
 *	wire icrc
 *	wire receive|bare-receive ADDRESS
 *	wire send|bare-send ADDRESS TO SECONDS [PAYLOAD]
 *	wire pong|bare-pong|poll-pong ADDRESS
 *	wire ping|bare-ping|poll-ping ADDRESS TO SECONDS [PAYLOAD]
 *
 * "poll" is bare, but polls its socket instead of sleeping in recvfrom(2).
 * A receiver starts counting at the first datagram and stops when none has
 * arrived for a second.  It does not detect lost datagrams.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "wire/crc/crc32.h"
#include "wire/receiver.h"
#include "wire/sender.h"

#define SILENCE_MS 1000

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ------------------------------------------------------- the ICRC */

#define MAX_BYTES 4096u
#define ROUNDS 7
#define BYTES_A_ROUND 20000000u

static uint8_t from[MAX_BYTES + 64], to[MAX_BYTES + 64];

static uint32_t copy(uint32_t crc, const void *bytes, size_t n)
{
	memcpy(to, bytes, n);
	__asm__ volatile("" : : "r"(to) : "memory");
	return crc;
}

static double best_of(wire_crc32_fn *fn, uint32_t n)
{
	const uint32_t times = BYTES_A_ROUND / n;
	uint32_t sum = 0;
	double best = 1e9, t;
	unsigned int round;
	uint32_t i;

	for (round = 0; round < ROUNDS; round++) {
		t = now(CLOCK_MONOTONIC);
		for (i = 0; i < times; i++)
			sum ^= fn(0, from, n);
		__asm__ volatile("" : : "r"(sum));
		t = (now(CLOCK_MONOTONIC) - t) / times;
		best = t < best ? t : best;
	}
	return best;
}

static void print_row(const char *name, wire_crc32_fn *fn)
{
	static const uint32_t bytes[] = { 64, 256, 1024, 4096 };
	unsigned int i;

	if (!fn)
		return;
	printf("%-10s", name);
	for (i = 0; i < sizeof(bytes) / sizeof(*bytes); i++)
		printf("  %4u B %6.1f GB/s", bytes[i],
		       bytes[i] / best_of(fn, bytes[i]) / 1e9);
	printf("\n");
}

static int icrc(void)
{
	static const char *const name[] = {
		[WIRE_CRC32_TABLES] = "tables",
		[WIRE_CRC32_CLMUL] = "clmul",
		[WIRE_CRC32_VCLMUL] = "vclmul",
		[WIRE_CRC32_VCLMUL_512] = "vclmul-512",
		[WIRE_CRC32_ARM] = "arm",
	};
	unsigned int way;

	for (way = 0; way < WIRE_CRC32_IMPLS; way++)
		print_row(name[way], wire_crc32_with(way));
	print_row("memcpy", copy);
	return 0;
}

/* ------------------------------------------------------- addresses */

static void gid_of(uint8_t gid[16], const char *text)
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	if (inet_pton(AF_INET, text, gid + 12) != 1 &&
	    inet_pton(AF_INET6, text, gid) != 1) {
		fprintf(stderr, "%s is no address\n", text);
		exit(2);
	}
}

static void open_socket(struct wire_socket *s, const char *address,
			uint16_t port, unsigned int flags)
{
	uint8_t gid[16];

	gid_of(gid, address);
	errno = -wire_socket_open(s, gid, port, flags);
	if (errno)
		die(address);
}

static void *room(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static void print_end(const char *what, uint64_t packets, uint64_t bytes,
		      double seconds)
{
	printf("%-12s %6.2f GB/s  %9.0f packets/s  %5.3f s of CPU per GB\n",
	       what, (double)bytes / seconds / 1e9, (double)packets / seconds,
	       bytes ? now(CLOCK_PROCESS_CPUTIME_ID) / (double)bytes * 1e9 : 0);
}

/* ------------------------------------------------------- receivers */

/* Wait for a datagram.  Return false if none arrives within SILENCE_MS. */
static bool wait_for(const struct wire_socket *s)
{
	struct pollfd p = { s->fd, POLLIN, 0 };

	return poll(&p, 1, SILENCE_MS) > 0;
}

struct tally {
	uint64_t packets, bytes, refused;
};

static void take(struct wire_receiver *r, struct tally *t)
{
	struct wire_received got;

	while (wire_received(r, &got)) {
		if (got.refusal) {
			t->refused++;
			continue;
		}
		t->packets++;
		t->bytes += got.packet.length;
	}
}

/*
 * Count the bytes of the datagrams.  This includes the 16 bytes of each
 * datagram that are not payload.  Packets are not counted.
 */
static void take_bare(struct wire_receiver *r, struct tally *t)
{
	unsigned int i;

	for (i = 0; i < r->n; i++)
		t->bytes += r->header[i].msg_len;
	r->n = 0;
}

static int receive(const char *address, bool bare)
{
	struct wire_receiver *r = room(sizeof(*r));
	struct tally t = { 0 };
	struct wire_socket s;
	double begin = 0, last = 0;

	wire_receiver_begin(r);
	open_socket(&s, address, WIRE_PORT, WIRE_NONBLOCKING);
	while (!wire_receive(r, &s) || wait_for(&s) || !begin) {
		if (!r->n)
			continue;
		last = now(CLOCK_MONOTONIC);
		begin = begin ? begin : last;
		(bare ? take_bare : take)(r, &t);
	}
	print_end(bare ? "bare-receive" : "receive", t.packets, t.bytes,
		  last - begin);
	if (t.refused)
		printf("%llu refused\n", (unsigned long long)t.refused);
	return t.refused > 0;
}

/* ------------------------------------------------------- senders */

struct way {
	struct wire_socket socket;
	struct wire_path path;
	struct wire_packet packet;
	struct wire_sender *sender;
	double until;
};

static uint64_t push(struct way *w)
{
	unsigned int sent;

	while (!wire_sender_is_full(w->sender)) {
		wire_sender_add(w->sender, &w->path, &w->packet);
		w->packet.bth.psn = (w->packet.bth.psn + 1) & WIRE_PSN_MASK;
	}
	wire_sender_flush(w->sender, &w->socket, &sent);
	return sent;
}

/*
 * Send datagrams of the same size, without building packets.  Each message is
 * split into datagrams by UDP GSO.
 */
#define BARE_MESSAGES 8

static uint64_t push_bare(struct way *w)
{
	static struct mmsghdr header[BARE_MESSAGES];
	static union wire_sockaddr address;
	static struct iovec iov;
	static _Alignas(struct cmsghdr) char control[CMSG_SPACE(2)];
	static unsigned int n;
	struct cmsghdr *c = (struct cmsghdr *)control;
	const uint16_t segment = (uint16_t)(w->packet.length + 16);
	unsigned int i;
	int sent;

	if (!n) {
		n = 65000 / segment < 64 ? 65000 / segment : 64;
		iov = (struct iovec){ w->sender->bytes, n * segment };
		c->cmsg_level = IPPROTO_UDP;
		c->cmsg_type = UDP_SEGMENT;
		c->cmsg_len = CMSG_LEN(sizeof(segment));
		memcpy(CMSG_DATA(c), &segment, sizeof(segment));
		for (i = 0; i < BARE_MESSAGES; i++)
			header[i].msg_hdr = (struct msghdr){
				.msg_name = &address,
				.msg_namelen = wire_sockaddr_of(
					&address, w->path.dgid, WIRE_PORT,
					w->socket.interface),
				.msg_iov = &iov,
				.msg_iovlen = 1,
				.msg_control = control,
				.msg_controllen = sizeof(control),
			};
	}
	sent = sendmmsg(w->socket.fd, header, BARE_MESSAGES, 0);
	if (sent < 0)
		die("sendmmsg");
	return (uint64_t)sent * n;
}

static int send_for(const char *address, const char *peer, double seconds,
		    uint32_t payload, bool bare)
{
	struct way w = {
		.packet = { .bth = { .opcode = WIRE_RC | WIRE_SEND_MIDDLE,
				     .pkey = 0xffff,
				     .qpn = 0x11 },
			    .length = payload,
			    .known = payload,
			    .payload = from },
	};
	uint64_t sent = 0;
	double begin;

	w.sender = room(sizeof(*w.sender));
	open_socket(&w.socket, address, 0, WIRE_SENDS_ONLY);
	gid_of(w.path.dgid, peer);
	begin = now(CLOCK_MONOTONIC);
	while (now(CLOCK_MONOTONIC) < begin + seconds)
		sent += (bare ? push_bare : push)(&w);
	print_end(bare ? "bare-send" : "send", sent, sent * payload,
		  now(CLOCK_MONOTONIC) - begin);
	if (w.sender->no_gso)
		printf("no GSO here\n");
	return 0;
}

/* ------------------------------------------------------- ping-pong */

/* An end that receives and answers, with packets or with bare datagrams */
struct end {
	struct way w;
	struct wire_receiver *r;
	struct wire_received got;
	union wire_sockaddr from;
	bool bare;
	int flags; /* of recvfrom(2) */
	double silence; /* time limit of a poll for a message */
};

static struct end *end_of(const char *address, uint32_t payload, bool bare)
{
	struct end *e = room(sizeof(*e));

	open_socket(&e->w.socket, address, WIRE_PORT, 0);
	e->bare = bare;
	e->r = room(sizeof(*e->r));
	wire_receiver_begin(e->r);
	e->w.sender = room(sizeof(*e->w.sender));
	e->w.packet = (struct wire_packet){
		.bth = { .opcode = WIRE_RC | WIRE_SEND_ONLY,
			 .pkey = 0xffff,
			 .qpn = 0x11 },
		.length = payload,
		.known = payload,
		.payload = from,
	};
	return e;
}

static void say(struct end *e)
{
	const socklen_t len = e->w.socket.ipv6 ? sizeof(e->from.in6) :
						 sizeof(e->from.in);

	if (!e->bare) {
		wire_sender_add(e->w.sender, &e->w.path, &e->w.packet);
		if (wire_sender_flush(e->w.sender, &e->w.socket, NULL))
			die("flush");
	} else if (sendto(e->w.socket.fd, from, e->w.packet.length + 16, 0,
			  &e->from.sa, len) < 0) {
		die("sendto");
	}
}

static bool receive_bare(struct end *e)
{
	const double begin = e->flags ? now(CLOCK_MONOTONIC) : 0;
	socklen_t len = sizeof(e->from);

	while (recvfrom(e->w.socket.fd, to, sizeof(to), e->flags, &e->from.sa,
			&len) < 0)
		if (!e->flags || errno != EAGAIN ||
		    (e->silence > 0 &&
		     now(CLOCK_MONOTONIC) > begin + e->silence))
			return false;
	return true;
}

/* Receive one message.  Return false if the receive fails or times out. */
static bool receive_one(struct end *e)
{
	if (e->bare)
		return receive_bare(e);
	do
		if (wire_receive(e->r, &e->w.socket))
			return false;
	while (!wire_received(e->r, &e->got) || e->got.refusal);
	memcpy(e->w.path.dgid, e->got.path.sgid, 16);
	return true;
}

/* Answer messages until none has arrived for a second. */
static int pong(const char *address, bool bare, int flags)
{
	const struct timeval silence = { SILENCE_MS / 1000, 0 };
	struct end *e = end_of(address, 0, bare);

	e->flags = flags;
	if (!receive_one(e))
		return 1;
	e->silence = SILENCE_MS / 1e3;
	if (setsockopt(e->w.socket.fd, SOL_SOCKET, SO_RCVTIMEO, &silence,
		       sizeof(silence)))
		die("SO_RCVTIMEO");
	do {
		e->w.packet.length = e->w.packet.known =
			bare ? 8 : e->got.packet.length;
		say(e);
	} while (receive_one(e));
	return 0;
}

#define TIMES_MAX 1000000u

static int by_time(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* Print half of the round trip times in us. */
static void print_times(const char *what, float *us, uint32_t n)
{
	qsort(us, n, sizeof(*us), by_time);
	printf("%-12s half a round trip: median %.2f us, 99 %% %.2f us\n", what,
	       (double)us[n / 2], (double)us[(uint64_t)n * 99 / 100]);
}

static int ping(const char *what, const char *peer, double seconds,
		struct end *e)
{
	const double begin = now(CLOCK_MONOTONIC);
	float *us = room(TIMES_MAX * sizeof(*us));
	double then = begin, t = begin;
	uint32_t n;

	gid_of(e->w.path.dgid, peer);
	wire_sockaddr_of(&e->from, e->w.path.dgid, WIRE_PORT,
			 e->w.socket.interface);
	for (n = 0; t < begin + seconds && n < TIMES_MAX; then = t) {
		say(e);
		if (!receive_one(e))
			die("receive");
		t = now(CLOCK_MONOTONIC);
		us[n++] = (float)((t - then) / 2 * 1e6);
	}
	print_times(what, us, n);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const char *name = what;
	const int flags = strncmp(what, "poll-", 5) ? 0 : MSG_DONTWAIT;
	const bool bare = !strncmp(what, "bare-", 5) || flags;
	struct end *e;
	uint32_t payload = argc > 5 ? (uint32_t)atoi(argv[5]) : 0, i;

	if (payload > MAX_BYTES || payload % 4)
		return 2;
	for (i = 0; i < MAX_BYTES; i++)
		from[i] = (uint8_t)(i * 37 + 11);
	what += bare ? 5 : 0;
	if (!strcmp(what, "icrc") && argc == 2)
		return icrc();
	if (!strcmp(what, "receive") && argc == 3)
		return receive(argv[2], bare);
	if (!strcmp(what, "send") && argc >= 5)
		return send_for(argv[2], argv[3], atof(argv[4]),
				payload ? payload : MAX_BYTES, bare);
	if (!strcmp(what, "pong") && argc == 3)
		return pong(argv[2], bare, flags);
	if (!strcmp(what, "ping") && argc >= 5) {
		e = end_of(argv[2], payload ? payload : 8, bare);
		e->flags = flags;
		return ping(name, argv[3], atof(argv[4]), e);
	}
	fprintf(stderr, "usage: see %s\n", __FILE__);
	return 2;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "far.h"
#include "wire/receiver.h"
#include "wire/sender.h"

#define MEET_MS 20 /* interval of the DREQs of far_meet() */
#define WAIT_MS 60000 /* limit of each wait; only a hang exceeds it */

uint8_t far_here[16], far_there[16];
uint32_t far_qpn;

static struct wire_socket sock = { .fd = -1 };
static struct wire_sender *sender;
static struct wire_receiver *receiver;
static uint32_t next_psn;

#define MOST 256
/* MADs received before, to recognize repeated ones. */
static uint8_t received[MOST][MAD_BYTES];
static unsigned int n_received;

static void *big(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	return p;
}

static void set_gids(void)
{
	const char *wire = getenv("URXE_WIRE");

	ck_assert_ptr_nonnull(wire);
	memset(far_here, 0, 16);
	if (inet_pton(AF_INET6, wire, far_here) != 1) {
		far_here[10] = far_here[11] = 0xff;
		ck_assert_int_eq(inet_pton(AF_INET, wire, far_here + 12), 1);
	}
	memcpy(far_there, far_here, 16);
	far_there[15] = 2;
}

static int own_net;

/*
 * Enter the remote host's network namespace.  Sockets that are opened from
 * now on belong to it.
 */
static void go_there(void)
{
	const char *name = getenv("FAR_NET");
	int fd;

	ck_assert_ptr_nonnull(name);
	own_net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	ck_assert(own_net >= 0 && fd >= 0);
	ck_assert_int_eq(setns(fd, CLONE_NEWNET), 0);
	close(fd);
}

static void come_back(void)
{
	ck_assert_int_eq(setns(own_net, CLONE_NEWNET), 0);
	close(own_net);
}

void far_begin(void)
{
	set_gids();
	sender = big(sizeof(*sender));
	receiver = big(sizeof(*receiver));
	wire_receiver_begin(receiver);
	go_there();
	ck_assert_int_eq(
		wire_socket_open(&sock, far_there, WIRE_PORT, WIRE_NONBLOCKING),
		0);
	come_back();
	n_received = 0;
	/* differs from QPNs of earlier tests, which may be in TIMEWAIT */
	far_qpn = ((uint32_t)getpid() & 0x7fff) << 8 | 1;
}

void far_end(void)
{
	wire_socket_close(&sock);
	munmap(sender, sizeof(*sender));
	munmap(receiver, sizeof(*receiver));
}

void far_run(const char *command)
{
	go_there();
	ck_assert_msg(!system(command), "%s", command);
	come_back();
}

struct sockaddr_storage far_address(uint8_t last, uint16_t port)
{
	struct sockaddr_storage a = { 0 };
	union wire_sockaddr to;
	uint8_t gid[16];

	memcpy(gid, far_there, 16);
	gid[15] = last;
	wire_sockaddr_of(&to, gid, port, 0);
	memcpy(&a, &to, sizeof(to));
	return a;
}

/* ------------------------------------------------------------- messages */

void far_say_from(const uint8_t gid[16], const uint8_t mad[MAD_BYTES])
{
	const struct wire_packet p = {
		.bth = { .opcode = (uint8_t)WIRE_UD | WIRE_SEND_ONLY,
			 .pkey = 0xffff,
			 .qpn = MAD_QPN,
			 .psn = next_psn++ & WIRE_PSN_MASK },
		.deth = { .qkey = MAD_QKEY, .qpn = MAD_QPN },
		.length = MAD_BYTES,
		.payload = mad,
		.known = MAD_BYTES,
	};
	struct wire_path path = { .hop_limit = 64 };
	struct wire_socket other;

	memcpy(path.sgid, gid, 16);
	memcpy(path.dgid, far_here, 16);
	ck_assert_ptr_nonnull(wire_sender_add(sender, &path, &p));
	if (!memcmp(gid, far_there, 16)) {
		ck_assert_int_eq(wire_sender_flush(sender, &sock, NULL), 0);
		return;
	}
	go_there();
	ck_assert_int_eq(wire_socket_open(&other, gid, 0, WIRE_SENDS_ONLY), 0);
	come_back();
	ck_assert_int_eq(wire_sender_flush(sender, &other, NULL), 0);
	wire_socket_close(&other);
}

void far_say(const uint8_t mad[MAD_BYTES])
{
	far_say_from(far_there, mad);
}

/*
 * Receive the next MAD.  Returns false if none arrives for ms.  Check its
 * headers.
 */
static bool receive_any(uint8_t mad[MAD_BYTES], int ms)
{
	struct pollfd fd = { .fd = sock.fd, .events = POLLIN };
	struct wire_received in;

	while (!wire_received(receiver, &in)) {
		if (poll(&fd, 1, ms) != 1)
			return false;
		wire_receive(receiver, &sock);
	}
	ck_assert_int_eq(in.refusal, WIRE_TAKEN);
	ck_assert_uint_eq(in.packet.bth.qpn, MAD_QPN);
	ck_assert_uint_eq(in.packet.deth.qpn, MAD_QPN);
	ck_assert_uint_eq(in.packet.deth.qkey, MAD_QKEY);
	ck_assert_uint_eq(in.packet.length, MAD_BYTES);
	memcpy(mad, in.packet.payload, MAD_BYTES);
	ck_assert_int_eq(mad_check(mad, MAD_BYTES), mad_message(mad));
	return true;
}

/*
 * Return whether the MAD is a DREQ of an earlier test, which did not answer it:
 * it is retransmitted.  The communication IDs of a test begin with far_qpn.
 */
static bool is_stale(const uint8_t mad[MAD_BYTES])
{
	return mad_message(mad) == MAD_DREQ &&
	       (mad_get(mad, MAD_DREQ_remote_comm_id) ^ far_qpn) > 0xff;
}

static bool receive(uint8_t mad[MAD_BYTES], int ms)
{
	while (receive_any(mad, ms))
		if (!is_stale(mad))
			return true;
	return false;
}

/* Return whether an identical MAD was received before. */
static bool was_received(const uint8_t mad[MAD_BYTES])
{
	unsigned int i;

	for (i = 0; i < n_received; i++)
		if (!memcmp(received[i], mad, MAD_BYTES))
			return true;
	return false;
}

static const uint8_t *remember(const uint8_t mad[MAD_BYTES])
{
	ck_assert_uint_lt(n_received, MOST);
	memcpy(received[n_received], mad, MAD_BYTES);
	return received[n_received++];
}

const uint8_t *far_receive(enum mad_message m)
{
	uint8_t mad[MAD_BYTES];

	do {
		ck_assert_msg(receive(mad, WAIT_MS), "no %s", mad_name(m));
	} while (was_received(mad));
	ck_assert_msg(mad_message(mad) == m, "%s instead of %s",
		      mad_name(mad_message(mad)), mad_name(m));
	return remember(mad);
}

void far_receive_again(enum mad_message m)
{
	uint8_t mad[MAD_BYTES];

	do {
		ck_assert_msg(receive(mad, WAIT_MS), "no %s", mad_name(m));
		ck_assert_msg(was_received(mad), "%s instead of %s again",
			      mad_name(mad_message(mad)), mad_name(m));
	} while (mad_message(mad) != m);
}

void far_silence(int ms)
{
	uint8_t mad[MAD_BYTES];

	while (receive(mad, ms))
		ck_assert_msg(was_received(mad), "%s instead of nothing",
			      mad_name(mad_message(mad)));
}

/*
 * A DREQ for an unknown connection is answered with a DREP, so it serves as
 * an echo request.  Each call has its own communication ID.
 */
void far_meet(void)
{
	static uint32_t times;
	uint8_t mad[MAD_BYTES], in[MAD_BYTES];
	int tries = WAIT_MS / MEET_MS;

	far_dreq(mad, 0x40000000u + ++times, 0x5e5e5e5e, 0x5e5e);
	do {
		ck_assert_int_ge(tries--, 0);
		far_say(mad);
	} while (!receive(in, MEET_MS) || mad_message(in) != MAD_DREP ||
		 mad_get(in, MAD_DREP_remote_comm_id) !=
			 mad_get(mad, MAD_DREQ_local_comm_id));
	remember(in);
}

/* ----------------------------------------------------- building of MADs */

void far_rep(uint8_t mad[MAD_BYTES], const uint8_t *req, uint32_t comm_id)
{
	mad_begin(mad, MAD_REP, mad_get(req, MAD_HEADER_tid));
	mad_set(mad, MAD_REP_local_comm_id, comm_id);
	mad_set(mad, MAD_REP_remote_comm_id,
		mad_get(req, MAD_REQ_local_comm_id));
	mad_set(mad, MAD_REP_local_qpn, far_qpn);
	mad_set(mad, MAD_REP_starting_psn, FAR_PSN);
	mad_set(mad, MAD_REP_responder_resources, 1);
	mad_set(mad, MAD_REP_initiator_depth, 1);
	mad_set(mad, MAD_REP_rnr_retry_count, 7);
}

void far_rtu(uint8_t mad[MAD_BYTES], const uint8_t *rep)
{
	mad_begin(mad, MAD_RTU, mad_get(rep, MAD_HEADER_tid));
	mad_set(mad, MAD_RTU_local_comm_id,
		mad_get(rep, MAD_REP_remote_comm_id));
	mad_set(mad, MAD_RTU_remote_comm_id,
		mad_get(rep, MAD_REP_local_comm_id));
}

/*
 * Store the IP addressing header at the start of the private data, as rdma_cm
 * does (IB annex A11).
 */
static void put_addresses(uint8_t mad[MAD_BYTES], enum mad_field f)
{
	struct mad_ip_header h = { .port = { 0x12, 0x34 } };

	h.ip_version = sock.ipv6 ? 6 << 4 : 4 << 4;
	memcpy(h.src, far_there, 16);
	memcpy(h.dst, far_here, 16);
	if (!sock.ipv6) {
		memset(h.src, 0, 12);
		memset(h.dst, 0, 12);
	}
	mad_set_bytes(mad, f, 0, &h, sizeof(h));
}

/* Service ID of RDMA_PS_TCP, port 0 (IB annex A11) */
#define TCP_SERVICE 0x1060000u

void far_req(uint8_t mad[MAD_BYTES], uint16_t port, uint32_t comm_id)
{
	mad_begin(mad, MAD_REQ, 0x5500000000ull + comm_id);
	mad_set(mad, MAD_REQ_local_comm_id, comm_id);
	mad_set(mad, MAD_REQ_service_id, TCP_SERVICE + port);
	mad_set(mad, MAD_REQ_local_qpn, far_qpn);
	mad_set(mad, MAD_REQ_starting_psn, FAR_PSN);
	mad_set(mad, MAD_REQ_remote_cm_response_timeout, 20);
	mad_set(mad, MAD_REQ_local_cm_response_timeout, 20);
	mad_set(mad, MAD_REQ_max_cm_retries, 15);
	mad_set(mad, MAD_REQ_responder_resources, 1);
	mad_set(mad, MAD_REQ_initiator_depth, 1);
	mad_set(mad, MAD_REQ_retry_count, 7);
	mad_set(mad, MAD_REQ_rnr_retry_count, 7);
	mad_set(mad, MAD_REQ_pkey, 0xffff);
	mad_set(mad, MAD_REQ_path_mtu, 3);
	mad_set_bytes(mad, MAD_REQ_local_gid, 0, far_there, 16);
	mad_set_bytes(mad, MAD_REQ_remote_gid, 0, far_here, 16);
	mad_set(mad, MAD_REQ_hop_limit, 64);
	mad_set(mad, MAD_REQ_local_ack_timeout, 17);
	put_addresses(mad, MAD_REQ_private_data);
}

void far_dreq(uint8_t mad[MAD_BYTES], uint32_t own, uint32_t remote,
	      uint32_t qpn)
{
	mad_begin(mad, MAD_DREQ, 0x6600000000ull + own);
	mad_set(mad, MAD_DREQ_local_comm_id, own);
	mad_set(mad, MAD_DREQ_remote_comm_id, remote);
	mad_set(mad, MAD_DREQ_remote_qpn, qpn);
}

void far_drep(uint8_t mad[MAD_BYTES], const uint8_t *dreq)
{
	mad_begin(mad, MAD_DREP, mad_get(dreq, MAD_HEADER_tid));
	mad_set(mad, MAD_DREP_local_comm_id,
		mad_get(dreq, MAD_DREQ_remote_comm_id));
	mad_set(mad, MAD_DREP_remote_comm_id,
		mad_get(dreq, MAD_DREQ_local_comm_id));
}

void far_rej(uint8_t mad[MAD_BYTES], uint32_t own, uint32_t remote,
	     unsigned int message, unsigned int reason)
{
	mad_begin(mad, MAD_REJ, 0x7700000000ull);
	mad_set(mad, MAD_REJ_local_comm_id, own);
	mad_set(mad, MAD_REJ_remote_comm_id, remote);
	mad_set(mad, MAD_REJ_message, message);
	mad_set(mad, MAD_REJ_reason, reason);
}

void far_mra(uint8_t mad[MAD_BYTES], uint32_t own, uint32_t remote,
	     unsigned int message, unsigned int timeout)
{
	mad_begin(mad, MAD_MRA, 0x8800000000ull);
	mad_set(mad, MAD_MRA_local_comm_id, own);
	mad_set(mad, MAD_MRA_remote_comm_id, remote);
	mad_set(mad, MAD_MRA_message, message);
	mad_set(mad, MAD_MRA_service_timeout, timeout);
}

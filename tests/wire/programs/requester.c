// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "requester.h"

const uint8_t there[16] = { [10] = 0xff, 0xff, 10, 91, 0, 2 };
const uint8_t here[16] = { [10] = 0xff, 0xff, 10, 91, 0, 1 };

struct peer peer;
struct node n;

static void peer_open(void)
{
	peer.receiver = mmap(NULL, sizeof(*peer.receiver),
			     PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(peer.receiver != MAP_FAILED);
	wire_receiver_begin(peer.receiver);
	ck_assert_int_eq(wire_socket_open(&peer.socket, there, WIRE_PORT, 0),
			 0);
}

const struct wire_packet *take_any(void)
{
	struct pollfd p = { .fd = peer.socket.fd, .events = POLLIN };

	if (!wire_received(peer.receiver, &peer.got)) {
		ck_assert_int_eq(poll(&p, 1, WAIT_MS), 1);
		ck_assert_int_eq(wire_receive(peer.receiver, &peer.socket), 0);
		ck_assert(wire_received(peer.receiver, &peer.got));
	}
	ck_assert_int_eq(peer.got.refusal, WIRE_TAKEN);
	ck_assert_uint_eq(peer.got.packet.bth.qpn, QPN);
	ck_assert_uint_eq(peer.got.packet.bth.pkey, 0xffff);
	return &peer.got.packet;
}

const struct wire_packet *take_sound(void)
{
	struct pollfd p = { .fd = peer.socket.fd, .events = POLLIN };

	while (!wire_received(peer.receiver, &peer.got) || peer.got.refusal) {
		if (peer.got.refusal) {
			peer.got.refusal = WIRE_TAKEN;
			continue;
		}
		ck_assert_int_eq(poll(&p, 1, WAIT_MS), 1);
		ck_assert_int_eq(wire_receive(peer.receiver, &peer.socket), 0);
	}
	return &peer.got.packet;
}

const struct wire_packet *take(uint8_t opcode, uint32_t psn)
{
	const struct wire_packet *p = take_any();

	ck_assert_uint_eq(p->bth.opcode, opcode);
	ck_assert_uint_eq(p->bth.psn, psn);
	return p;
}

void take_none(void)
{
	struct pollfd p = { .fd = peer.socket.fd, .events = POLLIN };

	ck_assert(!wire_received(peer.receiver, &peer.got));
	ck_assert_int_eq(poll(&p, 1, 0), 0);
}

void give(const struct wire_packet *p)
{
	struct wire_path path = { 0 };

	memcpy(path.dgid, here, 16);
	ck_assert_ptr_nonnull(wire_sender_add(&peer.sender, &path, p));
	ck_assert_int_eq(wire_sender_flush(&peer.sender, &peer.socket, NULL),
			 0);
}

struct wire_packet answer(uint8_t opcode, uint32_t psn, uint8_t syndrome)
{
	return (struct wire_packet){
		.bth = { .opcode = opcode,
			 .pkey = 0xffff,
			 .qpn = n.qp->qp_num,
			 .psn = psn },
		.aeth = { .syndrome = syndrome },
	};
}

void ack(uint32_t psn)
{
	struct wire_packet p = answer(WIRE_ACKNOWLEDGE, psn, WIRE_ACK);

	give(&p);
}

void nak(uint32_t psn, uint8_t syndrome)
{
	struct wire_packet p = answer(WIRE_ACKNOWLEDGE, psn, syndrome);

	give(&p);
}

void data(uint8_t opcode, uint32_t psn, const void *bytes, uint32_t len)
{
	struct wire_packet p = answer(opcode, psn, WIRE_ACK);

	p.payload = bytes;
	p.length = p.known = len;
	give(&p);
}

uint8_t own_index(void)
{
	union ibv_gid gid;
	int i;

	for (i = 1; i < 256; i += 2)
		if (!ibv_query_gid(n.ctx, 1, i, &gid) &&
		    !memcmp(gid.raw, here, 16))
			return (uint8_t)i;
	ck_abort_msg("10.91.0.1 has no GID");
	return 0;
}

/* Search /proc/net/udp for 10.91.0.1 (in little endian) and port 4791. */
static bool is_received(void)
{
	char line[256];
	bool found = false;
	FILE *f = fopen("/proc/net/udp", "re");

	ck_assert_ptr_nonnull(f);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, " 01005B0A:12B7 ");
	fclose(f);
	return found;
}

/*
 * A response that is sent before a process is bound to the port is lost.  In
 * a test without timeouts it is not repeated.
 */
void wait_until_received(void)
{
	double end = now_ms() + WAIT_MS;

	while (!is_received()) {
		ck_assert(now_ms() < end);
		sleep_ms(1);
	}
}

struct opts wire_opts(void)
{
	struct opts o = default_opts();

	o.timeout = 0; /* infinite: tests do not depend on the time */
	return o;
}

/*
 * With WIRE_OTHER_OWNER, another process is the socket owner, so that the
 * responses go through the inbox.
 */
static pid_t other_owner;

static void other_owner_begin(void)
{
	int ready[2];
	char byte;

	ck_ok(pipe(ready));
	other_owner = fork();
	ck_assert_int_ge(other_owner, 0);
	if (!other_owner) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		open_device();
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
}

static void other_owner_end(void)
{
	if (!other_owner)
		return;
	ck_ok(kill(other_owner, SIGKILL));
	ck_assert_int_eq(waitpid(other_owner, NULL, 0), other_owner);
	other_owner = 0;
}

void connect_to_peer(struct ibv_qp *qp, enum ibv_qp_type type,
		     const struct opts *o)
{
	struct addr to = { .qpn = QPN, .psn = 5 };
	struct ibv_qp_attr attr;
	int mask;

	memcpy(to.gid.raw, there, 16);
	type_to(qp, IBV_QPS_INIT, o, NULL);
	mask = type_attr(&attr, type, IBV_QPS_RTR, o, &to);
	attr.ah_attr.grh.sgid_index = own_index();
	ck_assert_int_eq(ibv_modify_qp(qp, &attr, mask), 0);
	type_to(qp, IBV_QPS_RTS, o, NULL);
}

void open_type_to_peer(enum ibv_qp_type type, const struct opts *o)
{
	struct ibv_cq *cq;

	if (getenv("WIRE_OTHER_OWNER"))
		other_owner_begin();
	peer_open();
	node_open(&n, NULL, MEM_HEAP, o);
	if (type != IBV_QPT_RC) {
		ck_ok(ibv_destroy_qp(n.qp));
		cq = n.scq;
		n.scq = n.rcq;
		n.rcq = cq;
		n.qp = make_qp(&n, type, NULL);
	}
	connect_to_peer(n.qp, type, o);
	wait_until_received();
}

void open_to_peer(const struct opts *o)
{
	open_type_to_peer(IBV_QPT_RC, o);
}

bool owner_maps(const char *path)
{
	char line[512];
	bool found = false;
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%d/maps", (int)other_owner);
	f = fopen(line, "re");
	ck_assert_ptr_nonnull(f);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, path);
	fclose(f);
	return found;
}

void close_peer(void)
{
	if (n.ctx)
		node_close(&n);
	other_owner_end();
	wire_socket_close(&peer.socket);
	munmap(peer.receiver, sizeof(*peer.receiver));
}

void post_op(enum ibv_wr_opcode op, uint64_t id, size_t off, uint32_t len)
{
	struct ibv_sge sge = node_sge(&n, off, len);
	struct ibv_send_wr wr = {
		.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
		.imm_data = htonl(0x01020304),
	};

	wr.wr.rdma.remote_addr = ADDR;
	wr.wr.rdma.rkey = RKEY;
	ck_assert_int_eq(post_wr(n.qp, &wr), 0);
}

bool has(const void *bytes, size_t off, size_t len)
{
	return !memcmp(bytes, (const char *)n.buf + off, len);
}

void why(const struct ibv_qp *qp, char *out, size_t room)
{
	char command[200];
	size_t len;
	FILE *f;

	snprintf(command, sizeof(command),
		 qp ? "\"$URXE\" why 0x%x" : "\"$URXE\" why",
		 qp ? qp->qp_num : 0);
	f = popen(command, "r");
	ck_assert_ptr_nonnull(f);
	len = fread(out, 1, room - 1, f);
	out[len] = 0;
	pclose(f);
}

void why_says(const char *text)
{
	double end = now_ms() + WAIT_MS;
	char out[4096];

	do
		why(n.qp, out, sizeof(out));
	while (!strstr(out, text) && now_ms() < end);
	ck_assert_msg(strstr(out, text) != NULL, "no \"%s\" in %s", text, out);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "other_host.h"

const uint8_t here[16] = { [10] = 0xff, 0xff, 10, 91, 0, 1 };
const uint8_t there[16] = { [10] = 0xff, 0xff, 10, 91, 0, 2 };

/* ------------------------------------------------------- the device */

struct ibv_context *ctx;
struct ibv_pd *pd;
struct ibv_cq *cq;
struct ibv_mr *mr;
uint8_t *buf;

struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = list && list[0] ? ibv_open_device(list[0]) :
						  NULL;

	ck_assert_ptr_nonnull(c);
	ibv_free_device_list(list);
	return c;
}

static void begin(void)
{
	ctx = open_device();
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	buf = calloc(1, BYTES);
	ck_assert(pd && cq && buf);
	mr = ibv_reg_mr(pd, buf, BYTES,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC);
	ck_assert_ptr_nonnull(mr);
}

static void end(void)
{
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	ck_assert_int_eq(ibv_destroy_cq(cq), 0);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
	free(buf);
}

uint8_t gid_index(void)
{
	union ibv_gid gid;
	int i;

	for (i = 1; i < 256; i += 2) /* odd entries are RoCE v2 */
		if (!ibv_query_gid(ctx, 1, i, &gid) &&
		    !memcmp(gid.raw, here, 16))
			return (uint8_t)i;
	ck_abort_msg("the device does not have our address");
}

int modify_to_rtr(struct ibv_qp *qp)
{
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
		   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = QPN,
		.rq_psn = PSN,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = TIMER,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .sgid_index = gid_index(),
				      .hop_limit = 64 } },
	};
	memcpy(a.ah_attr.grh.dgid.raw, there, 16);
	if (qp->qp_type != IBV_QPT_UC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp, &a, mask);
}

void connect_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};

	ck_assert_int_eq(ibv_modify_qp(qp, &a,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	ck_assert_int_eq(modify_to_rtr(qp), 0);
}

void allow(struct ibv_qp *qp, int access)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTS,
		.qp_access_flags = (unsigned int)access,
		.max_rd_atomic = 1,
	};

	ck_assert_int_eq(
		ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_ACCESS_FLAGS |
				      IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

struct ibv_qp *make_qp_of(enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.srq = srq,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1,
			 .max_recv_wr = 16,
			 .max_send_sge = 1,
			 .max_recv_sge = 2 },
		.qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	ck_assert_ptr_nonnull(qp);
	connect_qp(qp);
	return qp;
}

struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	return make_qp_of(type, NULL);
}

void post_recv(struct ibv_qp *qp, uint64_t id, uint32_t off, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)buf + off, length, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 },
			   *bad;

	ck_assert_int_eq(ibv_post_recv(qp, &wr, &bad), 0);
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct ibv_wc await_completion(void)
{
	const uint64_t until = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		ck_assert(now_ms() < until);
	ck_assert_int_eq(n, 1);
	return wc;
}

void no_completion(void)
{
	struct ibv_wc wc;

	ck_assert_int_eq(ibv_poll_cq(cq, 1, &wc), 0);
}

enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	ck_assert_int_eq(ibv_query_qp(qp, &a, IBV_QP_STATE, &init), 0);
	return a.qp_state;
}

/* ------------------------------------------------------- the other host */

static struct wire_socket sock = { .fd = -1 };
static struct wire_sender *sender;
static struct wire_receiver *receiver;

static void *big(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	return p;
}

static void host_begin(void)
{
	sender = big(sizeof(*sender));
	receiver = big(sizeof(*receiver));
	wire_receiver_begin(receiver);
	ck_assert_int_eq(
		wire_socket_open(&sock, there, WIRE_PORT, WIRE_NONBLOCKING), 0);
}

static void host_end(void)
{
	wire_socket_close(&sock);
	munmap(sender, sizeof(*sender));
	munmap(receiver, sizeof(*receiver));
}

struct wire_packet packet(uint32_t qpn, uint8_t opcode, uint32_t psn)
{
	return (struct wire_packet){
		.bth = { .opcode = opcode,
			 .pkey = 0xffff,
			 .qpn = qpn,
			 .psn = psn & WIRE_PSN_MASK,
			 .ack_request = true },
	};
}

static bool together; /* packets are queued: say_together() */

void say_by(const struct wire_packet *p, uint8_t traffic_class)
{
	struct wire_path path = { .traffic_class = traffic_class };

	memcpy(path.dgid, here, 16);
	memcpy(path.sgid, there, 16);
	ck_assert_ptr_nonnull(wire_sender_add(sender, &path, p));
	if (!together)
		ck_assert_int_eq(wire_sender_flush(sender, &sock, NULL), 0);
}

void say_together(bool begin)
{
	together = begin;
	if (!begin)
		ck_assert_int_eq(wire_sender_flush(sender, &sock, NULL), 0);
}

void say(const struct wire_packet *p)
{
	say_by(p, 0);
}

void say_in_fragments(bool begin)
{
	const int discover = begin ? IP_PMTUDISC_DONT : IP_PMTUDISC_DO;
	char command[200];

	snprintf(command, sizeof(command),
		 "ip route replace local 10.91.0.1 dev eth0 table local "
		 "proto kernel scope host src 10.91.0.1 %s %d",
		 begin ? "mtu lock" : "mtu", begin ? FRAGMENT : 65536);
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(setsockopt(sock.fd, IPPROTO_IP, IP_MTU_DISCOVER,
				    &discover, sizeof(discover)),
			 0);
}

void say_bytes(const void *bytes, size_t n)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(WIRE_PORT) };

	memcpy(&to.sin_addr, here + 12, 4);
	ck_assert_int_eq(sendto(sock.fd, bytes, n, 0, (struct sockaddr *)&to,
				sizeof(to)),
			 (ssize_t)n);
}

void with_bytes(struct wire_packet *p, const void *bytes, uint32_t n)
{
	p->payload = bytes;
	p->length = p->known = n;
}

bool receive_within(struct wire_packet *p, int ms)
{
	struct pollfd fd = { .fd = sock.fd, .events = POLLIN };
	struct wire_received in;

	while (!wire_received(receiver, &in)) {
		if (poll(&fd, 1, ms) != 1)
			return false;
		wire_receive(receiver, &sock);
	}
	ck_assert_int_eq(in.refusal, WIRE_TAKEN);
	ck_assert_uint_eq(in.packet.bth.qpn, QPN);
	*p = in.packet;
	return true;
}

struct wire_packet receive_packet(void)
{
	struct wire_packet p;

	ck_assert(receive_within(&p, WAIT_MS));
	return p;
}

void silence(void)
{
	struct wire_packet p;

	ck_assert(!receive_within(&p, QUIET_MS));
}

void receive_answer(uint8_t syndrome, uint32_t psn)
{
	struct wire_packet p = receive_packet();

	ck_assert_uint_eq(p.bth.opcode & ~WIRE_TRANSPORT, WIRE_ACKNOWLEDGE);
	ck_assert_uint_eq(p.aeth.syndrome, syndrome);
	ck_assert_uint_eq(p.bth.psn, psn & WIRE_PSN_MASK);
}

void receive_acks(uint32_t psn)
{
	struct wire_packet p;

	do {
		p = receive_packet();
		ck_assert_uint_eq(p.bth.opcode, WIRE_ACKNOWLEDGE);
		ck_assert_uint_eq(p.aeth.syndrome, WIRE_ACK);
	} while (p.bth.psn != (psn & WIRE_PSN_MASK));
}

uint8_t text[BYTES];

void say_send(const struct ibv_qp *qp, uint8_t opcode, uint32_t psn,
	      uint32_t off, uint32_t n)
{
	struct wire_packet p = packet(qp->qp_num, opcode, psn);

	with_bytes(&p, text + off, n);
	say(&p);
}

void say_fetch_add(const struct ibv_qp *qp, uint32_t psn, uint32_t off,
		   uint64_t add)
{
	struct wire_packet p = packet(qp->qp_num, WIRE_FETCH_ADD, psn);

	p.atomiceth.addr = (uintptr_t)buf + off;
	p.atomiceth.rkey = mr->rkey;
	p.atomiceth.swap_add = add;
	say(&p);
}

void say_rdma(const struct ibv_qp *qp, uint8_t opcode, uint32_t psn,
	      uint32_t rkey, uint32_t total, uint32_t n)
{
	struct wire_packet p = packet(qp->qp_num, opcode, psn);

	p.reth.addr = (uintptr_t)buf;
	p.reth.rkey = rkey;
	p.reth.length = total;
	with_bytes(&p, text, n);
	say(&p);
}

static uint32_t seed = 1;

uint32_t chance(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)seed * n >> 32);
}

struct wire_packet packet_of_chance(uint32_t qpn)
{
	struct wire_packet p = packet(chance(8) ? qpn : chance(0x1000000),
				      (uint8_t)chance(256), PSN + chance(4));

	p.bth.solicited = chance(2);
	p.reth.addr = (uintptr_t)buf + chance(2 * BYTES);
	p.reth.rkey = chance(4) ? mr->rkey : chance(UINT32_MAX);
	p.reth.length = chance(2) ? chance(4 * MTU) : chance(UINT32_MAX);
	p.atomiceth.addr = p.reth.addr & ~(chance(2) ? 7ull : 0);
	p.atomiceth.rkey = p.reth.rkey;
	p.ieth.rkey = p.reth.rkey;
	p.deth.qkey = chance(4);
	p.feth.type = (uint8_t)chance(16);
	p.feth.level = (uint8_t)chance(4);
	with_bytes(&p, text, chance(2) ? MTU : chance(MTU * 2));
	return p;
}

void setup(void)
{
	uint32_t i;

	for (i = 0; i < BYTES; i++)
		text[i] = (uint8_t)(i * 7 + i / 256);
	begin();
	host_begin();
}

void teardown(void)
{
	host_end();
	end();
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a stock receiver makes of packets of another host, which is this
 * program: on a socket of its own it says, packet by packet, what no requester
 * would.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"
#include "wire/psn.h"
#include "wire/receiver.h"
#include "wire/sender.h"

#define WAIT_MS 60000 /* what must happen and takes so long hangs */
#define QUIET_MS 50
#define MTU 1024u
#define QPN 77u /* of ours */
#define PSN 0xfffffeu /* numbers go round soon */
#define BYTES 65536u
#define TIMER 13

static const uint8_t here[16] = { [10] = 0xff, 0xff, 10, 91, 0, 1 };
static const uint8_t there[16] = { [10] = 0xff, 0xff, 10, 91, 0, 2 };

/* ------------------------------------------------------- the device */

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t *buf;

static struct ibv_context *open_device(void)
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

static uint8_t gid_index(void)
{
	union ibv_gid gid;
	int i;

	for (i = 1; i < 256; i += 2) /* the odd ones are of RoCE v2 */
		if (!ibv_query_gid(ctx, 1, i, &gid) &&
		    !memcmp(gid.raw, here, 16))
			return (uint8_t)i;
	ck_abort_msg("the device does not have our address");
}

static struct ibv_qp *make_qp_of(enum ibv_qp_type type, struct ibv_srq *srq)
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
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
		   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	ck_assert_ptr_nonnull(qp);
	ck_assert_int_eq(ibv_modify_qp(qp, &a,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	a = (struct ibv_qp_attr){
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
	if (type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	ck_assert_int_eq(ibv_modify_qp(qp, &a, mask), 0);
	return qp;
}

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	return make_qp_of(type, NULL);
}

static void post_recv(struct ibv_qp *qp, uint64_t id, uint32_t off,
		      uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)buf + off, length, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 },
			   *bad;

	ck_assert_int_eq(ibv_post_recv(qp, &wr, &bad), 0);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static struct ibv_wc await_completion(void)
{
	const uint64_t until = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		ck_assert(now_ms() < until);
	ck_assert_int_eq(n, 1);
	return wc;
}

static void no_completion(void)
{
	struct ibv_wc wc;

	ck_assert_int_eq(ibv_poll_cq(cq, 1, &wc), 0);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
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

static struct wire_packet packet(uint32_t qpn, uint8_t opcode, uint32_t psn)
{
	return (struct wire_packet){
		.bth = { .opcode = opcode,
			 .pkey = 0xffff,
			 .qpn = qpn,
			 .psn = psn & WIRE_PSN_MASK,
			 .ack_request = true },
	};
}

static void say(const struct wire_packet *p)
{
	struct wire_path path = { 0 };

	memcpy(path.dgid, here, 16);
	memcpy(path.sgid, there, 16);
	ck_assert_ptr_nonnull(wire_sender_add(sender, &path, p));
	ck_assert_int_eq(wire_sender_flush(sender, &sock, NULL), 0);
}

static void with_bytes(struct wire_packet *p, const void *bytes, uint32_t n)
{
	p->payload = bytes;
	p->length = p->known = n;
}

/* The next packet within ms; its payload is in the receiver. */
static bool hear_within(struct wire_packet *p, int ms)
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

static struct wire_packet hear(void)
{
	struct wire_packet p;

	ck_assert(hear_within(&p, WAIT_MS));
	return p;
}

static void silence(void)
{
	struct wire_packet p;

	ck_assert(!hear_within(&p, QUIET_MS));
}

static void hear_answer(uint8_t syndrome, uint32_t psn)
{
	struct wire_packet p = hear();

	ck_assert_uint_eq(p.bth.opcode, WIRE_ACKNOWLEDGE);
	ck_assert_uint_eq(p.aeth.syndrome, syndrome);
	ck_assert_uint_eq(p.bth.psn, psn & WIRE_PSN_MASK);
}

/* ACKs, of which one may stand for all before it. */
static void hear_acks(uint32_t psn)
{
	struct wire_packet p;

	do {
		p = hear();
		ck_assert_uint_eq(p.bth.opcode, WIRE_ACKNOWLEDGE);
		ck_assert_uint_eq(p.aeth.syndrome, WIRE_ACK);
	} while (p.bth.psn != (psn & WIRE_PSN_MASK));
}

static uint8_t text[BYTES];

static void say_send(const struct ibv_qp *qp, uint8_t opcode, uint32_t psn,
		     uint32_t off, uint32_t n)
{
	struct wire_packet p = packet(qp->qp_num, opcode, psn);

	with_bytes(&p, text + off, n);
	say(&p);
}

static void say_fetch_add(const struct ibv_qp *qp, uint32_t psn, uint32_t off,
			  uint64_t add)
{
	struct wire_packet p = packet(qp->qp_num, WIRE_FETCH_ADD, psn);

	p.atomiceth.addr = (uintptr_t)buf + off;
	p.atomiceth.rkey = mr->rkey;
	p.atomiceth.swap_add = add;
	say(&p);
}

static void say_rdma(const struct ibv_qp *qp, uint8_t opcode, uint32_t psn,
		     uint32_t rkey, uint32_t total, uint32_t n)
{
	struct wire_packet p = packet(qp->qp_num, opcode, psn);

	p.reth.addr = (uintptr_t)buf;
	p.reth.rkey = rkey;
	p.reth.length = total;
	with_bytes(&p, text, n);
	say(&p);
}

static void setup(void)
{
	uint32_t i;

	for (i = 0; i < BYTES; i++)
		text[i] = (uint8_t)(i * 7 + i / 256);
	begin();
	host_begin();
}

static void teardown(void)
{
	host_end();
	end();
}

/* ------------------------------------------------------- the next packet */

START_TEST(whole)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	struct ibv_wc wc;

	post_recv(qp, 5, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 9);
	hear_answer(WIRE_ACK, PSN);
	wc = await_completion();
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wr_id, 5);
	ck_assert_uint_eq(wc.byte_len, 9);
	ck_assert_int_eq(memcmp(buf, text, 9), 0);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

START_TEST(parts)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	const uint32_t n = 3 * MTU + 5;
	struct ibv_wc wc;

	post_recv(qp, 6, 0, n);
	say_send(qp, WIRE_SEND_FIRST, PSN, 0, MTU);
	say_send(qp, WIRE_SEND_MIDDLE, PSN + 1, MTU, MTU);
	hear_acks(PSN + 1);
	no_completion();
	say_send(qp, WIRE_SEND_MIDDLE, PSN + 2, 2 * MTU, MTU);
	say_send(qp, WIRE_SEND_LAST, PSN + 3, 3 * MTU, 5);
	wc = await_completion();
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.byte_len, n);
	ck_assert_int_eq(memcmp(buf, text, n), 0);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* One is missing: that is said once. */
START_TEST(future)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);

	post_recv(qp, 1, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN + 1, 0, 4);
	hear_answer(WIRE_NAK_SEQUENCE, PSN);
	say_send(qp, WIRE_SEND_ONLY, PSN + 2, 0, 4);
	silence();
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	hear_answer(WIRE_ACK, PSN);
	ck_assert_int_eq(await_completion().status, IBV_WC_SUCCESS);
	say_send(qp, WIRE_SEND_ONLY, PSN + 2, 0, 4);
	hear_answer(WIRE_NAK_SEQUENCE, PSN + 1);
	no_completion();
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

START_TEST(again)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);

	post_recv(qp, 1, 0, 100);
	post_recv(qp, 2, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	hear_answer(WIRE_ACK, PSN);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	hear_answer(WIRE_ACK, PSN);
	ck_assert_uint_eq(await_completion().wr_id, 1);
	no_completion();
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

START_TEST(no_receive)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);

	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	hear_answer(WIRE_RNR_NAK | TIMER, PSN);
	say_send(qp, WIRE_SEND_ONLY, PSN + 1, 0, 4);
	silence();
	post_recv(qp, 1, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	hear_answer(WIRE_ACK, PSN);
	ck_assert_int_eq(await_completion().status, IBV_WC_SUCCESS);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* n bytes as they are, whatever they are. */
static void say_bytes(const void *bytes, size_t n)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(WIRE_PORT) };

	memcpy(&to.sin_addr, here + 12, 4);
	ck_assert_int_eq(sendto(sock.fd, bytes, n, 0, (struct sockaddr *)&to,
				sizeof(to)),
			 (ssize_t)n);
}

START_TEST(counts)
{
	struct counted c[] = {
		{ .name = "sent_pkts", .by = 4 },
		{ .name = "rcvd_pkts", .by = 8 },
		{ .name = "duplicate_request", .by = 1 },
		{ .name = "out_of_seq_request", .by = 2 },
		{ .name = "send_rnr_err", .by = 1 },
		{ .name = "rcvd_rnr_err", .by = 0 },
		{ .name = "rdma_recvs", .by = 1 },
		{ .name = "rx_icrc_encapsulated", .by = 1 },
		{ .name = "rcvd_malformed_pkts", .by = 1 },
		{ .name = "rcvd_unclaimed_pkts", .by = 1 },
	};
	const unsigned int all = sizeof(c) / sizeof(*c);
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	uint8_t bytes[WIRE_MAX_TRANSPORT];
	struct wire_packet p;
	uint8_t *end;

	counters_begin(c, all);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	hear_answer(WIRE_RNR_NAK | TIMER, PSN);
	post_recv(qp, 1, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	hear_answer(WIRE_ACK, PSN);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	hear_answer(WIRE_ACK, PSN);
	say_send(qp, WIRE_SEND_ONLY, PSN + 2, 0, 4);
	hear_answer(WIRE_NAK_SEQUENCE, PSN + 1);
	say_send(qp, WIRE_SEND_ONLY, PSN + 3, 0, 4);
	p = packet(qp->qp_num ^ 1 << 20, WIRE_SEND_ONLY, PSN);
	say(&p);
	p = packet(qp->qp_num, WIRE_SEND_ONLY, PSN + 1);
	end = wire_put_transport(&p, bytes);
	say_bytes(bytes, (size_t)(wire_put_icrc(0x12345678, end) - bytes));
	say_bytes(bytes, WIRE_BTH_BYTES);
	counters_grew(c, all);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* ------------------------------------------------------- memory */

START_TEST(write_read)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	const uint32_t n = 2 * MTU + 3;
	struct wire_packet p;
	uint32_t i, at = 0, times;

	say_rdma(qp, WIRE_WRITE_FIRST, PSN, mr->rkey, n, MTU);
	say_send(qp, WIRE_WRITE_MIDDLE, PSN + 1, MTU, MTU);
	say_send(qp, WIRE_WRITE_LAST, PSN + 2, 2 * MTU, 3);
	hear_acks(PSN + 2);
	ck_assert_int_eq(memcmp(buf, text, n), 0);
	for (times = 0; times < 2; times++, at = 0) { /* and once more */
		say_rdma(qp, WIRE_READ_REQUEST, PSN + 3, mr->rkey, n, 0);
		for (i = 0; i < 3; i++) {
			p = hear();
			ck_assert_uint_eq(p.bth.opcode,
					  i == 0 ? WIRE_READ_FIRST :
					  i == 1 ? WIRE_READ_MIDDLE :
						   WIRE_READ_LAST);
			ck_assert_uint_eq(p.bth.psn,
					  (PSN + 3 + i) & WIRE_PSN_MASK);
			ck_assert_uint_eq(p.length, i == 2 ? 3 : MTU);
			ck_assert_int_eq(memcmp(p.payload, text + at, p.length),
					 0);
			at += p.length;
		}
	}
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* An atomic that comes again is answered, and not done again. */
START_TEST(atomic_again)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	uint64_t *word = (uint64_t *)(void *)buf;
	struct wire_packet p;
	uint32_t i;

	*word = 40;
	for (i = 0; i < 3; i++) {
		say_fetch_add(qp, PSN, 0, 2);
		p = hear();
		ck_assert_uint_eq(p.bth.opcode, WIRE_ATOMIC_ACKNOWLEDGE);
		ck_assert_uint_eq(p.atomicack.original, 40);
		ck_assert_uint_eq(*word, 42);
	}
	say_fetch_add(qp, PSN + 1, 0, 1);
	ck_assert_uint_eq(hear().atomicack.original, 42);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* ------------------------------------------------------- refused */

/* What is said first, and the NAK to it: the QP is at its end. */
static void refused(struct ibv_qp *qp, uint8_t syndrome)
{
	hear_answer(syndrome, PSN);
	ck_assert_int_eq(state_of(qp), IBV_QPS_ERR);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	silence();
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}

START_TEST(bad_requests)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);

	say_rdma(qp, WIRE_WRITE_ONLY, PSN, mr->rkey + 1, 4, 4);
	refused(qp, WIRE_NAK_ACCESS);
	qp = make_qp(IBV_QPT_RC);
	say_rdma(qp, WIRE_READ_REQUEST, PSN, mr->rkey, BYTES + 1, 0);
	refused(qp, WIRE_NAK_ACCESS);
	qp = make_qp(IBV_QPT_RC); /* fewer bytes than the RETH says */
	say_rdma(qp, WIRE_WRITE_ONLY, PSN, mr->rkey, 8, 4);
	refused(qp, WIRE_NAK_INVALID);
	qp = make_qp(IBV_QPT_RC); /* nothing is under way */
	say_send(qp, WIRE_SEND_MIDDLE, PSN, 0, MTU);
	refused(qp, WIRE_NAK_INVALID);
	qp = make_qp(IBV_QPT_RC); /* the first of several is not full */
	post_recv(qp, 1, 0, BYTES);
	say_send(qp, WIRE_SEND_FIRST, PSN, 0, MTU - 4);
	hear_answer(WIRE_NAK_INVALID, PSN);
	ck_assert_int_eq(await_completion().status, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	qp = make_qp(IBV_QPT_RC); /* longer than the receive */
	post_recv(qp, 1, 0, MTU + 1);
	say_send(qp, WIRE_SEND_FIRST, PSN, 0, MTU);
	hear_answer(WIRE_ACK, PSN);
	say_send(qp, WIRE_SEND_LAST, PSN + 1, 0, 2);
	hear_answer(WIRE_NAK_INVALID, PSN + 1);
	ck_assert_int_eq(await_completion().status, IBV_WC_LOC_LEN_ERR);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* What a message had of an SRQ is flushed with its QP, and is not lost. */
START_TEST(shared_receives)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1,
						    .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr wr = { .wr_id = 7 }, *bad;
	struct ibv_sge sge = { (uintptr_t)buf, BYTES, mr->lkey };
	struct ibv_qp *qp;
	struct ibv_wc wc;
	int i;

	ck_assert_ptr_nonnull(srq);
	wr.sg_list = &sge;
	wr.num_sge = 1;
	for (i = 0; i < 4; i++) { /* it has one place */
		ck_assert_int_eq(ibv_post_srq_recv(srq, &wr, &bad), 0);
		qp = make_qp_of(IBV_QPT_RC, srq);
		say_send(qp, WIRE_SEND_FIRST, PSN, 0, MTU);
		hear_answer(WIRE_ACK, PSN);
		if (i % 2) {
			ck_assert_int_eq(ibv_modify_qp(qp, &a, IBV_QP_STATE),
					 0);
		} else {
			say_send(qp, WIRE_SEND_ONLY, PSN + 1, 0, 4);
			hear_answer(WIRE_NAK_INVALID, PSN + 1);
		}
		wc = await_completion();
		ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
		ck_assert_uint_eq(wc.wr_id, 7);
		ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	}
	ck_assert_int_eq(ibv_destroy_srq(srq), 0);
}
END_TEST

/* ------------------------------------------------------- UC */

/* A message that misses a packet is lost, and its receive is the next one's. */
START_TEST(unreliable)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_UC);
	const uint32_t n = MTU + 7;
	struct ibv_wc wc;

	post_recv(qp, 3, 0, BYTES);
	say_send(qp, WIRE_UC | WIRE_SEND_FIRST, PSN, 100, MTU);
	say_send(qp, WIRE_UC | WIRE_SEND_LAST, PSN + 2, 200, 1);
	say_send(qp, WIRE_UC | WIRE_SEND_FIRST, PSN + 10, 0, MTU);
	say_send(qp, WIRE_UC | WIRE_SEND_LAST, PSN + 11, MTU, 7);
	wc = await_completion();
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.byte_len, n);
	ck_assert_int_eq(memcmp(buf, text, n), 0);
	no_completion();
	silence();
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* ------------------------------------------------------- hostile */

static uint32_t seed = 1;

static uint32_t chance(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)seed * n >> 32);
}

/* Packets with any headers, of which some are nearly right. */
START_TEST(hostile)
{
	struct ibv_qp *qp = NULL;
	struct wire_packet p;
	uint32_t i;

	for (i = 0; i < 20000; i++) {
		if (!qp || state_of(qp) != IBV_QPS_RTR) {
			if (qp)
				ck_assert_int_eq(ibv_destroy_qp(qp), 0);
			qp = make_qp(chance(2) ? IBV_QPT_RC : IBV_QPT_UC);
			post_recv(qp, 1, chance(1000), chance(5000));
		}
		p = packet(chance(8) ? qp->qp_num : chance(0x1000000),
			   (uint8_t)chance(256), PSN + chance(4));
		if (!wire_parts(p.bth.opcode))
			continue;
		p.bth.solicited = chance(2);
		p.reth.addr = (uintptr_t)buf + chance(2 * BYTES);
		p.reth.rkey = chance(4) ? mr->rkey : chance(UINT32_MAX);
		p.reth.length = chance(2) ? chance(4 * MTU) :
					    chance(UINT32_MAX);
		p.atomiceth.addr = p.reth.addr & ~(chance(2) ? 7ull : 0);
		p.atomiceth.rkey = p.reth.rkey;
		p.ieth.rkey = p.reth.rkey;
		p.deth.qkey = chance(4);
		with_bytes(&p, text, chance(2) ? MTU : chance(MTU * 2));
		say(&p);
		while (ibv_poll_cq(cq, 1, &(struct ibv_wc){ 0 }) > 0)
			;
	}
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	while (hear_within(&p, QUIET_MS))
		;
	while (ibv_poll_cq(cq, 1, &(struct ibv_wc){ 0 }) > 0)
		;
	/* and it is still there */
	qp = make_qp(IBV_QPT_RC);
	post_recv(qp, 9, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 9);
	ck_assert_uint_eq(await_completion().wr_id, 9);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* ------------------------------------------------------- the holder dies */

/* Say it until it is answered, as a requester does. */
static void insist(const struct ibv_qp *qp, uint8_t opcode, uint32_t psn,
		   uint32_t off, uint32_t n)
{
	const uint64_t until = now_ms() + WAIT_MS;
	struct wire_packet p;

	for (;;) {
		ck_assert(now_ms() < until);
		say_send(qp, opcode, psn, off, n);
		if (hear_within(&p, QUIET_MS) &&
		    p.bth.psn == (psn & WIRE_PSN_MASK))
			break;
	}
	ck_assert_uint_eq(p.aeth.syndrome, WIRE_ACK);
	while (hear_within(&p, QUIET_MS))
		;
}

/* Until somebody has the port of the wire there. */
static void await_holder(void)
{
	const uint64_t until = now_ms() + WAIT_MS;
	struct wire_socket s;
	int ret;

	while ((ret = wire_socket_open(&s, here, WIRE_PORT, 0)) !=
	       -EADDRINUSE) {
		ck_assert(now_ms() < until);
		if (!ret)
			wire_socket_close(&s);
		usleep(1000);
	}
}

/* A process that opens the device first, and so holds the socket. */
static pid_t start_holder(void)
{
	int ready[2];
	char c;
	pid_t pid;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		open_device();
		await_holder();
		c = write(ready[1], "", 1) == 1;
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

START_TEST(holder_killed)
{
	const uint32_t n = 2 * MTU + 1;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	pid_t pid;

	pid = start_holder();
	setup();
	qp = make_qp(IBV_QPT_RC);
	post_recv(qp, 4, 0, n);
	post_recv(qp, 5, 0, n);
	insist(qp, WIRE_SEND_FIRST, PSN, 0, MTU);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	insist(qp, WIRE_SEND_MIDDLE, PSN + 1, MTU, MTU);
	insist(qp, WIRE_SEND_LAST, PSN + 2, 2 * MTU, 1);
	wc = await_completion();
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wr_id, 4);
	ck_assert_uint_eq(wc.byte_len, n);
	ck_assert_int_eq(memcmp(buf, text, n), 0);
	no_completion();
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	teardown();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("responder");
	TCase *t = tcase_create("packets"), *h = tcase_create("holder");
	SRunner *runner;
	int failed;

	tcase_set_timeout(t, 0);
	tcase_set_timeout(h, 0);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, whole);
	tcase_add_test(t, parts);
	tcase_add_test(t, future);
	tcase_add_test(t, again);
	tcase_add_test(t, no_receive);
	tcase_add_test(t, counts);
	tcase_add_test(t, write_read);
	tcase_add_test(t, atomic_again);
	tcase_add_test(t, bad_requests);
	tcase_add_test(t, shared_receives);
	tcase_add_test(t, unreliable);
	tcase_add_test(t, hostile);
	tcase_add_test(h, holder_killed);
	suite_add_tcase(suite, t);
	suite_add_tcase(suite, h);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A QP whose other end is on another host: which packets its WRs are, and what
 * their answers do.  That host is this test, at 10.91.0.2: it takes packets,
 * and answers what each test wants.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../verbs/harness.h"
#include "base/clock.h"
#include "counters.h"
#include "wire/psn.h"
#include "wire/receiver.h"
#include "wire/sender.h"

#define QPN 0xabcdef /* of the other end */
#define RKEY 0x777
#define ADDR 0x10000u

static const uint8_t there[16] = { [10] = 0xff, 0xff, 10, 91, 0, 2 };
static const uint8_t here[16] = { [10] = 0xff, 0xff, 10, 91, 0, 1 };

static struct {
	struct wire_socket socket;
	struct wire_receiver *receiver;
	struct wire_sender sender;
	struct wire_received got;
} peer;

static struct node n;

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

/* The next packet of the QP. */
static const struct wire_packet *take_any(void)
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

/* Without those that were damaged. */
static const struct wire_packet *take_sound(void)
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

static const struct wire_packet *take(uint8_t opcode, uint32_t psn)
{
	const struct wire_packet *p = take_any();

	ck_assert_uint_eq(p->bth.opcode, opcode);
	ck_assert_uint_eq(p->bth.psn, psn);
	return p;
}

/* There is none. */
static void take_none(void)
{
	struct pollfd p = { .fd = peer.socket.fd, .events = POLLIN };

	ck_assert(!wire_received(peer.receiver, &peer.got));
	ck_assert_int_eq(poll(&p, 1, 0), 0);
}

static void give(const struct wire_packet *p)
{
	struct wire_path path = { 0 };

	memcpy(path.dgid, here, 16);
	ck_assert_ptr_nonnull(wire_sender_add(&peer.sender, &path, p));
	ck_assert_int_eq(wire_sender_flush(&peer.sender, &peer.socket, NULL),
			 0);
}

static struct wire_packet answer(uint8_t opcode, uint32_t psn, uint8_t syndrome)
{
	return (struct wire_packet){
		.bth = { .opcode = opcode,
			 .pkey = 0xffff,
			 .qpn = n.qp->qp_num,
			 .psn = psn },
		.aeth = { .syndrome = syndrome },
	};
}

static void ack(uint32_t psn)
{
	struct wire_packet p = answer(WIRE_ACKNOWLEDGE, psn, WIRE_ACK);

	give(&p);
}

static void nak(uint32_t psn, uint8_t syndrome)
{
	struct wire_packet p = answer(WIRE_ACKNOWLEDGE, psn, syndrome);

	give(&p);
}

static void data(uint8_t opcode, uint32_t psn, const void *bytes, uint32_t len)
{
	struct wire_packet p = answer(opcode, psn, WIRE_ACK);

	p.payload = bytes;
	p.length = p.known = len;
	give(&p);
}

/* The entry of the GID table that is `here`. */
static uint8_t own_index(void)
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

static bool is_heard(void)
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

/* What is answered before a process has the port is lost, and with it a test
 * without timeouts. */
static void wait_until_heard(void)
{
	double end = now_ms() + WAIT_MS;

	while (!is_heard()) {
		ck_assert(now_ms() < end);
		sleep_ms(1);
	}
}

static struct opts wire_opts(void)
{
	struct opts o = default_opts();

	o.timeout = 0; /* for ever: no test depends on the time */
	return o;
}

static void open_to_peer(const struct opts *o)
{
	struct addr to = { .qpn = QPN, .psn = 5 };
	struct ibv_qp_attr attr;
	int mask;

	peer_open();
	node_open(&n, NULL, MEM_HEAP, o);
	memcpy(to.gid.raw, there, 16);
	qp_to_init(n.qp, o);
	mask = attr_rtr(&attr, o, &to);
	attr.ah_attr.grh.sgid_index = own_index();
	ck_assert_int_eq(ibv_modify_qp(n.qp, &attr, mask), 0);
	qp_to_rts(n.qp, o);
	wait_until_heard();
}

static void close_peer(void)
{
	node_close(&n);
	wire_socket_close(&peer.socket);
	munmap(peer.receiver, sizeof(*peer.receiver));
}

static void post_op(enum ibv_wr_opcode op, uint64_t id, size_t off,
		    uint32_t len)
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

static bool has(const void *bytes, size_t off, size_t len)
{
	return !memcmp(bytes, (const char *)n.buf + off, len);
}

#define PSN 0x123456u

/* Everywhere in the circle of PSNs it is the same. */
static const uint32_t starts[] = { PSN, 0, 1, 0x7ffffe, 0x800001, 0xfffffe };
#define STARTS ((int)(sizeof(starts) / sizeof(*starts)))

/* ------------------------------------------------------- tests */

START_TEST(sends)
{
	struct opts o = wire_opts();
	const struct wire_packet *p;

	open_to_peer(&o);
	node_fill(&n, 0, 4096, 1);
	post_op(IBV_WR_SEND, 1, 0, 100);
	p = take(WIRE_SEND_ONLY, PSN);
	ck_assert(p->bth.ack_request && p->bth.solicited);
	ck_assert_uint_eq(p->length, 100);
	ck_assert(has(p->payload, 0, 100));
	post_op(IBV_WR_SEND_WITH_IMM, 2, 10, 2049);
	p = take(WIRE_SEND_FIRST, PSN + 1);
	ck_assert(!p->bth.ack_request && !p->bth.solicited);
	ck_assert(p->length == 1024 && has(p->payload, 10, 1024));
	p = take(WIRE_SEND_MIDDLE, PSN + 2);
	ck_assert(p->length == 1024 && has(p->payload, 1034, 1024));
	p = take(WIRE_SEND_LAST_IMM, PSN + 3);
	ck_assert(p->length == 1 && has(p->payload, 2058, 1));
	ck_assert(p->bth.ack_request && p->bth.solicited);
	ck_assert_uint_eq(p->immdt.imm, 0x01020304);
	expect_none(n.scq, 0);
	ack(PSN);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	ack(PSN + 2);
	post_op(IBV_WR_SEND, 3, 0, 0);
	p = take(WIRE_SEND_ONLY, PSN + 4);
	ck_assert_uint_eq(p->length, 0);
	ack(PSN + 4); /* one for both */
	expect_ok(n.scq, 2, IBV_WC_SEND);
	expect_ok(n.scq, 3, IBV_WC_SEND);
	close_peer();
}
END_TEST

START_TEST(writes)
{
	struct opts o = wire_opts();
	const struct wire_packet *p;

	open_to_peer(&o);
	node_fill(&n, 0, 4096, 1);
	post_op(IBV_WR_RDMA_WRITE, 1, 0, 1500);
	p = take(WIRE_WRITE_FIRST, PSN);
	ck_assert_uint_eq(p->reth.addr, ADDR);
	ck_assert_uint_eq(p->reth.rkey, RKEY);
	ck_assert_uint_eq(p->reth.length, 1500);
	ck_assert(p->length == 1024 && has(p->payload, 0, 1024));
	p = take(WIRE_WRITE_LAST, PSN + 1);
	ck_assert(p->length == 476 && has(p->payload, 1024, 476));
	post_op(IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0, 8);
	p = take(WIRE_WRITE_ONLY_IMM, PSN + 2);
	ck_assert(p->reth.length == 8 && p->immdt.imm == 0x01020304);
	ack(PSN + 2);
	expect_ok(n.scq, 1, IBV_WC_RDMA_WRITE);
	expect_ok(n.scq, 2, IBV_WC_RDMA_WRITE);
	close_peer();
}
END_TEST

START_TEST(reads)
{
	struct opts o = wire_opts();
	const struct wire_packet *p;
	char bytes[4096];
	unsigned int i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 7 + 3);
	open_to_peer(&o);
	post_op(IBV_WR_RDMA_READ, 1, 100, 2500);
	post_op(IBV_WR_SEND, 2, 0, 1);
	p = take(WIRE_READ_REQUEST, PSN);
	ck_assert(p->reth.addr == ADDR && p->reth.rkey == RKEY);
	ck_assert_uint_eq(p->reth.length, 2500);
	take(WIRE_SEND_ONLY, PSN + 3);
	data(WIRE_READ_FIRST, PSN, bytes, 1024);
	data(WIRE_READ_FIRST, PSN, bytes + 5, 1024); /* a duplicate */
	data(WIRE_READ_MIDDLE, PSN + 1, bytes + 1024, 1024);
	data(WIRE_READ_LAST, PSN + 2, bytes + 2048, 452);
	expect_ok(n.scq, 1, IBV_WC_RDMA_READ);
	ck_assert(has(bytes, 100, 2500));
	expect_none(n.scq, 0);
	ack(PSN + 3);
	expect_ok(n.scq, 2, IBV_WC_SEND);
	close_peer();
}
END_TEST

/* The middle of a READ's answer is lost: the rest is asked for. */
START_TEST(rest_of_a_read)
{
	struct opts o = wire_opts();
	const struct wire_packet *p;
	static char bytes[4096];

	memset(bytes, 0x5a, sizeof(bytes));
	open_to_peer(&o);
	post_op(IBV_WR_RDMA_READ, 1, 0, 4096);
	take(WIRE_READ_REQUEST, PSN);
	data(WIRE_READ_FIRST, PSN, bytes, 1024);
	data(WIRE_READ_MIDDLE, PSN + 2, bytes, 1024);
	data(WIRE_READ_LAST, PSN + 3, bytes, 1024);
	expect_none(n.scq, QUIET_MS);
	p = take(WIRE_READ_REQUEST, PSN + 1);
	ck_assert_uint_eq(p->reth.addr, ADDR + 1024);
	ck_assert_uint_eq(p->reth.length, 3072);
	take_none();
	data(WIRE_READ_FIRST, PSN + 1, bytes, 1024);
	data(WIRE_READ_MIDDLE, PSN + 2, bytes, 1024);
	data(WIRE_READ_LAST, PSN + 3, bytes, 1024);
	expect_ok(n.scq, 1, IBV_WC_RDMA_READ);
	ck_assert(has(bytes, 0, 4096));
	close_peer();
}
END_TEST

/*
 * A long READ is several requests, and one that is sent again ends where it
 * ended: what is behind that the other end may not have been asked for.
 */
START_TEST(long_read)
{
	struct opts o = wire_opts();
	static char bytes[1024];
	uint32_t i;

	o.size = 1 << 18;
	open_to_peer(&o);
	post_op(IBV_WR_RDMA_READ, 1, 0, 80 << 10);
	ck_assert_uint_eq(take(WIRE_READ_REQUEST, PSN)->reth.length, 32 << 10);
	ck_assert_uint_eq(take(WIRE_READ_REQUEST, PSN + 32)->reth.length,
			  32 << 10);
	ck_assert_uint_eq(take(WIRE_READ_REQUEST, PSN + 64)->reth.length,
			  16 << 10);
	for (i = 0; i < 7; i++)
		if (i != 5)
			data(i ? WIRE_READ_MIDDLE : WIRE_READ_FIRST, PSN + i,
			     bytes, sizeof(bytes));
	expect_none(n.scq, QUIET_MS);
	ck_assert_uint_eq(take(WIRE_READ_REQUEST, PSN + 5)->reth.length,
			  27 << 10);
	ck_assert_uint_eq(take(WIRE_READ_REQUEST, PSN + 32)->reth.length,
			  32 << 10);
	/* the window was halved, and has no room for the third one now */
	for (i = 5; i < 80; i++) {
		if (i == 64) {
			expect_none(n.scq, QUIET_MS);
			take(WIRE_READ_REQUEST, PSN + 64);
		}
		data(i % 32 ? WIRE_READ_MIDDLE : WIRE_READ_FIRST, PSN + i,
		     bytes, sizeof(bytes));
	}
	expect_ok(n.scq, 1, IBV_WC_RDMA_READ);
	close_peer();
}
END_TEST

/* An ACK of what comes after a READ says that its answer was lost. */
START_TEST(read_not_answered)
{
	struct opts o = wire_opts();
	static char bytes[1024];

	memset(bytes, 0x5a, sizeof(bytes));
	open_to_peer(&o);
	post_op(IBV_WR_SEND, 1, 0, 1);
	post_op(IBV_WR_RDMA_READ, 2, 0, 1024);
	post_op(IBV_WR_SEND, 3, 0, 1);
	take(WIRE_SEND_ONLY, PSN);
	take(WIRE_READ_REQUEST, PSN + 1);
	take(WIRE_SEND_ONLY, PSN + 2);
	ack(PSN + 2);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	take(WIRE_READ_REQUEST, PSN + 1);
	take(WIRE_SEND_ONLY, PSN + 2);
	data(WIRE_READ_ONLY, PSN + 1, bytes, 1024);
	expect_ok(n.scq, 2, IBV_WC_RDMA_READ);
	ack(PSN + 2);
	expect_ok(n.scq, 3, IBV_WC_SEND);
	close_peer();
}
END_TEST

START_TEST(atomics)
{
	struct opts o = wire_opts();
	struct ibv_send_wr wr = { .wr_id = 1,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_sge sge;
	struct wire_packet a;
	const struct wire_packet *p;
	uint64_t old;

	open_to_peer(&o);
	sge = node_sge(&n, 8, 8);
	wr.sg_list = &sge;
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.remote_addr = ADDR;
	wr.wr.atomic.rkey = RKEY;
	wr.wr.atomic.compare_add = 0x1111;
	wr.wr.atomic.swap = 0x2222;
	ck_assert_int_eq(post_wr(n.qp, &wr), 0);
	p = take(WIRE_COMPARE_SWAP, PSN);
	ck_assert(p->atomiceth.addr == ADDR && p->atomiceth.rkey == RKEY);
	ck_assert(p->atomiceth.compare == 0x1111 &&
		  p->atomiceth.swap_add == 0x2222);
	ack(PSN); /* is no answer to it */
	a = answer(WIRE_ATOMIC_ACKNOWLEDGE, PSN, WIRE_ACK);
	a.atomicack.original = 0x123456789abcdef0;
	take(WIRE_COMPARE_SWAP, PSN);
	give(&a);
	expect_ok(n.scq, 1, IBV_WC_COMP_SWAP);
	memcpy(&old, (char *)n.buf + 8, 8);
	ck_assert_uint_eq(old, 0x123456789abcdef0);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	ck_assert_int_eq(post_wr(n.qp, &wr), 0);
	p = take(WIRE_FETCH_ADD, PSN + 1);
	ck_assert(p->atomiceth.swap_add == 0x1111);
	a.bth.psn = PSN + 1;
	give(&a);
	expect_ok(n.scq, 1, IBV_WC_FETCH_ADD);
	close_peer();
}
END_TEST

#define WR_ATOMIC_WRITE 15
#define WC_ATOMIC_WRITE 9

/* Annex A19: it is answered as a READ of nothing is. */
START_TEST(atomic_write)
{
	struct opts o = wire_opts();
	const struct wire_packet *p;

	open_to_peer(&o);
	node_fill(&n, 0, 64, 1);
	post_op((enum ibv_wr_opcode)WR_ATOMIC_WRITE, 1, 8, 8);
	p = take(WIRE_ATOMIC_WRITE, PSN);
	ck_assert(p->reth.addr == ADDR && p->reth.rkey == RKEY);
	ck_assert_uint_eq(p->reth.length, 8);
	ck_assert(p->length == 8 && has(p->payload, 8, 8));
	ck_assert(p->bth.ack_request);
	ack(PSN); /* is no answer to it */
	take(WIRE_ATOMIC_WRITE, PSN);
	expect_none(n.scq, 0);
	data(WIRE_READ_ONLY, PSN, NULL, 0);
	expect_ok(n.scq, 1, (enum ibv_wc_opcode)WC_ATOMIC_WRITE);
	close_peer();
}
END_TEST

/* No more requests at once than max_rd_atomic allows. */
START_TEST(many_reads)
{
	struct opts o = wire_opts();
	const uint32_t most = 3, all = 20;
	char bytes[8] = "1234567";
	uint32_t i;

	o.max_rd_atomic = (uint8_t)most;
	open_to_peer(&o);
	for (i = 0; i < all; i++)
		post_op(IBV_WR_RDMA_READ, i, i * 8, 8);
	for (i = 0; i < most; i++)
		take(WIRE_READ_REQUEST, PSN + i);
	for (i = 0; i < all; i++) {
		take_none();
		data(WIRE_READ_ONLY, PSN + i, bytes, 8);
		expect_ok(n.scq, i, IBV_WC_RDMA_READ);
		if (i + most < all)
			take(WIRE_READ_REQUEST, PSN + i + most);
		ck_assert(has(bytes, i * 8, 8));
	}
	close_peer();
}
END_TEST

/* A packet is missing there: all from it on goes out again. */
START_TEST(goes_back)
{
	struct opts o = wire_opts();
	int i;

	open_to_peer(&o);
	for (i = 0; i < 4; i++) {
		post_op(IBV_WR_SEND, (uint64_t)i, 0, 10);
		take(WIRE_SEND_ONLY, PSN + (uint32_t)i);
	}
	nak(PSN + 1, WIRE_NAK_SEQUENCE);
	expect_ok(n.scq, 0, IBV_WC_SEND);
	expect_none(n.scq, QUIET_MS);
	for (i = 1; i < 4; i++)
		take(WIRE_SEND_ONLY, PSN + (uint32_t)i);
	take_none();
	ack(PSN + 3);
	for (i = 1; i < 4; i++)
		expect_ok(n.scq, (uint64_t)i, IBV_WC_SEND);
	close_peer();
}
END_TEST

/* No more than a window is out, and what is answered makes room. */
START_TEST(window)
{
	struct opts o = wire_opts();
	uint32_t i;

	o.mtu = IBV_MTU_256;
	open_to_peer(&o);
	post_op(IBV_WR_RDMA_WRITE, 1, 0, 200 * 256);
	for (i = 0; i < 128; i++)
		take(i ? WIRE_WRITE_MIDDLE : WIRE_WRITE_FIRST, PSN + i);
	take_none();
	ack(PSN + 49);
	expect_none(n.scq, QUIET_MS);
	for (; i < 178; i++)
		take(WIRE_WRITE_MIDDLE, PSN + i);
	take_none();
	ack(PSN + 177);
	expect_none(n.scq, QUIET_MS);
	for (; i < 199; i++)
		take(WIRE_WRITE_MIDDLE, PSN + i);
	ck_assert(take(WIRE_WRITE_LAST, PSN + i)->bth.ack_request);
	ack(PSN + 199);
	expect_ok(n.scq, 1, IBV_WC_RDMA_WRITE);
	close_peer();
}
END_TEST

/* From psn on, what was out before aside: up to one that asks for an ACK, which
 * it gets.  The PSN behind it. */
static uint32_t take_asking(uint32_t psn)
{
	do
		while (take_any()->bth.psn != psn)
			;
	while (psn = wire_psn_add(psn, 1), !peer.got.packet.bth.ack_request);
	ack(wire_psn_add(psn, WIRE_PSN_MASK));
	return psn;
}

/* By each loss it is halved, and still asks for what makes it go on. */
START_TEST(small_window)
{
	struct opts o = wire_opts();
	uint32_t psn = PSN, end = PSN;
	int losses;

	o.mtu = IBV_MTU_256;
	o.size = 1 << 20;
	open_to_peer(&o);
	post_op(IBV_WR_RDMA_WRITE, 1, 0, 4000 * 256);
	for (losses = 0; losses < 7; losses++) {
		nak(psn, WIRE_NAK_SEQUENCE);
		/* further than anything was then */
		end = wire_psn_add(psn, 260);
		while (wire_psn_before(psn, end))
			psn = take_asking(psn);
	}
	close_peer();
}
END_TEST

/* As often as rnr_retry says, not before the time that the NAK names.
 */
START_TEST(rnr)
{
	struct opts o = wire_opts();
	int i;

	o.rnr_retry = 2;
	open_to_peer(&o);
	post_op(IBV_WR_SEND, 1, 0, 10);
	for (i = 0; i < 2; i++) {
		take(WIRE_SEND_ONLY, PSN);
		nak(PSN, WIRE_RNR_NAK | 1);
		expect_none(n.scq, QUIET_MS);
	}
	take(WIRE_SEND_ONLY, PSN);
	ack(PSN);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	post_op(IBV_WR_SEND, 2, 0, 10);
	for (i = 0; i < 3; i++) {
		take(WIRE_SEND_ONLY, PSN + 1);
		nak(PSN + 1, WIRE_RNR_NAK | 1);
		if (i < 2)
			expect_none(n.scq, QUIET_MS);
	}
	expect(n.scq, 2, IBV_WC_RNR_RETRY_EXC_ERR);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_ERR);
	close_peer();
}
END_TEST

START_TEST(nobody_answers)
{
	struct opts o = wire_opts();
	uint64_t start;
	int i;

	o.timeout = 10; /* 4 ms */
	o.retry_cnt = 2;
	open_to_peer(&o);
	start = clock_now();
	post_op(IBV_WR_SEND, 1, 0, 10);
	post_op(IBV_WR_SEND, 2, 0, 10);
	expect(n.scq, 1, IBV_WC_RETRY_EXC_ERR);
	/* once, twice and four times as long */
	ck_assert_uint_ge(clock_now() - start, 7 * (4096ull << 10));
	expect(n.scq, 2, IBV_WC_WR_FLUSH_ERR);
	for (i = 0; i < 3; i++) {
		take(WIRE_SEND_ONLY, PSN);
		take(WIRE_SEND_ONLY, PSN + 1);
	}
	take_none();
	close_peer();
}
END_TEST

static const struct {
	uint8_t syndrome;
	enum ibv_wc_status status;
} naks[] = {
	{ WIRE_NAK_INVALID, IBV_WC_REM_INV_REQ_ERR },
	{ WIRE_NAK_ACCESS, IBV_WC_REM_ACCESS_ERR },
	{ WIRE_NAK_OPERATION, IBV_WC_REM_OP_ERR },
};

START_TEST(refused)
{
	struct opts o = wire_opts();

	open_to_peer(&o);
	post_op(IBV_WR_SEND, 1, 0, 10);
	post_op(IBV_WR_RDMA_WRITE, 2, 0, 10);
	post_op(IBV_WR_SEND, 3, 0, 10);
	nak(PSN + 1, naks[_i].syndrome);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	expect(n.scq, 2, naks[_i].status);
	expect(n.scq, 3, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_ERR);
	close_peer();
}
END_TEST

/* What cannot be an answer changes nothing. */
START_TEST(nonsense)
{
	struct opts o = wire_opts();
	struct wire_packet p;
	char bytes[1024] = { 1 };

	open_to_peer(&o);
	post_op(IBV_WR_RDMA_READ, 1, 0, 1000);
	take(WIRE_READ_REQUEST, PSN);
	ack(PSN + 1);
	ack(PSN - 1);
	nak(PSN + 5, WIRE_NAK_ACCESS);
	nak(PSN, 0x7f);
	data(WIRE_READ_ONLY, PSN, bytes, 1024); /* too long */
	data(WIRE_READ_ONLY, PSN, bytes, 4); /* too short */
	data(WIRE_READ_ONLY, PSN + 9, bytes, 1000);
	p = answer(WIRE_ATOMIC_ACKNOWLEDGE, PSN, WIRE_ACK);
	give(&p);
	p = answer(WIRE_ACKNOWLEDGE, PSN, WIRE_ACK);
	p.bth.qpn ^= 1 << 20;
	give(&p);
	expect_none(n.scq, QUIET_MS);
	take_none();
	data(WIRE_READ_ONLY, PSN, bytes, 1000);
	expect_ok(n.scq, 1, IBV_WC_RDMA_READ);
	ck_assert(has(bytes, 0, 1000));
	close_peer();
}
END_TEST

/* PSNs go round. */
START_TEST(goes_round)
{
	struct opts o = wire_opts();
	uint32_t i, psn;

	o.psn = 0xfffff0;
	open_to_peer(&o);
	for (i = 0; i < 40; i++) {
		psn = wire_psn_add(o.psn, i);
		post_op(IBV_WR_SEND, i, 0, 10);
		take(WIRE_SEND_ONLY, psn);
		ack(psn);
		expect_ok(n.scq, i, IBV_WC_SEND);
	}
	close_peer();
}
END_TEST

#define COUNTERS(c) (c), sizeof(c) / sizeof(*(c))

START_TEST(counts)
{
	struct counted c[] = {
		{ .name = "sent_pkts", .by = 3 + 2 + 1 + 1 },
		{ .name = "rcvd_pkts", .by = 6 },
		{ .name = "rcvd_seq_err", .by = 1 },
		{ .name = "completer_retry_err", .by = 1 },
		{ .name = "rcvd_rnr_err", .by = 2 },
		{ .name = "retry_rnr_exceeded_err", .by = 1 },
		{ .name = "retry_exceeded_err", .by = 0 },
		{ .name = "rdma_sends", .by = 3 },
		{ .name = "rp_cnp_handled", .by = 1 },
		{ .name = "send_err", .by = 0 },
		{ .name = "rcvd_unclaimed_pkts", .by = 1 },
	};
	struct opts o = wire_opts();
	struct wire_packet p;
	int i;

	o.rnr_retry = 1;
	open_to_peer(&o);
	counters_begin(COUNTERS(c));
	for (i = 0; i < 3; i++) {
		post_op(IBV_WR_SEND, (uint64_t)i, 0, 10);
		take(WIRE_SEND_ONLY, PSN + (uint32_t)i);
	}
	nak(PSN + 1, WIRE_NAK_SEQUENCE);
	expect_ok(n.scq, 0, IBV_WC_SEND);
	expect_none(n.scq, QUIET_MS);
	take(WIRE_SEND_ONLY, PSN + 1);
	take(WIRE_SEND_ONLY, PSN + 2);
	p = answer(WIRE_CNP_OPCODE, 0, 0);
	give(&p);
	ack(PSN + 2);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	expect_ok(n.scq, 2, IBV_WC_SEND);
	p = answer(WIRE_ACKNOWLEDGE, PSN, WIRE_ACK);
	p.bth.qpn ^= 1 << 20;
	give(&p);
	post_op(IBV_WR_SEND, 3, 0, 10);
	take(WIRE_SEND_ONLY, PSN + 3);
	nak(PSN + 3, WIRE_RNR_NAK | 1);
	expect_none(n.scq, QUIET_MS);
	take(WIRE_SEND_ONLY, PSN + 3);
	nak(PSN + 3, WIRE_RNR_NAK | 1);
	expect(n.scq, 3, IBV_WC_RNR_RETRY_EXC_ERR);
	counters_grew(COUNTERS(c));
	close_peer();
}
END_TEST

START_TEST(counts_silence)
{
	struct counted c[] = {
		{ .name = "sent_pkts", .by = 3 },
		{ .name = "local_ack_timeout_err", .by = 3 },
		{ .name = "completer_retry_err", .by = 2 },
		{ .name = "retry_exceeded_err", .by = 1 },
		{ .name = "rdma_sends", .by = 0 },
	};
	struct opts o = wire_opts();

	o.timeout = 10; /* 4 ms */
	o.retry_cnt = 2;
	open_to_peer(&o);
	counters_begin(COUNTERS(c));
	post_op(IBV_WR_SEND, 1, 0, 10);
	expect(n.scq, 1, IBV_WC_RETRY_EXC_ERR);
	counters_grew(COUNTERS(c));
	close_peer();
}
END_TEST

/* What is in front of a WR that fails at this side is answered first. */
START_TEST(fails_here)
{
	struct opts o = wire_opts();
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 4,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	char bytes[8] = { 0 };

	o.psn = starts[_i];
	open_to_peer(&o);
	post_op(IBV_WR_SEND, 1, 0, 10);
	post_op(IBV_WR_RDMA_READ, 2, 0, 8);
	post_op(IBV_WR_SEND, 3, 0, 10);
	sge = node_sge(&n, 0, 5000);
	sge.lkey ^= 1;
	ck_assert_int_eq(post_wr(n.qp, &wr), 0);
	post_op(IBV_WR_SEND, 5, 0, 10);
	take(WIRE_SEND_ONLY, o.psn);
	take(WIRE_READ_REQUEST, wire_psn_add(o.psn, 1));
	take(WIRE_SEND_ONLY, wire_psn_add(o.psn, 2));
	take_none();
	ack(o.psn);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	expect_none(n.scq, QUIET_MS);
	data(WIRE_READ_ONLY, wire_psn_add(o.psn, 1), bytes, sizeof(bytes));
	expect_ok(n.scq, 2, IBV_WC_RDMA_READ);
	ack(wire_psn_add(o.psn, 2));
	expect_ok(n.scq, 3, IBV_WC_SEND);
	expect(n.scq, 4, IBV_WC_LOC_PROT_ERR);
	expect(n.scq, 5, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_ERR);
	take_none();
	close_peer();
}
END_TEST

/* Work for this side alone, between packets: it has none. */
START_TEST(works_here)
{
	struct opts o = wire_opts();
	struct ibv_send_wr wr = { .wr_id = 2,
				  .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_mw *mw;
	char bytes[8] = { 0 };

	o.psn = starts[_i];
	o.mr_access |= IBV_ACCESS_MW_BIND;
	open_to_peer(&o);
	mw = ibv_alloc_mw(n.pd, IBV_MW_TYPE_2);
	ck_nonnull(mw);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info.mr = n.mr;
	wr.bind_mw.bind_info.addr = n.base;
	wr.bind_mw.bind_info.length = 8;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	post_op(IBV_WR_RDMA_READ, 1, 0, 8);
	ck_assert_int_eq(post_wr(n.qp, &wr), 0);
	post_op(IBV_WR_SEND, 3, 0, 10);
	take(WIRE_READ_REQUEST, o.psn);
	take(WIRE_SEND_ONLY, wire_psn_add(o.psn, 1));
	take_none();
	data(WIRE_READ_ONLY, o.psn, bytes, sizeof(bytes));
	expect_ok(n.scq, 1, IBV_WC_RDMA_READ);
	expect_ok(n.scq, 2, IBV_WC_BIND_MW);
	expect_none(n.scq, 0);
	ack(wire_psn_add(o.psn, 1));
	expect_ok(n.scq, 3, IBV_WC_SEND);
	post_op(IBV_WR_SEND, 4, 0, 10);
	take(WIRE_SEND_ONLY, wire_psn_add(o.psn, 2));
	ack(wire_psn_add(o.psn, 2));
	expect_ok(n.scq, 4, IBV_WC_SEND);
	ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
	close_peer();
}
END_TEST

/* A key is gone when its bytes are wanted once more: WRs before it are sent
 * again all the same, as often as it takes. */
START_TEST(fails_when_sent_again)
{
	struct opts o = wire_opts();
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 3,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };

	open_to_peer(&o);
	mr = ibv_reg_mr(n.pd, n.buf, 4096, 0);
	ck_nonnull(mr);
	post_op(IBV_WR_SEND, 1, 0, 10);
	post_op(IBV_WR_SEND, 2, 0, 10);
	sge = node_sge(&n, 0, 10);
	sge.lkey = mr->lkey;
	ck_assert_int_eq(post_wr(n.qp, &wr), 0);
	take(WIRE_SEND_ONLY, PSN);
	take(WIRE_SEND_ONLY, PSN + 1);
	take(WIRE_SEND_ONLY, PSN + 2);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	nak(PSN, WIRE_NAK_SEQUENCE);
	expect_none(n.scq, QUIET_MS);
	take(WIRE_SEND_ONLY, PSN);
	take(WIRE_SEND_ONLY, PSN + 1);
	take_none();
	nak(PSN + 1, WIRE_NAK_SEQUENCE);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	expect_none(n.scq, QUIET_MS);
	take(WIRE_SEND_ONLY, PSN + 1);
	take_none();
	ack(PSN + 1);
	expect_ok(n.scq, 2, IBV_WC_SEND);
	expect(n.scq, 3, IBV_WC_LOC_PROT_ERR);
	close_peer();
}
END_TEST

/* What "urxe why" says of the QP. */
static void why(char *out, size_t room)
{
	char command[200];
	size_t len;
	FILE *f;

	snprintf(command, sizeof(command),
		 n.qp ? "\"$URXE\" why 0x%x" : "\"$URXE\" why",
		 n.qp ? n.qp->qp_num : 0);
	f = popen(command, "r");
	ck_assert_ptr_nonnull(f);
	len = fread(out, 1, room - 1, f);
	out[len] = 0;
	pclose(f);
}

/* It says so, at the latest when what just happened has been seen. */
static void why_says(const char *text)
{
	double end = now_ms() + WAIT_MS;
	char out[4096];

	do
		why(out, sizeof(out));
	while (!strstr(out, text) && now_ms() < end);
	ck_assert_msg(strstr(out, text) != NULL, "no \"%s\" in %s", text, out);
}

START_TEST(waits_for_an_ack)
{
	struct opts o = wire_opts();
	int i;

	open_to_peer(&o);
	for (i = 0; i < 2; i++) {
		post_op(IBV_WR_SEND, 77 + (uint64_t)i, 0, 2000);
		take(WIRE_SEND_FIRST, PSN + 2 * (uint32_t)i);
		take(WIRE_SEND_LAST, PSN + 2 * (uint32_t)i + 1);
	}
	why_says("SEND wr_id 77 waits for an ACK of QP 0xabcdef of 10.91.0.2 "
		 "from PSN 0x123456 on (4 packets are out); 1 more are behind "
		 "it\n    no-answer for ");
	why_says("would end it: an answer; by itself never (timeout is 0)");
	nak(PSN, WIRE_NAK_SEQUENCE);
	expect_none(n.scq, QUIET_MS);
	take(WIRE_SEND_FIRST, PSN);
	why_says("(4 packets are out; sent again 1 time)");
	for (i = 1; i < 4; i++)
		take(i % 2 ? WIRE_SEND_LAST : WIRE_SEND_FIRST,
		     PSN + (uint32_t)i);
	ack(PSN + 1);
	expect_ok(n.scq, 77, IBV_WC_SEND);
	why_says("SEND wr_id 78 waits for an ACK of QP 0xabcdef of 10.91.0.2 "
		 "from PSN 0x123458 on (2 packets are out)\n");
	ack(PSN + 3);
	expect_ok(n.scq, 78, IBV_WC_SEND);
	why_says("nothing stalls");
	close_peer();
}
END_TEST

START_TEST(waits_for_data)
{
	struct opts o = wire_opts();
	char bytes[1024] = "";

	open_to_peer(&o);
	post_op(IBV_WR_RDMA_READ, 5, 0, 2048);
	take(WIRE_READ_REQUEST, PSN);
	data(WIRE_READ_FIRST, PSN, bytes, 1024);
	expect_none(n.scq, QUIET_MS);
	why_says("RDMA_READ wr_id 5 waits for the data of QP 0xabcdef of "
		 "10.91.0.2 from PSN 0x123457 on (1 packet is out)");
	data(WIRE_READ_LAST, PSN + 1, bytes, 1024);
	expect_ok(n.scq, 5, IBV_WC_RDMA_READ);
	close_peer();
}
END_TEST

START_TEST(waits_for_a_window)
{
	struct opts o = wire_opts();
	uint32_t i;

	o.mtu = IBV_MTU_256;
	open_to_peer(&o);
	post_op(IBV_WR_RDMA_WRITE, 6, 0, 200 * 256);
	for (i = 0; i < 128; i++)
		take(i ? WIRE_WRITE_MIDDLE : WIRE_WRITE_FIRST, PSN + i);
	why_says("(128 packets are out, and the window of 128 is full)");
	close_peer();
}
END_TEST

START_TEST(waits_for_a_receive)
{
	struct opts o = wire_opts();

	o.rnr_retry = 7;
	open_to_peer(&o);
	post_op(IBV_WR_SEND, 8, 0, 10);
	take(WIRE_SEND_ONLY, PSN);
	nak(PSN, WIRE_RNR_NAK | 0); /* 655 ms */
	expect_none(n.scq, QUIET_MS);
	why_says("SEND wr_id 8 waits for a receive (RNR): QP 0xabcdef of "
		 "10.91.0.2 has none posted\n    rnr for ");
	why_says("ibv_post_recv there; by itself never (rnr_retry is 7)");
	close_peer();
}
END_TEST

/* A host whose address is known, then not any more, and then no way to it. */
START_TEST(waits_for_a_neighbour)
{
	struct opts o = wire_opts();
	struct addr to = { .qpn = QPN, .psn = 5 };
	struct ibv_qp_attr attr;
	int mask;

	ck_assert_int_eq(system("ip route add 10.91.0.77/32 dev eth0 && "
				"ip neigh add 10.91.0.77 dev eth0 "
				"lladdr 02:00:00:00:00:01"),
			 0);
	node_open(&n, NULL, MEM_HEAP, &o);
	memcpy(to.gid.raw, there, 16);
	to.gid.raw[15] = 77;
	qp_to_init(n.qp, &o);
	mask = attr_rtr(&attr, &o, &to);
	attr.ah_attr.grh.sgid_index = own_index();
	ck_assert_int_eq(ibv_modify_qp(n.qp, &attr, mask), 0);
	qp_to_rts(n.qp, &o);
	wait_until_heard();
	post_op(IBV_WR_SEND, 9, 0, 10);
	why_says("no-answer for ");
	ck_assert_int_eq(system("ip neigh del 10.91.0.77 dev eth0"), 0);
	why_says("nobody on the network answers for the address of 10.91.0.77");
	ck_assert_int_eq(system("ip route del 10.91.0.77/32"), 0);
	why_says("there is no way to 10.91.0.77");
	node_close(&n);
}
END_TEST

/* The port is another program's. */
START_TEST(waits_without_a_holder)
{
	struct opts o = wire_opts();
	struct wire_socket taken;

	ck_assert_int_eq(wire_socket_open(&taken, here, WIRE_PORT, 0), 0);
	open_to_peer(&o);
	post_op(IBV_WR_SEND, 10, 0, 10);
	take(WIRE_SEND_ONLY, PSN);
	why_says("no process here has the socket of the wire");
	why_says("no-holder for ");
	close_peer();
	wire_socket_close(&taken);
}
END_TEST

static pid_t start_holder(void)
{
	struct opts o = wire_opts();
	int ready[2];
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		node_open(&n, NULL, MEM_HEAP, &o);
		wait_until_heard();
		c = write(ready[1], "", 1) == 1;
		for (;;)
			pause();
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

/* There is nobody else who could take the socket over. */
START_TEST(waits_for_a_stopped_holder)
{
	struct opts o = wire_opts();
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		open_to_peer(&o);
		post_op(IBV_WR_SEND, 11, 0, 10);
		take(WIRE_SEND_ONLY, PSN);
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert(WIFSTOPPED(status));
	why_says(", which has the socket of the wire, is stopped");
	why_says("holder-stopped for ");
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

/* ACKs that came to the old socket are lost. */
static void ack_until_heard(uint32_t psn, uint64_t wr_id)
{
	double end = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int got = 0;

	while (!got && now_ms() < end) {
		ack(psn);
		usleep(10000);
		got = ibv_poll_cq(n.scq, 1, &wc);
	}
	ck_assert_int_eq(got, 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.wr_id, wr_id);
}

/* When it goes on it lets go of the socket, and may be the next one. */
START_TEST(replaces_a_stopped_holder)
{
	struct opts o = wire_opts();
	pid_t pid = start_holder();
	int status, i;

	open_to_peer(&o);
	for (i = 0; i < 3; i++) {
		post_op(IBV_WR_SEND, 20 + (uint64_t)i, 0, 10);
		take(WIRE_SEND_ONLY, PSN + (uint32_t)i);
		ck_assert_int_eq(kill(pid, i % 2 ? SIGCONT : SIGSTOP), 0);
		ck_assert_int_eq(waitpid(pid, &status, WUNTRACED | WCONTINUED),
				 pid);
		ack_until_heard(PSN + (uint32_t)i, 20 + (uint64_t)i);
	}
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	close_peer();
}
END_TEST

/* Receives of a QP that hears another host are no receives that nobody can
 * fill. */
START_TEST(waits_for_a_message)
{
	struct opts o = wire_opts();

	open_to_peer(&o);
	ck_assert_int_eq(post_recv(&n, 1, 0, 64), 0);
	why_says("1 receive is posted: no message comes from QP 0xabcdef of "
		 "10.91.0.2\n    receives for ");
	close_peer();
}
END_TEST

/* How many lines of a trace have that in them. */
static int lines_with(const char *trace, const char *text)
{
	char command[PATH_MAX + 32], line[1024];
	int lines = 0;
	FILE *f;

	snprintf(command, sizeof(command), "\"$URXE\" trace %s", trace);
	f = popen(command, "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		lines += strstr(line, text) != NULL;
	ck_assert_int_eq(pclose(f), 0);
	return lines;
}

/* An ACK whose ICRC fits no ID. */
static void give_damaged(void)
{
	struct wire_packet p = answer(WIRE_ACKNOWLEDGE, PSN, WIRE_ACK);
	uint8_t bytes[WIRE_MAX_TRANSPORT], *end = wire_put_transport(&p, bytes);
	const size_t n = (size_t)(wire_put_icrc(0x12345678, end) - bytes);
	union wire_sockaddr to;
	socklen_t len = wire_sockaddr_of(&to, here, WIRE_PORT, 0);

	ck_assert_int_eq(sendto(peer.socket.fd, bytes, n, 0, &to.sa, len),
			 (ssize_t)n);
}

/* A trace has the packets themselves: one that was sent twice is there twice,
 * and what came is there, too, be it good for nothing. */
START_TEST(traced)
{
	struct opts o = wire_opts();
	char trace[PATH_MAX];

	snprintf(trace, sizeof(trace), "%s/trace", getenv("URXE_DIR"));
	ck_assert_int_eq(setenv("URXE_TRACE", trace, 1), 0);
	open_to_peer(&o);
	post_op(IBV_WR_SEND, 1, 0, 10);
	take(WIRE_SEND_ONLY, PSN);
	nak(PSN, WIRE_NAK_SEQUENCE);
	expect_none(n.scq, QUIET_MS);
	take(WIRE_SEND_ONLY, PSN);
	give_damaged();
	ack(PSN);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	ck_assert_int_eq(
		lines_with(trace,
			   " packet out 10.91.0.1 > 10.91.0.2: RC SEND_ONLY to "
			   "QP 0xabcdef psn=1193046 length=10 AckReq"),
		2);
	ck_assert_int_eq(
		lines_with(
			trace,
			" packet in 10.91.0.2 > 10.91.0.1: RC ACKNOWLEDGE to "),
		2);
	ck_assert_int_eq(lines_with(trace, " psn=1193046 NAK 0x60 (PSN "
					   "sequence error) msn=0"),
			 1);
	ck_assert_int_eq(lines_with(trace, ": refused (bad ICRC): RC "
					   "ACKNOWLEDGE"),
			 1);
	close_peer();
	ck_assert_int_eq(unlink(trace), 0);
}
END_TEST

/* PSNs go round within a message, and what is lost there goes out again. */
START_TEST(goes_round_in_a_message)
{
	struct opts o = wire_opts();
	uint32_t i;

	o.psn = 0xfffffd;
	o.mtu = IBV_MTU_256;
	open_to_peer(&o);
	node_fill(&n, 0, 4096, 1);
	post_op(IBV_WR_SEND, 1, 0, 6 * 256);
	for (i = 0; i < 6; i++)
		ck_assert_uint_eq(take_any()->bth.psn, wire_psn_add(o.psn, i));
	nak(wire_psn_add(o.psn, 2), WIRE_NAK_SEQUENCE);
	for (i = 2; i < 6; i++) {
		ck_assert_uint_eq(take_any()->bth.psn, wire_psn_add(o.psn, i));
		ck_assert(has(peer.got.packet.payload, i * 256, 256));
	}
	ack(wire_psn_add(o.psn, 5));
	expect_ok(n.scq, 1, IBV_WC_SEND);
	close_peer();
}
END_TEST

/* A fence waits for the READ before it, and for nothing else. */
START_TEST(fence)
{
	struct opts o = wire_opts();
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 3,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED |
						IBV_SEND_FENCE };
	char bytes[8] = { 0 };

	open_to_peer(&o);
	sge = node_sge(&n, 64, 8);
	post_op(IBV_WR_RDMA_READ, 1, 0, 8);
	post_op(IBV_WR_SEND, 2, 0, 8);
	ck_assert_int_eq(post_wr(n.qp, &wr), 0);
	take(WIRE_READ_REQUEST, PSN);
	take(WIRE_SEND_ONLY, PSN + 1);
	take_none();
	data(WIRE_READ_ONLY, PSN, bytes, sizeof(bytes));
	expect_ok(n.scq, 1, IBV_WC_RDMA_READ);
	take(WIRE_SEND_ONLY, PSN + 2);
	ack(PSN + 2);
	expect_ok(n.scq, 2, IBV_WC_SEND);
	expect_ok(n.scq, 3, IBV_WC_SEND);
	close_peer();
}
END_TEST

/* retry_cnt 0: no packet may be missing. */
START_TEST(no_second_try)
{
	struct opts o = wire_opts();

	o.retry_cnt = 0;
	open_to_peer(&o);
	post_op(IBV_WR_SEND, 1, 0, 8);
	post_op(IBV_WR_SEND, 2, 0, 8);
	take(WIRE_SEND_ONLY, PSN);
	take(WIRE_SEND_ONLY, PSN + 1);
	nak(PSN + 1, WIRE_NAK_SEQUENCE);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	expect(n.scq, 2, IBV_WC_RETRY_EXC_ERR);
	take_none();
	close_peer();
}
END_TEST

/* rnr_retry 7 has no end. */
START_TEST(rnr_without_end)
{
	struct opts o = wire_opts();
	int i;

	o.rnr_retry = 7;
	open_to_peer(&o);
	post_op(IBV_WR_SEND, 1, 0, 8);
	for (i = 0; i < 20; i++) {
		take(WIRE_SEND_ONLY, PSN);
		nak(PSN, WIRE_RNR_NAK | 1);
	}
	take(WIRE_SEND_ONLY, PSN);
	ack(PSN);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	close_peer();
}
END_TEST

/* ------------------------------------------------------- faults */

/* One WR fails at this side, and those before it are answered first. */
START_TEST(wr_faults)
{
	static const struct {
		const char *rule;
		enum ibv_wc_status status;
	} rules[] = {
		{ "wr:wr_id=3:LOC_PROT_ERR", IBV_WC_LOC_PROT_ERR },
		{ "wr:wr_id=3:RETRY_EXC_ERR", IBV_WC_RETRY_EXC_ERR },
		{ "wr:wr_id=3:REM_OP_ERR", IBV_WC_REM_OP_ERR },
	};
	struct opts o = wire_opts();

	ck_assert_int_eq(setenv("URXE_FAULTS", rules[_i].rule, 1), 0);
	open_to_peer(&o);
	post_op(IBV_WR_SEND, 1, 0, 10);
	post_op(IBV_WR_SEND, 2, 0, 10);
	post_op(IBV_WR_SEND, 3, 0, 10);
	post_op(IBV_WR_SEND, 4, 0, 10);
	take(WIRE_SEND_ONLY, PSN);
	take(WIRE_SEND_ONLY, PSN + 1);
	take_none();
	ack(PSN);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	ack(PSN + 1);
	expect_ok(n.scq, 2, IBV_WC_SEND);
	expect(n.scq, 3, rules[_i].status);
	expect(n.scq, 4, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_ERR);
	close_peer();
}
END_TEST

/* Which PSNs come of a message of six packets, the third of which ... */
START_TEST(packet_faults)
{
	static const struct {
		const char *rule;
		int come[8]; /* -1: no more; damaged ones aside */
	} rules[] = {
		{ "packet:nth=3:LOST", { 0, 1, 3, 4, 5, -1 } },
		{ "packet:nth=3:DUPLICATED", { 0, 1, 2, 2, 3, 4, 5, -1 } },
		{ "packet:type=UC:LOST;packet:nth=3:LATE",
		  { 0, 1, 3, 4, 5, -1 } },
		{ "packet:nth=3:DAMAGED", { 0, 1, 3, 4, 5, -1 } },
	};
	struct opts o = wire_opts();
	const int *c = rules[_i].come;
	const struct wire_packet *p;

	ck_assert_int_eq(setenv("URXE_FAULTS", rules[_i].rule, 1), 0);
	o.mtu = IBV_MTU_256;
	open_to_peer(&o);
	node_fill(&n, 0, 4096, 1);
	post_op(IBV_WR_SEND, 1, 0, 6 * 256);
	for (; *c >= 0; c++) {
		p = take_sound();
		ck_assert_uint_eq(p->bth.psn, PSN + (uint32_t)*c);
		ck_assert(has(p->payload, (size_t)*c * 256, 256));
	}
	nak(PSN + 2, WIRE_NAK_SEQUENCE);
	/* all that is missing, and what was late at the end */
	do
		p = take_sound();
	while (p->bth.psn != PSN + 5);
	if (strstr(rules[_i].rule, "LATE")) {
		p = take_sound();
		ck_assert_uint_eq(p->bth.psn, PSN + 2);
		ck_assert(has(p->payload, 512, 256));
	}
	take_none();
	ack(PSN + 5);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	close_peer();
}
END_TEST

/* The adversary loses packets, and has some come twice and late: this end asks
 * for what is missing, as a responder does. */
START_TEST(adversary)
{
	struct opts o = wire_opts();
	uint32_t expected = 0, seen = 0, missing = 0, again = 0;
	bool told = false;
	int32_t ahead;

	ck_assert_int_eq(setenv("URXE_ADVERSARY", "5,none,retry=30%", 1), 0);
	o.mtu = IBV_MTU_256;
	o.size = 1 << 17;
	o.timeout = 16;
	open_to_peer(&o);
	node_fill(&n, 0, o.size, 1);
	post_op(IBV_WR_SEND, 1, 0, 300 * 256);
	while (expected < 300) {
		ahead = wire_psn_minus(take_any()->bth.psn,
				       wire_psn_add(PSN, expected));
		seen++;
		missing += ahead > 0;
		again += ahead < 0;
		if (ahead > 0 && !told)
			nak(wire_psn_add(PSN, expected), WIRE_NAK_SEQUENCE);
		told |= ahead > 0;
		if (ahead < 0)
			ack(wire_psn_add(PSN, expected + WIRE_PSN_MASK));
		if (ahead)
			continue;
		told = false;
		ck_assert(has(peer.got.packet.payload, (size_t)expected * 256,
			      256));
		expected++;
		if (peer.got.packet.bth.ack_request)
			ack(wire_psn_add(PSN, expected + WIRE_PSN_MASK));
	}
	expect_ok(n.scq, 1, IBV_WC_SEND);
	ck_assert(missing && again && seen > 300);
	close_peer();
}
END_TEST

int main(void)
{
	Suite *s = suite("wire-requester");
	const int refusals = sizeof(naks) / sizeof(*naks);

	add(s, sends);
	add(s, writes);
	add(s, reads);
	add(s, rest_of_a_read);
	add(s, long_read);
	add(s, read_not_answered);
	add(s, atomics);
	add(s, atomic_write);
	add(s, many_reads);
	add(s, goes_back);
	add(s, window);
	add(s, small_window);
	add(s, rnr);
	add(s, nobody_answers);
	add_loop(s, refused, refusals);
	add(s, nonsense);
	add(s, goes_round);
	add_loop(s, fails_here, STARTS);
	add_loop(s, works_here, STARTS);
	add(s, fails_when_sent_again);
	add(s, goes_round_in_a_message);
	add(s, fence);
	add(s, no_second_try);
	add(s, rnr_without_end);
	add_loop(s, wr_faults, 3);
	add_loop(s, packet_faults, 4);
	add(s, adversary);
	add(s, counts);
	add(s, counts_silence);
	add(s, waits_for_an_ack);
	add(s, waits_for_data);
	add(s, waits_for_a_window);
	add(s, waits_for_a_receive);
	add(s, waits_for_a_message);
	add(s, waits_for_a_neighbour);
	add(s, waits_without_a_holder);
	add(s, waits_for_a_stopped_holder);
	add(s, replaces_a_stopped_holder);
	add(s, traced);
	return run(s);
}

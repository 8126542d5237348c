// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wire requester: the packets that WRs become, and the effect of the
 * responses.  The remote host is this test (requester.h).  own-net runs it.
 *
 * See also test_requester_fails.c (errors, losses) and test_requester_seen.c
 * (counters, diagnosis).
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "requester.h"
#include "wire/psn.h"

/*
 * SEND: one packet or several, with AckReq and the solicited event bit in the
 * last one.  One ACK may complete several WRs.
 */
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
	ack(PSN + 4); /* acknowledges both */
	expect_ok(n.scq, 2, IBV_WC_SEND);
	expect_ok(n.scq, 3, IBV_WC_SEND);
	close_peer();
}
END_TEST

/*
 * RDMA WRITE: the RETH is in the first packet, with the length of the
 * message; immediate data is in the last one.
 */
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

/*
 * RDMA READ: a request uses as many PSNs as its response has packets.  A
 * duplicate response packet is ignored.
 */
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

/*
 * COMPARE SWAP and FETCH ADD complete with an ATOMIC ACK.  An ACK instead
 * means that the ATOMIC ACK was lost: the request is retransmitted.
 */
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
	ack(PSN); /* not a response to an atomic */
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

/*
 * ATOMIC WRITE completes with an RDMA READ response without data (IB annex
 * A19), not with an ACK.
 */
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
	ack(PSN); /* not a response to an ATOMIC WRITE */
	take(WIRE_ATOMIC_WRITE, PSN);
	expect_none(n.scq, 0);
	data(WIRE_READ_ONLY, PSN, NULL, 0);
	expect_ok(n.scq, 1, (enum ibv_wc_opcode)WC_ATOMIC_WRITE);
	close_peer();
}
END_TEST

/* At most max_rd_atomic READs are outstanding. */
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

/* At most a window of packets is outstanding.  ACKs make room for more. */
START_TEST(window_limit)
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

/*
 * Receive packets from @psn on, up to one with AckReq, and acknowledge that.
 * Packets with other PSNs, which were sent before the loss, are skipped.
 * Returns the PSN after the acknowledged one.
 */
static uint32_t take_asking(uint32_t psn)
{
	do
		while (take_any()->bth.psn != psn)
			;
	while (psn = wire_psn_add(psn, 1), !peer.got.packet.bth.ack_request);
	ack(wire_psn_add(psn, WIRE_PSN_MASK));
	return psn;
}

/*
 * Each loss halves the window.  Also a small window contains a packet with
 * AckReq, so the requester does not stall.
 */
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
		/* past all packets that were outstanding then */
		end = wire_psn_add(psn, 260);
		while (wire_psn_before(psn, end))
			psn = take_asking(psn);
	}
	close_peer();
}
END_TEST

/* PSNs wrap around at 2^24. */
START_TEST(psn_wraps)
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

/* PSNs wrap around within a message, and packets of it are retransmitted. */
START_TEST(psn_wraps_in_message)
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
		if (i == 2)
			ack(wire_psn_add(o.psn, 2));
	}
	ack(wire_psn_add(o.psn, 5));
	expect_ok(n.scq, 1, IBV_WC_SEND);
	close_peer();
}
END_TEST

static void post_fenced_send(uint64_t id)
{
	struct ibv_sge sge = node_sge(&n, 64, 8);
	struct ibv_send_wr wr = { .wr_id = id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED |
						IBV_SEND_FENCE };

	ck_assert_int_eq(post_wr(n.qp, &wr), 0);
}

/*
 * A WR with IBV_SEND_FENCE waits for preceding READs to complete, but not for
 * a preceding SEND.
 */
START_TEST(fence)
{
	struct opts o = wire_opts();
	char bytes[8] = { 0 };

	open_to_peer(&o);
	post_op(IBV_WR_RDMA_READ, 1, 0, 8);
	post_op(IBV_WR_SEND, 2, 0, 8);
	post_fenced_send(3);
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

/*
 * The same if the READ is the only WR in flight, and if the program does not
 * poll (second loop).
 */
START_TEST(fence_after_read)
{
	struct opts o = wire_opts();
	char bytes[8] = { 0 };

	open_to_peer(&o);
	post_op(IBV_WR_RDMA_READ, 1, 0, 8);
	post_fenced_send(2);
	take(WIRE_READ_REQUEST, PSN);
	take_none();
	data(WIRE_READ_ONLY, PSN, bytes, sizeof(bytes));
	if (!_i)
		expect_ok(n.scq, 1, IBV_WC_RDMA_READ);
	take(WIRE_SEND_ONLY, PSN + 1);
	ack(PSN + 1);
	if (_i)
		expect_ok(n.scq, 1, IBV_WC_RDMA_READ);
	expect_ok(n.scq, 2, IBV_WC_SEND);
	close_peer();
}
END_TEST

/*
 * Responses with an invalid PSN, syndrome, opcode, length or QPN are ignored.
 */
START_TEST(invalid_responses_ignored)
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

/*
 * The first READ gets a larger inbox.  An ACK that was sent before, whether it
 * is in the old one or the new one, completes its SEND.
 */
START_TEST(larger_inbox)
{
	static char bytes[65536];
	struct opts o = wire_opts();
	uint32_t i;

	o.size = 2 * sizeof(bytes);
	open_to_peer(&o);
	post_op(IBV_WR_SEND, 1, 0, 10);
	take(WIRE_SEND_ONLY, PSN);
	ack(PSN);
	memset(bytes, 7, sizeof(bytes));
	post_op(IBV_WR_RDMA_READ, 2, 0, sizeof(bytes));
	/* before the response, which acknowledges the SEND as well */
	expect_ok(n.scq, 1, IBV_WC_SEND);
	/* two fetches of 32 packets */
	for (i = 0; i < 64; i++) {
		if (i % 32 == 0)
			take(WIRE_READ_REQUEST, PSN + 1 + i);
		data(i % 32 == 0  ? WIRE_READ_FIRST :
		     i % 32 == 31 ? WIRE_READ_LAST :
				    WIRE_READ_MIDDLE,
		     PSN + 1 + i, bytes + 1024 * i, 1024);
	}
	expect_ok(n.scq, 2, IBV_WC_RDMA_READ);
	ck_assert(node_all(&n, 0, sizeof(bytes), 7));
	post_op(IBV_WR_SEND, 3, 0, 10);
	take(WIRE_SEND_ONLY, PSN + 65);
	ack(PSN + 65);
	expect_ok(n.scq, 3, IBV_WC_SEND);
	close_peer();
}
END_TEST

/*
 * Another process that is the socket owner maps the requester's context until
 * it is closed, and not anew for each response.  It need not be idle to notice
 * that.
 */
START_TEST(owner_maps_requester)
{
	struct opts o = wire_opts();
	struct wire_packet late;
	char path[300], fd[40];
	double end;
	ssize_t len;

	if (!getenv("WIRE_OTHER_OWNER"))
		return;
	open_to_peer(&o);
	snprintf(fd, sizeof(fd), "/proc/self/fd/%d", n.ctx->cmd_fd);
	len = readlink(fd, path, sizeof(path) - 1);
	ck_assert_int_gt(len, 0);
	path[len] = '\0';
	post_op(IBV_WR_SEND, 1, 0, 10);
	take(WIRE_SEND_ONLY, PSN);
	ack(PSN);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	ck_assert(owner_maps(path));
	late = answer(WIRE_ACKNOWLEDGE, PSN, WIRE_ACK);
	node_close(&n);
	n.ctx = NULL;
	for (end = now_ms() + WAIT_MS; owner_maps(path);) {
		ck_assert(now_ms() < end);
		give(&late);
		sleep_ms(10);
	}
	close_peer();
}
END_TEST

int main(void)
{
	Suite *s = suite("wire-requester");

	add(s, sends);
	add(s, writes);
	add(s, reads);
	add(s, atomics);
	add(s, atomic_write);
	add(s, many_reads);
	add(s, larger_inbox);
	add(s, owner_maps_requester);
	add(s, window_limit);
	add(s, small_window);
	add(s, invalid_responses_ignored);
	add(s, psn_wraps);
	add(s, psn_wraps_in_message);
	add(s, fence);
	add_loop(s, fence_after_read, 2);
	return run(s);
}

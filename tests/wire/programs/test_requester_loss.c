// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests to another host, and responses, that are lost or reordered.  The
 * timeout is infinite, so NAKs and later responses must tell the requester what
 * to retransmit, unless the test says otherwise.
 */
#define _GNU_SOURCE
#include <string.h>

#include "requester.h"
#include "wire/psn.h"

static char bytes[80 << 10];

static void fill(void)
{
	uint32_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 7 + i / 256);
}

/* Send packet i of the response to a READ of `bytes`. */
static void respond(uint32_t i)
{
	data(WIRE_READ_MIDDLE, PSN + i, bytes + 1024 * i, 1024);
}

/*
 * A packet of a READ response is lost.  The requester asks for it only, and
 * uses those behind it.
 */
START_TEST(lost_read_response)
{
	struct opts o = wire_opts();
	const struct wire_packet *p;

	fill();
	open_to_peer(&o);
	post_op(IBV_WR_RDMA_READ, 1, 0, 4096);
	take(WIRE_READ_REQUEST, PSN);
	data(WIRE_READ_FIRST, PSN, bytes, 1024);
	data(WIRE_READ_MIDDLE, PSN + 2, bytes + 2048, 1024);
	data(WIRE_READ_LAST, PSN + 3, bytes + 3072, 1024);
	expect_none(n.scq, QUIET_MS);
	p = take(WIRE_READ_REQUEST, PSN + 1);
	ck_assert_uint_eq(p->reth.addr, ADDR + 1024);
	ck_assert_uint_eq(p->reth.length, 1024);
	take_none();
	data(WIRE_READ_ONLY, PSN + 1, bytes + 1024, 1024);
	expect_ok(n.scq, 1, IBV_WC_RDMA_READ);
	ck_assert(has(bytes, 0, 4096));
	close_peer();
}
END_TEST

/*
 * A long READ becomes several requests.  A retransmitted request ends where
 * the original ended, because the responder may not have received a request
 * for what follows (IB 9.7.5.1.3).  Each response that is missing is requested
 * once, in order.
 */
START_TEST(long_read)
{
	static const uint32_t lost[] = { 5, 9, 10, 30, 31, 32, 40 };
	struct opts o = wire_opts();
	const struct wire_packet *p;
	uint32_t i, next = 0;

	fill();
	o.size = 1 << 18;
	open_to_peer(&o);
	post_op(IBV_WR_RDMA_READ, 1, 0, sizeof(bytes));
	ck_assert_uint_eq(take(WIRE_READ_REQUEST, PSN)->reth.length, 32 << 10);
	ck_assert_uint_eq(take(WIRE_READ_REQUEST, PSN + 32)->reth.length,
			  32 << 10);
	ck_assert_uint_eq(take(WIRE_READ_REQUEST, PSN + 64)->reth.length,
			  16 << 10);
	for (i = 0; i < 80; i++) {
		if (i == lost[next]) {
			next += next < sizeof(lost) / sizeof(lost[0]) - 1;
			continue;
		}
		respond(i);
	}
	for (next = 0; next < sizeof(lost) / sizeof(lost[0]); next++) {
		expect_none(n.scq, QUIET_MS);
		p = take(WIRE_READ_REQUEST, PSN + lost[next]);
		ck_assert_uint_eq(p->reth.addr, ADDR + 1024 * lost[next]);
		i = lost[next];
		/* those that are missing up to the end of the request */
		if (i == 9 || i == 30)
			next++;
		ck_assert_uint_eq(p->reth.length, 1024 * (lost[next] - i + 1));
		for (; i <= lost[next]; i++)
			respond(i);
	}
	expect_ok(n.scq, 1, IBV_WC_RDMA_READ);
	take_none();
	ck_assert(has(bytes, 0, sizeof(bytes)));
	close_peer();
}
END_TEST

/*
 * An ACK for a request after a READ means that the READ response was lost.
 * The READ is requested again.
 */
START_TEST(ack_instead_of_read_response)
{
	struct opts o = wire_opts();

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
	take_none();
	data(WIRE_READ_ONLY, PSN + 1, bytes, 1024);
	/* the ACK is not repeated */
	expect_ok(n.scq, 2, IBV_WC_RDMA_READ);
	expect_ok(n.scq, 3, IBV_WC_SEND);
	close_peer();
}
END_TEST

/* Post count SENDs from PSN + first on, and receive their packets. */
static void send_some(uint32_t first, uint32_t count)
{
	uint32_t i;

	for (i = first; i < first + count; i++) {
		post_op(IBV_WR_SEND, i, 0, 10);
		take(WIRE_SEND_ONLY, PSN + i);
	}
}

/* The packets from PSN + first to PSN + end - 1 are retransmitted, no more. */
static void take_again(uint32_t first, uint32_t end)
{
	expect_none(n.scq, QUIET_MS);
	for (; first < end; first++)
		ck_assert(take(WIRE_SEND_ONLY, PSN + first)->bth.ack_request);
	take_none();
}

static void sent(uint32_t first, uint32_t end)
{
	for (; first < end; first++)
		expect_ok(n.scq, first, IBV_WC_SEND);
}

/*
 * After a sequence NAK, the missing packet is retransmitted, and when its ACK
 * shows that the others were not buffered, all that follow (go-back-N).  After
 * three times, all are retransmitted at once.
 */
START_TEST(go_back_n)
{
	struct opts o = wire_opts();
	uint32_t i;

	open_to_peer(&o);
	for (i = 0; i < 12; i += 4) {
		send_some(i, 4);
		nak(PSN + i + 1, WIRE_NAK_SEQUENCE);
		sent(i, i + 1);
		take_again(i + 1, i + 2);
		ack(PSN + i + 1);
		sent(i + 1, i + 2);
		take_again(i + 2, i + 4);
		ack(PSN + i + 3);
		sent(i + 2, i + 4);
	}
	send_some(12, 4);
	nak(PSN + 13, WIRE_NAK_SEQUENCE);
	sent(12, 13);
	take_again(13, 16);
	ack(PSN + 15);
	sent(13, 16);
	close_peer();
}
END_TEST

/* A responder buffers the packets behind a lost one: see requester/window.h. */
START_TEST(selective)
{
	struct opts o = wire_opts();

	open_to_peer(&o);
	/* 1 and 3 are lost */
	send_some(0, 6);
	nak(PSN + 1, WIRE_NAK_SEQUENCE);
	sent(0, 1);
	take_again(1, 2);
	nak(PSN + 3, WIRE_NAK_SEQUENCE);
	sent(1, 3);
	take_again(3, 4);
	ack(PSN + 5);
	sent(3, 6);
	take_again(6, 6);
	/* 6 to 12 are lost */
	send_some(6, 9);
	nak(PSN + 6, WIRE_NAK_SEQUENCE);
	take_again(6, 7);
	ack(PSN + 6);
	sent(6, 7);
	take_again(7, 9);
	ack(PSN + 7); /* the other one may be on the way */
	sent(7, 8);
	take_again(8, 8);
	ack(PSN + 8);
	sent(8, 9);
	take_again(9, 13);
	send_some(15, 1);
	ack(PSN + 15);
	sent(9, 16);
	close_peer();
}
END_TEST

/* The same with READs: the requests are retransmitted, or their responses. */
START_TEST(selective_reads)
{
	struct opts o = wire_opts();
	uint32_t i;

	open_to_peer(&o);
	send_some(0, 3);
	nak(PSN, WIRE_NAK_SEQUENCE);
	take_again(0, 1);
	ack(PSN + 2);
	sent(0, 3);
	/* request 4 and response 6 are lost */
	post_op(IBV_WR_SEND, 3, 0, 10);
	for (i = 4; i < 8; i++)
		post_op(IBV_WR_RDMA_READ, i, i * 1024, 1024);
	post_op(IBV_WR_SEND, 8, 0, 10);
	take(WIRE_SEND_ONLY, PSN + 3);
	for (i = 4; i < 8; i++)
		take(WIRE_READ_REQUEST, PSN + i);
	take(WIRE_SEND_ONLY, PSN + 8);
	nak(PSN + 4, WIRE_NAK_SEQUENCE);
	sent(3, 4);
	take(WIRE_READ_REQUEST, PSN + 4);
	take_none();
	for (i = 4; i < 8; i++)
		if (i != 6)
			data(WIRE_READ_ONLY, PSN + i, bytes, 1024);
	ack(PSN + 8);
	expect_ok(n.scq, 4, IBV_WC_RDMA_READ);
	expect_ok(n.scq, 5, IBV_WC_RDMA_READ);
	take(WIRE_READ_REQUEST, PSN + 6);
	take_none();
	data(WIRE_READ_ONLY, PSN + 6, bytes, 1024);
	expect_ok(n.scq, 6, IBV_WC_RDMA_READ);
	expect_ok(n.scq, 7, IBV_WC_RDMA_READ);
	sent(8, 9);
	close_peer();
}
END_TEST

/*
 * A NAK that arrives while an earlier response is missing is processed when
 * that has arrived.
 */
START_TEST(nak_behind_response)
{
	static const uint8_t syndrome[] = { WIRE_RNR_NAK | 1,
					    WIRE_NAK_SEQUENCE };
	struct opts o = wire_opts();

	open_to_peer(&o);
	post_op(IBV_WR_RDMA_READ, 1, 0, 2048);
	post_op(IBV_WR_SEND, 2, 0, 10);
	take(WIRE_READ_REQUEST, PSN);
	take(WIRE_SEND_ONLY, PSN + 2);
	respond(1);
	nak(PSN + 2, syndrome[_i]);
	expect_none(n.scq, QUIET_MS);
	ck_assert_uint_eq(take(WIRE_READ_REQUEST, PSN)->reth.length, 1024);
	take_none();
	respond(0);
	expect_ok(n.scq, 1, IBV_WC_RDMA_READ);
	expect_none(n.scq, QUIET_MS);
	take(WIRE_SEND_ONLY, PSN + 2);
	ack(PSN + 2);
	expect_ok(n.scq, 2, IBV_WC_SEND);
	close_peer();
}
END_TEST

/* The responses to two READs are lost, and an ACK behind them arrives. */
START_TEST(two_reads_lost)
{
	struct opts o = wire_opts();

	open_to_peer(&o);
	post_op(IBV_WR_RDMA_READ, 1, 0, 1024);
	post_op(IBV_WR_RDMA_READ, 2, 0, 1024);
	post_op(IBV_WR_SEND, 3, 0, 10);
	take(WIRE_READ_REQUEST, PSN);
	take(WIRE_READ_REQUEST, PSN + 1);
	take(WIRE_SEND_ONLY, PSN + 2);
	ack(PSN + 2);
	expect_none(n.scq, QUIET_MS);
	take(WIRE_READ_REQUEST, PSN);
	respond(0);
	expect_ok(n.scq, 1, IBV_WC_RDMA_READ);
	take(WIRE_READ_REQUEST, PSN + 1);
	respond(1);
	expect_ok(n.scq, 2, IBV_WC_RDMA_READ);
	expect_ok(n.scq, 3, IBV_WC_SEND);
	take_none();
	close_peer();
}
END_TEST

/* Responses arrive in another order, in one batch or several. */
START_TEST(reordered_responses)
{
	static const uint8_t order[][8] = {
		{ 1, 3, 4, 5, 0, 2, 6, 7 },
		{ 7, 6, 5, 4, 3, 2, 1, 0 },
		{ 1, 3, 5, 7, 0, 2, 4, 6 },
	};
	struct opts o = wire_opts();
	int i;

	fill();
	o.size = 1 << 16;
	open_to_peer(&o);
	post_op(IBV_WR_RDMA_READ, 1, 0, 8 << 10);
	take(WIRE_READ_REQUEST, PSN);
	for (i = 0; i < 8; i++) {
		respond(order[_i / 2][i]);
		if (_i % 2 && i < 7)
			expect_none(n.scq, QUIET_MS / 10);
	}
	expect_ok(n.scq, 1, IBV_WC_RDMA_READ);
	ck_assert(has(bytes, 0, 8 << 10));
	post_op(IBV_WR_SEND, 2, 0, 10);
	while (take_any()->bth.opcode == WIRE_READ_REQUEST)
		; /* of those that were late */
	ck_assert_uint_eq(peer.got.packet.bth.psn, PSN + 8);
	ack(PSN + 8);
	expect_ok(n.scq, 2, IBV_WC_SEND);
	close_peer();
}
END_TEST

/* Late responses fill some of the gaps, and others remain. */
START_TEST(late_responses)
{
	static const uint8_t order[] = { 1, 3, 5, 7, 9, 0, 2 };
	struct opts o = wire_opts();
	uint32_t i, last = 0;

	fill();
	o.size = 1 << 16;
	open_to_peer(&o);
	post_op(IBV_WR_RDMA_READ, 1, 0, 32 << 10);
	take(WIRE_READ_REQUEST, PSN);
	for (i = 0; i < sizeof(order); i++)
		respond(order[i]);
	for (i = 10; i < 32; i++)
		respond(i);
	for (i = 4; i < 10; i += 2) {
		expect_none(n.scq, QUIET_MS);
		while (last < i)
			last = take_any()->bth.psn - PSN;
		ck_assert_uint_eq(peer.got.packet.bth.opcode,
				  WIRE_READ_REQUEST);
		ck_assert_uint_eq(last, i);
		respond(i);
	}
	expect_ok(n.scq, 1, IBV_WC_RDMA_READ);
	ck_assert(has(bytes, 0, 32 << 10));
	close_peer();
}
END_TEST

/* No more READ requests are outstanding than max_rd_atomic permits. */
START_TEST(gaps_and_max_rd_atomic)
{
	struct opts o = wire_opts();
	uint32_t i;

	fill();
	o.size = 1 << 16;
	o.max_rd_atomic = 1;
	open_to_peer(&o);
	post_op(IBV_WR_RDMA_READ, 1, 0, 16 << 10);
	take(WIRE_READ_REQUEST, PSN);
	for (i = 1; i < 16; i += 2)
		respond(i);
	for (i = 0; i < 16; i += 2) {
		expect_none(n.scq, QUIET_MS);
		take(WIRE_READ_REQUEST, PSN + i);
		take_none();
		respond(i);
	}
	expect_ok(n.scq, 1, IBV_WC_RDMA_READ);
	ck_assert(has(bytes, 0, 16 << 10));
	close_peer();
}
END_TEST

/* Receive packets until that one, and others that a probe repeats before. */
static void take_until(uint32_t psn)
{
	while (take_any()->bth.psn != psn)
		ck_assert(wire_psn_before(peer.got.packet.bth.psn, psn));
}

/*
 * The last packet, or its ACK, is lost: a probe repeats it before the timeout,
 * which is longer than the test waits (137 s).  Without a retry, none is sent.
 */
START_TEST(probe)
{
	struct opts o = wire_opts();
	uint32_t i;

	o.timeout = 25;
	o.retry_cnt = _i ? 0 : 7;
	open_to_peer(&o);
	for (i = 0; i < 20; i++) {
		post_op(IBV_WR_SEND, i, 0, 10);
		take_until(PSN + i);
		ack(PSN + i);
		sent(i, i + 1);
	}
	post_op(IBV_WR_SEND, 20, 0, 10);
	take_until(PSN + 20);
	if (!_i) {
		take_until(PSN + 20);
	} else {
		expect_none(n.scq, 10 * QUIET_MS);
		take_none();
	}
	ack(PSN + 20);
	sent(20, 21);
	close_peer();
}
END_TEST

int main(void)
{
	Suite *s = suite("wire-requester-loss");

	add(s, lost_read_response);
	add(s, long_read);
	add(s, ack_instead_of_read_response);
	add(s, go_back_n);
	add(s, selective);
	add(s, selective_reads);
	add_loop(s, nak_behind_response, 2);
	add(s, two_reads_lost);
	add_loop(s, reordered_responses, 6);
	add(s, late_responses);
	add(s, gaps_and_max_rd_atomic);
	add_loop(s, probe, 2);
	return run(s);
}

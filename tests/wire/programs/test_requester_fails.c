// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wire requester: NAKs, missing responses, local errors, and packet loss,
 * also by injected faults (URXE_FAULTS) and by the adversary.  The remote
 * host is this test (requester.h).  own-net runs it.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "../../verbs/memory/vanish.h"
#include "requester.h"
#include "wire/psn.h"

/*
 * After an RNR NAK a packet is retransmitted, rnr_retry times.  Then the WR
 * completes with IBV_WC_RNR_RETRY_EXC_ERR.  Progress resets the count.
 */
START_TEST(rnr_retry_exceeded)
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

/*
 * Without a response, all packets are retransmitted retry_cnt times.  Then
 * the first WR completes with IBV_WC_RETRY_EXC_ERR, the others are flushed.
 */
START_TEST(no_response)
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
	/* the timer takes 1, 2 and 4 times the timeout attribute */
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

/* Completion status of each fatal NAK. */
static const struct {
	uint8_t syndrome;
	enum ibv_wc_status status;
} naks[] = {
	{ WIRE_NAK_INVALID, IBV_WC_REM_INV_REQ_ERR },
	{ WIRE_NAK_ACCESS, IBV_WC_REM_ACCESS_ERR },
	{ WIRE_NAK_OPERATION, IBV_WC_REM_OP_ERR },
};

/*
 * A fatal NAK completes the WRs before it successfully, its WR with an error,
 * and flushes the rest.  The QP enters the error state.
 */
START_TEST(fatal_nak)
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

/* With retry_cnt 0 the first sequence NAK ends the QP. */
START_TEST(retry_cnt_0)
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

/* rnr_retry 7 means infinite retries. */
START_TEST(rnr_retry_7)
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

/* A duplicate RNR NAK does not use up a retry. */
START_TEST(duplicate_rnr_nak)
{
	struct opts o = wire_opts();

	o.rnr_retry = 1;
	open_to_peer(&o);
	post_op(IBV_WR_SEND, 1, 0, 8);
	take(WIRE_SEND_ONLY, PSN);
	nak(PSN, WIRE_RNR_NAK | 30); /* 0.3 s */
	nak(PSN, WIRE_RNR_NAK | 30);
	take(WIRE_SEND_ONLY, PSN);
	ack(PSN);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	close_peer();
}
END_TEST

/*
 * First PSNs: also ones near the wraparound and the halves of the PSN space.
 */
static const uint32_t starts[] = { PSN, 0, 1, 0x7ffffe, 0x800001, 0xfffffe };
#define STARTS ((int)(sizeof(starts) / sizeof(*starts)))

/*
 * A WR with a local error completes in order, after the responses to all
 * preceding WRs.  Neither it nor the WRs after it send a packet.
 */
START_TEST(local_error)
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

/*
 * A local operation (IBV_WR_BIND_MW) between two requests completes in order
 * and uses no PSN.
 */
START_TEST(local_operation)
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

/*
 * An MR is deregistered while a WR that uses it is outstanding.  If the WR
 * must be retransmitted, it fails with IBV_WC_LOC_PROT_ERR, but only after
 * the WRs before it are retransmitted, as often as necessary, and
 * acknowledged.
 */
START_TEST(mr_deregistered_before_retransmission)
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

/* ------------------------------------------------------- memory */

#define HOLE 8192u /* offset of the page that is unmapped */

/*
 * WRs whose memory is unmapped: of one packet, of three packets with the
 * second one in the page, and WRs that store the response there.
 */
static const struct hole {
	enum ibv_wr_opcode op;
	size_t off;
	uint32_t len;
	uint8_t response; /* opcode of the response, 0 if none is sent */
} holes[] = {
	{ IBV_WR_SEND, HOLE, 10, 0 },
	{ IBV_WR_SEND, HOLE - 1024, 3000, 0 },
	{ IBV_WR_RDMA_WRITE, HOLE, 10, 0 },
	{ IBV_WR_RDMA_WRITE, HOLE - 1024, 3000, 0 },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, HOLE, 10, 0 },
	{ IBV_WR_RDMA_READ, HOLE, 8, WIRE_READ_ONLY },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, HOLE, 8, WIRE_ATOMIC_ACKNOWLEDGE },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, HOLE, 8, WIRE_ATOMIC_ACKNOWLEDGE },
};

/*
 * The requester's memory is unmapped while it is registered: LOC_PROT_ERR,
 * and later WRs are flushed.
 */
START_TEST(memory_vanishes)
{
	const struct hole *h = &holes[_i];
	struct opts o = wire_opts();
	struct wire_packet p;
	char bytes[8] = { 1 };

	open_to_peer(&o);
	leave_hole((char *)n.buf + HOLE, 4096);
	post_op(IBV_WR_SEND, 1, 0, 10);
	take(WIRE_SEND_ONLY, PSN);
	ack(PSN);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	post_op(h->op, 2, h->off, h->len);
	post_op(IBV_WR_SEND, 3, 0, 10);
	if (h->response) {
		p = answer(h->response, PSN + 1, WIRE_ACK);
		if (h->response == WIRE_READ_ONLY) {
			p.payload = (uint8_t *)bytes;
			p.length = p.known = sizeof(bytes);
		}
		give(&p);
	}
	if (h->len > 1024) /* if the first packet was sent */
		ack(PSN + 1);
	expect(n.scq, 2, IBV_WC_LOC_PROT_ERR);
	expect(n.scq, 3, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_ERR);
	close_peer();
}
END_TEST

/* ------------------------------------------------------- fault injection */

/*
 * A WR that fails by a rule of URXE_FAULTS completes after the responses to
 * the WRs before it.
 */
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

/*
 * A message of six packets, the third of which is lost, duplicated, delayed
 * or damaged.  Check the PSNs that arrive, and the retransmission after a
 * sequence NAK.
 */
START_TEST(packet_faults)
{
	static const struct {
		const char *rule;
		int come[8]; /* undamaged packets that arrive; -1: end */
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
	/* the retransmission, and last the delayed packet */
	ck_assert_uint_eq(take_sound()->bth.psn, PSN + 2);
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

/*
 * The adversary loses, duplicates and delays packets.  The test answers like
 * a responder, with sequence NAKs, and the message arrives completely.
 */
START_TEST(adversary_packet_faults)
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
	Suite *s = suite("wire-requester-fails");
	const int refusals = sizeof(naks) / sizeof(*naks);

	add(s, rnr_retry_exceeded);
	add(s, no_response);
	add_loop(s, fatal_nak, refusals);
	add_loop(s, local_error, STARTS);
	add_loop(s, local_operation, STARTS);
	add(s, mr_deregistered_before_retransmission);
	add(s, retry_cnt_0);
	add(s, rnr_retry_7);
	add(s, duplicate_rnr_nak);
	add_loop(s, memory_vanishes, sizeof(holes) / sizeof(*holes));
	add_loop(s, wr_faults, 3);
	add_loop(s, packet_faults, 4);
	add(s, adversary_packet_faults);
	return run(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Responder: what the stock library and the device make of packets from a
 * remote host, which is this program (other_host.h).  It sends single
 * packets, also ones that no requester sends.  own-net runs it.
 *
 * The test cases of test_responder_{killed,place,poll,read,vanish,xrc}.c are
 * part of this program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "other_host.h"

/* ------------------------------------------------------- PSNs */

/* A SEND of one packet completes a receive and is acknowledged. */
START_TEST(single_packet_send)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	struct ibv_wc wc;

	post_recv(qp, 5, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 9);
	receive_answer(WIRE_ACK, PSN);
	wc = await_completion();
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wr_id, 5);
	ck_assert_uint_eq(wc.byte_len, 9);
	ck_assert_int_eq(memcmp(buf, text, 9), 0);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/*
 * A SEND of several packets completes its receive with the last one.  ACKs
 * may acknowledge several packets.
 */
START_TEST(multi_packet_send)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	const uint32_t n = 3 * MTU + 5;
	struct ibv_wc wc;

	post_recv(qp, 6, 0, n);
	say_send(qp, WIRE_SEND_FIRST, PSN, 0, MTU);
	say_send(qp, WIRE_SEND_MIDDLE, PSN + 1, MTU, MTU);
	receive_acks(PSN + 1);
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

/*
 * A packet after a missing one gets a sequence NAK, only the first time.
 * Packets are buffered until the missing one arrives.
 */
START_TEST(missing_packet_nak)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);

	post_recv(qp, 1, 0, 100);
	post_recv(qp, 2, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN + 1, 0, 4);
	receive_answer(WIRE_NAK_SEQUENCE, PSN);
	say_send(qp, WIRE_SEND_ONLY, PSN + 3, 0, 4);
	silence();
	no_completion();
	/* PSN + 1 was buffered, and PSN + 3 is */
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	receive_answer(WIRE_ACK, PSN + 1);
	receive_answer(WIRE_NAK_SEQUENCE, PSN + 2);
	ck_assert_uint_eq(await_completion().wr_id, 1);
	ck_assert_uint_eq(await_completion().wr_id, 2);
	no_completion();
	/* a copy in the buffer is not used if its packet arrives again */
	post_recv(qp, 3, 0, 100);
	post_recv(qp, 4, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN + 2, 0, 4);
	receive_answer(WIRE_ACK, PSN + 3);
	say_send(qp, WIRE_SEND_ONLY, PSN + 3, 0, 4);
	receive_answer(WIRE_ACK, PSN + 3);
	ck_assert_uint_eq(await_completion().wr_id, 3);
	ck_assert_uint_eq(await_completion().wr_id, 4);
	no_completion();
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* Packets that arrive in order get no NAK because a later one is buffered. */
START_TEST(late_packets)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	uint32_t i;

	for (i = 0; i < 4; i++)
		post_recv(qp, i, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN + 3, 0, 4);
	receive_answer(WIRE_NAK_SEQUENCE, PSN);
	for (i = 0; i < 3; i++) {
		silence();
		no_completion();
		say_send(qp, WIRE_SEND_ONLY, PSN + i, 0, 4);
		receive_answer(WIRE_ACK, PSN + i + (i == 2));
		ck_assert_uint_eq(await_completion().wr_id, i);
	}
	ck_assert_uint_eq(await_completion().wr_id, 3);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/*
 * The buffer does not survive a reset: a packet of the former connection is
 * not executed.
 */
START_TEST(buffered_before_reset)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);

	post_recv(qp, 1, 0, 100);
	post_recv(qp, 2, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN + 1, 0, 4);
	receive_answer(WIRE_NAK_SEQUENCE, PSN);
	ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	connect_qp(qp);
	post_recv(qp, 3, 0, 100);
	post_recv(qp, 4, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	receive_answer(WIRE_ACK, PSN);
	ck_assert_uint_eq(await_completion().wr_id, 3);
	no_completion();
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* A duplicate SEND is acknowledged and not delivered. */
START_TEST(duplicate_send)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);

	post_recv(qp, 1, 0, 100);
	post_recv(qp, 2, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	receive_answer(WIRE_ACK, PSN);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	receive_answer(WIRE_ACK, PSN);
	ck_assert_uint_eq(await_completion().wr_id, 1);
	no_completion();
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/*
 * A SEND without a posted receive gets an RNR NAK with the QP's timer.
 * Packets after it are dropped until it is repeated.
 */
START_TEST(rnr_nak)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);

	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	receive_answer(WIRE_RNR_NAK | TIMER, PSN);
	say_send(qp, WIRE_SEND_ONLY, PSN + 1, 0, 4);
	silence();
	post_recv(qp, 1, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	receive_answer(WIRE_ACK, PSN);
	ck_assert_int_eq(await_completion().status, IBV_WC_SUCCESS);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/*
 * Counters of RNR, sequence and ICRC errors, duplicates, malformed packets
 * and packets for an unknown QP.
 */
START_TEST(error_counters)
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
	receive_answer(WIRE_RNR_NAK | TIMER, PSN);
	post_recv(qp, 1, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	receive_answer(WIRE_ACK, PSN);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	receive_answer(WIRE_ACK, PSN);
	say_send(qp, WIRE_SEND_ONLY, PSN + 2, 0, 4);
	receive_answer(WIRE_NAK_SEQUENCE, PSN + 1);
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

static bool is_cnp(const struct wire_packet *p)
{
	return p->bth.opcode == WIRE_CNP_OPCODE && p->bth.becn &&
	       p->bth.qpn == QPN;
}

/*
 * A packet that is marked CE by ECN is answered with a CNP (IB annex
 * A17.9.3), at most one in 50 us for each QP.
 */
START_TEST(ecn_marked_packets)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	const uint32_t many = 2000;
	uint64_t began, cnps = 0;
	struct wire_packet p = packet(qp->qp_num, WIRE_WRITE_ONLY, PSN);
	uint32_t i;

	say_by(&p, 2); /* ECT(0): not marked */
	receive_answer(WIRE_ACK, PSN);
	p.bth.psn = (PSN + 1) & WIRE_PSN_MASK;
	say_by(&p, 3);
	p = receive_packet();
	ck_assert(is_cnp(&p));
	receive_answer(WIRE_ACK, PSN + 1);
	began = now_ms();
	for (i = 2; i < many; i++) {
		p = packet(qp->qp_num, WIRE_WRITE_ONLY, PSN + i);
		say_by(&p, 3);
		while (receive_within(&p, 0))
			cnps += is_cnp(&p);
	}
	while (receive_within(&p, QUIET_MS))
		cnps += is_cnp(&p);
	ck_assert_uint_le(cnps, (now_ms() - began + 1) * 20 + 1);
	/* a marked response, too */
	p = packet(qp->qp_num, WIRE_READ_ONLY, PSN);
	say_by(&p, 3);
	p = receive_packet();
	ck_assert(is_cnp(&p));
	/* not a marked CNP */
	p = packet(qp->qp_num, WIRE_CNP_OPCODE, 0);
	say_by(&p, 3);
	silence();
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* ------------------------------------------------------- memory */

/*
 * RDMA WRITE and RDMA READ of several packets.  A duplicate READ is executed
 * again.
 */
START_TEST(write_read)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	const uint32_t n = 2 * MTU + 3;
	struct wire_packet p;
	uint32_t i, at = 0, times;

	say_rdma(qp, WIRE_WRITE_FIRST, PSN, mr->rkey, n, MTU);
	say_send(qp, WIRE_WRITE_MIDDLE, PSN + 1, MTU, MTU);
	say_send(qp, WIRE_WRITE_LAST, PSN + 2, 2 * MTU, 3);
	receive_acks(PSN + 2);
	ck_assert_int_eq(memcmp(buf, text, n), 0);
	for (times = 0; times < 2; times++, at = 0) { /* then a duplicate */
		say_rdma(qp, WIRE_READ_REQUEST, PSN + 3, mr->rkey, n, 0);
		for (i = 0; i < 3; i++) {
			p = receive_packet();
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

/* Return a counter of the line "Ip:" in /proc/net/snmp: snmp(7). */
static unsigned long ip_counter(const char *name)
{
	char names[1024], values[1024], *n, *v, *in_names, *in_values;
	FILE *f = fopen("/proc/net/snmp", "re");

	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(names, sizeof(names), f));
	ck_assert_ptr_nonnull(fgets(values, sizeof(values), f));
	fclose(f);
	n = strtok_r(names, " ", &in_names);
	v = strtok_r(values, " ", &in_values);
	while (n && v && strcmp(n, name) != 0) {
		n = strtok_r(NULL, " ", &in_names);
		v = strtok_r(NULL, " ", &in_values);
	}
	ck_assert(n && v);
	return strtoul(v, NULL, 10);
}

/*
 * A router has fragmented a packet.  The kernel reassembles it, and the
 * responder executes it.
 */
START_TEST(fragmented_packet)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	const unsigned long before = ip_counter("ReasmOKs");

	say_in_fragments(true);
	say_rdma(qp, WIRE_WRITE_ONLY, PSN, mr->rkey, MTU, MTU);
	receive_answer(WIRE_ACK, PSN);
	say_in_fragments(false);
	ck_assert_uint_eq(ip_counter("ReasmOKs"), before + 1);
	ck_assert_int_eq(memcmp(buf, text, MTU), 0);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/*
 * A duplicate atomic is answered with the saved result and not executed
 * again.
 */
START_TEST(atomic_again)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	uint64_t *word = (uint64_t *)(void *)buf;
	struct wire_packet p;
	uint32_t i;

	*word = 40;
	for (i = 0; i < 3; i++) {
		say_fetch_add(qp, PSN, 0, 2);
		p = receive_packet();
		ck_assert_uint_eq(p.bth.opcode, WIRE_ATOMIC_ACKNOWLEDGE);
		ck_assert_uint_eq(p.atomicack.original, 40);
		ck_assert_uint_eq(*word, 42);
	}
	say_fetch_add(qp, PSN + 1, 0, 1);
	ck_assert_uint_eq(receive_packet().atomicack.original, 42);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* Send an atomic or a READ. */
static void say_fetch(const struct ibv_qp *qp, uint32_t psn, bool atomic)
{
	if (atomic)
		say_fetch_add(qp, psn, 0, 0);
	else
		say_rdma(qp, WIRE_READ_REQUEST, psn, mr->rkey, 4, 0);
}

/*
 * The response to a duplicate READ or atomic does not acknowledge the SEND
 * after the original: the SEND gets its own ACK.  The packets have one size,
 * so that they arrive as one GSO datagram.
 */
START_TEST(duplicate_does_not_ack_later)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	const uint32_t bytes = _i ? 28 : 16; /* of AtomicETH, RETH */
	uint32_t i, psn = PSN;

	for (i = 0; i < 10; i++)
		post_recv(qp, i, 0, 100);
	for (i = 0; i < 10; i++, psn += 2) {
		say_together(true);
		say_fetch(qp, psn, _i);
		say_send(qp, WIRE_SEND_ONLY, psn + 1, 0, bytes);
		say_fetch(qp, psn, _i);
		say_together(false);
		while (receive_packet().bth.psn != ((psn + 1) & WIRE_PSN_MASK))
			;
		ck_assert_uint_eq(await_completion().wr_id, i);
	}
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/*
 * An ibv_modify_qp() that fails does not disturb a message whose packets are
 * arriving.
 */
START_TEST(failed_modify_keeps_message)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	struct wire_packet p = packet(qp->qp_num, WIRE_SEND_FIRST, PSN);

	post_recv(qp, 1, 0, 2 * MTU);
	post_recv(qp, 2, 0, 2 * MTU);
	with_bytes(&p, text, MTU);
	say(&p);
	receive_answer(WIRE_ACK, PSN);
	ck_assert_int_eq(modify_to_rtr(qp), EINVAL);
	say_send(qp, WIRE_SEND_LAST, PSN + 1, MTU, 9);
	receive_answer(WIRE_ACK, PSN + 1);
	ck_assert_uint_eq(await_completion().wr_id, 1);
	ck_assert_int_eq(memcmp(buf, text, MTU + 9), 0);
	no_completion();
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* ------------------------------------------------------- NAKs */

/*
 * Expect a NAK for the first packet.  The QP is in the error state and does
 * not respond any more.  Destroy it.
 */
static void refused(struct ibv_qp *qp, uint8_t syndrome)
{
	receive_answer(syndrome, PSN);
	ck_assert_int_eq(state_of(qp), IBV_QPS_ERR);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	silence();
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}

/*
 * Invalid requests are NAKed with the right code, and the QP enters the error
 * state.
 */
START_TEST(bad_requests)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);

	say_rdma(qp, WIRE_WRITE_ONLY, PSN, mr->rkey + 1, 4, 4);
	refused(qp, WIRE_NAK_ACCESS);
	qp = make_qp(IBV_QPT_RC);
	say_rdma(qp, WIRE_READ_REQUEST, PSN, mr->rkey, BYTES + 1, 0);
	refused(qp, WIRE_NAK_ACCESS);
	qp = make_qp(IBV_QPT_RC); /* payload shorter than in the RETH */
	say_rdma(qp, WIRE_WRITE_ONLY, PSN, mr->rkey, 8, 4);
	refused(qp, WIRE_NAK_INVALID);
	qp = make_qp(IBV_QPT_RC); /* MIDDLE without a FIRST */
	say_send(qp, WIRE_SEND_MIDDLE, PSN, 0, MTU);
	refused(qp, WIRE_NAK_INVALID);
	qp = make_qp(IBV_QPT_RC); /* FIRST shorter than the MTU */
	post_recv(qp, 1, 0, BYTES);
	say_send(qp, WIRE_SEND_FIRST, PSN, 0, MTU - 4);
	receive_answer(WIRE_NAK_INVALID, PSN);
	ck_assert_int_eq(await_completion().status, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	qp = make_qp(IBV_QPT_RC); /* longer than the receive */
	post_recv(qp, 1, 0, MTU + 1);
	say_send(qp, WIRE_SEND_FIRST, PSN, 0, MTU);
	receive_answer(WIRE_ACK, PSN);
	say_send(qp, WIRE_SEND_LAST, PSN + 1, 0, 2);
	receive_answer(WIRE_NAK_INVALID, PSN + 1);
	ck_assert_int_eq(await_completion().status, IBV_WC_LOC_LEN_ERR);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/*
 * A receive from an SRQ whose message is incomplete is flushed when the QP
 * fails or is moved to the error state.  The SRQ gets its WQE back.
 */
START_TEST(srq_receive_flushed)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1,
						    .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr wr = { .wr_id = 7 }, *bad;
	struct ibv_sge sge = { (uintptr_t)buf, BYTES, mr->lkey };
	struct wire_packet again;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	int i;

	ck_assert_ptr_nonnull(srq);
	wr.sg_list = &sge;
	wr.num_sge = 1;
	for (i = 0; i < 4; i++) { /* the SRQ has one WQE */
		ck_assert_int_eq(ibv_post_srq_recv(srq, &wr, &bad), 0);
		qp = make_qp_of(IBV_QPT_RC, srq);
		say_send(qp, WIRE_SEND_FIRST, PSN, 0, MTU);
		receive_answer(WIRE_ACK, PSN);
		if (i % 2) {
			ck_assert_int_eq(ibv_modify_qp(qp, &a, IBV_QP_STATE),
					 0);
			/* a busy machine repeats the ACK: settle.c */
			receive_within(&again, 0);
		} else {
			say_send(qp, WIRE_SEND_ONLY, PSN + 1, 0, 4);
			receive_answer(WIRE_NAK_INVALID, PSN + 1);
		}
		wc = await_completion();
		ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
		ck_assert_uint_eq(wc.wr_id, 7);
		ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	}
	ck_assert_int_eq(ibv_destroy_srq(srq), 0);
}
END_TEST

/*
 * Class J (IB 9.9.6.3): the key of a SEND WITH INVALIDATE cannot be
 * invalidated. The receive fails and the QP goes to ERR, without an ACK or NAK.
 */
START_TEST(invalidation_fails)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	struct wire_packet p;
	struct ibv_wc wc;

	post_recv(qp, 5, 0, BYTES);
	if (_i) {
		say_send(qp, WIRE_SEND_FIRST, PSN, 0, MTU);
		receive_answer(WIRE_ACK, PSN);
	}
	p = packet(qp->qp_num, _i ? WIRE_SEND_LAST_INV : WIRE_SEND_ONLY_INV,
		   PSN + (uint32_t)_i);
	p.ieth.rkey = 0x7fffff01; /* of no MW */
	with_bytes(&p, text, 9);
	say(&p);
	wc = await_completion();
	ck_assert_int_eq(wc.status, IBV_WC_REM_INV_REQ_ERR);
	ck_assert_uint_eq(wc.wr_id, 5);
	silence();
	ck_assert_int_eq(state_of(qp), IBV_QPS_ERR);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* ------------------------------------------------------- UC */

/*
 * UC: a message with a missing packet is dropped without a response, and the
 * next message gets its receive.
 */
START_TEST(uc_missing_packet)
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

/* ------------------------------------------------------- random packets */

/*
 * Packets with random headers, some of them nearly valid, do not crash the
 * device.  A new QP works afterwards.
 */
START_TEST(random_packets)
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
		p = packet_of_chance(qp->qp_num);
		if (!wire_parts(p.bth.opcode))
			continue;
		say(&p);
		while (ibv_poll_cq(cq, 1, &(struct ibv_wc){ 0 }) > 0)
			;
	}
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	while (receive_within(&p, QUIET_MS))
		;
	while (ibv_poll_cq(cq, 1, &(struct ibv_wc){ 0 }) > 0)
		;
	/* the device still works */
	qp = make_qp(IBV_QPT_RC);
	post_recv(qp, 9, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 9);
	ck_assert_uint_eq(await_completion().wr_id, 9);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* ------------------------------------------------------- socket owner */

/* Send a packet until it is acknowledged, as a requester does. */
static void insist(const struct ibv_qp *qp, uint8_t opcode, uint32_t psn,
		   uint32_t off, uint32_t n)
{
	const uint64_t until = now_ms() + WAIT_MS;
	struct wire_packet p;

	for (;;) {
		ck_assert(now_ms() < until);
		say_send(qp, opcode, psn, off, n);
		if (receive_within(&p, QUIET_MS) &&
		    p.bth.psn == (psn & WIRE_PSN_MASK))
			break;
	}
	ck_assert_uint_eq(p.aeth.syndrome, WIRE_ACK);
	while (receive_within(&p, QUIET_MS))
		;
}

/* Wait until a process is bound to the UDP port at `here`. */
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

pid_t start_owner_with(pid_t *child)
{
	int ready[2];
	pid_t pid, c = 0;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		open_device();
		await_holder();
		if (child)
			c = fork();
		while (child && !c)
			pause();
		if (write(ready[1], &c, sizeof(c)) != sizeof(c))
			abort();
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(ready[0], &c, sizeof(c)), sizeof(c));
	close(ready[0]);
	close(ready[1]);
	if (child)
		*child = c;
	return pid;
}

pid_t start_owner(void)
{
	return start_owner_with(NULL);
}

/*
 * The socket owner is killed in the middle of a message for another process.
 * Its successor receives the rest, because the responder state is in shared
 * memory.
 */
START_TEST(socket_owner_killed)
{
	const uint32_t n = 2 * MTU + 1;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	pid_t pid;

	pid = start_owner();
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

	tcase_set_timeout(t, 0);
	tcase_set_timeout(h, 0);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, single_packet_send);
	tcase_add_test(t, multi_packet_send);
	tcase_add_test(t, missing_packet_nak);
	tcase_add_test(t, late_packets);
	tcase_add_test(t, buffered_before_reset);
	tcase_add_test(t, duplicate_send);
	tcase_add_test(t, rnr_nak);
	tcase_add_test(t, error_counters);
	tcase_add_test(t, ecn_marked_packets);
	tcase_add_test(t, write_read);
	tcase_add_test(t, fragmented_packet);
	tcase_add_test(t, atomic_again);
	tcase_add_loop_test(t, duplicate_does_not_ack_later, 0, 2);
	tcase_add_test(t, failed_modify_keeps_message);
	tcase_add_test(t, bad_requests);
	tcase_add_test(t, srq_receive_flushed);
	tcase_add_loop_test(t, invalidation_fails, 0, 2);
	tcase_add_test(t, uc_missing_packet);
	tcase_add_test(t, random_packets);
	tcase_add_test(h, socket_owner_killed);
	suite_add_tcase(suite, t);
	suite_add_tcase(suite, place_case());
	suite_add_tcase(suite, poll_case());
	suite_add_tcase(suite, read_case());
	suite_add_tcase(suite, xrc_case());
	suite_add_tcase(suite, vanish_case());
	suite_add_tcase(suite, h);
	suite_add_tcase(suite, killed_case());
	return run_cases(srunner_create(suite));
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Responder: RDMA READs so long that the response is sent in portions
 * (provider/wire/responder/read.h).  Part of test_responder.c.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "other_host.h"

#define LONG (1u << 20) /* several portions */
#define ENDLESS (1u << 30)

static uint8_t *bytes; /* ENDLESS bytes, LONG with a pattern */
static struct ibv_mr *all;

/* Register all of bytes. */
static struct ibv_mr *reg_all(void)
{
	struct ibv_mr *m =
		ibv_reg_mr(pd, bytes, ENDLESS,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);

	ck_assert_ptr_nonnull(m);
	return m;
}

static void setup_read(void)
{
	uint32_t i;

	setup();
	bytes = mmap(NULL, ENDLESS, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ck_assert_ptr_ne(bytes, MAP_FAILED);
	for (i = 0; i < LONG; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256 + i / 65536);
	all = reg_all();
}

static void teardown_read(void)
{
	if (all)
		ck_assert_int_eq(ibv_dereg_mr(all), 0);
	munmap(bytes, ENDLESS);
	teardown();
}

/* Send a READ request for n bytes from bytes + off on. */
static void say_read(const struct ibv_qp *qp, uint32_t psn, uint32_t off,
		     uint32_t n)
{
	struct wire_packet p = packet(qp->qp_num, WIRE_READ_REQUEST, psn);

	p.reth.addr = (uintptr_t)bytes + off;
	p.reth.rkey = all->rkey;
	p.reth.length = n;
	say(&p);
}

/* Receive and ignore packets until none arrives for QUIET_MS. */
static void drain(void)
{
	struct wire_packet p;

	while (receive_within(&p, QUIET_MS))
		;
}

/*
 * Receive the responses to @reads READs of LONG bytes each, in order.  The
 * first response starts at @psn.  The test's socket may drop packets.  Then
 * the rest of the current READ is requested again, and all READs after it.
 */
static void await_read(const struct ibv_qp *qp, uint32_t psn, uint32_t reads)
{
	const uint32_t packets = LONG / MTU, end = reads * packets;
	const uint64_t until = now_ms() + WAIT_MS;
	struct wire_packet p;
	uint32_t at = 0, i;

	while (at < end) {
		ck_assert(now_ms() < until);
		if (!receive_within(&p, QUIET_MS)) {
			i = at / packets;
			say_read(qp, psn + at, at % packets * MTU,
				 LONG - at % packets * MTU);
			while (++i < reads)
				say_read(qp, psn + i * packets, 0, LONG);
			continue;
		}
		if (p.bth.psn != ((psn + at) & WIRE_PSN_MASK))
			continue;
		ck_assert_uint_ge(p.bth.opcode, WIRE_READ_FIRST);
		ck_assert_uint_le(p.bth.opcode, WIRE_READ_ONLY);
		ck_assert_uint_eq(p.length, MTU);
		ck_assert_int_eq(
			memcmp(p.payload, bytes + at % packets * MTU, MTU), 0);
		ck_assert_int_eq(at % packets == packets - 1,
				 p.bth.opcode == WIRE_READ_LAST ||
					 p.bth.opcode == WIRE_READ_ONLY);
		at++;
	}
}

/*
 * Several long READs are answered in order.  Duplicates, also from the middle
 * on, are answered.
 */
START_TEST(long_reads)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	const uint32_t packets = LONG / MTU;
	uint32_t i;

	for (i = 0; i < 3; i++)
		say_read(qp, PSN + i * packets, 0, LONG);
	await_read(qp, PSN, 3);
	drain();
	/* duplicates: from the middle on, and all */
	say_read(qp, PSN + 7, 7 * MTU, LONG - 7 * MTU);
	say_read(qp, PSN, 0, LONG);
	await_read(qp, PSN, 1);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/*
 * A SEND that arrives during a READ response is not lost: it is acknowledged,
 * or NAKed and retransmitted.
 */
START_TEST(send_during_read)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	const uint32_t psn = PSN + LONG / MTU;
	const uint64_t until = now_ms() + WAIT_MS;
	struct wire_packet p;

	post_recv(qp, 3, 0, 100);
	say_read(qp, PSN, 0, LONG);
	say_send(qp, WIRE_SEND_ONLY, psn, 0, 4);
	await_read(qp, PSN, 1);
	for (;;) {
		ck_assert(now_ms() < until);
		if (!receive_within(&p, QUIET_MS) ||
		    (p.bth.opcode == WIRE_ACKNOWLEDGE &&
		     p.aeth.syndrome == WIRE_NAK_SEQUENCE)) {
			say_send(qp, WIRE_SEND_ONLY, psn, 0, 4);
			continue;
		}
		if (p.bth.opcode == WIRE_ACKNOWLEDGE &&
		    p.bth.psn == (psn & WIRE_PSN_MASK))
			break;
	}
	ck_assert_uint_eq(p.aeth.syndrome, WIRE_ACK);
	ck_assert_uint_eq(await_completion().wr_id, 3);
	no_completion();
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

static void await_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	const uint64_t until = now_ms() + WAIT_MS;

	while (state_of(qp) != state)
		ck_assert(now_ms() < until);
}

/*
 * Request READs of 4 GiB in total.  Meanwhile the responder serves another
 * QP.  Returns the QP whose READs are in progress; the caller ends them.
 */
static struct ibv_qp *read_without_end(void)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC), *second;
	uint32_t i;

	for (i = 0; i < 4; i++)
		say_read(qp, PSN + i * (ENDLESS / MTU), 0, ENDLESS);
	second = make_qp(IBV_QPT_RC);
	post_recv(second, 5, 0, 100);
	say_send(second, WIRE_SEND_ONLY, PSN, 0, 4);
	ck_assert_uint_eq(await_completion().wr_id, 5);
	ck_assert_int_eq(ibv_destroy_qp(second), 0);
	return qp;
}

/*
 * Deregistering the MR during a READ response ends it with a NAK, and the QP
 * enters the error state.
 */
START_TEST(dereg_during_read)
{
	struct ibv_qp *qp = read_without_end();

	ck_assert_int_eq(ibv_dereg_mr(all), 0);
	all = NULL;
	/* the READs were incomplete, so there was a NAK */
	await_state(qp, IBV_QPS_ERR);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	drain();
}
END_TEST

/*
 * A QP is moved to the error state or to RESET, or destroyed, during a READ
 * response.  The response ends, and a new or reconnected QP works.
 */
START_TEST(qp_ends_during_read)
{
	const enum ibv_qp_state to[] = { IBV_QPS_ERR, IBV_QPS_RESET };
	struct ibv_qp_attr a = { .qp_state = to[_i % 2] };
	struct ibv_qp *qp = read_without_end();

	if (_i < 2)
		ck_assert_int_eq(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	if (_i == 1)
		connect_qp(qp);
	else
		ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	drain(); /* the response ends */
	if (_i != 1)
		qp = make_qp(IBV_QPT_RC);
	post_recv(qp, 6, 0, 100);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, 4);
	receive_answer(WIRE_ACK, PSN);
	ck_assert_uint_eq(await_completion().wr_id, 6);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* A packet is lost, and the one behind it arrives during a READ response. */
START_TEST(gap_during_read)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	const uint32_t psn = PSN + LONG / MTU;
	struct wire_packet p;

	post_recv(qp, 3, 0, 100);
	post_recv(qp, 4, 0, 100);
	say_together(true);
	say_read(qp, PSN, 0, LONG);
	say_send(qp, WIRE_SEND_ONLY, psn + 1, 0, 4);
	say_together(false);
	do
		p = receive_packet();
	while (p.bth.opcode != WIRE_ACKNOWLEDGE);
	ck_assert_uint_eq(p.aeth.syndrome, WIRE_NAK_SEQUENCE);
	ck_assert_uint_eq(p.bth.psn, psn & WIRE_PSN_MASK);
	say_send(qp, WIRE_SEND_ONLY, psn, 0, 4);
	receive_answer(WIRE_ACK, psn + 1);
	ck_assert_uint_eq(await_completion().wr_id, 3);
	ck_assert_uint_eq(await_completion().wr_id, 4);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

TCase *read_case(void)
{
	TCase *t = tcase_create("read");

	tcase_set_timeout(t, 0);
	tcase_add_checked_fixture(t, setup_read, teardown_read);
	tcase_add_test(t, long_reads);
	tcase_add_test(t, gap_during_read);
	tcase_add_test(t, send_during_read);
	tcase_add_test(t, dereg_during_read);
	tcase_add_loop_test(t, qp_ends_during_read, 0, 3);
	return t;
}

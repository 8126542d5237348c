// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Responder: FLUSH and ATOMIC WRITE (IB annex A19).  Part of
 * test_responder.c.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "other_host.h"

/* FETH: placement types, selectivity level; access flags of verbs */
#define GLOBAL 1u
#define PERSISTENT 2u
#define OF_MR 1u
#define FLUSH_GLOBAL (1 << 8)
#define FLUSH_PERSISTENT (1 << 9)

static struct ibv_mr *flushed; /* of buf, allows FLUSH (global) */

static struct ibv_qp *make_flushed_qp(void)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);

	allow(qp, IBV_ACCESS_REMOTE_WRITE | FLUSH_GLOBAL | FLUSH_PERSISTENT);
	return qp;
}

static void setup_place(void)
{
	setup();
	flushed = ibv_reg_mr(pd, buf, BYTES,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     FLUSH_GLOBAL);
	ck_assert_ptr_nonnull(flushed);
}

static void teardown_place(void)
{
	ck_assert_int_eq(ibv_dereg_mr(flushed), 0);
	teardown();
}

static void say_flush(const struct ibv_qp *qp, uint32_t psn, uint8_t type,
		      uint8_t level, uint32_t rkey, uint32_t length)
{
	struct wire_packet p = packet(qp->qp_num, WIRE_FLUSH, psn);

	p.feth.type = type;
	p.feth.level = level;
	p.reth.addr = (uintptr_t)buf;
	p.reth.rkey = rkey;
	p.reth.length = length;
	say(&p);
}

/* Send an ATOMIC WRITE. */
static void say_word(const struct ibv_qp *qp, uint32_t psn, uint32_t off,
		     uint32_t rkey, uint64_t value)
{
	struct wire_packet p = packet(qp->qp_num, WIRE_ATOMIC_WRITE, psn);

	p.reth.addr = (uintptr_t)buf + off;
	p.reth.rkey = rkey;
	p.reth.length = 8;
	with_bytes(&p, &value, 8);
	say(&p);
}

static uint64_t word(uint32_t off)
{
	return atomic_load((_Atomic uint64_t *)(void *)(buf + off));
}

/* Receive the response to both: an RDMA READ response without data. */
static void receive_done(uint32_t psn)
{
	struct wire_packet p = receive_packet();

	ck_assert_uint_eq(p.bth.opcode, WIRE_READ_ONLY);
	ck_assert_uint_eq(p.aeth.syndrome, WIRE_ACK);
	ck_assert_uint_eq(p.bth.psn, psn & WIRE_PSN_MASK);
	ck_assert_uint_eq(p.length, 0);
}

/* Expect a NAK for the first packet and the error state.  Destroy the QP. */
static void refused(struct ibv_qp *qp, uint8_t syndrome)
{
	receive_answer(syndrome, PSN);
	ck_assert_int_eq(state_of(qp), IBV_QPS_ERR);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}

/*
 * ATOMIC WRITE stores 8 bytes.  A duplicate is answered and not executed
 * again.
 */
START_TEST(atomic_writes)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);

	say_word(qp, PSN, 16, mr->rkey, 0x0123456789abcdef);
	receive_done(PSN);
	ck_assert_uint_eq(word(16), 0x0123456789abcdef);
	/* a duplicate */
	*(uint64_t *)(void *)(buf + 16) = 1;
	say_word(qp, PSN, 16, mr->rkey, 0x0123456789abcdef);
	receive_done(PSN);
	ck_assert_uint_eq(word(16), 1);
	say_word(qp, PSN + 1, 16, mr->rkey, 2);
	receive_done(PSN + 1);
	ck_assert_uint_eq(word(16), 2);
	/* its PSN was not that of an ATOMIC WRITE: no response */
	say_fetch_add(qp, PSN + 2, 16, 3);
	ck_assert_uint_eq(receive_packet().atomicack.original, 2);
	say_send(qp, WIRE_WRITE_ONLY, PSN + 3, 0, 0);
	receive_answer(WIRE_ACK, PSN + 3);
	say_word(qp, PSN + 3, 16, mr->rkey, 9);
	silence();
	ck_assert_uint_eq(word(16), 5);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/*
 * An unaligned address or a wrong length is an invalid request; a wrong key
 * or range is an access error.
 */
START_TEST(bad_atomic_writes)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	struct wire_packet p;

	say_word(qp, PSN, 4, mr->rkey, 1);
	refused(qp, WIRE_NAK_INVALID);
	qp = make_qp(IBV_QPT_RC);
	say_word(qp, PSN, 0, mr->rkey + 1, 1);
	refused(qp, WIRE_NAK_ACCESS);
	qp = make_qp(IBV_QPT_RC);
	say_word(qp, PSN, BYTES, mr->rkey, 1);
	refused(qp, WIRE_NAK_ACCESS);
	qp = make_qp(IBV_QPT_RC); /* another length in the RETH */
	p = packet(qp->qp_num, WIRE_ATOMIC_WRITE, PSN);
	p.reth.addr = (uintptr_t)buf;
	p.reth.rkey = mr->rkey;
	p.reth.length = 4;
	with_bytes(&p, text, 8);
	say(&p);
	refused(qp, WIRE_NAK_INVALID);
	ck_assert_uint_eq(word(0), 0);
}
END_TEST

/* FLUSH of a range and of an MR.  A duplicate is answered. */
START_TEST(flushes)
{
	struct ibv_qp *qp = make_flushed_qp();
	uint32_t i;

	say_flush(qp, PSN, GLOBAL, 0, flushed->rkey, BYTES);
	receive_done(PSN);
	for (i = 0; i < 2; i++) { /* of the MR: the range is ignored */
		say_flush(qp, PSN + 1, GLOBAL, OF_MR, flushed->rkey, 2 * BYTES);
		receive_done(PSN + 1);
	}
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/*
 * FLUSH without access rights of the QP, or with undefined placement or
 * selectivity, is an invalid request.  A range or a placement type that the
 * MR does not allow is an access error.
 */
START_TEST(bad_flushes)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC); /* allows none */
	const uint8_t undefined[][2] = {
		{ 0, 0 }, { 4, 0 }, { GLOBAL, 2 }, { 8 | GLOBAL, 0 }
	};
	uint32_t i;

	say_flush(qp, PSN, GLOBAL, 0, flushed->rkey, 8);
	refused(qp, WIRE_NAK_INVALID);
	for (i = 0; i < sizeof(undefined) / sizeof(*undefined); i++) {
		qp = make_flushed_qp();
		say_flush(qp, PSN, undefined[i][0], undefined[i][1],
			  flushed->rkey, 8);
		refused(qp, WIRE_NAK_INVALID);
	}
	qp = make_flushed_qp(); /* longer than the MR */
	say_flush(qp, PSN, GLOBAL, 0, flushed->rkey, BYTES + 1);
	refused(qp, WIRE_NAK_ACCESS);
	qp = make_flushed_qp(); /* the MR does not allow it */
	say_flush(qp, PSN, GLOBAL, 0, mr->rkey, 8);
	refused(qp, WIRE_NAK_ACCESS);
	qp = make_flushed_qp();
	say_flush(qp, PSN, PERSISTENT, OF_MR, flushed->rkey, 8);
	refused(qp, WIRE_NAK_ACCESS);
}
END_TEST

TCase *place_case(void)
{
	TCase *t = tcase_create("place");

	tcase_set_timeout(t, 0);
	tcase_add_checked_fixture(t, setup_place, teardown_place);
	tcase_add_test(t, atomic_writes);
	tcase_add_test(t, bad_atomic_writes);
	tcase_add_test(t, flushes);
	tcase_add_test(t, bad_flushes);
	return t;
}

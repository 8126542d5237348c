// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Responder: an XRC target QP, and SRQs of its XRC domain and of another
 * domain.  Part of test_responder.c.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>

#include "other_host.h"

static struct ibv_xrcd *domain, *other;
static struct ibv_srq *srq;
static uint32_t srqn;

static struct ibv_xrcd *open_domain(void)
{
	struct ibv_xrcd_init_attr a = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *x = ibv_open_xrcd(ctx, &a);

	ck_assert_ptr_nonnull(x);
	return x;
}

/* Create an XRC SRQ with one WQE. */
static struct ibv_srq *make_srq(struct ibv_xrcd *xrcd, uint32_t *number)
{
	struct ibv_srq_init_attr_ex a = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = cq,
	};
	struct ibv_srq *s = ibv_create_srq_ex(ctx, &a);

	ck_assert_ptr_nonnull(s);
	ck_assert_int_eq(ibv_get_srq_num(s, number), 0);
	return s;
}

/* Create an XRC target QP and connect it. */
static struct ibv_qp *make_target(void)
{
	struct ibv_qp_init_attr_ex a = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = domain,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, &a);

	ck_assert_ptr_nonnull(qp);
	connect_qp(qp);
	return qp;
}

static void post_srq(struct ibv_srq *s, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)buf, BYTES, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 },
			   *bad;

	ck_assert_int_eq(ibv_post_srq_recv(s, &wr, &bad), 0);
}

static void setup_xrc(void)
{
	setup();
	domain = open_domain();
	other = open_domain();
	srq = make_srq(domain, &srqn);
}

static void teardown_xrc(void)
{
	ck_assert_int_eq(ibv_destroy_srq(srq), 0);
	ck_assert_int_eq(ibv_close_xrcd(domain), 0);
	ck_assert_int_eq(ibv_close_xrcd(other), 0);
	teardown();
}

/* Return an XRC packet for SRQ @number. */
static struct wire_packet to_srq(const struct ibv_qp *qp, uint8_t opcode,
				 uint32_t psn, uint32_t number)
{
	struct wire_packet p = packet(qp->qp_num, WIRE_XRC | opcode, psn);

	p.xrceth.srqn = number;
	return p;
}

/* Send an XRC packet for SRQ @number with n bytes of text. */
static void say_to(const struct ibv_qp *qp, uint8_t opcode, uint32_t psn,
		   uint32_t number, uint32_t n)
{
	struct wire_packet p = to_srq(qp, opcode, psn, number);

	with_bytes(&p, text, n);
	say(&p);
}

/* Receive an XRC ACK or NAK. */
static void receive_xrc(uint8_t syndrome, uint32_t psn)
{
	struct wire_packet p = receive_packet();

	ck_assert_uint_eq(p.bth.opcode, WIRE_XRC | WIRE_ACKNOWLEDGE);
	ck_assert_uint_eq(p.aeth.syndrome, syndrome);
	ck_assert_uint_eq(p.bth.psn, psn & WIRE_PSN_MASK);
}

static void expect_flushed(uint64_t id)
{
	struct ibv_wc wc = await_completion();

	ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(wc.wr_id, id);
}

/*
 * A SEND completes a receive of the SRQ, or gets an RNR NAK if there is none.
 * RC packets are dropped.
 */
START_TEST(sends)
{
	struct ibv_qp *qp = make_target();
	struct ibv_wc wc;

	say_to(qp, WIRE_SEND_ONLY, PSN, srqn, 4);
	receive_xrc(WIRE_RNR_NAK | TIMER, PSN);
	post_srq(srq, 3);
	say_to(qp, WIRE_SEND_FIRST, PSN, srqn, MTU);
	receive_xrc(WIRE_ACK, PSN);
	no_completion();
	say_to(qp, WIRE_SEND_LAST, PSN + 1, srqn, 5);
	receive_xrc(WIRE_ACK, PSN + 1);
	wc = await_completion();
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wr_id, 3);
	ck_assert_uint_eq(wc.byte_len, MTU + 5);
	ck_assert_uint_eq(wc.qp_num, qp->qp_num);
	ck_assert_uint_eq(wc.src_qp, QPN);
	ck_assert_int_eq(memcmp(buf, text, MTU), 0);
	/* an RC packet is dropped */
	say_send(qp, WIRE_SEND_ONLY, PSN + 2, 0, 4);
	silence();
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* Atomics and READs, and duplicates of them. */
START_TEST(fetches)
{
	struct ibv_qp *qp = make_target();
	struct wire_packet p;
	uint64_t old = 7;
	uint32_t i;

	memcpy(buf, &old, 8);
	p = to_srq(qp, WIRE_FETCH_ADD, PSN, srqn);
	p.atomiceth.addr = (uintptr_t)buf;
	p.atomiceth.rkey = mr->rkey;
	p.atomiceth.swap_add = 1;
	for (i = 0; i < 2; i++) {
		say(&p);
		ck_assert_uint_eq(receive_packet().atomicack.original, 7);
	}
	p = to_srq(qp, WIRE_READ_REQUEST, PSN + 1, srqn);
	p.reth.addr = (uintptr_t)buf;
	p.reth.rkey = mr->rkey;
	p.reth.length = 8;
	for (i = 0; i < 2; i++) {
		struct wire_packet q;

		say(&p);
		q = receive_packet();
		ck_assert_uint_eq(q.bth.opcode, WIRE_XRC | WIRE_READ_ONLY);
		ck_assert_uint_eq(*(const uint8_t *)q.payload, 8);
	}
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* Expect a NAK and the error state.  Destroy the QP. */
static void refused(struct ibv_qp *qp, uint8_t syndrome, uint32_t psn)
{
	receive_xrc(syndrome, psn);
	ck_assert_int_eq(state_of(qp), IBV_QPS_ERR);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}

/*
 * A request for an SRQ that does not exist, or that is not in the target's
 * domain, is NAKed.
 */
START_TEST(bad_srqs)
{
	uint32_t foreign, not_xrc, gone, again, i;
	struct ibv_srq *theirs = make_srq(other, &foreign), *basic;
	struct ibv_qp *qp;

	/* a basic SRQ has no number; it takes the lowest free index */
	ck_assert_int_eq(ibv_destroy_srq(make_srq(domain, &not_xrc)), 0);
	basic = ibv_create_srq(pd,
			       &(struct ibv_srq_init_attr){
				       .attr = { .max_wr = 1, .max_sge = 1 } });
	ck_assert_ptr_nonnull(basic);
	ck_assert_int_eq(ibv_destroy_srq(make_srq(domain, &gone)), 0);
	ck_assert_uint_ne(gone, not_xrc);
	{
		/*
		 * no SRQ, of another domain, not of XRC, destroyed, never
		 * created, of no context
		 */
		const uint32_t bad[] = { 0,    foreign,	 not_xrc,
					 gone, gone + 1, 0xffffff };

		for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			qp = make_target();
			say_to(qp, WIRE_SEND_ONLY, PSN, bad[i], 4);
			refused(qp, WIRE_NAK_INVALID, PSN);
			qp = make_target();
			say_to(qp, WIRE_WRITE_ONLY, PSN, bad[i], 0);
			refused(qp, WIRE_NAK_INVALID, PSN);
		}
	}
	ck_assert_int_eq(ibv_destroy_srq(basic), 0);
	/* so the number was that of the basic SRQ */
	ck_assert_int_eq(ibv_destroy_srq(make_srq(domain, &again)), 0);
	ck_assert_uint_eq(again, not_xrc);
	ck_assert_int_eq(ibv_destroy_srq(theirs), 0);
}
END_TEST

/*
 * All packets of a message must have the same SRQ number.  Otherwise the
 * request is NAKed and the receive of the message is flushed.
 */
START_TEST(srq_changes_in_message)
{
	uint32_t second;
	struct ibv_srq *s = make_srq(domain, &second);
	struct ibv_qp *qp = make_target();

	post_srq(srq, 1);
	post_srq(s, 2);
	say_to(qp, WIRE_SEND_ONLY, PSN, second, 4);
	receive_xrc(WIRE_ACK, PSN);
	ck_assert_uint_eq(await_completion().wr_id, 2);
	say_to(qp, WIRE_SEND_FIRST, PSN + 1, srqn, MTU);
	receive_xrc(WIRE_ACK, PSN + 1);
	say_to(qp, WIRE_SEND_LAST, PSN + 2, second, 4);
	refused(qp, WIRE_NAK_INVALID, PSN + 2);
	expect_flushed(1);
	ck_assert_int_eq(ibv_destroy_srq(s), 0);
}
END_TEST

/*
 * Moving the QP to the error state or to RESET, or destroying it, flushes the
 * receive of an incomplete message.  The SRQ gets its WQE back.
 */
START_TEST(qp_ends_in_message)
{
	const enum ibv_qp_state to[] = { IBV_QPS_ERR, IBV_QPS_RESET };
	struct ibv_qp_attr a = { 0 };
	struct ibv_qp *qp;
	uint32_t i;

	for (i = 0; i < 6; i++) { /* the SRQ has one WQE */
		post_srq(srq, i);
		qp = make_target();
		say_to(qp, WIRE_SEND_FIRST, PSN, srqn, MTU);
		receive_xrc(WIRE_ACK, PSN);
		a.qp_state = to[i % 2];
		if (i % 3)
			ck_assert_int_eq(ibv_modify_qp(qp, &a, IBV_QP_STATE),
					 0);
		ck_assert_int_eq(ibv_destroy_qp(qp), 0);
		expect_flushed(i);
	}
}
END_TEST

/*
 * An SRQ is destroyed in the middle of a message, and a new one gets its
 * number.  The rest of the message is NAKed.
 */
START_TEST(srq_destroyed_in_message)
{
	struct ibv_qp *qp = make_target();
	uint32_t was = srqn, i;

	post_srq(srq, 1);
	say_to(qp, WIRE_SEND_FIRST, PSN, srqn, MTU);
	receive_xrc(WIRE_ACK, PSN);
	ck_assert_int_eq(ibv_destroy_srq(srq), 0);
	srq = make_srq(domain, &srqn);
	ck_assert_uint_eq(srqn, was);
	post_srq(srq, 2);
	say_to(qp, WIRE_SEND_LAST, PSN + 1, srqn, 4);
	refused(qp, WIRE_NAK_INVALID, PSN + 1);
	no_completion();
	for (i = 0; i < 3; i++) { /* the new SRQ works */
		qp = make_target();
		say_to(qp, WIRE_SEND_ONLY, PSN, srqn, 4);
		receive_xrc(WIRE_ACK, PSN);
		ck_assert_uint_eq(await_completion().wr_id, 2);
		ck_assert_int_eq(ibv_destroy_qp(qp), 0);
		post_srq(srq, 2);
	}
}
END_TEST

/* Keys of requests are checked against the protection domain of the SRQ. */
START_TEST(keys_of_srq_pd)
{
	struct ibv_pd *second = ibv_alloc_pd(ctx);
	struct ibv_mr *m =
		ibv_reg_mr(second, buf, BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_qp *qp = make_target();
	struct wire_packet p = to_srq(qp, WIRE_WRITE_ONLY, PSN, srqn);

	ck_assert_ptr_nonnull(m);
	p.reth.addr = (uintptr_t)buf + 100;
	p.reth.rkey = mr->rkey;
	p.reth.length = 9;
	with_bytes(&p, text, 9);
	say(&p);
	receive_xrc(WIRE_ACK, PSN);
	ck_assert_int_eq(memcmp(buf + 100, text, 9), 0);
	p.bth.psn = (PSN + 1) & WIRE_PSN_MASK;
	p.reth.rkey = m->rkey;
	say(&p);
	refused(qp, WIRE_NAK_ACCESS, PSN + 1);
	ck_assert_int_eq(ibv_dereg_mr(m), 0);
	ck_assert_int_eq(ibv_dealloc_pd(second), 0);
}
END_TEST

/*
 * A handle of ibv_open_qp() keeps the target QP alive.  When the last handle
 * is destroyed, the receive of an incomplete message is flushed.
 */
START_TEST(open_qp_keeps_target)
{
	struct ibv_qp_open_attr a = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.xrcd = domain,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp *qp = make_target(), *again;

	a.qp_num = qp->qp_num;
	again = ibv_open_qp(ctx, &a);
	ck_assert_ptr_nonnull(again);
	post_srq(srq, 8);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	say_to(again, WIRE_SEND_FIRST, PSN, srqn, MTU);
	receive_xrc(WIRE_ACK, PSN);
	ck_assert_int_eq(ibv_destroy_qp(again), 0);
	expect_flushed(8);
}
END_TEST

/*
 * Packets with random headers do not crash the device, and no receive is
 * lost.
 */
START_TEST(random_packets)
{
	struct ibv_qp *qp = NULL;
	struct wire_packet p;
	uint32_t i, id = 0;

	for (i = 0; i < 20000; i++) {
		if (!qp || state_of(qp) != IBV_QPS_RTR) {
			if (qp)
				ck_assert_int_eq(ibv_destroy_qp(qp), 0);
			qp = make_target();
		}
		while (ibv_poll_cq(cq, 1, &(struct ibv_wc){ 0 }) > 0)
			id = 0;
		if (!id)
			post_srq(srq, ++id);
		p = packet_of_chance(qp->qp_num);
		p.bth.opcode = WIRE_XRC | (p.bth.opcode & ~WIRE_TRANSPORT);
		p.xrceth.srqn = chance(4) ? srqn : chance(1u << 24);
		if (wire_parts(p.bth.opcode))
			say(&p);
	}
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	while (receive_within(&p, QUIET_MS))
		;
	while (ibv_poll_cq(cq, 1, &(struct ibv_wc){ 0 }) > 0)
		id = 0;
	if (!id) /* else the last receive is still posted */
		post_srq(srq, 1);
	qp = make_target();
	say_to(qp, WIRE_SEND_ONLY, PSN, srqn, 4);
	ck_assert_int_eq(await_completion().status, IBV_WC_SUCCESS);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* A packet behind a missing one is buffered, with the SRQ that it names. */
START_TEST(missing_packet)
{
	struct ibv_qp *qp = make_target();
	struct wire_packet p = to_srq(qp, WIRE_WRITE_ONLY, PSN, srqn);

	post_srq(srq, 5);
	say_to(qp, WIRE_SEND_ONLY, PSN + 1, srqn, 4);
	receive_xrc(WIRE_NAK_SEQUENCE, PSN);
	say(&p);
	receive_xrc(WIRE_ACK, PSN + 1);
	ck_assert_uint_eq(await_completion().wr_id, 5);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

TCase *xrc_case(void)
{
	TCase *t = tcase_create("xrc");

	tcase_set_timeout(t, 0);
	tcase_add_checked_fixture(t, setup_xrc, teardown_xrc);
	tcase_add_test(t, sends);
	tcase_add_test(t, fetches);
	tcase_add_test(t, missing_packet);
	tcase_add_test(t, bad_srqs);
	tcase_add_test(t, srq_changes_in_message);
	tcase_add_test(t, qp_ends_in_message);
	tcase_add_test(t, srq_destroyed_in_message);
	tcase_add_test(t, keys_of_srq_pd);
	tcase_add_test(t, open_qp_keeps_target);
	tcase_add_test(t, random_packets);
	return t;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Unreliable connections (UC): there are no acknowledgements.  A WR succeeds
 * when it was sent; the requester is not notified if the responder drops it.
 */
#include <signal.h>
#include <string.h>

#include "../types.h"

#define W IBV_WR_RDMA_WRITE
#define WI IBV_WR_RDMA_WRITE_WITH_IMM
#define S IBV_WR_SEND
#define SI IBV_WR_SEND_WITH_IMM

#define UC_ENABLE (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define UC_CONNECT \
	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define UC_MORE (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS)

/*
 * UC's part of the state table of the IB specification's Modify QP verb.
 * check_table() adds the transitions to RESET and ERR.
 */
static const struct transition table[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, UC_ENABLE, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, UC_ENABLE },
	{ IBV_QPS_INIT, IBV_QPS_RTR, UC_CONNECT,
	  IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, UC_MORE },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, UC_MORE },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, UC_MORE },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  IBV_QP_AV | IBV_QP_PKEY_INDEX | UC_MORE },
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, UC_MORE },
};

static struct ibv_qp *make_uc(struct node *n)
{
	return make_qp(n, IBV_QPT_UC, NULL);
}

/* The transitions of a UC QP, and their attributes. */
START_TEST(states)
{
	struct opts o = default_opts();
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	check_table(&n, make_uc, table, sizeof(table) / sizeof(*table), 0);
	node_close(&n);
}
END_TEST

static void open_uc(struct duo *d, enum where where)
{
	struct opts o = default_opts();

	duo_open_unconnected(d, where, MEM_HEAP, MEM_HEAP, &o);
	turn(d, IBV_QPT_UC);
}

/* SEND, WRITE and both with immediate data, of several sizes. */
START_TEST(sends_and_writes)
{
	static const uint32_t sizes[] = { 0,  1,    8,	  64,	80,
					  81, 1024, 1025, 4096, 30000 };
	struct ibv_wc wc;
	struct duo d;
	size_t i;

	open_uc(&d, _i);
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint32_t len = sizes[i];

		node_fill(&d.a, 0, len, (unsigned int)i);
		b_recv(&d, 2 * i, 0, 32768);
		b_recv(&d, 2 * i + 1, 0, 0);
		ck_ok(post(&d, i % 2 ? S : SI, i, 0, len, 0, 0));
		expect_ok(d.a.scq, i, IBV_WC_SEND);
		wc = b_wait_recv(&d);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
		ck_assert_uint_eq(wc.wr_id, 2 * i);
		ck_assert_uint_eq(wc.byte_len, len);
		ck_assert_int_eq(wc.wc_flags, i % 2 ? 0 : IBV_WC_WITH_IMM);
		ck_assert(b_has(&d, 0, len, (unsigned int)i));

		ck_ok(post(&d, W, 10, 0, len, 32768, 0));
		expect_ok(d.a.scq, 10, IBV_WC_RDMA_WRITE);
		ck_ok(post(&d, WI, 11, 0, len, 32768, 0));
		expect_ok(d.a.scq, 11, IBV_WC_RDMA_WRITE);
		wc = b_wait_recv(&d);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		ck_assert_uint_eq(wc.wr_id, 2 * i + 1);
		ck_assert_uint_eq(be32toh(wc.imm_data), 0xabcd000b);
		ck_assert_uint_eq(wc.byte_len, len);
		ck_assert(b_has(&d, 32768, len, (unsigned int)i));
	}
	duo_close(&d);
}
END_TEST

/* ibv_post_send refuses operations that need a response (EINVAL). */
START_TEST(refused_operations)
{
	static const int ops[] = {
		IBV_WR_RDMA_READ,	   IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_ATOMIC_CMP_AND_SWP, 14 /* FLUSH */,
		15 /* ATOMIC_WRITE */,	   IBV_WR_TSO
	};
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct duo d;
	size_t i;

	open_uc(&d, SAME_CONTEXT);
	sge = node_sge(&d.a, 0, 8);
	for (i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		wr = rdma_wr(&d, (enum ibv_wr_opcode)ops[i], 1, &sge, 1, 0);
		ck_assert_int_eq(post_wr(d.a.qp, &wr), EINVAL);
	}
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_RTS);
	expect_none(d.a.scq, 1);
	duo_close(&d);
}
END_TEST

/*
 * A message without a receive is dropped: the WR succeeds, and both QPs stay
 * in RTS.
 */
START_TEST(dropped_without_receive)
{
	struct ibv_wc wc;
	struct duo d;

	open_uc(&d, _i);
	node_fill(&d.a, 0, 64, 3);
	ck_ok(post(&d, S, 1, 0, 64, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_ok(post(&d, WI, 2, 0, 64, 512, 0));
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
	b_recv(&d, 7, 0, 64);
	ck_ok(post(&d, SI, 3, 0, 32, 0, 0));
	expect_ok(d.a.scq, 3, IBV_WC_SEND);
	wc = b_wait_recv(&d);
	ck_assert_uint_eq(wc.wr_id, 7);
	ck_assert_uint_eq(wc.byte_len, 32);
	ck_assert_uint_eq(be32toh(wc.imm_data), 0xabcd0003);
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	b_expect_no_async(&d);
	duo_close(&d);
}
END_TEST

/* Set the access flags of b's QP. */
static void do_access(struct node *b, void *arg)
{
	struct ibv_qp_attr attr = { .qp_access_flags = *(unsigned int *)arg };

	ck_ok(ibv_modify_qp(b->qp, &attr, IBV_QP_ACCESS_FLAGS));
}

/*
 * A request with an invalid rkey or range, or that the QP's access flags do
 * not permit, is dropped.  Nothing is written, the WR succeeds, and later
 * requests are executed.
 */
START_TEST(no_naks)
{
	unsigned int access = 0;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct duo d;

	open_uc(&d, _i);
	node_fill(&d.a, 0, 64, 3);
	sge = node_sge(&d.a, 0, 64);
	b_recv(&d, 5, 1024, 64);
	wr = rdma_wr(&d, W, 1, &sge, 1, 0);
	wr.wr.rdma.rkey ^= 0x4200;
	ck_ok(post_wr(d.a.qp, &wr));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	wr = rdma_wr(&d, WI, 2, &sge, 1, 65536 - 63);
	ck_ok(post_wr(d.a.qp, &wr));
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
	on_b(&d, do_access, &access, sizeof(access));
	ck_ok(post(&d, W, 3, 0, 64, 0, 0));
	expect_ok(d.a.scq, 3, IBV_WC_RDMA_WRITE);
	ck_assert(b_all(&d, 0, 1024, 0));
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	b_expect_no_async(&d);
	/* later requests are executed */
	ck_ok(post(&d, S, 4, 0, 64, 0, 0));
	expect_ok(d.a.scq, 4, IBV_WC_SEND);
	ck_assert_uint_eq(b_wait_recv(&d).wr_id, 5);
	ck_assert(b_has(&d, 1024, 64, 3));
	duo_close(&d);
}
END_TEST

/*
 * IB 9.9.3, class D: a message longer than its receive is dropped, and the
 * receive stays posted.
 */
START_TEST(receive_too_short)
{
	struct ibv_wc wc;
	struct duo d;

	open_uc(&d, _i);
	b_recv(&d, 1, 0, 63);
	ck_ok(post(&d, S, 1, 0, 64, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	ck_ok(post(&d, S, 2, 0, 63, 0, 0));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wr_id, 1);
	ck_assert_uint_eq(wc.byte_len, 63);
	duo_close(&d);
}
END_TEST

static void do_bad_recv(struct node *b, void *arg)
{
	struct ibv_sge sge = node_sge(b, 0, 64);
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 },
			   *bad;

	(void)arg;
	sge.lkey ^= 0x4200;
	ck_ok(ibv_post_recv(b->qp, &wr, &bad));
}

/*
 * IB 9.9.3, class A: a receive with an invalid SGE completes with
 * LOC_PROT_ERR and breaks the responder's QP.  The requester is not affected.
 */
START_TEST(receive_with_invalid_sge)
{
	struct ibv_wc wc;
	struct duo d;

	open_uc(&d, _i);
	on_b(&d, do_bad_recv, NULL, 0);
	b_recv(&d, 2, 0, 64);
	ck_ok(post(&d, S, 1, 0, 64, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	ck_assert_uint_eq(wc.wr_id, 1);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(wc.wr_id, 2);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_RTS);
	ck_ok(post(&d, S, 2, 0, 64, 0, 0));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	duo_close(&d);
}
END_TEST

/*
 * A local fault moves the QP to SQE: later sends are flushed, receives are
 * not.  ibv_modify_qp to RTS makes it usable again.
 */
START_TEST(send_queue_error)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct duo d;

	open_uc(&d, _i);
	sge = node_sge(&d.a, 0, 8);
	sge.lkey ^= 0x4200;
	wr = rdma_wr(&d, S, 1, &sge, 1, 0);
	b_recv(&d, 9, 0, 64);
	ck_ok(post_wr(d.a.qp, &wr));
	ck_ok(post(&d, S, 2, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_LOC_PROT_ERR);
	expect(d.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_SQE);
	/* a receive is accepted and not flushed; see receives_in_sqe */
	ck_ok(post_recv(&d.a, 3, 0, 64));
	expect_none(d.a.rcq, 1);
	ck_ok(qp_to(d.a.qp, IBV_QPS_RTS));
	ck_ok(post(&d, S, 4, 0, 8, 0, 0));
	expect_ok(d.a.scq, 4, IBV_WC_SEND);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wr_id, 9);
	(void)o;
	duo_close(&d);
}
END_TEST

static void do_send_back(struct node *b, void *arg)
{
	struct ibv_sge sge = node_sge(b, 0, 8);
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = S,
				  .send_flags = IBV_SEND_SIGNALED };

	(void)arg;
	ck_ok(post_wr(b->qp, &wr));
	expect_ok(b->scq, 1, IBV_WC_SEND);
}

/* A QP in SQE still receives messages. */
START_TEST(receives_in_sqe)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct duo d;

	open_uc(&d, _i);
	sge = node_sge(&d.a, 0, 8);
	sge.lkey ^= 0x4200;
	wr = rdma_wr(&d, W, 1, &sge, 1, 0);
	ck_ok(post_recv(&d.a, 3, 0, 64));
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 1, IBV_WC_LOC_PROT_ERR);
	on_b(&d, do_send_back, NULL, 0);
	expect_ok(d.a.rcq, 3, IBV_WC_RECV);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_SQE);
	duo_close(&d);
}
END_TEST

/* Move b's QP to RESET and INIT. */
static void do_reset(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(qp_to(b->qp, IBV_QPS_RESET));
	type_to(b->qp, IBV_QPS_INIT, &b->o, NULL);
}

/* Move b's QP from INIT to RTR. */
static void do_step(struct node *b, void *arg)
{
	struct addr *peer = arg;

	type_to(b->qp, IBV_QPS_RTR, &b->o, peer);
}

/*
 * A message to a QP in INIT is dropped.  In RTR messages are received,
 * although the PSN has advanced, and the first raises IBV_EVENT_COMM_EST.
 */
START_TEST(peer_not_ready)
{
	struct duo d;

	open_uc(&d, _i);
	on_b(&d, do_reset, NULL, 0);
	b_recv(&d, 1, 0, 64);
	ck_ok(post(&d, S, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	on_b(&d, do_step, &d.at_a, sizeof(d.at_a));
	ck_ok(post(&d, S, 2, 0, 16, 0, 0));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	ck_assert_uint_eq(b_wait_recv(&d).byte_len, 16);
	b_expect_async(&d, IBV_EVENT_COMM_EST);
	b_expect_no_async(&d);
	duo_close(&d);
}
END_TEST

/* WRs to a destroyed QP succeed. */
START_TEST(peer_is_destroyed)
{
	struct duo d;
	int i;

	open_uc(&d, _i);
	ck_ok(post(&d, W, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	b_destroy_qp(&d);
	for (i = 0; i < 5; i++) {
		ck_ok(post(&d, i % 2 ? S : W, 2, 0, 8, 0, 0));
		expect(d.a.scq, 2, IBV_WC_SUCCESS);
	}
	duo_close(&d);
}
END_TEST

/* WRs to a QP of a killed process succeed. */
START_TEST(peer_is_killed)
{
	struct duo d;
	int i;

	open_uc(&d, TWO_PROCESSES);
	b_recv(&d, 1, 0, 4096);
	ck_ok(post(&d, W, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	kill(d.pid, SIGKILL);
	ck_assert_int_eq(reap_child(d.pid), -SIGKILL);
	for (i = 0; i < 30; i++) {
		ck_ok(post(&d, i % 2 ? S : W, 2, 0, 4096, 0, 0));
		expect(d.a.scq, 2, IBV_WC_SUCCESS);
		sleep_ms(10);
	}
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_RTS);
	node_close(&d.a);
}
END_TEST

/* WRs of a QP in SQD are flushed by a transition to ERR. */
START_TEST(flush)
{
	struct duo d;

	open_uc(&d, _i);
	ck_ok(post_recv(&d.a, 1, 0, 8));
	ck_ok(qp_to(d.a.qp, IBV_QPS_SQD));
	ck_ok(post(&d, S, 2, 0, 8, 0, 0));
	expect_none(d.a.scq, 1);
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	expect(d.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect(d.a.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("uc");

	add(s, states);
	add_loop(s, sends_and_writes, WHERE_COUNT);
	add(s, refused_operations);
	add_loop(s, dropped_without_receive, WHERE_COUNT);
	add_loop(s, no_naks, WHERE_COUNT);
	add_loop(s, receive_too_short, WHERE_COUNT);
	add_loop(s, receive_with_invalid_sge, WHERE_COUNT);
	add_loop(s, send_queue_error, WHERE_COUNT);
	add_loop(s, receives_in_sqe, WHERE_COUNT);
	add_loop(s, peer_not_ready, WHERE_COUNT);
	add_loop(s, peer_is_destroyed, WHERE_COUNT);
	add(s, peer_is_killed);
	add_loop(s, flush, WHERE_COUNT);
	return run(s);
}

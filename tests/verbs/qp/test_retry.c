// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Transport retries: a peer that does not respond, and the retry limit. */
#include "../harness.h"

/* The local ACK timeout, 4.096 us * 2^timeout, in ms. */
static double period(const struct opts *o)
{
	return 4.096e-3 * (double)(1u << o->timeout);
}

/* Reasons why b does not respond. */
enum silence {
	B_DESTROYED,
	B_RESET,
	B_INIT,
	B_ERR,
	B_OTHER_PEER, /* connected to another QPN */
	B_OTHER_PSN,
	B_NEVER_WAS, /* no QP has a's destination QPN */
	SILENCES
};

static void do_other_peer(struct node *b, void *arg)
{
	struct addr addr = *(struct addr *)arg;

	addr.qpn ^= 0x10;
	ck_ok(qp_to(b->qp, IBV_QPS_RESET));
	node_connect(b, &addr);
}

static void do_other_psn(struct node *b, void *arg)
{
	struct addr addr = *(struct addr *)arg;

	addr.psn = (addr.psn + 1000) & 0xffffff;
	ck_ok(qp_to(b->qp, IBV_QPS_RESET));
	node_connect(b, &addr);
}

static void do_init(struct node *b, void *arg)
{
	(void)arg;
	qp_to_init(b->qp, &b->o);
}

static void silence_b(struct duo *d, enum silence how)
{
	switch (how) {
	case B_DESTROYED:
		b_destroy_qp(d);
		break;
	case B_INIT:
		b_modify(d, IBV_QPS_RESET);
		on_b(d, do_init, NULL, 0);
		break;
	case B_RESET:
		b_modify(d, IBV_QPS_RESET);
		break;
	case B_ERR:
		b_modify(d, IBV_QPS_ERR);
		break;
	case B_OTHER_PEER:
		on_b(d, do_other_peer, &d->at_a, sizeof(d->at_a));
		break;
	case B_OTHER_PSN:
		on_b(d, do_other_psn, &d->at_a, sizeof(d->at_a));
		break;
	default:
		break;
	}
}

static void post_any(struct duo *d, enum ibv_wr_opcode op, uint64_t wr_id)
{
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
		ck_ok(post_atomic(d, op, wr_id, 0, 0, 1, 0));
	else
		ck_ok(post(d, op, wr_id, 0, 8, 0, 0));
}

static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
					  IBV_WR_RDMA_READ,
					  IBV_WR_ATOMIC_FETCH_AND_ADD };
#define OPS ((int)(sizeof(ops) / sizeof(*ops)))

static struct opts few_retries(void)
{
	struct opts o = default_opts();

	o.timeout = 11; /* 8.4 ms */
	o.retry_cnt = 2;
	return o;
}

/*
 * Return the ms until a WR for a silent b fails.  It must not be less than
 * retry_cnt + 1 timeouts.
 */
static double give_up(int i)
{
	const enum silence how = i / WHERE_COUNT % SILENCES;
	const enum ibv_wr_opcode op = ops[i / WHERE_COUNT / SILENCES];
	struct opts o = few_retries();
	double start, took;
	struct duo d;

	duo_open_unconnected(&d, i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	if (how == B_NEVER_WAS)
		d.at_b.qpn ^= 0x1000;
	duo_connect(&d);
	silence_b(&d, how);
	ck_ok(post_recv(&d.a, 7, 0, 8));
	start = now_ms();
	post_any(&d, op, 1);
	post_any(&d, op, 2);
	expect(d.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	took = now_ms() - start;
	ck_assert_double_gt(took, period(&o) * (o.retry_cnt + 1) * 0.9);
	expect(d.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect(d.a.rcq, 7, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_ERR);
	/* b is unaffected */
	if (how != B_DESTROYED)
		ck_assert(b_all(&d, 0, 64, 0));
	b_expect_no_async(&d);
	duo_close(&d);
	return took;
}

/*
 * A WR for a peer that does not respond fails with RETRY_EXC_ERR after
 * retry_cnt retries; the QP enters ERR and later WRs are flushed.
 */
START_TEST(no_response)
{
	struct opts o = few_retries();

	expect_within(period(&o) * (o.retry_cnt + 1) * 4, give_up, _i);
}
END_TEST

/* Return the ms until a WR fails with retry_cnt 0: one timeout. */
static double give_up_at_once(int i)
{
	struct opts o = default_opts();
	double start, took;
	struct duo d;

	o.timeout = 17; /* 537 ms */
	o.retry_cnt = 0;
	duo_open(&d, i, MEM_HEAP, MEM_HEAP, &o);
	b_modify(&d, IBV_QPS_RESET);
	start = now_ms();
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	took = now_ms() - start;
	ck_assert_double_gt(took, 530);
	duo_close(&d);
	return took;
}

/* With retry_cnt 0 a WR fails after one timeout. */
START_TEST(no_retries)
{
	expect_within(1000, give_up_at_once, _i);
}
END_TEST

/*
 * Timeout 0 means an infinite timeout.  The WRs are flushed when the QP is
 * moved to ERR.
 */
START_TEST(no_timeout)
{
	struct opts o = default_opts();
	struct duo d;

	o.timeout = 0;
	o.retry_cnt = 0;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	b_modify(&d, IBV_QPS_RESET);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, 0));
	expect_none(d.a.scq, 400);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_RTS);
	/* the program ends the wait */
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	expect(d.a.scq, 1, IBV_WC_WR_FLUSH_ERR);
	expect(d.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	duo_close(&d);
}
END_TEST

static void do_connect_late(struct node *b, void *arg)
{
	sleep_ms(60);
	node_connect(b, arg);
}

/*
 * WRs that were posted before the peer is in RTR succeed by retransmission.
 * Programs do not synchronize RTR at one QP with RTS at the other.
 */
START_TEST(peer_ready_late)
{
	const enum ibv_wr_opcode op = ops[_i / WHERE_COUNT];
	struct opts o = default_opts();
	struct duo d;

	o.timeout = 16; /* 0.27 s, 7 retries */
	duo_open_unconnected(&d, _i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	node_connect(&d.a, &d.at_b);
	node_fill(&d.a, 0, 8, 5);
	post_any(&d, op, 1);
	post_any(&d, op, 2);
	on_b(&d, do_connect_late, &d.at_a, sizeof(d.at_a));
	if (op == IBV_WR_SEND) {
		b_recv(&d, 1, 0, 64);
		b_recv(&d, 2, 0, 64);
	}
	expect(d.a.scq, 1, IBV_WC_SUCCESS);
	expect(d.a.scq, 2, IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

/*
 * Retries for a destroyed peer do not delay another QP of the same context.
 */
START_TEST(other_connections_continue)
{
	struct opts o = default_opts();
	struct node extra;
	struct addr addr;
	struct duo d;
	int i;

	o.timeout = 12;
	o.retry_cnt = 1;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	node_open(&extra, d.a.ctx, MEM_HEAP, &o);
	addr = node_addr(&extra);
	node_connect(&extra, &addr);
	b_destroy_qp(&d);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	for (i = 0; i < 1000; i++) {
		struct ibv_sge sge = node_sge(&extra, 0, 8);
		struct ibv_send_wr wr = { .wr_id = i,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_RDMA_WRITE,
					  .send_flags = IBV_SEND_SIGNALED };

		wr.wr.rdma.remote_addr = extra.base + 64;
		wr.wr.rdma.rkey = extra.mr->rkey;
		ck_ok(post_wr(extra.qp, &wr));
		expect_ok(extra.scq, i, IBV_WC_RDMA_WRITE);
	}
	expect(d.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	node_close(&extra);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("retry");

	add_loop(s, no_response, WHERE_COUNT * SILENCES * OPS);
	add_loop(s, no_retries, WHERE_COUNT);
	add_loop(s, no_timeout, WHERE_COUNT);
	add_loop(s, peer_ready_late, WHERE_COUNT * OPS);
	add_loop(s, other_connections_continue, WHERE_COUNT);
	return run(s);
}

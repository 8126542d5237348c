// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The responder does not answer, or has no receive, while WRs are
 * outstanding: they are retried, and no WR in front of them or behind them is
 * lost.
 */
#include <string.h>

#include "with.h"

/*
 * Reset b's QP so that it does not respond, and connect it again.  Its
 * expected PSN is then correct: a has used none.
 */
static void b_is_deaf(struct duo *d)
{
	ck_ok(qp_to(d->b.qp, IBV_QPS_RESET));
}

static void b_receives(struct duo *d)
{
	node_connect(&d->b, &d->at_a);
}

static void open_parked(struct duo *d, const char *options)
{
	struct opts o = default_opts();

	with_options(options);
	o.timeout = 17; /* 0.5 s */
	duo_open(d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
}

/* Poll @n times, which advances the ticks.  Nothing may complete. */
static void visit(struct duo *d, int n)
{
	struct ibv_wc wc;

	for (; n; n--)
		ck_assert_int_eq(ibv_poll_cq(d->b.scq, 1, &wc), 0);
}

static uint64_t *word(struct node *n, size_t off)
{
	return (uint64_t *)(void *)((char *)n->buf + off);
}

/* Post a READ of 8 bytes, which is executed late. */
static void post_read(struct duo *d)
{
	*word(&d->b, 0) = 1;
	*word(&d->a, 0) = 0;
	ck_ok(post(d, IBV_WR_RDMA_READ, 1, 0, 8, 0, 0));
}

static int post_local_inv(struct duo *d, uint64_t wr_id, uint32_t rkey)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .opcode = IBV_WR_LOCAL_INV,
				  .send_flags = IBV_SEND_SIGNALED,
				  .invalidate_rkey = rkey };

	return post_wr(d->a.qp, &wr);
}

#define LATE "overtake=1000,ticks=1000"
#define TICKS 1001

/*
 * A WR that has failed keeps its error while a WR in front of it is retried.
 */
START_TEST(failed_wr_keeps_error)
{
	struct duo d;

	open_parked(&d, LATE);
	post_read(&d);
	ck_ok(post_local_inv(&d, 2, 0x1234));
	visit(&d, 2);
	b_is_deaf(&d);
	visit(&d, TICKS);
	b_receives(&d);
	expect(d.a.scq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(*word(&d.a, 0), 1);
	expect(d.a.scq, 2, IBV_WC_MW_BIND_ERR);
	duo_close(&d);
}
END_TEST

/*
 * A WRITE that overtakes a READ gets no answer and is retried.  The fence of
 * the next WR still holds until the READ is complete.
 */
START_TEST(fence_waits_for_read)
{
	struct duo d;

	open_parked(&d, LATE ",place=1000");
	post_read(&d);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 4096, 4096, 4096, 0));
	*word(&d.a, 64) = 2;
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 3, 64, 8, 0, IBV_SEND_FENCE));
	visit(&d, 2);
	b_is_deaf(&d);
	visit(&d, 2);
	b_receives(&d);
	expect(d.a.scq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(*word(&d.a, 0), 1);
	expect(d.a.scq, 2, IBV_WC_SUCCESS);
	expect(d.a.scq, 3, IBV_WC_SUCCESS);
	ck_assert_uint_eq(*word(&d.b, 0), 2);
	duo_close(&d);
}
END_TEST

/* A WRITE that overtakes a READ and then fails is reported after the READ. */
START_TEST(error_after_passed_read)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct duo d;

	open_parked(&d, LATE ",place=1000");
	mr = ibv_reg_mr(d.b.pd, (char *)d.b.buf + 4096, 4096, ALL_ACCESS);
	ck_nonnull(mr);
	post_read(&d);
	sge = node_sge(&d.a, 4096, 4096);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 2, &sge, 1, 4096);
	wr.wr.rdma.rkey = mr->rkey;
	ck_ok(post_wr(d.a.qp, &wr));
	visit(&d, 2);
	ck_ok(ibv_dereg_mr(mr));
	expect(d.a.scq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_eq(*word(&d.a, 0), 1);
	expect(d.a.scq, 2, IBV_WC_REM_ACCESS_ERR);
	duo_close(&d);
}
END_TEST

static void to_sqd(struct duo *d)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD,
				    .en_sqd_async_notify = 1 };

	ck_ok(ibv_modify_qp(d->a.qp, &attr,
			    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
}

/* SQD while a WR is retried, behind which others have been started. */
START_TEST(sqd_with_parked_wr)
{
	struct ibv_wc wc[3];
	struct duo d;
	int i;

	open_parked(&d, LATE);
	post_read(&d);
	memset((char *)d.a.buf + 4096, 7, 8192);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 4096, 4096, 4096, 0));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 3, 8192, 4096, 8192, 0));
	visit(&d, 4);
	ck_assert(b_all(&d, 4096, 8192, 7));
	b_is_deaf(&d);
	visit(&d, TICKS);
	to_sqd(&d);
	visit(&d, 10);
	expect_no_async(d.a.ctx);
	b_receives(&d);
	expect_async(d.a.ctx, IBV_EVENT_SQ_DRAINED, d.a.qp);
	ck_assert_int_eq(ibv_poll_cq(d.a.scq, 3, wc), 3);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(wc[i].wr_id, i + 1);
		ck_assert_int_eq(wc[i].status, IBV_WC_SUCCESS);
	}
	ck_ok(qp_to(d.a.qp, IBV_QPS_RTS));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 4, 0, 8, 0, 0));
	expect(d.a.scq, 4, IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

/* The same without a receive.  WRs that were not started wait for RTS. */
START_TEST(sqd_without_receive)
{
	struct duo d;
	int i;

	open_parked(&d, _i ? "complete=1000,gather=1000" : "");
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 64, 0, 0));
	visit(&d, 20);
	to_sqd(&d);
	for (i = 2; i < 4; i++)
		ck_ok(post(&d, IBV_WR_SEND, i, 0, 64, 0, 0));
	visit(&d, 20);
	expect_no_async(d.a.ctx);
	for (i = 1; i < 4; i++)
		b_recv(&d, i, 0, 64);
	expect_async(d.a.ctx, IBV_EVENT_SQ_DRAINED, d.a.qp);
	expect(d.a.scq, 1, IBV_WC_SUCCESS);
	expect_none(d.a.scq, QUIET_MS);
	ck_ok(qp_to(d.a.qp, IBV_QPS_RTS));
	for (i = 2; i < 4; i++)
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

/*
 * Polls between ibv_wr_start() and ibv_wr_complete() of a QP advance its
 * ticks.
 */
START_TEST(poll_in_batch_advances_ticks)
{
	struct opts o = default_opts();
	struct ibv_qp_init_attr_ex attr = {
		.cap = o.cap,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp_ex *x;
	struct ibv_sge sge;
	struct duo d;

	with_options("complete=1000,gather=1000");
	duo_open_unconnected(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_destroy_qp(d.a.qp));
	attr.pd = d.a.pd;
	attr.send_cq = d.a.scq;
	attr.recv_cq = d.a.rcq;
	d.a.qp = ibv_create_qp_ex(d.a.ctx, &attr);
	ck_nonnull(d.a.qp);
	d.at_a = node_addr(&d.a);
	duo_connect(&d);
	x = ibv_qp_to_qp_ex(d.a.qp);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0));
	ibv_wr_start(x);
	x->wr_id = 2;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base);
	expect(d.a.scq, 1, IBV_WC_SUCCESS);
	sge = node_sge(&d.a, 0, 64);
	ibv_wr_set_sge(x, sge.lkey, sge.addr, sge.length);
	ck_ok(ibv_wr_complete(x));
	expect(d.a.scq, 2, IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("parked");

	add(s, failed_wr_keeps_error);
	add(s, fence_waits_for_read);
	add(s, error_after_passed_read);
	add(s, sqd_with_parked_wr);
	add_loop(s, sqd_without_receive, 2);
	add(s, poll_in_batch_advances_ticks);
	return run(s);
}

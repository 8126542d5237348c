// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Option "undefined" in failed completions.  For GRHs see test_ud.c. */
#include <string.h>

#include "with.h"

#define FAILURES 16

/* Post a WRITE with an invalid rkey. */
static void write_fails(struct duo *d, uint64_t wr_id)
{
	struct ibv_sge sge = node_sge(&d->a, 0, 8);
	struct ibv_send_wr wr =
		rdma_wr(d, IBV_WR_RDMA_WRITE, wr_id, &sge, 1, 0);
	struct ibv_send_wr *bad;

	wr.wr.rdma.rkey = 0;
	ck_ok(ibv_post_send(d->a.qp, &wr, &bad));
}

/* Wait for a completion of an extended CQ. */
static struct ibv_wc wait_ex(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_wc wc = { 0 };
	unsigned int polls = 0;
	int ret;

	while ((ret = ibv_start_poll(cq, &attr)) == ENOENT)
		breathe(&polls);
	ck_ok(ret);
	wc.wr_id = cq->wr_id;
	wc.status = cq->status;
	wc.opcode = ibv_wc_read_opcode(cq);
	wc.vendor_err = ibv_wc_read_vendor_err(cq);
	wc.qp_num = ibv_wc_read_qp_num(cq);
	ibv_end_poll(cq);
	return wc;
}

/*
 * Return how many of FAILURES failed completions have another opcode than
 * their WR.  wr_id, status, qp_num and vendor_err must be correct.
 */
static int other_opcodes(struct duo *d, struct ibv_cq_ex *ex)
{
	struct ibv_wc wc;
	int i, others = 0;

	for (i = 0; i < FAILURES; i++) {
		write_fails(d, 100 + i);
		wc = ex ? wait_ex(ex) : wait_wc(d->a.scq);
		ck_assert_uint_eq(wc.wr_id, 100 + i);
		ck_assert_int_eq(wc.status, IBV_WC_REM_ACCESS_ERR);
		ck_assert_uint_eq(wc.qp_num, d->a.qp->qp_num);
		ck_assert_uint_eq(wc.vendor_err, IBV_WC_REM_ACCESS_ERR);
		others += wc.opcode != IBV_WC_RDMA_WRITE;
		duo_renew(d);
	}
	return others;
}

/* Replace a's send CQ by an extended one. */
static struct ibv_cq_ex *use_ex(struct duo *d)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 64,
					    .wc_flags = IBV_WC_EX_WITH_QP_NUM };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(d->a.ctx, &attr);

	ck_nonnull(cq);
	ck_ok(ibv_destroy_qp(d->a.qp));
	ck_ok(ibv_destroy_cq(d->a.scq));
	d->a.scq = ibv_cq_ex_to_cq(cq);
	node_make_qp(&d->a);
	duo_renew(d);
	return cq;
}

/*
 * With and without the option, with ibv_poll_cq() and with ibv_start_poll().
 */
START_TEST(failed_completions)
{
	struct opts o = default_opts();
	bool undefined = _i & 1;
	struct ibv_cq_ex *ex = NULL;
	struct duo d;
	int others;

	with_options(undefined ? "undefined=1000" : "undefined=0");
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	if (_i & 2)
		ex = use_ex(&d);
	others = other_opcodes(&d, ex);
	if (undefined)
		ck_assert_int_gt(others, FAILURES / 2);
	else
		ck_assert_int_eq(others, 0);
	/* successful completions are not changed */
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 7, 0, 8, 64, 0));
	if (ex)
		ck_assert_int_eq(wait_ex(ex).opcode, IBV_WC_RDMA_WRITE);
	else
		expect_ok(d.a.scq, 7, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("undefined");

	add_loop(s, failed_completions, 4);
	return run(s);
}

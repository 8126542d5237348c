// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues: ibv_create_cq(3), ibv_poll_cq(3), limits, overruns. */
#include <string.h>

#include "../harness.h"
#include "shared/layout.h"

/* Invalid sizes and completion vectors fail with EINVAL. */
START_TEST(create_errors)
{
	struct ibv_context *ctx = open_device();
	struct ibv_device_attr a;

	ck_ok(ibv_query_device(ctx, &a));
	ck_errno(ibv_create_cq(ctx, 0, NULL, NULL, 0), EINVAL);
	ck_errno(ibv_create_cq(ctx, -1, NULL, NULL, 0), EINVAL);
	ck_errno(ibv_create_cq(ctx, a.max_cqe + 1, NULL, NULL, 0), EINVAL);
	ck_errno(ibv_create_cq(ctx, 1, NULL, NULL, -1), EINVAL);
	ck_errno(ibv_create_cq(ctx, 1, NULL, NULL, ctx->num_comp_vectors),
		 EINVAL);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* ibv_create_cq() refuses a completion channel of another context. */
START_TEST(channel_of_another_context)
{
	struct ibv_context *ctx = open_device(), *other = open_device();
	struct ibv_comp_channel *chan = ibv_create_comp_channel(other);

	ck_nonnull(chan);
	ck_errno(ibv_create_cq(ctx, 1, NULL, chan, 0), EINVAL);
	ck_ok(ibv_destroy_comp_channel(chan));
	ck_ok(ibv_close_device(other));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* A CQ has at least the requested number of entries. */
START_TEST(sizes)
{
	struct ibv_context *ctx = open_device();
	int size[] = { 1, 2, 3, 100, 1023, 1024, 1025, URXE_MAX_CQE };
	struct ibv_cq *cq;
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < sizeof(size) / sizeof(*size); i++) {
		cq = ibv_create_cq(ctx, size[i], &size[i], NULL,
				   (int)i % ctx->num_comp_vectors);
		ck_nonnull(cq);
		ck_assert_int_ge(cq->cqe, size[i]);
		ck_assert_ptr_eq(cq->context, ctx);
		ck_assert_ptr_eq(cq->cq_context, &size[i]);
		ck_assert_ptr_null(cq->channel);
		ck_assert_int_eq(ibv_poll_cq(cq, 1, &wc), 0);
		ck_assert_int_eq(ibv_poll_cq(cq, 0, &wc), 0);
		ck_ok(ibv_destroy_cq(cq));
	}
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/*
 * A context has at most max_cq CQs; one more fails with ENOMEM.  CQs of other
 * contexts do not count.
 */
START_TEST(max_cqs)
{
	static struct ibv_cq *cq[URXE_MAX_CQ];
	struct ibv_context *one = open_device(), *two = open_device();
	struct ibv_device_attr a;
	int i;

	ck_ok(ibv_query_device(one, &a));
	ck_assert_int_eq(a.max_cq, URXE_MAX_CQ - 1);
	for (i = 0; i < a.max_cq; i++) {
		cq[i] = ibv_create_cq(one, 1, NULL, NULL, 0);
		ck_nonnull(cq[i]);
	}
	ck_errno(ibv_create_cq(one, 1, NULL, NULL, 0), ENOMEM);
	cq[i] = ibv_create_cq(two, 1, NULL, NULL, 0);
	ck_nonnull(cq[i]);
	ck_ok(ibv_destroy_cq(cq[4]));
	cq[4] = ibv_create_cq(one, 1, NULL, NULL, 0);
	ck_nonnull(cq[4]);
	for (i = 0; i <= a.max_cq; i++)
		ck_ok(ibv_destroy_cq(cq[i]));
	ck_ok(ibv_close_device(one));
	ck_ok(ibv_close_device(two));
}
END_TEST

/* A CQ that a QP uses cannot be destroyed: EBUSY. */
START_TEST(busy_with_a_qp)
{
	struct opts o = default_opts();
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	ck_assert_int_eq(ibv_destroy_cq(n.scq), EBUSY);
	ck_assert_int_eq(ibv_destroy_cq(n.rcq), EBUSY);
	node_close(&n);
}
END_TEST

/*
 * A QP may use one CQ for sends and receives, and several QPs may share it.
 */
START_TEST(one_cq_for_all)
{
	struct opts o = default_opts();
	struct ibv_cq *rcq;
	struct ibv_wc wc;
	struct duo d;
	int i, seen = 0;

	may_leak();
	duo_open_unconnected(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	/* all four queues use a's send CQ */
	ck_ok(ibv_destroy_qp(d.a.qp));
	ck_ok(ibv_destroy_qp(d.b.qp));
	rcq = d.b.rcq;
	d.a.rcq = d.b.rcq = d.a.scq;
	node_make_qp(&d.a);
	node_make_qp(&d.b);
	d.at_a = node_addr(&d.a);
	d.at_b = node_addr(&d.b);
	duo_connect(&d);
	b_recv(&d, 2, 0, 64);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	for (i = 0; i < 2; i++) {
		wc = wait_wc(d.a.scq);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		if (wc.wr_id == 1) {
			ck_assert_int_eq(wc.opcode, IBV_WC_SEND);
			ck_assert_uint_eq(wc.qp_num, d.a.qp->qp_num);
		} else {
			ck_assert_uint_eq(wc.wr_id, 2);
			ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
			ck_assert_uint_eq(wc.qp_num, d.b.qp->qp_num);
		}
		seen |= 1 << wc.wr_id;
	}
	ck_assert_int_eq(seen, 6);
	expect_none(d.a.scq, QUIET_MS);
	ck_ok(ibv_destroy_qp(d.a.qp));
	ck_ok(ibv_destroy_qp(d.b.qp));
	ck_ok(ibv_destroy_cq(rcq));
}
END_TEST

/*
 * ibv_poll_cq() returns up to num_entries completions, in the order of the
 * WRs.
 */
START_TEST(poll_several)
{
	struct opts o = default_opts();
	struct ibv_wc wc[40];
	double end = now_ms() + WAIT_MS;
	struct duo d;
	int i, n;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 30; i++)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0));
	for (n = 0; n < 30 && now_ms() < end;) {
		i = ibv_poll_cq(d.a.scq, 7, wc + n);
		ck_assert_int_ge(i, 0);
		ck_assert_int_le(i, 7);
		n += i;
	}
	ck_assert_int_eq(n, 30);
	for (i = 0; i < 30; i++) {
		ck_assert_uint_eq(wc[i].wr_id, i);
		ck_assert_int_eq(wc[i].status, IBV_WC_SUCCESS);
	}
	ck_assert_int_eq(ibv_poll_cq(d.a.scq, 40, wc), 0);
	duo_close(&d);
}
END_TEST

/* The ring of a CQ wraps around many times, and is filled to its size. */
START_TEST(ring_wraps)
{
	struct opts o = default_opts();
	struct duo d;
	int i, j, depth;

	o.cqe = 5;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	depth = d.a.scq->cqe < 64 ? d.a.scq->cqe : 64;
	for (i = 0; i < 300; i++) {
		for (j = 0; j <= i % depth; j++)
			ck_ok(post(&d, IBV_WR_RDMA_WRITE, i * 100 + j, 0, 8, 0,
				   0));
		for (j = 0; j <= i % depth; j++)
			expect_ok(d.a.scq, i * 100 + j, IBV_WC_RDMA_WRITE);
	}
	expect_none(d.a.scq, QUIET_MS);
	duo_close(&d);
}
END_TEST

/* An overrun raises IBV_EVENT_CQ_ERR. */
START_TEST(overrun)
{
	struct opts o = default_opts();
	struct ibv_async_event ev;
	struct ibv_wc wc;
	int i, n, cqe;
	struct duo d;

	o.cqe = 4;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	cqe = d.a.scq->cqe;
	for (i = 0; i < 64; i++)
		if (post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0))
			break;
	ck_assert_int_gt(i, cqe);
	ev = wait_async(d.a.ctx, true);
	ck_assert_int_eq(ev.event_type, IBV_EVENT_CQ_ERR);
	ck_assert_ptr_eq(ev.element.cq, d.a.scq);
	/* earlier completions may be returned, at most cqe */
	for (n = i = 0; i < 1000; i++) {
		int ret = ibv_poll_cq(d.a.scq, 1, &wc);

		if (ret < 0)
			break;
		n += ret;
	}
	ck_assert_int_le(n, cqe);
	/* other CQs are not affected */
	ck_assert_int_eq(ibv_poll_cq(d.a.rcq, 1, &wc), 0);
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = NULL;
	duo_close(&d);
}
END_TEST

static void do_send_many(struct node *b, void *arg)
{
	struct ibv_sge sge = node_sge(b, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND };
	int i;

	(void)arg;
	for (i = 0; i < 60; i++)
		ck_ok(post_wr(b->qp, &wr));
}

/* A peer, also in another process, can overrun the receive CQ with SENDs. */
START_TEST(overrun_by_the_peer)
{
	struct opts o = default_opts();
	struct ibv_async_event ev;
	struct duo d;
	int i;

	o.cqe = 4;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 60; i++)
		ck_ok(post_recv(&d.a, i, 0, 64));
	on_b(&d, do_send_many, NULL, 0);
	ev = wait_async(d.a.ctx, true);
	ck_assert_int_eq(ev.event_type, IBV_EVENT_CQ_ERR);
	ck_assert_ptr_eq(ev.element.cq, d.a.rcq);
	duo_close(&d);
}
END_TEST

/* ibv_destroy_qp() removes the QP's completions from its CQs. */
START_TEST(destroyed_qps_leave_no_completions)
{
	struct opts o = default_opts();
	struct duo d;
	int i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 10; i++)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0));
	for (i = 0; i < 10; i++)
		ck_ok(post_recv(&d.a, 100 + i, 0, 8));
	expect_ok(d.a.scq, 0, IBV_WC_RDMA_WRITE);
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = NULL;
	expect_none(d.a.scq, QUIET_MS);
	expect_none(d.a.rcq, QUIET_MS);
	/* the CQs are still usable */
	duo_renew(&d);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 50, 0, 8, 0, 0));
	expect_ok(d.a.scq, 50, IBV_WC_RDMA_WRITE);
	expect_none(d.a.scq, QUIET_MS);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("cq");

	add(s, create_errors);
	add(s, channel_of_another_context);
	add(s, sizes);
	add(s, max_cqs);
	add(s, busy_with_a_qp);
	add(s, one_cq_for_all);
	add_loop(s, poll_several, WHERE_COUNT);
	add_loop(s, ring_wraps, WHERE_COUNT);
	add_loop(s, overrun, WHERE_COUNT);
	add_loop(s, overrun_by_the_peer, WHERE_COUNT);
	add_loop(s, destroyed_qps_leave_no_completions, WHERE_COUNT);
	return run(s);
}

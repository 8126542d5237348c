// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Extended CQs: ibv_create_cq_ex(3), ibv_start_poll() and its family,
 * creation flags, ibv_modify_cq(3) for moderation.
 */
#include <endian.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "../harness.h"

#define TIMESTAMPS                             \
	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static struct ibv_cq_init_attr_ex attr_for(uint64_t wc_flags)
{
	struct ibv_cq_init_attr_ex a = { .cqe = 64, .wc_flags = wc_flags };

	return a;
}

static void refused(struct ibv_context *ctx, struct ibv_cq_init_attr_ex a,
		    int err)
{
	ck_errno(ibv_create_cq_ex(ctx, &a), err);
}

/*
 * Unsupported wc_flags and flags fail with EOPNOTSUPP; invalid sizes, masks,
 * completion vectors and parent domains with EINVAL.
 */
START_TEST(create_errors)
{
	const uint64_t none[] = { IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG,
				  IBV_WC_EX_WITH_TM_INFO, 1ull << 40 };
	struct ibv_context *ctx = open_device();
	struct ibv_cq_init_attr_ex a;
	struct ibv_device_attr dev;
	struct ibv_pd *pd;
	size_t i;

	ck_ok(ibv_query_device(ctx, &dev));
	for (i = 0; i < sizeof(none) / sizeof(*none); i++)
		refused(ctx, attr_for(none[i]), EOPNOTSUPP);
	a = attr_for(0);
	a.cqe = 0;
	refused(ctx, a, EINVAL);
	a.cqe = dev.max_cqe + 1;
	refused(ctx, a, EINVAL);
	a.cqe = UINT32_MAX;
	refused(ctx, a, EINVAL);
	a = attr_for(0);
	a.comp_vector = ctx->num_comp_vectors;
	refused(ctx, a, EINVAL);
	a = attr_for(0);
	a.comp_mask = 1u << 10;
	refused(ctx, a, EINVAL);
	a.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	a.flags = 1u << 10;
	refused(ctx, a, EOPNOTSUPP);
	/* a PD is not a parent domain */
	pd = ibv_alloc_pd(ctx);
	ck_nonnull(pd);
	a = attr_for(0);
	a.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	refused(ctx, a, EINVAL);
	a.parent_domain = pd;
	refused(ctx, a, EINVAL);
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/*
 * Only the accessors that wc_flags requests are set.  flags is ignored if
 * comp_mask does not have its bit.
 */
START_TEST(only_requested_accessors)
{
	struct ibv_context *ctx = open_device();
	struct ibv_cq_init_attr_ex a = attr_for(IBV_WC_EX_WITH_SRC_QP);
	struct ibv_cq_ex *cq;
	int mark;

	a.cq_context = &mark;
	a.flags = 1u << 10; /* ignored: comp_mask is 0 */
	cq = ibv_create_cq_ex(ctx, &a);
	ck_nonnull(cq);
	ck_assert_ptr_eq(ibv_cq_ex_to_cq(cq)->context, ctx);
	ck_assert_ptr_eq(ibv_cq_ex_to_cq(cq)->cq_context, &mark);
	ck_assert_int_ge(ibv_cq_ex_to_cq(cq)->cqe, 64);
	ck_assert(cq->start_poll && cq->next_poll && cq->end_poll);
	ck_assert(cq->read_opcode && cq->read_vendor_err && cq->read_wc_flags);
	ck_assert(cq->read_src_qp != NULL);
	ck_assert(!cq->read_byte_len && !cq->read_imm_data &&
		  !cq->read_qp_num && !cq->read_slid && !cq->read_sl &&
		  !cq->read_dlid_path_bits && !cq->read_completion_ts &&
		  !cq->read_completion_wallclock_ns && !cq->read_cvlan &&
		  !cq->read_flow_tag && !cq->read_tm_info);
	ck_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* Replace the node's CQs, the send CQ by an extended one, and its QP. */
static struct ibv_cq_ex *use_ex(struct node *n, struct ibv_cq_init_attr_ex *a)
{
	struct ibv_cq_ex *cq;

	ck_ok(ibv_destroy_qp(n->qp));
	ck_ok(ibv_destroy_cq(n->scq));
	ck_ok(ibv_destroy_cq(n->rcq));
	cq = ibv_create_cq_ex(n->ctx, a);
	ck_nonnull(cq);
	n->scq = ibv_cq_ex_to_cq(cq);
	n->rcq = ibv_create_cq(n->ctx, n->o.cqe, NULL, NULL, 0);
	ck_nonnull(n->rcq);
	node_make_qp(n);
	return cq;
}

/* The same, but the receive CQ is the extended one. */
static struct ibv_cq_ex *use_ex_for_receives(struct node *n,
					     struct ibv_cq_init_attr_ex *a)
{
	struct ibv_cq_ex *cq = use_ex(n, a);
	struct ibv_cq *other = n->rcq;

	ck_ok(ibv_destroy_qp(n->qp));
	n->rcq = n->scq;
	n->scq = other;
	node_make_qp(n);
	return cq;
}

/* Open a duo in which a's receive CQ (@receives) or send CQ is extended. */
static struct ibv_cq_ex *ex_open(struct duo *d, enum where where, bool receives,
				 struct ibv_cq_init_attr_ex *a)
{
	struct opts o = default_opts();
	struct ibv_cq_ex *cq;

	duo_open_unconnected(d, where, MEM_HEAP, MEM_HEAP, &o);
	cq = receives ? use_ex_for_receives(&d->a, a) : use_ex(&d->a, a);
	d->at_a = node_addr(&d->a);
	duo_connect(d);
	return cq;
}

static void start(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr a = { 0 };
	double end = now_ms() + WAIT_MS;
	int ret;

	do
		ret = ibv_start_poll(cq, &a);
	while (ret == ENOENT && now_ms() < end);
	ck_assert_int_eq(ret, 0);
}

static void empty(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr a = { 0 };

	ck_assert_int_eq(ibv_start_poll(cq, &a), ENOENT);
}

static void do_send_imm(struct node *b, void *arg)
{
	struct ibv_sge sge = node_sge(b, 0, 24);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .imm_data = htobe32(0xfeed),
				  .send_flags = IBV_SEND_SIGNALED };

	*(uint32_t *)arg = b->qp->qp_num;
	ck_ok(post_wr(b->qp, &wr));
	expect_ok(b->scq, 0, IBV_WC_SEND);
}

static uint64_t raw_clock(struct ibv_context *ctx)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	ck_ok(ibv_query_rt_values_ex(ctx, &v));
	ck_assert_uint_eq(v.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	return (uint64_t)v.raw_clock.tv_sec * 1000000000 + v.raw_clock.tv_nsec;
}

/*
 * All accessors return the values of a receive completion.  Timestamps are in
 * ns of the raw clock and of CLOCK_REALTIME.
 */
START_TEST(every_field)
{
	struct ibv_cq_init_attr_ex a =
		attr_for(IBV_WC_STANDARD_FLAGS | TIMESTAMPS);
	uint64_t before, after, ts;
	struct ibv_cq_ex *cq;
	uint32_t sender = 0;
	struct timespec now;
	struct duo d;

	cq = ex_open(&d, _i, true, &a);
	ck_ok(post_recv(&d.a, 41, 0, 64));
	before = raw_clock(d.a.ctx);
	on_b(&d, do_send_imm, &sender, sizeof(sender));
	start(cq);
	after = raw_clock(d.a.ctx);
	ck_assert_uint_eq(cq->wr_id, 41);
	ck_assert_int_eq(cq->status, IBV_WC_SUCCESS);
	ck_assert_int_eq(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	ck_assert_uint_eq(ibv_wc_read_vendor_err(cq), 0);
	ck_assert_uint_eq(ibv_wc_read_byte_len(cq), 24);
	ck_assert_uint_eq(be32toh(ibv_wc_read_imm_data(cq)), 0xfeed);
	ck_assert_uint_eq(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
	ck_assert_uint_eq(ibv_wc_read_qp_num(cq), d.a.qp->qp_num);
	ck_assert_uint_eq(ibv_wc_read_src_qp(cq), sender);
	ck_assert_uint_eq(ibv_wc_read_slid(cq), 0);
	ck_assert_uint_eq(ibv_wc_read_sl(cq), 0);
	ck_assert_uint_eq(ibv_wc_read_dlid_path_bits(cq), 0);
	ts = ibv_wc_read_completion_ts(cq);
	ck_assert_uint_ge(ts, before);
	ck_assert_uint_le(ts, after);
	clock_gettime(CLOCK_REALTIME, &now);
	ts = ibv_wc_read_completion_wallclock_ns(cq);
	ck_assert_uint_le(now.tv_sec - ts / 1000000000, 20);
	ck_assert_int_eq(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	empty(cq);
	duo_close(&d);
}
END_TEST

/*
 * ibv_query_rt_values_ex() returns the raw clock, which counts at
 * hca_core_clock.
 */
START_TEST(clock_values)
{
	struct ibv_context *ctx = open_device();
	struct ibv_device_attr_ex dev = { 0 };
	struct ibv_values_ex v = { .comp_mask = 1u << 7 };
	uint64_t one, two;
	double begin;

	ck_ok(ibv_query_device_ex(ctx, NULL, &dev));
	ck_assert_uint_eq(dev.completion_timestamp_mask, UINT64_MAX);
	ck_assert_uint_eq(dev.hca_core_clock, 1000000); /* kHz */
	ck_assert_int_eq(ibv_query_rt_values_ex(ctx, &v), EINVAL);
	v.comp_mask = 0;
	ck_ok(ibv_query_rt_values_ex(ctx, &v));
	begin = now_ms();
	one = raw_clock(ctx);
	sleep_ms(20);
	two = raw_clock(ctx);
	/* ns, and not more than have passed on the host's clock */
	ck_assert_uint_ge(two - one, 19000000);
	ck_assert_double_le((double)(two - one), (now_ms() - begin + 1) * 1e6);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/*
 * Each completion is returned once and in order, by ibv_start_poll(),
 * ibv_next_poll() and ibv_poll_cq() in any combination.
 */
START_TEST(iterator)
{
	struct ibv_cq_init_attr_ex a = attr_for(IBV_WC_EX_WITH_QP_NUM);
	struct ibv_poll_cq_attr bad = { .comp_mask = 1 };
	struct ibv_cq_ex *cq;
	struct ibv_wc wc;
	struct duo d;
	int i, round;

	cq = ex_open(&d, _i, false, &a);
	empty(cq);
	ck_assert_int_eq(ibv_start_poll(cq, &bad), EINVAL);
	for (round = 0; round < 30; round++) {
		for (i = 0; i < 9; i++)
			ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0));
		/* one; the others stay in the CQ */
		start(cq);
		ck_assert_uint_eq(cq->wr_id, 0);
		ibv_end_poll(cq);
		/* three */
		start(cq);
		for (i = 1; i < 4; i++) {
			ck_assert_uint_eq(cq->wr_id, i);
			ck_assert_int_eq(ibv_wc_read_opcode(cq),
					 IBV_WC_RDMA_WRITE);
			ck_assert_uint_eq(ibv_wc_read_qp_num(cq),
					  d.a.qp->qp_num);
			if (i < 3)
				ck_ok(ibv_next_poll(cq));
		}
		ibv_end_poll(cq);
		/* ibv_poll_cq() on the same CQ */
		ck_assert_int_eq(ibv_poll_cq(d.a.scq, 1, &wc), 1);
		ck_assert_uint_eq(wc.wr_id, 4);
		/* the rest */
		start(cq);
		for (i = 5; i < 9; i++) {
			ck_assert_uint_eq(cq->wr_id, i);
			ck_assert_int_eq(ibv_next_poll(cq), i < 8 ? 0 : ENOENT);
		}
		ck_assert_int_eq(ibv_next_poll(cq), ENOENT);
		ibv_end_poll(cq);
		empty(cq);
		ck_assert_int_eq(ibv_poll_cq(d.a.scq, 1, &wc), 0);
	}
	duo_close(&d);
}
END_TEST

/*
 * The status of failed and flushed WRs, and the vendor error of the failed
 * one.
 */
START_TEST(failed_completions)
{
	struct ibv_cq_init_attr_ex a = attr_for(0);
	struct ibv_cq_ex *cq;
	struct duo d;

	cq = ex_open(&d, _i, false, &a);
	d.at_b.rkey ^= 0x5500;
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, 0));
	start(cq);
	ck_assert_uint_eq(cq->wr_id, 1);
	ck_assert_int_eq(cq->status, IBV_WC_REM_ACCESS_ERR);
	ck_assert_uint_ne(ibv_wc_read_vendor_err(cq), 0);
	ck_ok(ibv_next_poll(cq));
	ck_assert_uint_eq(cq->wr_id, 2);
	ck_assert_int_eq(cq->status, IBV_WC_WR_FLUSH_ERR);
	ibv_end_poll(cq);
	duo_close(&d);
}
END_TEST

/*
 * Verbs that may be called between ibv_start_poll() and ibv_end_poll().
 * ibv_resize_cq() fails with EBUSY. ibv_destroy_qp() removes the QP's
 * completions from the batch.
 */
START_TEST(inside_a_batch)
{
	struct ibv_cq_init_attr_ex a = attr_for(0);
	struct ibv_cq_ex *cq;
	struct ibv_mr *mr;
	struct duo d;
	int i;

	a.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	a.flags = _i / WHERE_COUNT ? IBV_CREATE_CQ_ATTR_SINGLE_THREADED : 0;
	cq = ex_open(&d, _i % WHERE_COUNT, false, &a);
	for (i = 0; i < 4; i++)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0));
	start(cq);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 4, 0, 8, 0, 0));
	mr = ibv_reg_mr(d.a.pd, d.a.buf, 100, 0);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_next_poll(cq));
	ck_assert_uint_eq(cq->wr_id, 1);
	ck_assert_int_eq(ibv_resize_cq(d.a.scq, 100), EBUSY);
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = NULL;
	ck_assert_int_eq(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	duo_close(&d);
}
END_TEST

/* A CQ with IBV_CREATE_CQ_ATTR_SINGLE_THREADED works as others. */
START_TEST(single_threaded)
{
	struct ibv_cq_init_attr_ex a = attr_for(0);
	uint32_t sender;
	struct ibv_wc wc;
	struct duo d;
	int i;

	a.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	a.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	ex_open(&d, _i, true, &a);
	for (i = 0; i < 200; i++) {
		ck_ok(post_recv(&d.a, i, 0, 64));
		on_b(&d, do_send_imm, &sender, sizeof(sender));
		wc = expect_ok(d.a.rcq, i, IBV_WC_RECV);
		ck_assert_uint_eq(wc.src_qp, sender);
	}
	duo_close(&d);
}
END_TEST

struct churn {
	struct ibv_pd *pd;
	void *buf;
	_Atomic bool stop;
};

static void *dereg_for_ever(void *arg)
{
	struct churn *c = arg;
	struct ibv_mr *mr;

	while (!c->stop) {
		mr = ibv_reg_mr(c->pd, c->buf, 4096, IBV_ACCESS_LOCAL_WRITE);
		ck_nonnull(mr);
		ck_ok(ibv_dereg_mr(mr));
	}
	return NULL;
}

/*
 * ibv_dereg_mr() in another thread may have to wait for a thread that polls,
 * even for a single-threaded CQ.  It does not wait for the end of a batch,
 * because the poller may call ibv_dereg_mr() within the batch, which may wait
 * for the other thread.
 */
START_TEST(dereg_during_batch)
{
	struct ibv_cq_init_attr_ex a = attr_for(0);
	struct churn c = { .stop = false };
	struct ibv_cq_ex *cq;
	struct ibv_mr *mr;
	pthread_t t;
	struct duo d;
	int i, n;

	a.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	a.flags = _i / WHERE_COUNT ? IBV_CREATE_CQ_ATTR_SINGLE_THREADED : 0;
	cq = ex_open(&d, _i % WHERE_COUNT, false, &a);
	c.pd = d.a.pd;
	c.buf = d.a.buf;
	pthread_create(&t, NULL, dereg_for_ever, &c);
	for (i = 0; i < 500; i++) {
		for (n = 0; n < 8; n++)
			ck_ok(post(&d, IBV_WR_RDMA_WRITE, 8 * i + n, 0, 8, 0,
				   0));
		start(cq);
		for (n = 0;; n++) {
			ck_assert_uint_eq(cq->wr_id, 8 * i + n);
			if (n == 4) {
				mr = ibv_reg_mr(d.a.pd, d.a.buf, 100, 0);
				ck_nonnull(mr);
				ck_ok(ibv_dereg_mr(mr));
			}
			if (n == 7)
				break;
			ck_ok(ibv_next_poll(cq));
		}
		ibv_end_poll(cq);
	}
	c.stop = true;
	pthread_join(t, NULL);
	duo_close(&d);
}
END_TEST

/*
 * With IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, completions that do not fit into
 * the CQ are lost, without an event or error.
 */
START_TEST(overrun_ignored)
{
	struct ibv_cq_init_attr_ex a = attr_for(0);
	struct ibv_wc wc[16];
	struct duo d;
	int i;

	a.cqe = 8;
	a.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	a.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	ex_open(&d, _i, false, &a);
	for (i = 0; i < 30; i++)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0));
	expect_no_async(d.a.ctx);
	ck_assert_int_eq(ibv_poll_cq(d.a.scq, 16, wc), 8);
	for (i = 0; i < 8; i++)
		ck_assert_uint_eq(wc[i].wr_id, i);
	/* the CQ works, and lost completions free their WQE slots */
	for (i = 0; i < 100; i++) {
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 100 + i, 0, 8, 0, 0));
		expect_ok(d.a.scq, 100 + i, IBV_WC_RDMA_WRITE);
	}
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_RTS);
	duo_close(&d);
}
END_TEST

/*
 * Completions that were read in a batch free their entries before
 * ibv_end_poll(): a full CQ takes new completions.
 */
START_TEST(batch_frees_entries)
{
	struct ibv_cq_init_attr_ex a = attr_for(0);
	struct ibv_cq_ex *cq;
	struct duo d;
	int i, n;

	a.cqe = 8;
	cq = ex_open(&d, _i, false, &a);
	n = ibv_cq_ex_to_cq(cq)->cqe;
	for (i = 0; i < n; i++)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0));
	start(cq);
	for (i = 0; i < 3 * n; i++) {
		ck_assert_uint_eq(cq->wr_id, i);
		ck_assert_int_eq(cq->status, IBV_WC_SUCCESS);
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, n + i, 0, 8, 0, 0));
		ck_ok(ibv_next_poll(cq));
	}
	ibv_end_poll(cq);
	expect_no_async(d.a.ctx);
	duo_close(&d);
}
END_TEST

/* ---------------------------------------------------------------- events */

static void wait_event(struct ibv_comp_channel *chan, struct ibv_cq *cq)
{
	struct ibv_cq *got;
	void *context;

	ck_assert(fd_readable(chan->fd, WAIT_MS));
	ck_ok(ibv_get_cq_event(chan, &got, &context));
	ck_assert_ptr_eq(got, cq);
	ibv_ack_cq_events(got, 1);
}

static void do_send_n(struct node *b, void *arg)
{
	uint32_t qpn;
	int i;

	for (i = 0; i < *(int *)arg; i++)
		do_send_imm(b, &qpn);
}

static void b_send_n(struct duo *d, int n)
{
	on_b(d, do_send_n, &n, sizeof(n));
}

static void receive_n(struct duo *d, int n)
{
	while (n--)
		ck_ok(post_recv(&d->a, 7, 0, 64));
}

static void poll_n(struct duo *d, int n)
{
	while (n--)
		expect_ok(d->a.rcq, 7, IBV_WC_RECV);
}

/* An extended CQ raises events. */
START_TEST(completion_event)
{
	struct ibv_cq_init_attr_ex a = attr_for(0);
	struct opts o = default_opts();
	struct ibv_comp_channel *chan;
	struct ibv_cq_ex *cq;
	struct duo d;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	chan = ibv_create_comp_channel(d.a.ctx);
	ck_nonnull(chan);
	a.channel = chan;
	cq = use_ex_for_receives(&d.a, &a);
	d.a.chan = chan;
	d.at_a = node_addr(&d.a);
	duo_connect(&d);
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	receive_n(&d, 1);
	b_send_n(&d, 1);
	wait_event(chan, d.a.rcq);
	start(cq);
	ck_assert_uint_eq(cq->wr_id, 7);
	ibv_end_poll(cq);
	duo_close(&d);
}
END_TEST

static int moderate(struct ibv_cq *cq, uint16_t count, uint16_t us)
{
	struct ibv_modify_cq_attr a = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					.moderate = { count, us } };

	return ibv_modify_cq(cq, &a);
}

/*
 * The completion of a WR that is posted within a batch raises an event if it
 * is not polled in that batch.
 */
START_TEST(posted_in_a_batch)
{
	struct ibv_cq_init_attr_ex a = attr_for(0);
	struct opts o = default_opts();
	struct ibv_comp_channel *chan;
	struct ibv_cq_ex *cq;
	struct duo d;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	chan = ibv_create_comp_channel(d.a.ctx);
	ck_nonnull(chan);
	a.channel = chan;
	cq = use_ex(&d.a, &a);
	d.a.chan = chan;
	d.at_a = node_addr(&d.a);
	duo_connect(&d);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	ck_ok(ibv_req_notify_cq(d.a.scq, 0));
	wait_event(chan, d.a.scq);
	ck_ok(ibv_req_notify_cq(d.a.scq, 0));
	start(cq);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, 0));
	ck_ok(ibv_next_poll(cq));
	ck_assert_uint_eq(cq->wr_id, 2);
	ibv_end_poll(cq);
	ck_assert(!fd_readable(chan->fd, QUIET_MS));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 3, 0, 8, 0, 0));
	wait_event(chan, d.a.scq);
	ck_ok(ibv_req_notify_cq(d.a.scq, 0));
	start(cq);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 4, 0, 8, 0, 0));
	ck_assert(!fd_readable(chan->fd, QUIET_MS));
	ibv_end_poll(cq);
	wait_event(chan, d.a.scq);
	expect(d.a.scq, 4, IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST
/*
 * Moderation holds events back until a number of completions (count) or a
 * time in us (period) is reached.
 */
START_TEST(moderation)
{
	struct ibv_modify_cq_attr bad = { .attr_mask = 2 };
	struct opts o = default_opts();
	struct ibv_device_attr_ex dev = { 0 };
	double then;
	struct duo d;

	o.channel = true;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_query_device_ex(d.a.ctx, NULL, &dev));
	ck_assert_uint_eq(dev.cq_mod_caps.max_cq_count, UINT16_MAX);
	ck_assert_uint_eq(dev.cq_mod_caps.max_cq_period, UINT16_MAX);
	ck_assert_int_eq(ibv_modify_cq(d.a.rcq, &bad), EINVAL);
	receive_n(&d, 30);
	/* count only: the fourth completion, however late */
	ck_ok(moderate(d.a.rcq, 4, 0));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	b_send_n(&d, 3);
	ck_assert(!fd_readable(d.a.chan->fd, QUIET_MS));
	b_send_n(&d, 1);
	wait_event(d.a.chan, d.a.rcq);
	poll_n(&d, 4);
	/* or the period after the first completion */
	ck_ok(moderate(d.a.rcq, 100, 60000));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	then = now_ms();
	b_send_n(&d, 1);
	wait_event(d.a.chan, d.a.rcq);
	ck_assert(now_ms() - then > 50);
	poll_n(&d, 1);
	/* period only */
	ck_ok(moderate(d.a.rcq, 0, 20000));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	then = now_ms();
	b_send_n(&d, 5);
	wait_event(d.a.chan, d.a.rcq);
	ck_assert(now_ms() - then > 15);
	poll_n(&d, 5);
	/* turning it off raises a held back event immediately */
	ck_ok(moderate(d.a.rcq, 100, 0));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	b_send_n(&d, 1);
	ck_assert(!fd_readable(d.a.chan->fd, QUIET_MS));
	ck_ok(moderate(d.a.rcq, 0, 0));
	wait_event(d.a.chan, d.a.rcq);
	poll_n(&d, 1);
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	b_send_n(&d, 1);
	wait_event(d.a.chan, d.a.rcq);
	poll_n(&d, 1);
	/* completions before arming count */
	ck_ok(moderate(d.a.rcq, 2, 0));
	b_send_n(&d, 1);
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	ck_assert(!fd_readable(d.a.chan->fd, QUIET_MS));
	b_send_n(&d, 1);
	wait_event(d.a.chan, d.a.rcq);
	poll_n(&d, 2);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("cq_ex");

	add(s, create_errors);
	add(s, only_requested_accessors);
	add_loop(s, every_field, WHERE_COUNT);
	add(s, clock_values);
	add_loop(s, iterator, WHERE_COUNT);
	add_loop(s, failed_completions, WHERE_COUNT);
	add_loop(s, inside_a_batch, 2 * WHERE_COUNT);
	add_loop(s, single_threaded, WHERE_COUNT);
	add_loop(s, dereg_during_batch, 2 * WHERE_COUNT);
	add_loop(s, overrun_ignored, WHERE_COUNT);
	add_loop(s, batch_frees_entries, WHERE_COUNT);
	add_loop(s, completion_event, WHERE_COUNT);
	add_loop(s, posted_in_a_batch, WHERE_COUNT);
	add_loop(s, moderation, WHERE_COUNT);
	return run(s);
}

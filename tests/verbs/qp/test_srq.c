// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues: creation, posting, messages, limit events, resizing,
 * and QPs of several types on one SRQ.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shared/layout.h"
#include "../types.h"

/*
 * ibv_create_srq and ibv_create_srq_ex refuse sizes out of range, unknown
 * types (EOPNOTSUPP) and mask bits, and a PD of another context.
 */
START_TEST(create_errors)
{
	static const struct {
		uint32_t max_wr, max_sge;
		int err;
	} bad[] = {
		{ 0, 1, EINVAL },
		{ URXE_MAX_SRQ_WR + 1, 1, EINVAL },
		{ UINT32_MAX, 1, EINVAL },
		{ 1, URXE_MAX_SGE + 1, EINVAL },
	};
	struct ibv_srq_init_attr_ex ex = { 0 };
	struct opts o = default_opts();
	struct ibv_context *other;
	struct node n;
	size_t i;

	node_open(&n, NULL, MEM_HEAP, &o);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct ibv_srq_init_attr init = {
			.attr = { .max_wr = bad[i].max_wr,
				  .max_sge = bad[i].max_sge }
		};

		ck_errno(ibv_create_srq(n.pd, &init), bad[i].err);
	}
	ex.attr.max_wr = 1;
	ex.attr.max_sge = 1;
	ck_errno(ibv_create_srq_ex(n.ctx, &ex), EINVAL); /* no PD */
	ex.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
	ex.pd = n.pd;
	ex.srq_type = IBV_SRQT_TM;
	ck_errno(ibv_create_srq_ex(n.ctx, &ex), EOPNOTSUPP);
	ex.srq_type = (enum ibv_srq_type)7;
	ck_errno(ibv_create_srq_ex(n.ctx, &ex), EOPNOTSUPP);
	ex.srq_type = IBV_SRQT_BASIC;
	ex.comp_mask |= 1u << 20;
	ck_assert_ptr_null(ibv_create_srq_ex(n.ctx, &ex));
	ex.comp_mask &= ~(1u << 20);
	/*
	 * A PD of another context.  With a CQ in the mask, libibverbs leaves
	 * the check to the device.
	 */
	other = open_device();
	ex.comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	ex.cq = n.rcq;
	ck_errno(ibv_create_srq_ex(other, &ex), EINVAL);
	ex.attr.srq_limit = 2; /* above max_wr */
	ck_errno(ibv_create_srq_ex(n.ctx, &ex), EINVAL);
	ck_ok(ibv_close_device(other));
	node_close(&n);
}
END_TEST

/*
 * An SRQ has the attributes that it was created with.  It keeps its PD busy,
 * a QP keeps the SRQ busy, and the QP has no receive queue of its own.
 */
START_TEST(attributes_and_use_counts)
{
	struct opts o = default_opts();
	struct ibv_srq_attr attr;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	uint32_t number;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	srq = make_srq(&n, 100, 3);
	ck_assert_ptr_eq(srq->pd, n.pd);
	ck_assert_ptr_eq(srq->context, n.ctx);
	ck_assert_ptr_eq(srq->srq_context, &n);
	ck_ok(ibv_query_srq(srq, &attr));
	ck_assert_uint_eq(attr.max_wr, 100);
	ck_assert_uint_eq(attr.max_sge, 3);
	ck_assert_uint_eq(attr.srq_limit, 0);
	/* only XRC SRQs have a number */
	ck_assert_int_eq(ibv_get_srq_num(srq, &number), EINVAL);
	ck_assert_int_eq(ibv_dealloc_pd(n.pd), EBUSY);
	qp = make_qp(&n, IBV_QPT_RC, srq);
	ck_assert_ptr_eq(qp->srq, srq);
	ck_assert_int_eq(ibv_destroy_srq(srq), EBUSY);
	/* the QP has no receive queue of its own */
	qp_to_init(qp, &o);
	ck_assert_int_eq(qp_recv(qp, &n, 1, 0, 8), EINVAL);
	ck_ok(ibv_destroy_qp(qp));
	ck_ok(ibv_destroy_srq(srq));
	node_close(&n);
}
END_TEST

/*
 * ibv_create_srq(3): srq_limit is irrelevant.  ibv_create_qp(3): with an SRQ,
 * max_recv_wr and max_recv_sge are ignored.
 */
START_TEST(ignored_attributes)
{
	struct ibv_srq_init_attr srq_init = { .attr = { 4, 1, 1000 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct opts o = default_opts();
	struct ibv_srq_attr attr;
	struct ibv_qp *qp;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	init.srq = ibv_create_srq(n.pd, &srq_init);
	ck_nonnull(init.srq);
	ck_ok(ibv_query_srq(init.srq, &attr));
	ck_assert_uint_eq(attr.srq_limit, 0);
	init.send_cq = n.scq;
	init.recv_cq = n.rcq;
	init.cap = (struct ibv_qp_cap){ 1, UINT32_MAX, 1, UINT32_MAX, 0 };
	qp = ibv_create_qp(n.pd, &init);
	ck_nonnull(qp);
	ck_assert_uint_eq(init.cap.max_recv_wr, 0);
	ck_assert_uint_eq(init.cap.max_recv_sge, 0);
	ck_ok(ibv_destroy_qp(qp));
	ck_ok(ibv_destroy_srq(init.srq));
	node_close(&n);
}
END_TEST

/*
 * max_srq SRQs can be created, one more is ENOMEM.  An SRQ may have
 * max_srq_wr WRs of max_srq_sge SGEs.
 */
START_TEST(max_srqs)
{
	static struct ibv_srq *srq[URXE_MAX_SRQ];
	struct ibv_srq_init_attr init = { .attr = { 1, 1, 0 } };
	struct opts o = default_opts();
	struct ibv_device_attr dev;
	struct node n;
	int i;

	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(ibv_query_device(n.ctx, &dev));
	for (i = 0; i < dev.max_srq; i++) {
		srq[i] = ibv_create_srq(n.pd, &init);
		ck_assert_msg(srq[i] != NULL, "SRQ %d: %s", i, strerror(errno));
	}
	ck_errno(ibv_create_srq(n.pd, &init), ENOMEM);
	for (i = 0; i < dev.max_srq; i++)
		ck_ok(ibv_destroy_srq(srq[i]));
	init.attr.max_wr = (uint32_t)dev.max_srq_wr;
	init.attr.max_sge = (uint32_t)dev.max_srq_sge;
	srq[0] = ibv_create_srq(n.pd, &init);
	ck_nonnull(srq[0]);
	ck_ok(ibv_destroy_srq(srq[0]));
	node_close(&n);
}
END_TEST

/*
 * ibv_post_srq_recv posts the WRs before an invalid one (EINVAL) and returns
 * it in bad_wr.  A full SRQ is ENOMEM.
 */
START_TEST(post_errors)
{
	struct opts o = default_opts();
	struct ibv_recv_wr wr[3], *bad;
	struct ibv_sge sge[3];
	struct ibv_srq *srq;
	struct node n;
	int i;

	node_open(&n, NULL, MEM_HEAP, &o);
	srq = make_srq(&n, 5, 2);
	for (i = 0; i < 3; i++)
		sge[i] = node_sge(&n, 0, 8);
	memset(wr, 0, sizeof(wr));
	wr[0].next = &wr[1];
	wr[1].next = &wr[2];
	wr[1].sg_list = sge;
	wr[1].num_sge = 3; /* one too many */
	ck_assert_int_eq(ibv_post_srq_recv(srq, wr, &bad), EINVAL);
	ck_assert_ptr_eq(bad, &wr[1]);
	wr[1].num_sge = -1;
	ck_assert_int_eq(ibv_post_srq_recv(srq, &wr[1], &bad), EINVAL);
	for (i = 0; i < 4; i++) /* wr[0] is posted: 4 more fit */
		ck_ok(post_srq(srq, &n, 1, 0, 8));
	ck_assert_int_eq(post_srq(srq, &n, 1, 0, 8), ENOMEM);
	ck_ok(ibv_destroy_srq(srq));
	node_close(&n);
}
END_TEST

/* ------------------------------------------------------------- messages */

/*
 * Arguments of do_srq(): b's QP uses an SRQ, b->user.  a's QP is an ordinary
 * RC QP.
 */
struct srq_arg {
	uint32_t max_wr;
	struct addr addr;
};

static void do_srq(struct node *b, void *arg)
{
	struct srq_arg *a = arg;

	b->user = make_srq(b, a->max_wr, 4);
	ck_ok(ibv_destroy_qp(b->qp));
	b->qp = make_qp(b, IBV_QPT_RC, b->user);
	a->addr = node_addr(b);
}

static void do_connect(struct node *b, void *arg)
{
	node_connect(b, arg);
}

static void open_srq_opts(struct duo *d, enum where where, uint32_t max_wr,
			  const struct opts *o)
{
	struct srq_arg a = { .max_wr = max_wr };

	duo_open_unconnected(d, where, MEM_HEAP, MEM_HEAP, o);
	on_b(d, do_srq, &a, sizeof(a));
	d->at_b = a.addr;
	on_b(d, do_connect, &d->at_a, sizeof(d->at_a));
	node_connect(&d->a, &d->at_b);
}

static void open_srq(struct duo *d, enum where where, uint32_t max_wr)
{
	struct opts o = default_opts();

	open_srq_opts(d, where, max_wr, &o);
}

static void do_close(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(ibv_destroy_qp(b->qp));
	b->qp = NULL;
	ck_ok(ibv_destroy_srq(b->user));
}

static void close_srq(struct duo *d)
{
	on_b(d, do_close, NULL, 0);
	duo_close(d);
}

struct post_arg {
	uint64_t wr_id;
	size_t off;
	uint32_t len;
	int ret;
};

static void do_post(struct node *b, void *arg)
{
	struct post_arg *p = arg;

	p->ret = post_srq(b->user, b, p->wr_id, p->off, p->len);
}

static int b_post(struct duo *d, uint64_t wr_id, size_t off, uint32_t len)
{
	struct post_arg p = { wr_id, off, len, 0 };

	on_b(d, do_post, &p, sizeof(p));
	return p.ret;
}

/*
 * SEND_WITH_IMM of sizes around the limit for data that is stored in the CQE,
 * and WRITE_WITH_IMM.
 */
START_TEST(sizes)
{
	static const uint32_t len[] = { 0,  1,	8,  63,	 64,   65,
					79, 80, 81, 128, 4097, 20000 };
	struct ibv_wc wc;
	struct duo d;
	size_t i;

	open_srq(&d, _i, 8);
	for (i = 0; i < sizeof(len) / sizeof(*len); i++) {
		node_fill(&d.a, 0, len[i], (unsigned int)i);
		ck_ok(b_post(&d, i, 0, len[i]));
		ck_ok(post(&d, IBV_WR_SEND_WITH_IMM, i, 0, len[i], 0, 0));
		expect_ok(d.a.scq, i, IBV_WC_SEND);
		wc = b_wait_recv(&d);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.wr_id, i);
		ck_assert_uint_eq(wc.byte_len, len[i]);
		ck_assert_uint_eq(wc.qp_num, d.at_b.qpn);
		ck_assert_int_eq(wc.wc_flags, IBV_WC_WITH_IMM);
		ck_assert(b_has(&d, 0, len[i], (unsigned int)i));
		ck_assert(b_all(&d, 30000, 64, 0));
	}
	/* WRITE_WITH_IMM */
	ck_ok(b_post(&d, 99, 0, 0));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE_WITH_IMM, 9, 0, 32, 40000, 0));
	expect_ok(d.a.scq, 9, IBV_WC_RDMA_WRITE);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	ck_assert_uint_eq(wc.wr_id, 99);
	close_srq(&d);
}
END_TEST

/*
 * The slot of a receive is reused only after its completion was polled.
 * Until then the SRQ is full, and the data that is placed at the poll is that
 * of the right message.
 */
START_TEST(slot_reused_after_poll)
{
	struct ibv_wc wc;
	struct duo d;
	int lap, i;

	open_srq(&d, _i, 4);
	for (lap = 0; lap < 50; lap++) {
		for (i = 0; i < 4; i++) {
			node_fill(&d.a, 0, 40, (unsigned int)(lap * 4 + i));
			ck_ok(b_post(&d, (uint64_t)i, 64 * (size_t)i, 64));
			ck_ok(post(&d, IBV_WR_SEND, 1, 0, 40, 0, 0));
			expect_ok(d.a.scq, 1, IBV_WC_SEND);
		}
		/* completed but not polled: the SRQ is full */
		ck_assert_int_eq(b_post(&d, 9, 0, 64), ENOMEM);
		for (i = 0; i < 4; i++) {
			wc = b_wait_recv(&d);
			ck_assert_uint_eq(wc.wr_id, i);
			ck_assert(b_has(&d, 64 * (size_t)i, 40,
					(unsigned int)(lap * 4 + i)));
		}
	}
	close_srq(&d);
}
END_TEST

/*
 * A SEND to an empty SRQ waits until a receive is posted, or fails after
 * rnr_retry retries.
 */
START_TEST(rnr_and_wake_up)
{
	struct opts o = default_opts();
	struct duo d;

	open_srq(&d, _i, 8);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect_none(d.a.scq, QUIET_MS);
	ck_ok(b_post(&d, 1, 0, 64));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	close_srq(&d);
	o.rnr_retry = 2;
	open_srq_opts(&d, _i, 8, &o);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	close_srq(&d);
}
END_TEST

/*
 * A receive of an SRQ that is too short or whose SGE is invalid has the same
 * errors as one of a QP's own receive queue.
 */
START_TEST(receive_faults)
{
	struct ibv_wc wc;
	struct duo d;

	open_srq(&d, _i, 8);
	ck_ok(b_post(&d, 1, 0, 7));
	ck_ok(b_post(&d, 2, 0, 64));
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_LOC_LEN_ERR);
	ck_assert_uint_eq(wc.wr_id, 1);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	close_srq(&d);
	open_srq(&d, _i, 8);
	ck_ok(b_post(&d, 1, 65536 - 7, 8)); /* beyond the end of the MR */
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_REM_OP_ERR);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_LOC_PROT_ERR);
	close_srq(&d);
}
END_TEST

static void do_write_protect(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(mprotect(b->buf, 4096, PROT_READ));
}

/*
 * If data of the CQE cannot be placed at the poll, the receive completes with
 * LOC_PROT_ERR and its QP enters ERR (IBV_EVENT_QP_LAST_WQE_REACHED).  The
 * SRQ is not affected.
 */
START_TEST(small_send_into_invalid_buffer)
{
	struct ibv_wc wc;
	struct duo d;

	if (getenv("URXE_ADVERSARY"))
		return; /* no data is stored in CQEs then */
	if (under_adoption())
		return; /* nor with adoption */
	open_srq(&d, TWO_PROCESSES, 8);
	ck_ok(b_post(&d, 1, 100, 64));
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	on_b(&d, do_write_protect, NULL, 0);
	wc = b_wait_recv(&d);
	ck_assert_uint_eq(wc.wr_id, 1);
	ck_assert_int_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	b_expect_async(&d, IBV_EVENT_QP_LAST_WQE_REACHED);
	close_srq(&d);
}
END_TEST

/* ---------------------------------------------------------------- limit */

static void do_modify(struct node *b, void *arg)
{
	struct ibv_srq_attr attr = { .srq_limit = *(uint32_t *)arg };

	ck_ok(ibv_modify_srq(b->user, &attr, IBV_SRQ_LIMIT));
}

static void do_limit_event(struct node *b, void *arg)
{
	struct ibv_srq_attr attr;

	(void)arg;
	expect_async(b->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, b->user);
	expect_no_async(b->ctx);
	ck_ok(ibv_query_srq(b->user, &attr));
	ck_assert_uint_eq(attr.srq_limit, 0);
}

/*
 * IBV_EVENT_SRQ_LIMIT_REACHED is raised once, when fewer than srq_limit
 * receives are left.  That disarms the limit.
 */
START_TEST(limit_event)
{
	uint32_t limit = 3;
	struct duo d;
	int i, round;

	open_srq(&d, _i, 8);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 5; i++)
			ck_ok(b_post(&d, 1, 0, 64));
		on_b(&d, do_modify, &limit, sizeof(limit));
		for (i = 0; i < 2; i++) {
			ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
			expect_ok(d.a.scq, 1, IBV_WC_SEND);
		}
		b_expect_no_async(&d); /* 3 receives are left */
		for (i = 0; i < 3; i++) {
			ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
			expect_ok(d.a.scq, 1, IBV_WC_SEND);
		}
		/* one event, after which the limit is 0 */
		on_b(&d, do_limit_event, NULL, 0);
		for (i = 0; i < 5; i++)
			ck_assert_int_eq(b_wait_recv(&d).status,
					 IBV_WC_SUCCESS);
	}
	close_srq(&d);
}
END_TEST

/*
 * ibv_modify_srq refuses limits above the size, sizes below the limit or the
 * number of posted receives, and sizes out of range.  It changes nothing
 * then.
 */
START_TEST(modify_errors)
{
	struct ibv_srq_attr attr = { .max_wr = 16, .srq_limit = 17 };
	struct opts o = default_opts();
	struct ibv_srq *srq;
	struct node n;
	int i;

	node_open(&n, NULL, MEM_HEAP, &o);
	srq = make_srq(&n, 8, 1);
	ck_assert_int_eq(ibv_modify_srq(srq, &attr, 1 << 5), EINVAL);
	/* one invalid attribute: the other is not changed either */
	ck_assert_int_eq(
		ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR),
		EINVAL);
	ck_ok(ibv_query_srq(srq, &attr));
	ck_assert_uint_eq(attr.max_wr, 8);
	ck_assert_uint_eq(attr.srq_limit, 0);
	attr.srq_limit = 9;
	ck_assert_int_eq(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	attr.srq_limit = 7;
	ck_ok(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	attr.max_wr = 6; /* below the armed limit */
	ck_assert_int_eq(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.srq_limit = 0;
	ck_ok(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	attr.max_wr = 0;
	ck_assert_int_eq(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = URXE_MAX_SRQ_WR + 1;
	ck_assert_int_eq(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	/* not below the number of posted receives */
	for (i = 0; i < 5; i++)
		ck_ok(post_srq(srq, &n, 1, 0, 8));
	attr.max_wr = 4;
	ck_assert_int_eq(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = 5;
	ck_ok(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	ck_assert_int_eq(post_srq(srq, &n, 1, 0, 8), ENOMEM);
	ck_ok(ibv_modify_srq(srq, &attr, 0));
	ck_ok(ibv_destroy_srq(srq));
	node_close(&n);
}
END_TEST

/* ----------------------------------------------------------------- QPs */

/*
 * 64 QPs, RC and UC, receive from one SRQ in the order in which receives were
 * posted.
 */
START_TEST(many_qps)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC };
	struct ibv_qp *to[64], *from[64];
	struct opts o = default_opts();
	struct ibv_srq *srq;
	struct addr addr;
	struct ibv_wc wc;
	struct node n;
	int i;

	node_open(&n, NULL, MEM_HEAP, &o);
	srq = make_srq(&n, 64, 1);
	for (i = 0; i < 64; i++) {
		to[i] = make_qp(&n, types[i % 2], srq);
		from[i] = make_qp(&n, types[i % 2], NULL);
		addr = node_addr(&n);
		addr.qpn = from[i]->qp_num;
		type_connect(to[i], &o, &addr);
		addr.qpn = to[i]->qp_num;
		type_connect(from[i], &o, &addr);
		ck_ok(post_srq(srq, &n, (uint64_t)i, 64 * (size_t)i, 64));
	}
	for (i = 63; i >= 0; i--) {
		struct ibv_sge sge = node_sge(&n, 8192, 8);
		struct ibv_send_wr wr = { .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_SEND,
					  .send_flags = IBV_SEND_SIGNALED };

		ck_ok(post_wr(from[i], &wr));
		expect_ok(n.scq, 0, IBV_WC_SEND);
	}
	for (i = 0; i < 64; i++) {
		wc = wait_wc(n.rcq);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.wr_id, i); /* order of posting */
		ck_assert_uint_eq(wc.qp_num, to[63 - i]->qp_num);
	}
	for (i = 0; i < 64; i++) {
		ck_ok(ibv_destroy_qp(from[i]));
		ck_ok(ibv_destroy_qp(to[i]));
	}
	ck_ok(ibv_destroy_srq(srq));
	node_close(&n);
}
END_TEST

/*
 * IB 9.9.3, class E: a datagram that is longer than its receive completes the
 * receive with LOC_LEN_ERR and breaks the QP, since an SRQ cannot keep the
 * receive.
 */
START_TEST(too_short_for_a_datagram)
{
	struct opts o = default_opts();
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	srq = make_srq(&n, 8, 1);
	ck_ok(ibv_destroy_qp(n.qp));
	n.qp = make_qp(&n, IBV_QPT_UD, NULL);
	qp = make_qp(&n, IBV_QPT_UD, srq);
	type_connect(n.qp, &o, NULL);
	type_connect(qp, &o, NULL);
	ah = make_ah(&n, &n.gid, 0);
	ck_ok(post_srq(srq, &n, 1, 0, 256));
	ck_ok(post_srq(srq, &n, 2, 0, 41));
	node_fill(&n, 1024, 100, 1);
	ck_ok(post_ud(&n, 1, 1024, 100, ah, qp->qp_num, QKEY));
	expect_ok(n.scq, 1, IBV_WC_SEND);
	wc = expect_ok(n.rcq, 1, IBV_WC_RECV);
	ck_assert_uint_eq(wc.byte_len, 140);
	ck_assert(node_has(&n, 40, 100, 1));
	ck_ok(post_ud(&n, 2, 1024, 2, ah, qp->qp_num, QKEY));
	expect_ok(n.scq, 2, IBV_WC_SEND);
	expect(n.rcq, 2, IBV_WC_LOC_LEN_ERR);
	ck_assert_int_eq(qp_state(qp), IBV_QPS_ERR);
	ck_ok(ibv_destroy_ah(ah));
	ck_ok(ibv_destroy_qp(qp));
	ck_ok(ibv_destroy_srq(srq));
	node_close(&n);
}
END_TEST

/*
 * ibv_destroy_qp removes the QP's unpolled completions.  Their receives are
 * consumed: their slots can be posted again.
 */
START_TEST(destroyed_qp)
{
	struct duo d;

	open_srq(&d, SAME_PROCESS, 4);
	ck_ok(b_post(&d, 1, 0, 64));
	ck_ok(b_post(&d, 2, 0, 64));
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	b_destroy_qp(&d);
	expect_none(d.b.rcq, 1);
	ck_ok(b_post(&d, 3, 0, 64));
	ck_ok(b_post(&d, 4, 0, 64));
	ck_ok(b_post(&d, 5, 0, 64));
	ck_assert_int_eq(b_post(&d, 6, 0, 64), ENOMEM);
	ck_ok(ibv_destroy_srq(d.b.user));
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("srq");

	add(s, create_errors);
	add(s, attributes_and_use_counts);
	add(s, ignored_attributes);
	add(s, max_srqs);
	add(s, post_errors);
	add_loop(s, sizes, WHERE_COUNT);
	add_loop(s, slot_reused_after_poll, WHERE_COUNT);
	add_loop(s, rnr_and_wake_up, WHERE_COUNT);
	add(s, small_send_into_invalid_buffer);
	add_loop(s, receive_faults, WHERE_COUNT);
	add_loop(s, limit_event, WHERE_COUNT);
	add(s, modify_errors);
	add(s, many_qps);
	add(s, too_short_for_a_datagram);
	add(s, destroyed_qp);
	return run(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Limits of QPs: errors of ibv_create_qp and of posting for sizes, counts,
 * opcodes and states.
 */
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../harness.h"
#include "shared/layout.h"

/* ------------------------------------------------------------ create_qp */

struct create {
	const char *what;
	void (*change)(struct ibv_qp_init_attr *a);
	int err; /* 0: EINVAL or EOPNOTSUPP */
};

static void no_send_cq(struct ibv_qp_init_attr *a)
{
	a->send_cq = NULL;
}
static void no_recv_cq(struct ibv_qp_init_attr *a)
{
	a->recv_cq = NULL;
}
static void many_send_wr(struct ibv_qp_init_attr *a)
{
	a->cap.max_send_wr = URXE_MAX_QP_WR + 1;
}
static void many_recv_wr(struct ibv_qp_init_attr *a)
{
	a->cap.max_recv_wr = URXE_MAX_QP_WR + 1;
}
static void huge_send_wr(struct ibv_qp_init_attr *a)
{
	a->cap.max_send_wr = UINT32_MAX;
}
static void many_send_sge(struct ibv_qp_init_attr *a)
{
	a->cap.max_send_sge = URXE_MAX_SGE + 1;
}
static void many_recv_sge(struct ibv_qp_init_attr *a)
{
	a->cap.max_recv_sge = URXE_MAX_SGE + 1;
}
static void long_inline(struct ibv_qp_init_attr *a)
{
	a->cap.max_inline_data = URXE_MAX_INLINE + 1;
}
static void bad_type(struct ibv_qp_init_attr *a)
{
	a->qp_type = 77;
}
static void type_0(struct ibv_qp_init_attr *a)
{
	a->qp_type = 0;
}

static const struct create creates[] = {
	{ "no send CQ", no_send_cq, EINVAL },
	{ "no receive CQ", no_recv_cq, EINVAL },
	{ "max_send_wr", many_send_wr, EINVAL },
	{ "max_recv_wr", many_recv_wr, EINVAL },
	{ "max_send_wr", huge_send_wr, EINVAL },
	{ "max_send_sge", many_send_sge, EINVAL },
	{ "max_recv_sge", many_recv_sge, EINVAL },
	{ "max_inline_data", long_inline, EINVAL },
	{ "an unknown type", bad_type, 0 },
	{ "no type", type_0, 0 },
};

/* Attributes beyond the limits, missing CQs and unknown types are refused. */
START_TEST(create_errors)
{
	const struct create *c = &creates[_i];
	struct opts o = default_opts();
	struct ibv_qp_init_attr attr;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	attr = (struct ibv_qp_init_attr){ .send_cq = n.scq,
					  .recv_cq = n.rcq,
					  .cap = o.cap,
					  .qp_type = IBV_QPT_RC };
	c->change(&attr);
	errno = 0;
	ck_assert_msg(!ibv_create_qp(n.pd, &attr), "%s was accepted", c->what);
	if (c->err)
		ck_assert_int_eq(errno, c->err);
	else
		ck_assert(errno == EINVAL || errno == EOPNOTSUPP);
	node_close(&n);
}
END_TEST

/* A QP with the maximum of each cap can be created. */
START_TEST(create_the_largest)
{
	struct opts o = default_opts();
	struct node n;

	o.cap = (struct ibv_qp_cap){ URXE_MAX_QP_WR, URXE_MAX_QP_WR,
				     URXE_MAX_SGE, URXE_MAX_SGE,
				     URXE_MAX_INLINE };
	o.cqe = URXE_MAX_QP_WR;
	node_open(&n, NULL, MEM_HEAP, &o);
	node_close(&n);
}
END_TEST

/*
 * Assert that the caps are the requested ones, but max_inline_data at least
 * the size of the send SGEs, as with NICs.
 */
static void expect_caps(const struct ibv_qp_cap *got, struct ibv_qp_cap want)
{
	uint32_t room = want.max_send_sge * (uint32_t)sizeof(struct ibv_sge);

	if (want.max_inline_data < room)
		want.max_inline_data = room;
	ck_assert_mem_eq(got, &want, sizeof(want));
}

/*
 * ibv_create_qp and ibv_query_qp return the requested caps, except for
 * max_inline_data.
 */
START_TEST(caps_are_exact)
{
	static const struct ibv_qp_cap caps[] = {
		{ 1, 1, 1, 1, 0 },
		{ 0, 0, 0, 0, 0 },
		{ 3, 5, 2, 7, 13 },
		{ 100, 1, 1, 1, 1 },
		{ URXE_MAX_QP_WR, URXE_MAX_QP_WR, 1, 1, 0 },
		{ 1, 1, URXE_MAX_SGE, URXE_MAX_SGE, URXE_MAX_INLINE },
	};
	struct opts o = default_opts();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;
	struct node n;
	size_t i;

	node_open(&n, NULL, MEM_HEAP, &o);
	for (i = 0; i < sizeof(caps) / sizeof(*caps); i++) {
		struct ibv_qp_init_attr a = { .send_cq = n.scq,
					      .recv_cq = n.rcq,
					      .cap = caps[i],
					      .qp_context = &o,
					      .qp_type = IBV_QPT_RC };

		qp = ibv_create_qp(n.pd, &a);
		ck_nonnull(qp);
		expect_caps(&a.cap, caps[i]);
		ck_ok(ibv_query_qp(qp, &attr, IBV_QP_CAP, &init));
		expect_caps(&attr.cap, caps[i]);
		ck_assert_ptr_eq(qp->qp_context, &o);
		ck_assert_ptr_eq(qp->pd, n.pd);
		ck_assert_int_eq(qp->qp_type, IBV_QPT_RC);
		ck_assert_int_eq(qp->state, IBV_QPS_RESET);
		ck_ok(ibv_destroy_qp(qp));
	}
	node_close(&n);
}
END_TEST

/*
 * max_qp QPs can exist in all contexts together, with unique numbers; one
 * more is ENOMEM. The number of a destroyed QP is not used again at once.
 */
START_TEST(max_qps)
{
	static struct ibv_qp *qp[URXE_MAX_QP];
	static uint8_t seen[1 << 24];
	struct ibv_context *one = open_device(), *two = open_device();
	struct ibv_pd *pd[2] = { ibv_alloc_pd(one), ibv_alloc_pd(two) };
	struct ibv_cq *cq[2] = { ibv_create_cq(one, 1, NULL, NULL, 0),
				 ibv_create_cq(two, 1, NULL, NULL, 0) };
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_device_attr dev;
	int i;

	ck_ok(ibv_query_device(one, &dev));
	for (i = 0; i < dev.max_qp; i++) {
		attr.send_cq = attr.recv_cq = cq[i % 2];
		qp[i] = ibv_create_qp(pd[i % 2], &attr);
		ck_nonnull(qp[i]);
		ck_assert_uint_eq(seen[qp[i]->qp_num & 0xffffff]++, 0);
	}
	ck_errno(ibv_create_qp(pd[1], &attr), ENOMEM);
	attr.send_cq = attr.recv_cq = cq[0];
	ck_errno(ibv_create_qp(pd[0], &attr), ENOMEM);
	ck_ok(ibv_destroy_qp(qp[77]));
	qp[77] = ibv_create_qp(pd[0], &attr);
	ck_nonnull(qp[77]);
	ck_assert_uint_eq(seen[qp[77]->qp_num & 0xffffff], 0);
	for (i = 0; i < dev.max_qp; i++)
		ck_ok(ibv_destroy_qp(qp[i]));
	for (i = 0; i < 2; i++) {
		ck_ok(ibv_destroy_cq(cq[i]));
		ck_ok(ibv_dealloc_pd(pd[i]));
	}
	ck_ok(ibv_close_device(one));
	ck_ok(ibv_close_device(two));
}
END_TEST

/* ------------------------------------------------------------- posting */

/*
 * A send WR can be posted in RTS, SQD and ERR, a receive in each state but
 * RESET; otherwise EINVAL.
 */
START_TEST(wrong_states)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	/* RESET */
	ck_assert_int_eq(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0), EINVAL);
	ck_assert_int_eq(post_recv(&d.a, 1, 0, 8), EINVAL);
	qp_to_init(d.a.qp, &o);
	ck_assert_int_eq(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0), EINVAL);
	ck_ok(post_recv(&d.a, 1, 0, 8));
	qp_to_rtr(d.a.qp, &o, &d.at_b);
	ck_assert_int_eq(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0), EINVAL);
	ck_ok(post_recv(&d.a, 2, 0, 8));
	qp_to_rts(d.a.qp, &o);
	ck_ok(post_recv(&d.a, 3, 0, 8));
	ck_ok(qp_to(d.a.qp, IBV_QPS_SQD));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	ck_ok(post_recv(&d.a, 4, 0, 8));
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, 0));
	ck_ok(post_recv(&d.a, 5, 0, 8));
	duo_close(&d);
}
END_TEST

/*
 * max_send_wr WRs can be outstanding; one more is ENOMEM, also in a list,
 * whose first WRs are posted.
 */
START_TEST(send_queue_is_full)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr[8], *bad = NULL;
	struct ibv_sge sge;
	struct duo d;
	int i, depth;

	o.cap.max_send_wr = depth = _i / WHERE_COUNT ? 7 : 1;
	duo_open(&d, _i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < depth; i++)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0));
	ck_assert_int_eq(post(&d, IBV_WR_RDMA_WRITE, 9, 0, 8, 0, 0), ENOMEM);
	/* polling the completion frees the slot, not the execution */
	sleep_ms(2);
	ck_assert_int_eq(post(&d, IBV_WR_RDMA_WRITE, 9, 0, 8, 0, 0), ENOMEM);
	expect_ok(d.a.scq, 0, IBV_WC_RDMA_WRITE);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, depth, 0, 8, 0, 0));
	ck_assert_int_eq(post(&d, IBV_WR_RDMA_WRITE, 9, 0, 8, 0, 0), ENOMEM);
	for (i = 1; i <= depth; i++)
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
	/* a list that is one too long: all but the last are posted */
	sge = node_sge(&d.a, 0, 8);
	for (i = 0; i <= depth; i++) {
		wr[i] = rdma_wr(&d, IBV_WR_RDMA_WRITE, 50 + i, &sge, 1, 0);
		wr[i].next = i < depth ? &wr[i + 1] : NULL;
	}
	ck_assert_int_eq(ibv_post_send(d.a.qp, wr, &bad), ENOMEM);
	ck_assert_ptr_eq(bad, &wr[depth]);
	for (i = 0; i < depth; i++)
		expect_ok(d.a.scq, 50 + i, IBV_WC_RDMA_WRITE);
	expect_none(d.a.scq, QUIET_MS);
	duo_close(&d);
}
END_TEST

/* A cyclic list of WRs fills the queue and ends with ENOMEM. */
START_TEST(cyclic_lists)
{
	enum { LIST = 3, DEPTH = 7 };
	struct ibv_recv_wr recv[LIST] = { 0 }, *bad_recv = NULL;
	struct ibv_srq_init_attr init = { .attr = { DEPTH, 1, 0 } };
	struct ibv_send_wr send[LIST], *bad_send = NULL;
	struct opts o = default_opts();
	struct ibv_sge sge;
	struct ibv_srq *srq;
	struct duo d;
	int i;

	o.cap.max_send_wr = o.cap.max_recv_wr = DEPTH;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	sge = node_sge(&d.a, 0, 8);
	for (i = 0; i < LIST; i++) {
		send[i] = rdma_wr(&d, IBV_WR_RDMA_WRITE, i, &sge, 1, 0);
		send[i].next = &send[(i + 1) % LIST];
		recv[i].wr_id = i;
		recv[i].next = &recv[(i + 1) % LIST];
	}
	ck_assert_int_eq(ibv_post_send(d.a.qp, send, &bad_send), ENOMEM);
	ck_assert_ptr_eq(bad_send, &send[DEPTH % LIST]);
	for (i = 0; i < DEPTH; i++)
		expect_ok(d.a.scq, i % LIST, IBV_WC_RDMA_WRITE);
	expect_none(d.a.scq, QUIET_MS);
	ck_assert_int_eq(ibv_post_recv(d.a.qp, recv, &bad_recv), ENOMEM);
	ck_assert_ptr_eq(bad_recv, &recv[DEPTH % LIST]);
	srq = ibv_create_srq(d.a.pd, &init);
	ck_nonnull(srq);
	ck_assert_int_eq(ibv_post_srq_recv(srq, recv, &bad_recv), ENOMEM);
	ck_assert_ptr_eq(bad_recv, &recv[DEPTH % LIST]);
	ck_ok(ibv_destroy_srq(srq));
	duo_close(&d);
}
END_TEST

/*
 * Slots of unsignaled WRs are freed only when a later completion of their QP
 * is polled.
 */
START_TEST(unsignaled_fill_the_queue)
{
	struct opts o = default_opts();
	struct duo d;
	int i, round;

	o.cap.max_send_wr = 10;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 10; i++)
		ck_ok(post_unsignaled(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0));
	sleep_ms(2);
	expect_none(d.a.scq, QUIET_MS);
	ck_assert_int_eq(post(&d, IBV_WR_RDMA_WRITE, 9, 0, 8, 0, 0), ENOMEM);
	duo_renew(&d);
	for (round = 0; round < 100; round++) {
		for (i = 0; i < 9; i++)
			ck_ok(post_unsignaled(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0,
					      0));
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, round, 0, 8, 0, 0));
		expect_ok(d.a.scq, round, IBV_WC_RDMA_WRITE);
	}
	duo_close(&d);
}
END_TEST

/* max_recv_wr receives can be outstanding; one more is ENOMEM. */
START_TEST(receive_queue_is_full)
{
	struct opts o = default_opts();
	struct ibv_recv_wr wr[4], *bad = NULL;
	struct duo d;
	int i;

	o.cap.max_recv_wr = 3;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	memset(wr, 0, sizeof(wr));
	for (i = 0; i < 4; i++) {
		wr[i].wr_id = i;
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	ck_assert_int_eq(ibv_post_recv(d.a.qp, wr, &bad), ENOMEM);
	ck_assert_ptr_eq(bad, &wr[3]);
	ck_assert_int_eq(post_recv(&d.a, 9, 0, 8), ENOMEM);
	/* messages use the receives of b: polling frees the slots */
	for (i = 0; i < 3; i++)
		b_recv(&d, i, 0, 64);
	for (i = 0; i < 3; i++) {
		ck_ok(post(&d, IBV_WR_SEND, i, 0, 8, 0, 0));
		expect_ok(d.a.scq, i, IBV_WC_SEND);
	}
	for (i = 0; i < 50; i++) {
		ck_assert_uint_eq(b_wait_recv(&d).wr_id, i);
		b_recv(&d, i + 3, 0, 64);
		ck_ok(post(&d, IBV_WR_SEND, i, 0, 8, 0, 0));
		expect_ok(d.a.scq, i, IBV_WC_SEND);
	}
	duo_close(&d);
}
END_TEST

static void do_overfill(struct node *b, void *arg)
{
	*(int *)arg = post_recv(b, 99, 0, 8);
}

/*
 * A receive that was used occupies its slot until its completion is polled.
 */
START_TEST(delivered_but_not_polled)
{
	struct opts o = default_opts();
	struct duo d;
	int i, ret;

	o.cap.max_recv_wr = 4;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 4; i++)
		b_recv(&d, i, 0, 64);
	on_b(&d, do_overfill, &ret, sizeof(ret));
	ck_assert_int_eq(ret, ENOMEM);
	for (i = 0; i < 4; i++) {
		ck_ok(post(&d, IBV_WR_SEND, i, 0, 8, 0, 0));
		expect_ok(d.a.scq, i, IBV_WC_SEND);
	}
	on_b(&d, do_overfill, &ret, sizeof(ret));
	ck_assert_int_eq(ret, ENOMEM);
	b_wait_recv(&d);
	on_b(&d, do_overfill, &ret, sizeof(ret));
	ck_assert_int_eq(ret, 0);
	duo_close(&d);
}
END_TEST

/* With caps of 0 a QP can be connected, but nothing can be posted. */
START_TEST(caps_of_0)
{
	struct opts o = default_opts();
	struct duo d;

	memset(&o.cap, 0, sizeof(o.cap));
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_assert_int_ne(post_recv(&d.a, 1, 0, 8), 0);
	ck_assert_int_ne(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0), 0);
	duo_close(&d);
}
END_TEST

/* num_sge that is negative or exceeds the cap is EINVAL. */
START_TEST(too_many_sges)
{
	struct opts o = default_opts();
	struct ibv_sge sge[4];
	struct ibv_recv_wr rwr = { .sg_list = sge, .num_sge = 3 }, *bad;
	struct ibv_send_wr wr;
	struct duo d;
	int i;

	o.cap.max_send_sge = 2;
	o.cap.max_recv_sge = 2;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 4; i++)
		sge[i] = node_sge(&d.a, 0, 8);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 1, sge, 3, 0);
	ck_assert_int_eq(post_wr(d.a.qp, &wr), EINVAL);
	wr.num_sge = -1;
	ck_assert_int_eq(post_wr(d.a.qp, &wr), EINVAL);
	wr.num_sge = 2;
	ck_ok(post_wr(d.a.qp, &wr));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_assert_int_eq(ibv_post_recv(d.a.qp, &rwr, &bad), EINVAL);
	ck_assert_ptr_eq(bad, &rwr);
	rwr.num_sge = -5;
	ck_assert_int_eq(ibv_post_recv(d.a.qp, &rwr, &bad), EINVAL);
	rwr.num_sge = 2;
	ck_ok(ibv_post_recv(d.a.qp, &rwr, &bad));
	duo_close(&d);
}
END_TEST

/* Inline data of more than max_inline_data bytes is EINVAL. */
START_TEST(inline_too_long)
{
	struct opts o = default_opts();
	struct ibv_sge sge[2];
	struct ibv_send_wr wr;
	struct duo d;

	o.cap.max_inline_data = 100;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	sge[0] = node_sge(&d.a, 0, 60);
	sge[1] = node_sge(&d.a, 0, 41);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 1, sge, 2, 0);
	wr.send_flags |= IBV_SEND_INLINE;
	ck_assert_int_eq(post_wr(d.a.qp, &wr), EINVAL);
	/* the sum of the lengths must not wrap */
	sge[0].length = 0xffffffff;
	ck_assert_int_eq(post_wr(d.a.qp, &wr), EINVAL);
	sge[0].length = 59;
	ck_ok(post_wr(d.a.qp, &wr));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

/*
 * With max_inline_data 0 a QP gets the size of its send SGEs, as with NICs.
 * The lkey of inline data is not checked.
 */
START_TEST(default_inline_size)
{
	struct opts o = default_opts();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct duo d;

	o.cap.max_inline_data = 0;
	o.cap.max_send_sge = 2;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_query_qp(d.a.qp, &attr, IBV_QP_CAP, &init));
	ck_assert_uint_eq(attr.cap.max_inline_data, 32);
	ck_assert_uint_eq(init.cap.max_inline_data, 32);
	sge = node_sge(&d.a, 0, 33);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 1, &sge, 1, 0);
	wr.send_flags |= IBV_SEND_INLINE;
	ck_assert_int_eq(post_wr(d.a.qp, &wr), EINVAL);
	sge.length = 32;
	sge.lkey = 0;
	ck_ok(post_wr(d.a.qp, &wr));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

/* IBV_SEND_INLINE with RDMA READ or an atomic is EINVAL. */
START_TEST(inline_is_for_sends_and_writes)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	sge = node_sge(&d.a, 0, 8);
	wr = rdma_wr(&d, IBV_WR_RDMA_READ, 1, &sge, 1, 0);
	wr.send_flags |= IBV_SEND_INLINE;
	ck_assert_int_eq(post_wr(d.a.qp, &wr), EINVAL);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	ck_assert_int_eq(post_wr(d.a.qp, &wr), EINVAL);
	duo_close(&d);
}
END_TEST

/* An unsupported or unknown opcode is EINVAL and does not affect the QP. */
START_TEST(bad_opcodes)
{
	static const int op[] = { IBV_WR_TSO, IBV_WR_DRIVER1, 99, -1 };
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct duo d;
	size_t i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	sge = node_sge(&d.a, 0, 8);
	for (i = 0; i < sizeof(op) / sizeof(*op); i++) {
		wr = rdma_wr(&d, op[i], 1, &sge, 1, 0);
		ck_assert_msg(post_wr(d.a.qp, &wr) == EINVAL, "opcode %d",
			      op[i]);
	}
	expect_none(d.a.scq, QUIET_MS);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_RTS);
	duo_close(&d);
}
END_TEST

/*
 * The WRs before an invalid one in a list are executed; bad_wr points to the
 * invalid one, and it and the following ones are not posted.
 */
START_TEST(bad_wr_in_a_list)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr[5], *bad = NULL;
	struct ibv_sge sge[5];
	struct duo d;
	int i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d.a, 0, 64, 1);
	for (i = 0; i < 5; i++) {
		sge[i] = node_sge(&d.a, i * 8, 8);
		wr[i] = rdma_wr(&d, IBV_WR_RDMA_WRITE, i, &sge[i], 1, i * 8);
		wr[i].next = i < 4 ? &wr[i + 1] : NULL;
	}
	wr[3].opcode = 99;
	ck_assert_int_eq(ibv_post_send(d.a.qp, wr, &bad), EINVAL);
	ck_assert_ptr_eq(bad, &wr[3]);
	for (i = 0; i < 3; i++)
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
	expect_none(d.a.scq, QUIET_MS);
	ck_assert(b_has(&d, 0, 24, 1));
	ck_assert(b_all(&d, 24, 100, 0));
	duo_close(&d);
}
END_TEST

/* URXE_MAX_QP_WR WRs can be outstanding on a QP. */
START_TEST(deepest_queue)
{
	struct opts o = default_opts();
	struct duo d;
	int i;

	o.cap.max_send_wr = URXE_MAX_QP_WR;
	o.cqe = URXE_MAX_QP_WR;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < URXE_MAX_QP_WR; i++)
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0));
	ck_assert_int_eq(post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0), ENOMEM);
	for (i = 0; i < URXE_MAX_QP_WR; i++)
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

/* Return the bytes that are allocated for the file of the context. */
static long shared_bytes(const struct ibv_context *ctx)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", ctx->cmd_fd);
	ck_ok(stat(path, &st));
	return (long)st.st_blocks * 512;
}

/*
 * Return the bytes that malloc has allocated; 0 without mallinfo2 (before
 * glibc 2.33).
 */
static long private_bytes(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
	struct mallinfo2 m = mallinfo2();

	return (long)(m.uordblks + m.hblkhd);
#else
	return 0;
#endif
}

/*
 * A QP in INIT needs at most MOST bytes of shared and of private memory, so
 * that many idle connections are possible.
 */
START_TEST(idle_qp_is_small)
{
	enum { QPS = 256, MOST = 2048 };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct opts o = default_opts();
	struct ibv_qp *qp[QPS];
	long shared, private;
	struct node n;
	int i;

	node_open(&n, NULL, MEM_HEAP, &o);
	init.send_cq = n.scq;
	init.recv_cq = n.rcq;
	shared = shared_bytes(n.ctx);
	private = private_bytes();
	for (i = 0; i < QPS; i++) {
		qp[i] = ibv_create_qp(n.pd, &init);
		ck_nonnull(qp[i]);
		qp_to_init(qp[i], &o);
	}
	shared = (shared_bytes(n.ctx) - shared) / QPS;
	private = (private_bytes() - private) / QPS;
	ck_assert_int_ge(shared, 512); /* the measurement works */
	ck_assert_int_le(shared, MOST);
	/* sanitizers and the adversary allocate more for each QP */
	if (!under_sanitizer() && !under_adversary())
		ck_assert_int_le(private, MOST);
	for (i = 0; i < QPS; i++)
		ck_ok(ibv_destroy_qp(qp[i]));
	node_close(&n);
}
END_TEST

int main(void)
{
	Suite *s = suite("limits");

	add_loop(s, create_errors, (int)(sizeof(creates) / sizeof(*creates)));
	add(s, create_the_largest);
	add(s, caps_are_exact);
	add(s, max_qps);
	add(s, idle_qp_is_small);
	add_loop(s, wrong_states, WHERE_COUNT);
	add_loop(s, send_queue_is_full, 2 * WHERE_COUNT);
	add_loop(s, cyclic_lists, WHERE_COUNT);
	add_loop(s, unsignaled_fill_the_queue, WHERE_COUNT);
	add_loop(s, receive_queue_is_full, WHERE_COUNT);
	add_loop(s, delivered_but_not_polled, WHERE_COUNT);
	add_loop(s, caps_of_0, WHERE_COUNT);
	add_loop(s, too_many_sges, WHERE_COUNT);
	add_loop(s, inline_too_long, WHERE_COUNT);
	add_loop(s, default_inline_size, WHERE_COUNT);
	add_loop(s, inline_is_for_sends_and_writes, WHERE_COUNT);
	add_loop(s, bad_opcodes, WHERE_COUNT);
	add_loop(s, bad_wr_in_a_list, WHERE_COUNT);
	add_loop(s, deepest_queue, WHERE_COUNT);
	return run(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Extended QPs: ibv_create_qp_ex and the ibv_wr_* calls (man ibv_wr_post). */
#include <endian.h>
#include <pthread.h>
#include <string.h>

#include "../harness.h"

#define RC_OPS                                                            \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
	 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |             \
	 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |   \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | \
	 IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)
#define FLUSH_OP (1u << 11) /* older verbs.h lack the names */
#define ATOMIC_WRITE_OP (1u << 12)

static struct ibv_qp_init_attr_ex init_attr(const struct node *n,
					    enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex a = {
		.send_cq = n->scq,
		.recv_cq = n->rcq,
		.cap = n->o.cap,
		.qp_type = type,
		.sq_sig_all = n->o.sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = n->pd,
		.send_ops_flags = ops,
	};

	return a;
}

/* Open a duo whose a has an extended QP with @ops. Return that QP. */
static struct ibv_qp_ex *ex_open(struct duo *d, enum where where, enum mem mem,
				 const struct opts *o, uint64_t ops)
{
	struct ibv_qp_init_attr_ex a;
	struct ibv_qp_ex *x;

	duo_open_unconnected(d, where, mem, mem, o);
	ck_ok(ibv_destroy_qp(d->a.qp));
	a = init_attr(&d->a, IBV_QPT_RC, ops);
	d->a.qp = ibv_create_qp_ex(d->a.ctx, &a);
	ck_nonnull(d->a.qp);
	d->at_a = node_addr(&d->a);
	duo_connect(d);
	x = ibv_qp_to_qp_ex(d->a.qp);
	ck_assert_ptr_nonnull(x);
	return x;
}

/* Expect that ibv_create_qp_ex fails with @err. */
static void refused(struct node *n, struct ibv_qp_init_attr_ex a, int err)
{
	ck_errno(ibv_create_qp_ex(n->ctx, &a), err);
}

/*
 * Enhanced connection establishment: the device has no options, so none are
 * agreed on, whatever the peer requests.
 */
START_TEST(ece)
{
	struct opts o = default_opts();
	struct ibv_device_attr dev;
	struct ibv_ece e;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(ibv_query_device(n.ctx, &dev));
	memset(&e, 0xff, sizeof(e));
	ck_ok(ibv_query_ece(n.qp, &e));
	ck_assert_uint_eq(e.vendor_id, dev.vendor_id);
	ck_assert_uint_eq(e.options, 0);
	ck_assert_uint_eq(e.comp_mask, 0);
	e.options = 77;
	ck_ok(ibv_set_ece(n.qp, &e));
	ck_assert_uint_eq(e.vendor_id, dev.vendor_id);
	ck_assert_uint_eq(e.options, 0);
	e.vendor_id = 0x2c9;
	e.options = 1;
	ck_ok(ibv_set_ece(n.qp, &e));
	ck_assert_uint_eq(e.vendor_id, dev.vendor_id);
	ck_assert_uint_eq(e.options, 0);
	e.comp_mask = 1;
	ck_assert_int_eq(ibv_set_ece(n.qp, &e), EINVAL);
	node_close(&n);
}
END_TEST

/*
 * EOPNOTSUPP for attributes and operations that the device or the QP type
 * does not have; EINVAL for unknown or missing attributes.
 */
START_TEST(create_errors)
{
	struct opts o = default_opts();
	struct ibv_qp_init_attr_ex a;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	a = init_attr(&n, IBV_QPT_RC, RC_OPS);
	a.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	refused(&n, a, EOPNOTSUPP);
	a.comp_mask ^= IBV_QP_INIT_ATTR_MAX_TSO_HEADER |
		       IBV_QP_INIT_ATTR_IND_TABLE;
	refused(&n, a, EOPNOTSUPP);
	a.comp_mask ^= IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
	refused(&n, a, EOPNOTSUPP);
	a.comp_mask ^= IBV_QP_INIT_ATTR_RX_HASH | 1u << 20;
	refused(&n, a, EINVAL);
	a.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS; /* no PD */
	refused(&n, a, EINVAL);
	a = init_attr(&n, IBV_QPT_RC, RC_OPS);
	a.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	a.create_flags = IBV_QP_CREATE_SOURCE_QPN;
	refused(&n, a, EOPNOTSUPP);
	refused(&n, init_attr(&n, IBV_QPT_RC, IBV_QP_EX_WITH_TSO), EOPNOTSUPP);
	refused(&n, init_attr(&n, IBV_QPT_RC, 1ull << 40), EOPNOTSUPP);
	refused(&n, init_attr(&n, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ),
		EOPNOTSUPP);
	refused(&n,
		init_attr(&n, IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP),
		EOPNOTSUPP);
	refused(&n, init_attr(&n, IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE),
		EOPNOTSUPP);
	refused(&n, init_attr(&n, IBV_QPT_UD, IBV_QP_EX_WITH_SEND_WITH_INV),
		EOPNOTSUPP);
	refused(&n, init_attr(&n, IBV_QPT_UD, IBV_QP_EX_WITH_BIND_MW),
		EOPNOTSUPP);
	a = init_attr(&n, IBV_QPT_RC, RC_OPS);
	a.cap.max_send_sge = 1000;
	refused(&n, a, EINVAL);
	node_close(&n);
}
END_TEST

/*
 * The QP has the calls that send_ops_flags requests, and no others. Without
 * send_ops_flags it is no extended QP.
 */
START_TEST(only_requested_calls)
{
	struct opts o = default_opts();
	struct ibv_qp_init_attr_ex a;
	struct ibv_qp_ex *x;
	struct ibv_qp *qp;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	/* a QP of ibv_create_qp is no extended one */
	ck_assert_ptr_null(ibv_qp_to_qp_ex(n.qp));
	a = init_attr(&n, IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
	a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	qp = ibv_create_qp_ex(n.ctx, &a);
	ck_nonnull(qp);
	ck_assert_ptr_null(ibv_qp_to_qp_ex(qp));
	ck_ok(ibv_destroy_qp(qp));
	a = init_attr(&n, IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
	qp = ibv_create_qp_ex(n.ctx, &a);
	ck_nonnull(qp);
	ck_assert_uint_ge(a.cap.max_inline_data, o.cap.max_inline_data);
	x = ibv_qp_to_qp_ex(qp);
	ck_assert_ptr_eq(&x->qp_base, qp);
	ck_assert(x->wr_start && x->wr_complete && x->wr_abort);
	ck_assert(x->wr_set_sge && x->wr_set_sge_list);
	ck_assert(x->wr_set_inline_data && x->wr_set_inline_data_list);
	ck_assert(x->wr_send != NULL);
	ck_assert(!x->wr_send_imm && !x->wr_send_inv && !x->wr_rdma_write);
	ck_assert(!x->wr_rdma_write_imm && !x->wr_rdma_read && !x->wr_send_tso);
	ck_assert(!x->wr_atomic_cmp_swp && !x->wr_atomic_fetch_add);
	ck_assert(!x->wr_bind_mw && !x->wr_local_inv);
	ck_ok(ibv_destroy_qp(qp));
	node_close(&n);
}
END_TEST

static void set_sge(struct ibv_qp_ex *x, const struct node *n, size_t off,
		    uint32_t len)
{
	struct ibv_sge s = node_sge(n, off, len);

	ibv_wr_set_sge(x, s.lkey, s.addr, s.length);
}

/* Start a batch whose WRs are signaled and have @wr_id. */
static void begin(struct ibv_qp_ex *x, uint64_t wr_id)
{
	ibv_wr_start(x);
	x->wr_id = wr_id;
	x->wr_flags = IBV_SEND_SIGNALED;
}

static void write_some(struct duo *d, struct ibv_qp_ex *x, uint64_t wr_id)
{
	begin(x, wr_id);
	ibv_wr_rdma_write(x, d->at_b.rkey, d->at_b.base);
	set_sge(x, &d->a, 0, 8);
	ck_ok(ibv_wr_complete(x));
}

/* Check that no other WR was posted, and that the QP works. */
static void is_sound(struct duo *d, struct ibv_qp_ex *x)
{
	expect_none(d->a.scq, QUIET_MS);
	write_some(d, x, 4711);
	expect_ok(d->a.scq, 4711, IBV_WC_RDMA_WRITE);
	ck_assert_int_eq(qp_state(d->a.qp), IBV_QPS_RTS);
}

/* RDMA WRITE, RDMA WRITE with immediate, RDMA READ. */
START_TEST(rdma)
{
	struct opts o = default_opts();
	struct ibv_qp_ex *x;
	struct ibv_wc wc;
	struct duo d;

	x = ex_open(&d, _i % WHERE_COUNT, _i / WHERE_COUNT, &o, RC_OPS);
	node_fill(&d.a, 0, 3000, 1);
	begin(x, 1);
	ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base + 100);
	set_sge(x, &d.a, 0, 3000);
	ck_ok(ibv_wr_complete(x));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_assert(b_has(&d, 100, 3000, 1));

	b_recv(&d, 20, 0, 0);
	begin(x, 2);
	ibv_wr_rdma_write_imm(x, d.at_b.rkey, d.at_b.base + 200,
			      htobe32(0x12345678));
	set_sge(x, &d.a, 0, 64);
	ck_ok(ibv_wr_complete(x));
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
	wc = b_wait_recv(&d);
	ck_assert_uint_eq(wc.wr_id, 20);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	ck_assert_uint_eq(be32toh(wc.imm_data), 0x12345678);
	ck_assert(b_has(&d, 200, 64, 1));

	b_fill(&d, 512, 2000, 7);
	begin(x, 3);
	ibv_wr_rdma_read(x, d.at_b.rkey, d.at_b.base + 512);
	set_sge(x, &d.a, 4096, 2000);
	ck_ok(ibv_wr_complete(x));
	expect_ok(d.a.scq, 3, IBV_WC_RDMA_READ);
	ck_assert(node_has(&d.a, 4096, 2000, 7));
	duo_close(&d);
}
END_TEST

/* SEND and SEND with immediate, in one batch. */
START_TEST(send)
{
	struct opts o = default_opts();
	struct ibv_qp_ex *x;
	struct ibv_wc wc;
	struct duo d;

	x = ex_open(&d, _i % WHERE_COUNT, _i / WHERE_COUNT, &o, RC_OPS);
	node_fill(&d.a, 0, 500, 3);
	b_recv(&d, 20, 0, 500);
	b_recv(&d, 21, 1000, 500);
	begin(x, 1);
	ibv_wr_send(x);
	set_sge(x, &d.a, 0, 500);
	x->wr_id = 2;
	ibv_wr_send_imm(x, htobe32(77));
	set_sge(x, &d.a, 0, 30);
	ck_ok(ibv_wr_complete(x));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	wc = b_wait_recv(&d);
	ck_assert_uint_eq(wc.byte_len, 500);
	ck_assert_uint_eq(wc.wc_flags, 0);
	wc = b_wait_recv(&d);
	ck_assert_uint_eq(wc.wr_id, 21);
	ck_assert_uint_eq(wc.byte_len, 30);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
	ck_assert_uint_eq(be32toh(wc.imm_data), 77);
	ck_assert(b_has(&d, 0, 500, 3));
	ck_assert(b_has(&d, 1000, 30, 3));
	duo_close(&d);
}
END_TEST

/* Fetch and add, compare and swap, in one batch. */
START_TEST(atomics)
{
	struct opts o = default_opts();
	struct ibv_qp_ex *x;
	uint64_t got[2];
	struct duo d;

	x = ex_open(&d, _i % WHERE_COUNT, _i / WHERE_COUNT, &o, RC_OPS);
	b_store64(&d, 64, 100);
	begin(x, 1);
	ibv_wr_atomic_fetch_add(x, d.at_b.rkey, d.at_b.base + 64, 11);
	set_sge(x, &d.a, 0, 8);
	x->wr_id = 2;
	ibv_wr_atomic_cmp_swp(x, d.at_b.rkey, d.at_b.base + 64, 111, 5);
	set_sge(x, &d.a, 8, 8);
	ck_ok(ibv_wr_complete(x));
	expect_ok(d.a.scq, 1, IBV_WC_FETCH_ADD);
	expect_ok(d.a.scq, 2, IBV_WC_COMP_SWAP);
	node_get(&d.a, 0, got, 16);
	ck_assert_uint_eq(got[0], 100);
	ck_assert_uint_eq(got[1], 111);
	ck_assert_uint_eq(b_load64(&d, 64), 5);
	duo_close(&d);
}
END_TEST

/* The type of wr_atomic_write, which older verbs.h lack. */
typedef void atomic_write_call(struct ibv_qp_ex *, uint32_t, uint64_t,
			       const void *);

/*
 * Return the @n-th member after wr_abort in struct ibv_qp_ex, where newer
 * libibverbs have wr_atomic_write (1) and wr_flush (2).
 */
static void *late_slot(struct ibv_qp_ex *x, int n)
{
	void *fn;

	memcpy(&fn, (char *)&x->wr_abort + n * sizeof(fn), sizeof(fn));
	return fn;
}

/* ibv_wr_atomic_write, if libibverbs has it. */
START_TEST(atomic_write)
{
	struct opts o = default_opts();
	struct ibv_qp_init_attr_ex a;
	uint64_t v = 0x1122334455667788;
	struct ibv_qp_ex *x;
	struct duo d;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	a = init_attr(&d.a, IBV_QPT_RC,
		      ATOMIC_WRITE_OP | IBV_QP_EX_WITH_RDMA_WRITE);
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = ibv_create_qp_ex(d.a.ctx, &a);
	if (!d.a.qp) { /* libibverbs before 44 */
		ck_assert_int_eq(errno, EOPNOTSUPP);
		duo_close(&d);
		return;
	}
	d.at_a = node_addr(&d.a);
	duo_connect(&d);
	x = ibv_qp_to_qp_ex(d.a.qp);
	begin(x, 1);
	((atomic_write_call *)late_slot(x, 1))(x, d.at_b.rkey, d.at_b.base + 8,
					       &v);
	ck_ok(ibv_wr_complete(x));
	ck_assert_int_eq(wait_wc(d.a.scq).status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(b_load64(&d, 8), v);
	/* the data is an argument: a setter is an error */
	begin(x, 2);
	((atomic_write_call *)late_slot(x, 1))(x, d.at_b.rkey, d.at_b.base, &v);
	set_sge(x, &d.a, 0, 8);
	ck_assert_int_eq(ibv_wr_complete(x), EINVAL);
	is_sound(&d, x);
	duo_close(&d);
}
END_TEST

/* The QP has ibv_wr_flush, if libibverbs has it. */
START_TEST(flush)
{
	struct opts o = default_opts();
	struct ibv_qp_init_attr_ex a;
	struct ibv_qp_ex *x;
	struct ibv_qp *qp;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	a = init_attr(&n, IBV_QPT_RC, FLUSH_OP);
	qp = ibv_create_qp_ex(n.ctx, &a);
	if (!qp) {
		ck_assert_int_eq(errno, EOPNOTSUPP); /* before libibverbs 45 */
	} else {
		x = ibv_qp_to_qp_ex(qp);
		ck_assert(late_slot(x, 2) != NULL);
		ck_ok(ibv_destroy_qp(qp));
	}
	node_close(&n);
}
END_TEST

/* The setters of inline data copy it at once. */
START_TEST(inline_data)
{
	struct opts o = default_opts();
	struct ibv_data_buf list[3];
	char text[64], got[64];
	struct ibv_qp_ex *x;
	struct duo d;
	int i;

	x = ex_open(&d, _i, MEM_HEAP, &o, RC_OPS);
	for (i = 0; i < 64; i++)
		text[i] = 'A' + i % 26;
	begin(x, 1);
	ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base);
	ibv_wr_set_inline_data(x, text, 64);
	memset(text, 0, 10); /* it was copied */
	x->wr_id = 2;
	ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base + 1000);
	list[0] = (struct ibv_data_buf){ text + 20, 10 };
	list[1] = (struct ibv_data_buf){ text, 0 };
	list[2] = (struct ibv_data_buf){ text + 40, 20 };
	ibv_wr_set_inline_data_list(x, 3, list);
	ck_ok(ibv_wr_complete(x));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
	begin(x, 3);
	ibv_wr_rdma_read(x, d.at_b.rkey, d.at_b.base);
	set_sge(x, &d.a, 0, 64);
	ibv_wr_rdma_read(x, d.at_b.rkey, d.at_b.base + 1000);
	set_sge(x, &d.a, 64, 30);
	ck_ok(ibv_wr_complete(x));
	expect_ok(d.a.scq, 3, IBV_WC_RDMA_READ);
	expect_ok(d.a.scq, 3, IBV_WC_RDMA_READ);
	node_get(&d.a, 0, got, 64);
	for (i = 0; i < 64; i++)
		ck_assert_int_eq(got[i], 'A' + i % 26);
	node_get(&d.a, 64, got, 30);
	ck_assert(!memcmp(got, text + 20, 10));
	ck_assert(!memcmp(got + 10, text + 40, 20));
	duo_close(&d);
}
END_TEST

/* Lists of several, one and no SGEs, and a WR without a setter. */
START_TEST(sge_lists)
{
	struct opts o = default_opts();
	struct ibv_sge list[4];
	struct ibv_qp_ex *x;
	struct duo d;
	int i;

	x = ex_open(&d, _i, MEM_HEAP, &o, RC_OPS);
	node_fill(&d.a, 0, 400, 9);
	for (i = 0; i < 4; i++)
		list[i] = node_sge(&d.a, 100 * i, 100);
	begin(x, 1);
	ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base);
	ibv_wr_set_sge_list(x, 4, list);
	/* ignored: here the setter selects inline data or SGEs */
	x->wr_flags |= IBV_SEND_INLINE;
	ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base + 512);
	ibv_wr_set_sge_list(x, 1, list);
	ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base + 1024);
	ibv_wr_set_sge_list(x, 0, NULL);
	/* without a setter the message is empty */
	ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base + 1024);
	ck_ok(ibv_wr_complete(x));
	for (i = 0; i < 4; i++)
		expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_assert(b_has(&d, 0, 400, 9));
	ck_assert(b_has(&d, 512, 100, 9));
	ck_assert(b_all(&d, 1024, 100, 0));
	duo_close(&d);
}
END_TEST

/* wr_flags without IBV_SEND_SIGNALED: no completion. */
START_TEST(unsignaled)
{
	struct opts o = default_opts();
	struct ibv_qp_ex *x;
	struct duo d;
	int i;

	x = ex_open(&d, _i, MEM_HEAP, &o, RC_OPS);
	begin(x, 1);
	for (i = 0; i < 20; i++) {
		x->wr_flags = i == 19 ? IBV_SEND_SIGNALED : 0;
		x->wr_id = i;
		ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base + 8 * i);
		set_sge(x, &d.a, 0, 8);
	}
	ck_ok(ibv_wr_complete(x));
	expect_ok(d.a.scq, 19, IBV_WC_RDMA_WRITE);
	expect_none(d.a.scq, QUIET_MS);
	duo_close(&d);
}
END_TEST

/* ibv_wr_abort discards the batch. */
START_TEST(abort_posts_nothing)
{
	struct opts o = default_opts();
	struct ibv_qp_ex *x;
	struct duo d;
	int i;

	x = ex_open(&d, _i, MEM_HEAP, &o, RC_OPS);
	node_fill(&d.a, 0, 64, 5);
	/* more WRs than the queue has slots */
	for (i = 0; i < 100; i++) {
		begin(x, 1);
		ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base);
		set_sge(x, &d.a, 0, 64);
		if (i % 2)
			ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base);
		ibv_wr_abort(x);
	}
	begin(x, 1);
	ibv_wr_abort(x);
	begin(x, 1);
	ck_ok(ibv_wr_complete(x)); /* an empty batch is valid */
	ck_assert(b_all(&d, 0, 64, 0));
	is_sound(&d, x);
	duo_close(&d);
}
END_TEST

/*
 * Start a batch with a valid WR, which is not posted if a later one is
 * invalid.
 */
static void good_one(struct duo *d, struct ibv_qp_ex *x)
{
	begin(x, 1);
	ibv_wr_rdma_write(x, d->at_b.rkey, d->at_b.base + 8192);
	set_sge(x, &d->a, 0, 64);
}

/* Complete the batch with @err, and check that nothing of it was posted. */
static void comes_to(struct duo *d, struct ibv_qp_ex *x, int err)
{
	/* calls after the error have no effect */
	ibv_wr_rdma_write(x, d->at_b.rkey, d->at_b.base + 8192);
	set_sge(x, &d->a, 0, 64);
	ck_assert_int_eq(ibv_wr_complete(x), err);
	is_sound(d, x);
	ck_assert(b_all(d, 8192, 64, 0));
}

/* An invalid WR fails ibv_wr_complete with EINVAL; the batch is discarded. */
START_TEST(errors)
{
	struct opts o = default_opts();
	struct ibv_sge list[5];
	struct ibv_qp_ex *x;
	char data[65] = { 0 };
	struct duo d;
	int i;

	x = ex_open(&d, _i, MEM_HEAP, &o, RC_OPS);
	node_fill(&d.a, 0, 64, 5);
	for (i = 0; i < 5; i++)
		list[i] = node_sge(&d.a, 0, 1);

	good_one(&d, x); /* more SGEs than the QP has */
	ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base);
	ibv_wr_set_sge_list(x, 5, list);
	comes_to(&d, x, EINVAL);

	good_one(&d, x); /* too much inline data */
	ibv_wr_send(x);
	ibv_wr_set_inline_data(x, data, 65);
	comes_to(&d, x, EINVAL);

	good_one(&d, x); /* a READ with inline data */
	ibv_wr_rdma_read(x, d.at_b.rkey, d.at_b.base);
	ibv_wr_set_inline_data(x, data, 8);
	comes_to(&d, x, EINVAL);

	good_one(&d, x); /* data twice */
	ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base);
	set_sge(x, &d.a, 0, 8);
	set_sge(x, &d.a, 0, 8);
	comes_to(&d, x, EINVAL);

	begin(x, 1); /* data without a WR */
	set_sge(x, &d.a, 0, 8);
	comes_to(&d, x, EINVAL);

	good_one(&d, x); /* an invalidation has no data */
	ibv_wr_local_inv(x, d.a.mr->rkey);
	set_sge(x, &d.a, 0, 8);
	comes_to(&d, x, EINVAL);

	good_one(&d, x); /* a flag of other QP types */
	x->wr_flags |= IBV_SEND_IP_CSUM;
	ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base);
	set_sge(x, &d.a, 0, 8);
	comes_to(&d, x, EINVAL);

	good_one(&d, x); /* a bind without a window */
	ibv_wr_bind_mw(x, NULL, 1, &(struct ibv_mw_bind_info){ 0 });
	comes_to(&d, x, EINVAL);
	duo_close(&d);
}
END_TEST

/*
 * A batch for which the queue has too few free slots is ENOMEM and discarded.
 */
START_TEST(full_queue)
{
	struct opts o = default_opts();
	struct ibv_qp_ex *x;
	struct duo d;
	int i, round;

	o.cap.max_send_wr = 8;
	x = ex_open(&d, _i, MEM_HEAP, &o, RC_OPS);
	for (round = 0; round < 5; round++) {
		begin(x, 1);
		for (i = 0; i < 9; i++) {
			ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base);
			set_sge(x, &d.a, 0, 8);
		}
		ck_assert_int_eq(ibv_wr_complete(x), ENOMEM);
		expect_none(d.a.scq, 1);
		begin(x, 1);
		for (i = 0; i < 8; i++) {
			ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base);
			set_sge(x, &d.a, 0, 8);
		}
		ck_ok(ibv_wr_complete(x));
		/* nothing was polled: no slot is free */
		begin(x, 1);
		ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base);
		ck_assert_int_eq(ibv_wr_complete(x), ENOMEM);
		for (i = 0; i < 8; i++)
			expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	}
	duo_close(&d);
}
END_TEST

/* EINVAL in RESET and INIT; flushed in ERR. */
START_TEST(states)
{
	struct opts o = default_opts();
	struct ibv_qp_init_attr_ex a;
	struct ibv_qp_ex *x;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	a = init_attr(&n, IBV_QPT_RC, RC_OPS);
	ck_ok(ibv_destroy_qp(n.qp));
	n.qp = ibv_create_qp_ex(n.ctx, &a);
	ck_nonnull(n.qp);
	x = ibv_qp_to_qp_ex(n.qp);
	begin(x, 1);
	ibv_wr_send(x);
	set_sge(x, &n, 0, 8);
	ck_assert_int_eq(ibv_wr_complete(x), EINVAL);
	qp_to_init(n.qp, &o);
	begin(x, 1);
	ibv_wr_send(x);
	ck_assert_int_eq(ibv_wr_complete(x), EINVAL);
	ck_ok(qp_to(n.qp, IBV_QPS_ERR));
	begin(x, 2);
	ibv_wr_send(x);
	set_sge(x, &n, 0, 8);
	ck_ok(ibv_wr_complete(x));
	expect(n.scq, 2, IBV_WC_WR_FLUSH_ERR);
	node_close(&n);
}
END_TEST

/* Batches and ibv_post_send can be mixed on one QP. */
START_TEST(with_post_send)
{
	struct opts o = default_opts();
	struct ibv_qp_ex *x;
	struct duo d;
	int i;

	x = ex_open(&d, _i, MEM_HEAP, &o, RC_OPS);
	for (i = 0; i < 200; i += 2) {
		write_some(&d, x, i);
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i + 1, 0, 8, 0, 0));
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
		expect_ok(d.a.scq, i + 1, IBV_WC_RDMA_WRITE);
	}
	duo_close(&d);
}
END_TEST

struct poster {
	struct duo *d;
	struct ibv_qp_ex *x;
	uint64_t first;
};

#define PAIRS 2000

static void *post_pairs(void *arg)
{
	struct poster *p = arg;
	uint64_t i;

	for (i = 0; i < PAIRS; i++) {
		ibv_wr_start(p->x);
		p->x->wr_flags = IBV_SEND_SIGNALED;
		p->x->wr_id = p->first + 2 * i;
		ibv_wr_rdma_write(p->x, p->d->at_b.rkey, p->d->at_b.base);
		set_sge(p->x, &p->d->a, 0, 8);
		p->x->wr_id++;
		ibv_wr_rdma_write(p->x, p->d->at_b.rkey, p->d->at_b.base);
		set_sge(p->x, &p->d->a, 0, 8);
		if (ibv_wr_complete(p->x))
			i--; /* queue full: retry */
	}
	return NULL;
}

/*
 * ibv_wr_start to ibv_wr_complete is a critical section: the WRs of a batch
 * are adjacent in the queue, whatever other threads post.
 */
START_TEST(threads)
{
	struct opts o = default_opts();
	uint64_t next[2] = { 0, 1 << 20 };
	struct poster p[2];
	struct ibv_qp_ex *x;
	pthread_t t[2];
	struct duo d;
	int i, who;

	x = ex_open(&d, SAME_PROCESS, MEM_HEAP, &o, RC_OPS);
	for (i = 0; i < 2; i++) {
		p[i] = (struct poster){ &d, x, next[i] };
		pthread_create(&t[i], NULL, post_pairs, &p[i]);
	}
	for (i = 0; i < 2 * PAIRS; i++) {
		struct ibv_wc a = wait_wc(d.a.scq), b = wait_wc(d.a.scq);

		ck_assert_int_eq(a.status, IBV_WC_SUCCESS);
		ck_assert_int_eq(b.status, IBV_WC_SUCCESS);
		who = a.wr_id >= 1 << 20;
		ck_assert_uint_eq(a.wr_id, next[who]);
		ck_assert_uint_eq(b.wr_id, next[who] + 1);
		next[who] += 2;
	}
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	duo_close(&d);
}
END_TEST

/* Replace the QP by an extended UD QP in RTS. */
static struct ibv_qp_ex *ud_qp(struct node *n)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qkey = 0x11111 };
	struct ibv_qp_init_attr_ex a;

	a = init_attr(n, IBV_QPT_UD,
		      IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
	ck_ok(ibv_destroy_qp(n->qp));
	n->qp = ibv_create_qp_ex(n->ctx, &a);
	ck_nonnull(n->qp);
	ck_ok(ibv_modify_qp(n->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	ck_ok(ibv_modify_qp(n->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	ck_ok(ibv_modify_qp(n->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return ibv_qp_to_qp_ex(n->qp);
}

/*
 * Between ibv_wr_start and ibv_wr_complete, polling continues the queue: a
 * waiting WR is retried, or fails with the QP. WRs of the open batch are
 * neither executed nor flushed.
 */
START_TEST(polling_in_a_batch)
{
	struct opts o = default_opts();
	struct ibv_qp_ex *x;
	struct duo d;

	if (_i & 1)
		o.timeout = o.retry_cnt = 0;
	x = ex_open(&d, _i & 1 ? SAME_CONTEXT : SAME_PROCESS, MEM_HEAP, &o,
		    RC_OPS);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect_none(d.a.scq, QUIET_MS);
	node_fill(&d.a, 64, 64, 3);
	begin(x, 2);
	ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base);
	set_sge(x, &d.a, 64, 64);
	x->wr_id = 3;
	ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base + 64);
	set_sge(x, &d.a, 64, 64);
	if (_i & 1) { /* message too long: both QPs go to ERR */
		b_recv(&d, 1, 1024, 4);
		expect(d.a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	} else {
		b_recv(&d, 1, 1024, 8);
		expect(d.a.scq, 1, IBV_WC_SUCCESS);
	}
	expect_none(d.a.scq, QUIET_MS);
	ck_assert(b_all(&d, 0, 128, 0));
	if (_i & 2) {
		ibv_wr_abort(x);
		expect_none(d.a.scq, QUIET_MS);
	} else {
		ck_ok(ibv_wr_complete(x));
		expect(d.a.scq, 2,
		       _i & 1 ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
		expect(d.a.scq, 3,
		       _i & 1 ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
		ck_assert(_i & 1 ? b_all(&d, 0, 128, 0) : b_has(&d, 64, 64, 3));
	}
	duo_close(&d);
}
END_TEST

/* On a UD QP each WR needs an address (ibv_wr_set_ud_addr). */
START_TEST(datagrams)
{
	struct ibv_ah_attr where = { .is_global = 1, .port_num = 1 };
	struct opts o = default_opts();
	struct ibv_qp_ex *x;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	x = ud_qp(&n);
	ck_assert(x->wr_set_ud_addr && !x->wr_set_xrc_srqn);
	where.grh.dgid = n.gid;
	where.grh.hop_limit = 1;
	ah = ibv_create_ah(n.pd, &where);
	ck_nonnull(ah);
	node_fill(&n, 0, 100, 4);
	ck_ok(post_recv(&n, 10, 1000, 140));
	begin(x, 1); /* no address */
	ibv_wr_send(x);
	set_sge(x, &n, 0, 100);
	ck_assert_int_eq(ibv_wr_complete(x), EINVAL);
	begin(x, 1);
	ibv_wr_send(x);
	ibv_wr_set_ud_addr(x, NULL, n.qp->qp_num, 0x11111);
	ck_assert_int_eq(ibv_wr_complete(x), EINVAL);
	expect_none(n.scq, QUIET_MS);
	begin(x, 2);
	ibv_wr_send_imm(x, htobe32(5));
	ibv_wr_set_ud_addr(x, ah, n.qp->qp_num, 0x11111);
	set_sge(x, &n, 0, 100);
	ck_ok(ibv_wr_complete(x));
	expect_ok(n.scq, 2, IBV_WC_SEND);
	wc = wait_wc(n.rcq);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wr_id, 10);
	ck_assert_uint_eq(wc.byte_len, 140);
	ck_assert_uint_eq(be32toh(wc.imm_data), 5);
	ck_assert(node_has(&n, 1040, 100, 4));
	ck_ok(ibv_destroy_ah(ah));
	node_close(&n);
}
END_TEST

/* No order is guaranteed: ibv_query_qp_data_in_order returns 0 (man page). */
START_TEST(data_in_order)
{
	struct opts o = default_opts();
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(ibv_query_qp_data_in_order(n.qp, IBV_WR_RDMA_WRITE, 0));
	ck_ok(ibv_query_qp_data_in_order(n.qp, IBV_WR_RDMA_READ, 0));
	ck_ok(ibv_query_qp_data_in_order(n.qp, IBV_WR_SEND, 0));
	node_close(&n);
}
END_TEST

int main(void)
{
	Suite *s = suite("qp_ex");

	add(s, ece);
	add(s, create_errors);
	add(s, only_requested_calls);
	add_loop(s, rdma, WHERE_COUNT * MEM_COUNT);
	add_loop(s, send, WHERE_COUNT * MEM_COUNT);
	add_loop(s, atomics, WHERE_COUNT * MEM_COUNT);
	add_loop(s, atomic_write, WHERE_COUNT);
	add(s, flush);
	add_loop(s, inline_data, WHERE_COUNT);
	add_loop(s, sge_lists, WHERE_COUNT);
	add_loop(s, unsignaled, WHERE_COUNT);
	add_loop(s, abort_posts_nothing, WHERE_COUNT);
	add_loop(s, errors, WHERE_COUNT);
	add_loop(s, full_queue, WHERE_COUNT);
	add(s, states);
	add_loop(s, with_post_send, WHERE_COUNT);
	add(s, threads);
	add_loop(s, polling_in_a_batch, 4);
	add(s, datagrams);
	add(s, data_in_order);
	return run(s);
}

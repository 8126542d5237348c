// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion counters (libibverbs release 65 and later).  Installed headers
 * may be older, so the declarations are repeated here, and the functions are
 * looked up by dlsym().
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "shared/layout.h" /* URXE_MAX_COMP_CNTR */
#include "../types.h"

struct cntr {
	struct ibv_context *context;
	uint32_t handle;
};

enum { WRS, BYTES };
struct cntr_attr {
	uint32_t comp_mask;
	int type;
	uint32_t flags;
};

struct cntr_caps {
	uint64_t max_value;
	uint32_t max_counters, attach_ops;
};

struct attach_attr {
	uint32_t comp_mask, op_mask;
};

enum { SEND, RECV, READ, REMOTE_READ, WRITE, REMOTE_WRITE, OPS };
#define BIT(op) (1u << (op))
#define ALL_OPS (BIT(OPS) - 1)

static int (*query_caps)(struct ibv_context *, struct cntr_caps *, size_t);
static struct cntr *(*create)(struct ibv_context *, struct cntr_attr *);
static int (*destroy)(struct cntr *);
static int (*set)(struct cntr *, uint64_t), (*set_err)(struct cntr *, uint64_t);
static int (*inc)(struct cntr *, uint64_t), (*inc_err)(struct cntr *, uint64_t);
static int (*read_done)(struct cntr *, uint64_t *);
static int (*read_err)(struct cntr *, uint64_t *);
static int (*attach)(struct ibv_qp *, struct cntr *, struct attach_attr *);

static const struct {
	const char *name;
	void *at;
} symbols[] = {
	{ "_ibv_query_comp_cntr_caps", &query_caps },
	{ "ibv_create_comp_cntr", &create },
	{ "ibv_destroy_comp_cntr", &destroy },
	{ "ibv_set_comp_cntr", &set },
	{ "ibv_set_err_comp_cntr", &set_err },
	{ "ibv_inc_comp_cntr", &inc },
	{ "ibv_inc_err_comp_cntr", &inc_err },
	{ "ibv_read_comp_cntr", &read_done },
	{ "ibv_read_err_comp_cntr", &read_err },
	{ "ibv_qp_attach_comp_cntr", &attach },
};

static bool find_symbols(void)
{
	void *found;
	size_t i;

	for (i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		found = dlsym(RTLD_DEFAULT, symbols[i].name);
		if (!found)
			return false;
		memcpy(symbols[i].at, &found, sizeof(found));
	}
	return true;
}

static struct cntr *make(struct ibv_context *ctx, int type)
{
	struct cntr_attr attr = { .type = type };
	struct cntr *c = create(ctx, &attr);

	ck_nonnull(c);
	return c;
}

static int attach_ops(struct ibv_qp *qp, struct cntr *c, uint32_t ops)
{
	struct attach_attr attr = { .op_mask = ops };

	return attach(qp, c, &attr);
}

static uint64_t done_of(struct cntr *c)
{
	uint64_t v = 77;

	ck_ok(read_done(c, &v));
	return v;
}

static uint64_t err_of(struct cntr *c)
{
	uint64_t v = 77;

	ck_ok(read_err(c, &v));
	return v;
}

/*
 * Wait until value(@c) is @want.  No thread polls a CQ: reading a counter
 * makes the progress that is needed.
 */
static void wait_for(uint64_t (*value)(struct cntr *), struct cntr *c,
		     uint64_t want)
{
	double end = now_ms() + WAIT_MS;

	while (value(c) != want)
		ck_assert_msg(now_ms() < end, "%llu, not %llu",
			      (unsigned long long)value(c),
			      (unsigned long long)want);
}

/* ---------------------------------------------------------- the object */

/*
 * ibv_query_comp_cntr_caps() returns the limits of the device and all
 * operations.
 */
START_TEST(caps)
{
	struct ibv_context *ctx = open_device();
	struct cntr_caps caps = { 0 };

	ck_ok(query_caps(ctx, &caps, sizeof(caps)));
	ck_assert_uint_eq(caps.max_value, UINT64_MAX);
	ck_assert_uint_eq(caps.max_counters, URXE_MAX_COMP_CNTR - 1);
	ck_assert_uint_eq(caps.attach_ops, ALL_OPS);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* Both values of a counter can be set, incremented and read. */
START_TEST(counter_values)
{
	struct ibv_context *ctx = open_device();
	struct cntr *c = make(ctx, _i);

	ck_assert_ptr_eq(c->context, ctx);
	ck_assert_uint_eq(done_of(c), 0);
	ck_assert_uint_eq(err_of(c), 0);
	ck_ok(set(c, 5));
	ck_ok(set_err(c, 1000));
	ck_ok(inc(c, 2));
	ck_ok(inc_err(c, 3));
	ck_assert_uint_eq(done_of(c), 7);
	ck_assert_uint_eq(err_of(c), 1003);
	/* values wrap around at max_value */
	ck_ok(set(c, UINT64_MAX));
	ck_ok(inc(c, 1));
	ck_assert_uint_eq(done_of(c), 0);
	ck_ok(destroy(c));
	/* a new counter starts at 0 */
	c = make(ctx, _i);
	ck_assert_uint_eq(done_of(c), 0);
	ck_assert_uint_eq(err_of(c), 0);
	ck_ok(destroy(c));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

static unsigned int yields;

/*
 * Interposes libc's sched_yield(), for the provider, too, to count the calls.
 */
int sched_yield(void)
{
	yields++;
	return 0;
}

/* Reading a counter and its error count in a loop yields the CPU. */
START_TEST(yields_cpu)
{
	double end = now_ms() + WAIT_MS;
	struct ibv_context *ctx = open_device();
	struct cntr *c = make(ctx, WRS);

	ck_ok(set(c, 5));
	for (yields = 0; !yields;) {
		ck_assert_uint_eq(done_of(c), 5);
		ck_assert_uint_eq(err_of(c), 0);
		ck_assert_msg(now_ms() < end, "never");
	}
	ck_ok(destroy(c));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* Unknown comp_mask bits, flags and types fail with EINVAL. */
START_TEST(wrong_attributes)
{
	static const struct cntr_attr bad[] = { { .comp_mask = 1 },
						{ .flags = 1 },
						{ .type = BYTES + 1 } };
	struct ibv_context *ctx = open_device();
	struct cntr_attr attr;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		attr = bad[i];
		ck_errno(create(ctx, &attr), EINVAL);
	}
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* max_counters counters can be created.  One more fails with ENOMEM. */
START_TEST(counter_limit)
{
	static struct cntr *c[URXE_MAX_COMP_CNTR];
	struct ibv_context *ctx = open_device();
	struct cntr_attr attr = { 0 };
	struct cntr_caps caps;
	uint32_t i;

	ck_ok(query_caps(ctx, &caps, sizeof(caps)));
	for (i = 0; i < caps.max_counters; i++)
		c[i] = make(ctx, WRS);
	ck_errno(create(ctx, &attr), ENOMEM);
	for (i = 0; i < caps.max_counters; i++)
		ck_ok(destroy(c[i]));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* ---------------------------------------------------------- attaching */

/*
 * A counter is not attached without an operation, with an unknown mask or
 * operation, to a QP of another context, or to a connected QP.
 */
START_TEST(attach_errors)
{
	struct attach_attr masked = { .comp_mask = 1, .op_mask = 1 };
	struct opts o = default_opts();
	struct ibv_context *other;
	struct cntr *c, *foreign;
	struct duo d;

	duo_open_unconnected(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	c = make(d.a.ctx, WRS);
	other = open_device();
	foreign = make(other, WRS);
	ck_assert_int_eq(attach_ops(d.a.qp, c, 0), EINVAL);
	ck_assert_int_eq(attach(d.a.qp, c, &masked), EINVAL);
	ck_assert_int_eq(attach_ops(d.a.qp, foreign, BIT(SEND)), EINVAL);
	ck_assert_int_eq(attach_ops(d.a.qp, c, BIT(OPS)), ENOTSUP);
	ck_assert_int_eq(attach_ops(d.a.qp, c, BIT(OPS) | BIT(SEND)), ENOTSUP);
	/* none of these attached the counter */
	ck_ok(destroy(c));
	ck_ok(destroy(foreign));
	ck_ok(ibv_close_device(other));
	c = make(d.a.ctx, WRS);
	duo_connect(&d); /* the QPs are in RTS: too late */
	ck_assert_int_eq(attach_ops(d.a.qp, c, BIT(SEND)), EINVAL);
	ck_ok(destroy(c));
	duo_close(&d);
}
END_TEST

/*
 * A QP has one counter for each operation: another one fails with EBUSY.  A
 * counter is busy until the QP is destroyed.
 */
START_TEST(one_for_each_operation)
{
	struct opts o = default_opts();
	struct cntr *first, *second;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	first = make(n.ctx, WRS);
	second = make(n.ctx, WRS);
	ck_ok(attach_ops(n.qp, first, BIT(SEND) | BIT(WRITE)));
	ck_assert_int_eq(attach_ops(n.qp, second, BIT(WRITE) | BIT(READ)),
			 EBUSY);
	ck_assert_int_eq(attach_ops(n.qp, first, BIT(SEND)), EBUSY);
	qp_to_init(n.qp, &o);
	ck_ok(attach_ops(n.qp, second, BIT(READ) | BIT(RECV)));
	ck_ok(attach_ops(n.qp, first, BIT(REMOTE_READ)));
	ck_assert_int_eq(destroy(first), EBUSY);
	ck_assert_int_eq(destroy(second), EBUSY);
	/* RESET does not detach counters */
	ck_ok(qp_to(n.qp, IBV_QPS_RESET));
	ck_assert_int_eq(destroy(first), EBUSY);
	ck_assert_int_eq(attach_ops(n.qp, first, BIT(RECV)), EBUSY);
	ck_ok(ibv_destroy_qp(n.qp));
	n.qp = NULL;
	ck_ok(destroy(first));
	ck_ok(destroy(second));
	node_close(&n);
}
END_TEST

/* ---------------------------------------------------------- counting */

/*
 * The counters of a and b, one for each operation.  Two arrays, as a and b
 * may be in the same process.
 */
static struct cntr *at_a[OPS], *at_b[OPS];

static void attach_all(struct ibv_qp *qp, struct ibv_context *ctx,
		       struct cntr **c, int type)
{
	int op;

	for (op = 0; op < OPS; op++) {
		c[op] = make(ctx, type);
		ck_ok(attach_ops(qp, c[op], BIT(op)));
	}
}

static void destroy_all(struct cntr **c)
{
	int op;

	for (op = 0; op < OPS; op++)
		ck_ok(destroy(c[op]));
}

static void do_attach(struct node *b, void *type)
{
	attach_all(b->qp, b->ctx, at_b, *(int *)type);
}

static void open_counted(struct duo *d, int where, enum mem b, int type,
			 const struct opts *o)
{
	duo_open_unconnected(d, where, MEM_HEAP, b, o);
	attach_all(d->a.qp, d->a.ctx, at_a, type);
	on_b(d, do_attach, &type, sizeof(type));
	duo_connect(d);
}

static void do_detach(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(ibv_destroy_qp(b->qp));
	b->qp = NULL;
	destroy_all(at_b);
}

static void close_counted(struct duo *d)
{
	on_b(d, do_detach, NULL, 0);
	ck_ok(ibv_destroy_qp(d->a.qp));
	d->a.qp = NULL;
	destroy_all(at_a);
	duo_close(d);
}

struct values {
	uint64_t done[OPS], err[OPS];
};

static void take(struct cntr **c, struct values *v)
{
	int op;

	for (op = 0; op < OPS; op++) {
		v->done[op] = done_of(c[op]);
		v->err[op] = err_of(c[op]);
	}
}

static void do_take(struct node *b, void *arg)
{
	(void)b;
	take(at_b, arg);
}

static void same(const char *who, const struct values *is,
		 const struct values *want)
{
	int op;

	for (op = 0; op < OPS; op++) {
		ck_assert_msg(is->done[op] == want->done[op],
			      "%s, operation %d: %llu, not %llu", who, op,
			      (unsigned long long)is->done[op],
			      (unsigned long long)want->done[op]);
		ck_assert_msg(is->err[op] == want->err[op],
			      "%s, operation %d: %llu errors, not %llu", who,
			      op, (unsigned long long)is->err[op],
			      (unsigned long long)want->err[op]);
	}
}

static void expect_counts(struct duo *d, const struct values *a,
			  const struct values *b)
{
	struct values is;

	take(at_a, &is);
	same("a", &is, a);
	on_b(d, do_take, &is, sizeof(is));
	same("b", &is, b);
}

/*
 * Post WRs of 24 and of 100 bytes for each operation.  Only the last two WRs
 * are signaled.
 */
static void traffic(struct duo *d)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ
	};
	size_t i;

	for (i = 0; i < 6; i++)
		b_recv(d, i, 4096, 256);
	for (i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		ck_ok(post_unsignaled(d, ops[i], i, 0, 24, 0, 0));
		ck_ok(post_unsignaled(d, ops[i], i, 0, 100, 0, 0));
	}
	/* the atomic is not counted; the empty WRITE is */
	ck_ok(post_atomic(d, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, 0, 1, 0));
	expect(d->a.scq, 8, IBV_WC_SUCCESS);
	ck_ok(post(d, IBV_WR_RDMA_WRITE, 9, 0, 0, 0, 0));
	expect_ok(d->a.scq, 9, IBV_WC_RDMA_WRITE);
}

/*
 * Each counter of type WRS counts the operations it is attached to, at both
 * ends.
 */
START_TEST(each_operation)
{
	const struct values a = {
		.done = { [SEND] = 4, [WRITE] = 5, [READ] = 2 }
	};
	const struct values b = {
		.done = { [RECV] = 6, [REMOTE_WRITE] = 5, [REMOTE_READ] = 2 }
	};
	struct opts o = default_opts();
	struct duo d;

	open_counted(&d, _i % WHERE_COUNT, _i / WHERE_COUNT, WRS, &o);
	traffic(&d);
	expect_counts(&d, &a, &b);
	close_counted(&d);
}
END_TEST

/*
 * Each counter of type BYTES counts the bytes of the operations it is
 * attached to, at both ends.
 */
START_TEST(counts_bytes)
{
	const struct values a = {
		.done = { [SEND] = 248, [WRITE] = 248, [READ] = 124 }
	};
	const struct values b = { .done = { [RECV] = 372,
					    [REMOTE_WRITE] = 248,
					    [REMOTE_READ] = 124 } };
	struct opts o = default_opts();
	struct duo d;

	open_counted(&d, _i % WHERE_COUNT, _i / WHERE_COUNT, BYTES, &o);
	traffic(&d);
	expect_counts(&d, &a, &b);
	close_counted(&d);
}
END_TEST

/*
 * WRITEs of one list, which are executed together, count one by one, although
 * one of them is refused.
 */
START_TEST(list_of_writes)
{
	const struct values a = { .done = { [WRITE] = 3 },
				  .err = { [WRITE] = 2 } };
	const struct values b = { .done = { [REMOTE_WRITE] = 3 },
				  .err = { [REMOTE_WRITE] = 1 } };
	struct opts o = default_opts();
	struct ibv_send_wr wr[5];
	struct ibv_sge sge;
	struct duo d;
	int i;

	open_counted(&d, _i, MEM_HEAP, WRS, &o);
	sge = node_sge(&d.a, 0, 16);
	for (i = 0; i < 5; i++) {
		wr[i] = rdma_wr(&d, IBV_WR_RDMA_WRITE, i, &sge, 1, i * 16);
		wr[i].send_flags = 0;
		wr[i].next = i < 4 ? &wr[i + 1] : NULL;
	}
	wr[3].wr.rdma.rkey ^= 0x5500;
	ck_ok(post_wr(d.a.qp, wr));
	expect(d.a.scq, 3, IBV_WC_REM_ACCESS_ERR);
	expect(d.a.scq, 4, IBV_WC_WR_FLUSH_ERR);
	expect_counts(&d, &a, &b);
	close_counted(&d);
}
END_TEST

static void do_wait_err(struct node *b, void *want)
{
	(void)b;
	wait_for(err_of, at_b[RECV], *(uint64_t *)want);
}

/*
 * Failed and flushed WRs count as errors at both ends, although b does not
 * poll.
 */
START_TEST(errors)
{
	const struct values a = { .err = { [READ] = 1, [SEND] = 1 } };
	const struct values b = { .err = { [REMOTE_READ] = 1, [RECV] = 2 } };
	struct opts o = default_opts();
	uint64_t two = 2;
	struct duo d;

	open_counted(&d, _i, MEM_HEAP, WRS, &o);
	b_recv(&d, 1, 0, 8);
	b_recv(&d, 2, 0, 8);
	d.at_b.rkey ^= 0x5500;
	ck_ok(post(&d, IBV_WR_RDMA_READ, 1, 0, 8, 0, 0));
	ck_ok(post(&d, IBV_WR_SEND, 2, 0, 8, 0, 0));
	wait_for(err_of, at_a[SEND], 1);
	on_b(&d, do_wait_err, &two, sizeof(two));
	expect_counts(&d, &a, &b);
	close_counted(&d);
}
END_TEST

/* A SEND that is longer than the receive counts as an error at both ends. */
START_TEST(send_longer_than_receive)
{
	const struct values a = { .err = { [SEND] = 1 } };
	const struct values b = { .err = { [RECV] = 1 } };
	struct opts o = default_opts();
	struct duo d;

	open_counted(&d, _i, MEM_HEAP, WRS, &o);
	b_recv(&d, 1, 0, 8);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 9, 0, 0));
	expect(d.a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	expect_counts(&d, &a, &b);
	close_counted(&d);
}
END_TEST

/*
 * A WR without a response is retransmitted and fails, although no thread
 * polls.
 */
START_TEST(retry_exceeded_without_poll)
{
	const struct values a = { .err = { [WRITE] = 2 } };
	struct opts o = default_opts();
	struct values is;
	struct duo d;

	o.timeout = 10; /* 4 ms */
	o.retry_cnt = 1;
	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	attach_all(d.a.qp, d.a.ctx, at_a, WRS);
	duo_connect(&d);
	b_destroy_qp(&d);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	ck_ok(post_unsignaled(&d, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, 0));
	wait_for(err_of, at_a[WRITE], 2);
	take(at_a, &is);
	same("a", &is, &a);
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = NULL;
	destroy_all(at_a);
	duo_close(&d);
}
END_TEST

struct look {
	uint64_t want;
	unsigned int seed;
	uint32_t len;
};

static void do_look(struct node *b, void *arg)
{
	struct look *l = arg;

	wait_for(done_of, at_b[RECV], l->want);
	ck_assert(node_has(b, 0, l->len, l->seed));
}

/*
 * If a receive was counted, its data is in memory, without a poll of the CQ.
 */
START_TEST(counted_data_is_in_memory)
{
	static const uint32_t lens[] = { 1, 24, 80, 81, 5000 };
	struct opts o = default_opts();
	struct look l = { 0 };
	struct duo d;
	size_t i;

	open_counted(&d, _i % WHERE_COUNT, _i / WHERE_COUNT, WRS, &o);
	for (i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		l.want++;
		l.seed = 100 + i;
		l.len = lens[i];
		b_recv(&d, i, 0, l.len);
		node_fill(&d.a, 0, l.len, l.seed);
		ck_ok(post(&d, IBV_WR_SEND, i, 0, l.len, 0, 0));
		on_b(&d, do_look, &l, sizeof(l));
	}
	close_counted(&d);
}
END_TEST

/*
 * One counter can be attached to all operations of both ends of a connection.
 */
START_TEST(one_counter_for_all_operations)
{
	struct opts o = default_opts();
	struct cntr *c;
	struct duo d;

	duo_open_unconnected(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	c = make(d.a.ctx, WRS);
	ck_ok(attach_ops(d.a.qp, c, ALL_OPS));
	ck_ok(attach_ops(d.b.qp, c, ALL_OPS));
	duo_connect(&d);
	traffic(&d);
	ck_assert_uint_eq(done_of(c), (4 + 5 + 2) + (6 + 5 + 2));
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = NULL;
	ck_assert_int_eq(destroy(c), EBUSY);
	b_destroy_qp(&d);
	ck_assert_uint_eq(done_of(c), 24);
	ck_ok(destroy(c));
	duo_close(&d);
}
END_TEST

/* RESET keeps the value and the attachment of a counter. */
START_TEST(counter_survives_reset)
{
	struct opts o = default_opts();
	struct duo d;

	open_counted(&d, _i, MEM_HEAP, WRS, &o);
	traffic(&d);
	ck_ok(qp_to(d.a.qp, IBV_QPS_RESET));
	b_modify(&d, IBV_QPS_RESET);
	duo_connect(&d);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_assert_uint_eq(done_of(at_a[WRITE]), 6);
	close_counted(&d);
}
END_TEST

/* ---------------------------------------------------------- other types */

static void do_attach_type(struct node *b, void *arg)
{
	ck_ok(ibv_destroy_qp(b->qp));
	b->qp = make_qp(b, *(enum ibv_qp_type *)arg, NULL);
	attach_all(b->qp, b->ctx, at_b, WRS);
	*(struct addr *)arg = node_addr(b);
}

static void do_connect_type(struct node *b, void *peer)
{
	type_connect(b->qp, &b->o, peer);
}

static void open_type(struct duo *d, int where, enum ibv_qp_type type)
{
	struct opts o = default_opts();

	duo_open_unconnected(d, where, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_destroy_qp(d->a.qp));
	d->a.qp = make_qp(&d->a, type, NULL);
	attach_all(d->a.qp, d->a.ctx, at_a, WRS);
	d->at_a = node_addr(&d->a);
	memcpy(&d->at_b, &type, sizeof(type));
	on_b(d, do_attach_type, &d->at_b, sizeof(d->at_b));
	on_b(d, do_connect_type, &d->at_a, sizeof(d->at_a));
	type_connect(d->a.qp, &o, &d->at_b);
}

/* A datagram that is dropped, as no receive is posted, counts as sent. */
START_TEST(datagrams)
{
	const struct values a = { .done = { [SEND] = 2 } };
	const struct values b = { .done = { [RECV] = 1 } };
	struct ibv_ah *ah;
	struct duo d;

	open_type(&d, _i, IBV_QPT_UD);
	ah = make_ah(&d.a, &d.at_b.gid, 0);
	b_recv(&d, 1, 0, 100);
	ck_ok(post_ud(&d.a, 1, 0, 8, ah, d.at_b.qpn, QKEY));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_ok(post_ud(&d.a, 2, 0, 8, ah, d.at_b.qpn, QKEY));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	expect_counts(&d, &a, &b);
	ck_ok(ibv_destroy_ah(ah));
	close_counted(&d);
}
END_TEST

/*
 * UC: a WRITE that the responder refuses is dropped.  It counts at the
 * requester as done, and not at the responder.
 */
START_TEST(refused_uc_write)
{
	const struct values a = { .done = { [WRITE] = 3 } };
	const struct values b = { .done = { [REMOTE_WRITE] = 2 } };
	struct ibv_send_wr wr[3];
	struct ibv_sge sge;
	struct duo d;
	int i;

	open_type(&d, _i, IBV_QPT_UC);
	sge = node_sge(&d.a, 0, 16);
	for (i = 0; i < 3; i++) {
		wr[i] = rdma_wr(&d, IBV_WR_RDMA_WRITE, i, &sge, 1, i * 16);
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	wr[1].wr.rdma.rkey ^= 0x5500;
	ck_ok(post_wr(d.a.qp, wr));
	for (i = 0; i < 3; i++)
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
	expect_counts(&d, &a, &b);
	close_counted(&d);
}
END_TEST

/* A receive of an SRQ counts for the QP that has received the message. */
START_TEST(shared_receives)
{
	struct opts o = default_opts();
	struct ibv_srq *srq;
	struct cntr *c;
	struct duo d;

	duo_open_unconnected(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(ibv_destroy_qp(d.b.qp));
	srq = make_srq(&d.b, 4, 1);
	d.b.qp = make_qp(&d.b, IBV_QPT_RC, srq);
	d.at_b = node_addr(&d.b);
	c = make(d.a.ctx, WRS);
	ck_ok(attach_ops(d.b.qp, c, BIT(RECV)));
	duo_connect(&d);
	ck_ok(post_srq(srq, &d.b, 1, 0, 64));
	node_fill(&d.a, 0, 24, 5);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 24, 0, 0));
	wait_for(done_of, c, 1);
	ck_assert(node_has(&d.b, 0, 24, 5));
	ck_ok(ibv_destroy_qp(d.b.qp));
	d.b.qp = NULL;
	ck_ok(ibv_destroy_srq(srq));
	ck_ok(destroy(c));
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s;

	if (!find_symbols()) {
		printf("skipped: this libibverbs has no completion counters\n");
		return 77;
	}
	s = suite("comp_cntr");
	add(s, caps);
	add_loop(s, counter_values, 2);
	add(s, yields_cpu);
	add(s, wrong_attributes);
	add(s, counter_limit);
	add(s, attach_errors);
	add(s, one_for_each_operation);
	add_loop(s, each_operation, WHERE_COUNT * MEM_COUNT);
	add_loop(s, counts_bytes, WHERE_COUNT * MEM_COUNT);
	add_loop(s, list_of_writes, WHERE_COUNT);
	add_loop(s, errors, WHERE_COUNT);
	add_loop(s, send_longer_than_receive, WHERE_COUNT);
	add_loop(s, retry_exceeded_without_poll, WHERE_COUNT);
	add_loop(s, counted_data_is_in_memory, WHERE_COUNT * MEM_COUNT);
	add(s, one_counter_for_all_operations);
	add_loop(s, counter_survives_reset, WHERE_COUNT);
	add_loop(s, datagrams, WHERE_COUNT);
	add_loop(s, refused_uc_write, WHERE_COUNT);
	add(s, shared_receives);
	return run(s);
}

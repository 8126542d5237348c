// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Address handles: ibv_create_ah(3), ibv_init_ah_from_wc(3), and their use by
 * UD QPs.
 */
#include <string.h>

#include "shared/layout.h"
#include "../types.h"

static struct ibv_ah_attr good(const struct node *n)
{
	struct ibv_ah_attr attr = {
		.grh = { .dgid = n->gid, .hop_limit = 1 },
		.is_global = 1,
		.port_num = 1,
	};

	return attr;
}

static void not_global(struct ibv_ah_attr *a)
{
	a->is_global = 0;
}
static void port_0(struct ibv_ah_attr *a)
{
	a->port_num = 0;
}
static void port_2(struct ibv_ah_attr *a)
{
	a->port_num = 2;
}
static void empty_sgid(struct ibv_ah_attr *a)
{
	a->grh.sgid_index = URXE_MAX_GID - 1;
}
static void bad_sl(struct ibv_ah_attr *a)
{
	a->sl = 16;
}
static void foreign_dgid(struct ibv_ah_attr *a)
{
	memset(a->grh.dgid.raw, 0x5c, 16);
}
static void zero_dgid(struct ibv_ah_attr *a)
{
	memset(a->grh.dgid.raw, 0, 16);
}

static const struct {
	void (*spoil)(struct ibv_ah_attr *a);
	int err;
} bad[] = {
	{ not_global, EINVAL },	     { port_0, EINVAL },
	{ port_2, EINVAL },	     { empty_sgid, EINVAL },
	{ bad_sl, EINVAL },	     { foreign_dgid, EHOSTUNREACH },
	{ zero_dgid, EHOSTUNREACH },
};

/*
 * ibv_create_ah() fails with EINVAL for invalid attributes and with
 * EHOSTUNREACH for a DGID that no device has.
 */
START_TEST(attribute_errors)
{
	struct opts o = default_opts();
	struct ibv_ah_attr attr;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	attr = good(&n);
	bad[_i].spoil(&attr);
	ck_errno(ibv_create_ah(n.pd, &attr), bad[_i].err);
	node_close(&n);
}
END_TEST

/*
 * The largest values of SL, flow label, hop limit and traffic class are
 * valid.  An AH keeps its PD busy.
 */
START_TEST(extreme_values)
{
	struct opts o = default_opts();
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	attr = good(&n);
	attr.sl = 15;
	attr.grh.flow_label = 0xfffff;
	attr.grh.hop_limit = 255;
	attr.grh.traffic_class = 255;
	ah = ibv_create_ah(n.pd, &attr);
	ck_nonnull(ah);
	ck_assert_ptr_eq(ah->pd, n.pd);
	ck_assert_ptr_eq(ah->context, n.ctx);
	/* the PD is busy */
	ck_assert_int_eq(ibv_dealloc_pd(n.pd), EBUSY);
	ck_ok(ibv_destroy_ah(ah));
	node_close(&n);
}
END_TEST

/* The number of AHs is limited by memory only; max_ah is INT32_MAX. */
START_TEST(number_of_ahs)
{
	enum { MANY = 100000 };
	static struct ibv_ah *ah[MANY];
	struct opts o = default_opts();
	struct ibv_device_attr dev;
	struct ibv_ah_attr attr;
	struct node n;
	int i;

	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(ibv_query_device(n.ctx, &dev));
	ck_assert_int_eq(dev.max_ah, INT32_MAX);
	attr = good(&n);
	for (i = 0; i < MANY; i++) {
		ah[i] = ibv_create_ah(n.pd, &attr);
		ck_nonnull(ah[i]);
	}
	for (i = 0; i < MANY; i++)
		ck_ok(ibv_destroy_ah(ah[i]));
	node_close(&n);
}
END_TEST

/*
 * An AH may be destroyed after a WR that uses it was posted, before the WR is
 * processed.
 */
START_TEST(destroyed_after_post)
{
	struct opts o = default_opts();
	struct ibv_ah *ah;
	struct duo d;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	turn(&d, IBV_QPT_UD);
	b_recv(&d, 1, 0, 256);
	ck_ok(qp_to(d.a.qp, IBV_QPS_SQD));
	ah = make_ah(&d.a, &d.at_b.gid, 0);
	ck_ok(post_ud(&d.a, 1, 0, 8, ah, d.at_b.qpn, QKEY));
	ck_ok(ibv_destroy_ah(ah));
	ck_ok(qp_to(d.a.qp, IBV_QPS_RTS));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_assert_uint_eq(b_wait_recv(&d).byte_len, GRH + 8);
	duo_close(&d);
}
END_TEST

/*
 * What b needs for its answer: the completion, the GID of the sender, and the
 * GID of b to which the datagram was sent, with its index.
 */
struct answer {
	struct ibv_wc wc;
	union ibv_gid from, to;
	uint8_t to_index;
};

static void do_answer(struct node *b, void *arg)
{
	struct answer *a = arg;
	struct ibv_ah_attr attr;
	struct ibv_grh grh;
	struct ibv_ah *ah;

	node_get(b, 0, &grh, sizeof(grh));
	ck_ok(ibv_init_ah_from_wc(b->ctx, 1, &a->wc, &grh, &attr));
	ck_assert_int_eq(attr.is_global, 1);
	ck_assert_int_eq(attr.port_num, 1);
	ck_assert_mem_eq(attr.grh.dgid.raw, a->from.raw, 16);
	ck_assert_uint_eq(attr.grh.sgid_index, a->to_index);
	ah = ibv_create_ah_from_wc(b->pd, &a->wc, &grh, 1);
	ck_nonnull(ah);
	ck_ok(post_ud(b, 1, 0, 24, ah, a->wc.src_qp, QKEY));
	expect_ok(b->scq, 1, IBV_WC_SEND);
	ck_ok(ibv_destroy_ah(ah));
}

/*
 * An AH that is made from a completion and its GRH leads back to the sender,
 * for each kind of GID.
 */
START_TEST(ah_from_completion)
{
	static const union ibv_gid none;
	struct opts o = default_opts();
	struct ibv_port_attr port;
	struct answer a;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct duo d;
	int i, seen = 0;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	turn(&d, IBV_QPT_UD);
	ck_ok(ibv_query_port(d.a.ctx, 1, &port));
	for (i = 0; i < port.gid_tbl_len; i++) {
		ck_ok(ibv_query_gid(d.a.ctx, 1, i, &a.from));
		if (!memcmp(&a.from, &none, sizeof(none)))
			continue;
		a.to = a.from;
		a.to_index = (uint8_t)i;
		ah = make_ah(&d.a, &a.to, (uint8_t)i);
		b_recv(&d, 1, 0, 256);
		ck_ok(post_recv(&d.a, 2, 0, 256));
		ck_ok(post_ud(&d.a, 1, 0, 8, ah, d.at_b.qpn, QKEY));
		expect_ok(d.a.scq, 1, IBV_WC_SEND);
		a.wc = b_wait_recv(&d);
		ck_assert_int_eq(a.wc.status, IBV_WC_SUCCESS);
		on_b(&d, do_answer, &a, sizeof(a));
		wc = expect_ok(d.a.rcq, 2, IBV_WC_RECV);
		ck_assert_uint_eq(wc.byte_len, GRH + 24);
		ck_assert_uint_eq(wc.src_qp, d.at_b.qpn);
		ck_ok(ibv_destroy_ah(ah));
		seen++;
	}
	ck_assert_int_gt(seen, 0);
	duo_close(&d);
}
END_TEST

/*
 * An AH of another PD, or of another context, is an error of the send queue:
 * IBV_WC_LOC_QP_OP_ERR, and the QP enters SQE.
 */
START_TEST(ah_of_another_pd)
{
	struct opts o = default_opts();
	struct ibv_ah_attr attr;
	struct ibv_context *ctx;
	struct ibv_ah *ah;
	struct ibv_pd *pd;
	struct duo d;

	duo_open_unconnected(&d, _i / 2, MEM_HEAP, MEM_HEAP, &o);
	turn(&d, IBV_QPT_UD);
	ctx = _i % 2 ? open_device() : d.a.ctx;
	pd = ibv_alloc_pd(ctx);
	ck_nonnull(pd);
	attr = good(&d.a);
	attr.grh.dgid = d.at_b.gid;
	ah = ibv_create_ah(pd, &attr);
	ck_nonnull(ah);
	b_recv(&d, 1, 0, 256);
	ck_ok(post_ud(&d.a, 1, 0, 8, ah, d.at_b.qpn, QKEY));
	ck_ok(post_ud(&d.a, 2, 0, 8, ah, d.at_b.qpn, QKEY));
	expect(d.a.scq, 1, IBV_WC_LOC_QP_OP_ERR);
	expect(d.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_SQE);
	ck_ok(ibv_destroy_ah(ah));
	ck_ok(ibv_dealloc_pd(pd));
	if (ctx != d.a.ctx)
		ck_ok(ibv_close_device(ctx));
	/* b has received nothing: this datagram takes the first receive */
	ck_ok(qp_to(d.a.qp, IBV_QPS_RTS));
	ah = make_ah(&d.a, &d.at_b.gid, 0);
	ck_ok(post_ud(&d.a, 3, 0, 16, ah, d.at_b.qpn, QKEY));
	expect_ok(d.a.scq, 3, IBV_WC_SEND);
	ck_assert_uint_eq(b_wait_recv(&d).byte_len, GRH + 16);
	ck_ok(ibv_destroy_ah(ah));
	duo_close(&d);
}
END_TEST

/*
 * A RoCE v2 datagram from an IPv4 GID to an IPv6 GID is dropped, as no IP
 * header can have both.  RoCE v1, which has no IP header, delivers it.
 */
START_TEST(mixed_families)
{
	struct opts o = default_opts();
	struct ibv_gid_entry table[URXE_MAX_GID];
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;
	struct duo d;
	int i, n, dropped = 0, received = 0;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	turn(&d, IBV_QPT_UD);
	b_recv(&d, 1, 0, 256);
	attr = good(&d.a); /* to a link-local address */
	n = ibv_query_gid_table(d.a.ctx, table, URXE_MAX_GID, 0);
	for (i = 0; i < n; i++) {
		if (table[i].gid.global.subnet_prefix ||
		    table[i].gid.raw[10] != 0xff)
			continue; /* not an IPv4-mapped GID */
		attr.grh.sgid_index = table[i].gid_index;
		ah = ibv_create_ah(d.a.pd, &attr);
		ck_nonnull(ah);
		ck_ok(post_ud(&d.a, 1, 0, 8, ah, d.at_b.qpn, QKEY));
		expect_ok(d.a.scq, 1, IBV_WC_SEND);
		ck_ok(ibv_destroy_ah(ah));
		if (table[i].gid_type == IBV_GID_TYPE_ROCE_V2) {
			dropped++;
			continue;
		}
		ck_assert_uint_eq(b_wait_recv(&d).byte_len, GRH + 8);
		b_recv(&d, 1, 0, 256);
		received++;
	}
	ck_assert_int_gt(dropped, 0);
	ck_assert_int_eq(dropped, received);
	attr.grh.sgid_index = 0;
	ah = ibv_create_ah(d.a.pd, &attr);
	ck_nonnull(ah);
	ck_ok(post_ud(&d.a, 2, 0, 16, ah, d.at_b.qpn, QKEY));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	ck_assert_uint_eq(b_wait_recv(&d).byte_len, GRH + 16);
	ck_ok(ibv_destroy_ah(ah));
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("ah");

	add_loop(s, attribute_errors, sizeof(bad) / sizeof(*bad));
	add(s, extreme_values);
	add(s, number_of_ahs);
	add_loop(s, destroyed_after_post, WHERE_COUNT);
	add_loop(s, ah_from_completion, WHERE_COUNT);
	add_loop(s, ah_of_another_pd, 2 * WHERE_COUNT);
	add_loop(s, mixed_families, WHERE_COUNT);
	return run(s);
}

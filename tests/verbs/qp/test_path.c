// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The path of a connection: GIDs, RoCE version and MTU of its two ends. */
#include <string.h>

#include "shared/layout.h"
#include "../types.h"

#define W IBV_WR_RDMA_WRITE
#define WI IBV_WR_RDMA_WRITE_WITH_IMM
#define R IBV_WR_RDMA_READ
#define S IBV_WR_SEND

/* Path attributes of one end. */
struct view {
	struct addr peer;
	int from, to; /* indices in the GID table: sgid, dgid */
	enum ibv_mtu mtu;
	bool again; /* go to RESET first */
};

static void do_connect(struct node *n, void *arg)
{
	struct view *v = arg;
	struct ibv_qp_attr attr;
	int mask;

	if (v->again)
		ck_ok(qp_to(n->qp, IBV_QPS_RESET));
	type_to(n->qp, IBV_QPS_INIT, &n->o, NULL);
	mask = type_attr(&attr, n->qp->qp_type, IBV_QPS_RTR, &n->o, &v->peer);
	attr.path_mtu = v->mtu;
	attr.ah_attr.grh.sgid_index = v->from;
	ck_ok(ibv_query_gid(n->ctx, 1, v->to, &attr.ah_attr.grh.dgid));
	ck_ok(ibv_modify_qp(n->qp, &attr, mask));
	type_to(n->qp, IBV_QPS_RTS, &n->o, NULL);
}

static void connect_ends(struct duo *d, struct view a, struct view b)
{
	a.peer = d->at_b;
	b.peer = d->at_a;
	on_b(d, do_connect, &b, sizeof(b));
	do_connect(&d->a, &a);
}

/* Options with a short timeout and few retries. */
static struct opts short_tempered(void)
{
	struct opts o = default_opts();

	o.timeout = 10;
	o.retry_cnt = 1;
	return o;
}

/* ---------------------------------------------------------------- GIDs */

static enum ibv_gid_type gid_type(struct ibv_context *ctx, int i)
{
	struct ibv_gid_entry e;

	ck_ok(ibv_query_gid_ex(ctx, 1, (uint32_t)i, &e, 0));
	return e.gid_type;
}

static bool same_family(struct ibv_context *ctx, int i, int j)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	union ibv_gid a, b;

	ck_ok(ibv_query_gid(ctx, 1, i, &a));
	ck_ok(ibv_query_gid(ctx, 1, j, &b));
	return !memcmp(a.raw, mapped, 12) == !memcmp(b.raw, mapped, 12);
}

/* Return the number of GIDs of the port, at most 6. */
static int count_gids(struct ibv_context *ctx)
{
	struct ibv_gid_entry table[URXE_MAX_GID];
	int n = ibv_query_gid_table(ctx, table, URXE_MAX_GID, 0);

	ck_assert_int_ge(n, 4); /* else nothing can mismatch */
	return n < 6 ? n : 6;
}

/*
 * Return whether a connection between GIDs i and j works: one RoCE version,
 * and with RoCE v2 one IP version.
 */
static bool fits(struct ibv_context *ctx, int i, int j)
{
	enum ibv_gid_type type = gid_type(ctx, i);

	return type == gid_type(ctx, j) &&
	       (type == IBV_GID_TYPE_ROCE_V1 || same_family(ctx, i, j));
}

/*
 * Connect new QPs with @a and @b. Return whether a WRITE succeeds; otherwise
 * it is RETRY_EXC_ERR.
 */
static bool arrives(struct duo *d, struct view a, struct view b)
{
	struct ibv_wc wc;

	duo_renew(d);
	a.again = b.again = true;
	connect_ends(d, a, b);
	ck_ok(post(d, W, 1, 0, 8, 0, 0));
	wc = wait_wc(d->a.scq);
	ck_assert(!wc.status || wc.status == IBV_WC_RETRY_EXC_ERR);
	/* a mismatch is silent: the peer's QP is not affected */
	ck_assert_int_eq(b_state(d), IBV_QPS_RTS);
	return !wc.status;
}

/*
 * All pairs of GIDs that the two ends agree on: those of one RoCE version,
 * and with RoCE v2 of one IP version, work. With the others a request is
 * RETRY_EXC_ERR.
 */
START_TEST(gid_pairs)
{
	struct opts o = short_tempered();
	struct view a = { .mtu = o.mtu }, b = a;
	int n, i, same = 0, other = 0;
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	n = count_gids(d.a.ctx);
	for (i = 0; i < n * n; i++) {
		a.from = b.to = i / n;
		a.to = b.from = i % n;
		if (fits(d.a.ctx, a.from, a.to)) {
			ck_assert(arrives(&d, a, b));
			same++;
		} else {
			ck_assert(!arrives(&d, a, b));
			other++;
		}
	}
	ck_assert_int_ge(same, n);
	ck_assert_int_eq(same + other, n * n);
	duo_close(&d);
}
END_TEST

/*
 * The sgid_index or dgid of the peer, or both, are not those of a the other
 * way round (IB 9.6.1): RETRY_EXC_ERR.
 */
START_TEST(mismatched_gids)
{
	static const struct {
		int from, to;
	} wrong[] = { { 2, 0 }, { 0, 2 }, { 2, 2 }, { 1, 0 }, { 1, 1 } };
	struct opts o = short_tempered();
	struct view a = { .mtu = o.mtu }, b = a;
	struct duo d;
	size_t i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	count_gids(d.a.ctx);
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		b.from = wrong[i].from;
		b.to = wrong[i].to;
		ck_assert(!arrives(&d, a, b));
		ck_assert(!arrives(&d, b, a));
	}
	duo_close(&d);
}
END_TEST

/* A UC packet of the other RoCE version is dropped; its SEND succeeds. */
START_TEST(other_roce_version_dropped)
{
	struct opts o = short_tempered();
	struct view a = { .mtu = o.mtu, .again = true }, b = a;
	struct ibv_wc wc;
	struct duo d;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	turn(&d, IBV_QPT_UC);
	b.from = 1;
	connect_ends(&d, a, b);
	b_recv(&d, 1, 0, 256);
	ck_ok(post(&d, S, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	a.from = 1;
	a.again = true;
	a.peer = d.at_b;
	do_connect(&d.a, &a);
	ck_ok(post(&d, S, 2, 0, 16, 0, 0));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.byte_len, 16);
	duo_close(&d);
}
END_TEST

/*
 * The QP of the peer is reset and connected again: with the same GIDs
 * requests work, with another sgid_index (_i % 2) they are RETRY_EXC_ERR.
 */
START_TEST(peer_reconnected)
{
	struct opts o = short_tempered();
	struct view b = { .mtu = o.mtu, .again = true, .from = _i % 2 };
	struct duo d;

	duo_open(&d, _i / 2, MEM_HEAP, MEM_HEAP, &o);
	count_gids(d.a.ctx);
	ck_ok(post(&d, W, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	b.peer = d.at_a;
	b.peer.psn++; /* the next PSN of a */
	on_b(&d, do_connect, &b, sizeof(b));
	ck_ok(post(&d, W, 2, 0, 8, 0, 0));
	expect(d.a.scq, 2, _i % 2 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

/* ----------------------------------------------------------------- MTU */

/*
 * Connect QPs of @type with these path_mtus; b has a receive of 8192 bytes.
 */
static void open_mtus(struct duo *d, enum where where, enum ibv_qp_type type,
		      enum ibv_mtu mtu_a, enum ibv_mtu mtu_b)
{
	struct opts o = short_tempered();
	struct view a = { .mtu = mtu_a }, b = { .mtu = mtu_b };

	duo_open_unconnected(d, where, MEM_HEAP, MEM_HEAP, &o);
	if (type != IBV_QPT_RC)
		turn(d, type);
	a.again = b.again = true;
	connect_ends(d, a, b);
	node_fill(&d->a, 0, 8192, 1);
	b_recv(d, 1, 0, 8192);
}

/*
 * A request packet that is longer than the responder's path_mtu is
 * REM_INV_REQ_ERR (IB 9.7.4.1). READ responses have the responder's path_mtu.
 */
START_TEST(longer_packets)
{
	static const enum ibv_wr_opcode ops[] = { W, WI, S };
	const enum ibv_wr_opcode op = ops[_i % 3];
	struct ibv_wc wc;
	struct duo d;

	open_mtus(&d, _i / 3, IBV_QPT_RC, IBV_MTU_4096, IBV_MTU_1024);
	ck_ok(post(&d, W, 1, 0, 1024, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	/* READ responses have the path_mtu of the responder */
	ck_ok(post(&d, R, 2, 0, 8192, 0, 0));
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_READ);
	ck_ok(post(&d, op, 3, 0, 1025, 2048, 0));
	expect(d.a.scq, 3, IBV_WC_REM_INV_REQ_ERR);
	b_expect_async(&d, IBV_EVENT_QP_REQ_ERR);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	ck_assert(b_all(&d, 2048, 1025, 0));
	duo_close(&d);
}
END_TEST

/* The requester's path_mtu may be less than the responder's. */
START_TEST(shorter_packets)
{
	struct duo d;

	open_mtus(&d, _i, IBV_QPT_RC, IBV_MTU_512, IBV_MTU_2048);
	ck_ok(post(&d, S, 1, 0, 8192, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_ok(post(&d, W, 2, 0, 8192, 0, 0));
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

/*
 * A UC packet that is longer than the responder's path_mtu is dropped; its
 * SEND succeeds.
 */
START_TEST(longer_packets_are_dropped)
{
	struct ibv_wc wc;
	struct duo d;

	open_mtus(&d, _i, IBV_QPT_UC, IBV_MTU_2048, IBV_MTU_256);
	ck_ok(post(&d, S, 1, 0, 257, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_ok(post(&d, S, 2, 0, 256, 0, 0));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.byte_len, 256);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("path");

	add_loop(s, gid_pairs, WHERE_COUNT);
	add_loop(s, mismatched_gids, WHERE_COUNT);
	add_loop(s, other_roce_version_dropped, WHERE_COUNT);
	add_loop(s, peer_reconnected, 2 * WHERE_COUNT);
	add_loop(s, longer_packets, 3 * WHERE_COUNT);
	add_loop(s, shorter_packets, WHERE_COUNT);
	add_loop(s, longer_packets_are_dropped, WHERE_COUNT);
	return run(s);
}

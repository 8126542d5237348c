// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The state machine of an RC QP: which transitions exist, which attributes
 * each requires and allows (the table of the IB specification's Modify QP
 * verb), which values are valid, and that a refused ibv_modify_qp changes
 * nothing.
 */
#include <stdio.h>
#include <string.h>

#include "../harness.h"
#include "shared/layout.h"

#define RTR_REQ                                                          \
	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_REQ                                              \
	(IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | \
	 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
/* Alternate path and path migration need a capability that urxe0 lacks. */
#define NO_APM (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)

static const struct transition {
	enum ibv_qp_state from, to;
	int req, opt;
} table[] = {
	{ IBV_QPS_RESET, IBV_QPS_RESET, 0, 0 },
	{ IBV_QPS_RESET, IBV_QPS_INIT,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0 },
	{ IBV_QPS_INIT, IBV_QPS_RESET, 0, 0 },
	{ IBV_QPS_INIT, IBV_QPS_ERR, 0, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
	{ IBV_QPS_INIT, IBV_QPS_RTR, RTR_REQ,
	  IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTR, IBV_QPS_RESET, 0, 0 },
	{ IBV_QPS_RTR, IBV_QPS_ERR, 0, 0 },
	{ IBV_QPS_RTR, IBV_QPS_RTS, RTS_REQ,
	  IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTS, IBV_QPS_RESET, 0, 0 },
	{ IBV_QPS_RTS, IBV_QPS_ERR, 0, 0 },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0,
	  IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RESET, 0, 0 },
	{ IBV_QPS_SQD, IBV_QPS_ERR, 0, 0 },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0,
	  IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_AV |
		  IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER |
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_TIMEOUT |
		  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY },
	{ IBV_QPS_ERR, IBV_QPS_RESET, 0, 0 },
	{ IBV_QPS_ERR, IBV_QPS_ERR, 0, 0 },
};
#define TABLE (sizeof(table) / sizeof(*table))

static const enum ibv_qp_state states[] = { IBV_QPS_RESET, IBV_QPS_INIT,
					    IBV_QPS_RTR,   IBV_QPS_RTS,
					    IBV_QPS_SQD,   IBV_QPS_ERR };

static const struct transition *find(enum ibv_qp_state from,
				     enum ibv_qp_state to)
{
	size_t i;

	for (i = 0; i < TABLE; i++)
		if (table[i].from == from && table[i].to == to)
			return &table[i];
	return NULL;
}

static struct opts o;
static struct node n;

/* Replace n.qp by a new QP in @state, connected to itself. */
static void bring_to(enum ibv_qp_state state)
{
	struct addr addr;

	if (n.qp)
		ck_ok(ibv_destroy_qp(n.qp));
	node_make_qp(&n);
	addr = node_addr(&n);
	if (state == IBV_QPS_RESET)
		return;
	qp_to_init(n.qp, &o);
	if (state == IBV_QPS_INIT)
		return;
	if (state == IBV_QPS_ERR) {
		ck_ok(qp_to(n.qp, IBV_QPS_ERR));
		return;
	}
	qp_to_rtr(n.qp, &o, &addr);
	if (state == IBV_QPS_RTR)
		return;
	qp_to_rts(n.qp, &o);
	if (state == IBV_QPS_SQD)
		ck_ok(qp_to(n.qp, IBV_QPS_SQD));
}

static void open_node(void)
{
	o = default_opts();
	node_open(&n, NULL, MEM_HEAP, &o);
}

/* Valid values for all attributes. */
static struct ibv_qp_attr good_attr(enum ibv_qp_state from,
				    enum ibv_qp_state to)
{
	struct addr addr = node_addr(&n);
	struct ibv_qp_attr attr, more;

	attr_rtr(&attr, &o, &addr);
	attr_rts(&more, &o);
	attr.sq_psn = more.sq_psn;
	attr.timeout = more.timeout;
	attr.retry_cnt = more.retry_cnt;
	attr.rnr_retry = more.rnr_retry;
	attr.max_rd_atomic = more.max_rd_atomic;
	attr.port_num = 1;
	attr.qp_access_flags = o.qp_access;
	attr.cur_qp_state = from;
	attr.qp_state = to;
	attr.alt_ah_attr = attr.ah_attr;
	attr.alt_port_num = 1;
	attr.cap = o.cap;
	return attr;
}

static int try(enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = good_attr(from, to);

	return ibv_modify_qp(n.qp, &attr, mask);
}

/*
 * Each transition of the table succeeds with its required attributes.  All
 * other pairs of states fail with EINVAL and leave the state unchanged.
 */
START_TEST(every_pair_of_states)
{
	enum ibv_qp_state from = states[_i / 6], to = states[_i % 6];
	const struct transition *t = find(from, to);
	int ret;

	if (from == IBV_QPS_RESET && to == IBV_QPS_ERR)
		return; /* in the specification, not in the kernel */
	open_node();
	bring_to(from);
	ck_assert_int_eq(qp_state(n.qp), from);
	ret = try(from, to, IBV_QP_STATE | (t ? t->req : 0));
	ck_assert_msg(ret == (t ? 0 : EINVAL), "%d -> %d: %s", from, to,
		      strerror(ret));
	ck_assert_int_eq(qp_state(n.qp), t ? to : from);
	ck_assert_int_eq(n.qp->state, t ? to : from);
	if (!t) {
		/* nor with the attributes of RTR or RTS */
		ret = try(from, to, IBV_QP_STATE | RTR_REQ);
		ck_assert_int_eq(ret, EINVAL);
		ret = try(from, to, IBV_QP_STATE | RTS_REQ);
		ck_assert_int_eq(ret, EINVAL);
		ck_assert_int_eq(qp_state(n.qp), from);
	}
	node_close(&n);
}
END_TEST

/*
 * For each transition: a missing required attribute and an attribute that is
 * neither required nor optional fail with EINVAL and change nothing.  An
 * optional attribute is accepted.
 */
START_TEST(every_mask_bit)
{
	const struct transition *t = &table[_i];
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr before, after;
	int bit, mask, ret, want;

	open_node();
	for (bit = IBV_QP_CUR_STATE; bit <= IBV_QP_RATE_LIMIT; bit <<= 1) {
		if (bit & (NO_APM & ~IBV_QP_ALT_PATH))
			continue;
		if (bit == IBV_QP_CUR_STATE && !(t->opt & bit))
			continue; /* the correct value is harmless */
		bring_to(t->from);
		memset(&before, 0, sizeof(before));
		memset(&after, 0, sizeof(after));
		ck_ok(ibv_query_qp(n.qp, &before, -1, &init));
		mask = IBV_QP_STATE | t->req;
		if (t->req & bit) {
			mask &= ~bit; /* leave out a required bit */
			want = EINVAL;
		} else {
			mask |= bit; /* add a bit that is not required */
			want = t->opt & bit ? 0 : EINVAL;
		}
		ret = try(t->from, t->to, mask);
		ck_assert_msg(ret == want, "%d -> %d, mask %#x: %s", t->from,
			      t->to, mask, strerror(ret));
		ck_assert_int_eq(qp_state(n.qp), want ? t->from : t->to);
		if (want) {
			ck_ok(ibv_query_qp(n.qp, &after, -1, &init));
			ck_assert_mem_eq(&before, &after, sizeof(before));
		}
	}
	bring_to(t->from);
	ck_ok(try(t->from, t->to, IBV_QP_STATE | t->req | t->opt));
	node_close(&n);
}
END_TEST

/*
 * Without IBV_QP_STATE the current state stays, and only attributes that it
 * allows can be changed.
 */
START_TEST(modify_without_state)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = 9 };
	struct ibv_qp_init_attr init;

	open_node();
	bring_to(IBV_QPS_RTS);
	/* min_rnr_timer is allowed in RTS, timeout is not */
	ck_ok(ibv_modify_qp(n.qp, &attr, IBV_QP_MIN_RNR_TIMER));
	ck_ok(ibv_query_qp(n.qp, &attr, IBV_QP_MIN_RNR_TIMER, &init));
	ck_assert_uint_eq(attr.min_rnr_timer, 9);
	ck_assert_int_eq(attr.qp_state, IBV_QPS_RTS);
	ck_assert_int_eq(ibv_modify_qp(n.qp, &attr, IBV_QP_TIMEOUT), EINVAL);
	ck_ok(ibv_modify_qp(n.qp, &attr, 0));
	node_close(&n);
}
END_TEST

/*
 * IBV_QP_CUR_STATE must match the QP's state.  Unknown states, SQE for an RC
 * QP, and unknown mask bits fail with EINVAL.
 */
START_TEST(current_state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .cur_qp_state = IBV_QPS_RTR };

	open_node();
	bring_to(IBV_QPS_RTS);
	ck_assert_int_eq(
		ibv_modify_qp(n.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE),
		EINVAL);
	attr.cur_qp_state = IBV_QPS_RTS;
	ck_ok(ibv_modify_qp(n.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE));
	attr.qp_state = 17;
	ck_assert_int_eq(ibv_modify_qp(n.qp, &attr, IBV_QP_STATE), EINVAL);
	attr.qp_state = IBV_QPS_SQE; /* RC QPs have no SQE */
	ck_assert_int_eq(ibv_modify_qp(n.qp, &attr, IBV_QP_STATE), EINVAL);
	ck_assert_int_eq(ibv_modify_qp(n.qp, &attr, 1 << 30), EINVAL);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_RTS);
	node_close(&n);
}
END_TEST

/* ------------------------------------------------------------- values */

static void bad_port(struct ibv_qp_attr *a)
{
	a->port_num = 2;
}
static void port_0(struct ibv_qp_attr *a)
{
	a->port_num = 0;
}
static void bad_pkey(struct ibv_qp_attr *a)
{
	a->pkey_index = 1;
}
static void mtu_0(struct ibv_qp_attr *a)
{
	a->path_mtu = 0;
}
static void mtu_6(struct ibv_qp_attr *a)
{
	a->path_mtu = 6;
}
static void long_qpn(struct ibv_qp_attr *a)
{
	a->dest_qp_num = 1 << 24;
}
static void many_dest_rd(struct ibv_qp_attr *a)
{
	a->max_dest_rd_atomic = URXE_MAX_RD_ATOM + 1;
}
static void bad_rnr_timer(struct ibv_qp_attr *a)
{
	a->min_rnr_timer = 32;
}
static void not_global(struct ibv_qp_attr *a)
{
	a->ah_attr.is_global = 0;
}
static void empty_sgid(struct ibv_qp_attr *a)
{
	a->ah_attr.grh.sgid_index = URXE_MAX_GID - 1;
}
static void bad_ah_port(struct ibv_qp_attr *a)
{
	a->ah_attr.port_num = 2;
}
static void zero_dgid(struct ibv_qp_attr *a)
{
	memset(&a->ah_attr.grh.dgid, 0, 16);
}
static void foreign_dgid(struct ibv_qp_attr *a)
{
	memset(&a->ah_attr.grh.dgid, 0x5c, 16);
	a->ah_attr.grh.dgid.raw[0] = 0xfd;
}
static void bad_timeout(struct ibv_qp_attr *a)
{
	a->timeout = 32;
}
static void bad_retry(struct ibv_qp_attr *a)
{
	a->retry_cnt = 8;
}
static void bad_rnr_retry(struct ibv_qp_attr *a)
{
	a->rnr_retry = 8;
}
static void many_rd(struct ibv_qp_attr *a)
{
	a->max_rd_atomic = URXE_MAX_RD_ATOM + 1;
}

static const struct bad_value {
	enum ibv_qp_state from;
	void (*spoil)(struct ibv_qp_attr *attr);
	int err;
} bad_values[] = {
	{ IBV_QPS_RESET, bad_port, EINVAL },
	{ IBV_QPS_RESET, port_0, EINVAL },
	{ IBV_QPS_RESET, bad_pkey, EINVAL },
	{ IBV_QPS_INIT, mtu_0, EINVAL },
	{ IBV_QPS_INIT, mtu_6, EINVAL },
	{ IBV_QPS_INIT, long_qpn, EINVAL },
	{ IBV_QPS_INIT, many_dest_rd, EINVAL },
	{ IBV_QPS_INIT, bad_rnr_timer, EINVAL },
	{ IBV_QPS_INIT, not_global, EINVAL },
	{ IBV_QPS_INIT, empty_sgid, EINVAL },
	{ IBV_QPS_INIT, bad_ah_port, EINVAL },
	{ IBV_QPS_INIT, zero_dgid, EHOSTUNREACH },
	{ IBV_QPS_INIT, foreign_dgid, EHOSTUNREACH },
	{ IBV_QPS_RTR, bad_timeout, EINVAL },
	{ IBV_QPS_RTR, bad_retry, EINVAL },
	{ IBV_QPS_RTR, bad_rnr_retry, EINVAL },
	{ IBV_QPS_RTR, many_rd, EINVAL },
};
#define BAD_VALUES (sizeof(bad_values) / sizeof(*bad_values))

/*
 * A value out of range fails and leaves all attributes unchanged.  A DGID
 * that no device has fails with EHOSTUNREACH, everything else with EINVAL.
 */
START_TEST(values_out_of_range)
{
	const struct bad_value *v = &bad_values[_i];
	const struct transition *t = find(v->from, v->from + 1);
	struct ibv_qp_attr attr, before, after;
	struct ibv_qp_init_attr init;
	int ret;

	open_node();
	bring_to(v->from);
	memset(&before, 0, sizeof(before));
	memset(&after, 0, sizeof(after));
	ck_ok(ibv_query_qp(n.qp, &before, -1, &init));
	attr = good_attr(t->from, t->to);
	v->spoil(&attr);
	ret = ibv_modify_qp(n.qp, &attr, IBV_QP_STATE | t->req);
	ck_assert_int_eq(ret, v->err);
	ck_ok(ibv_query_qp(n.qp, &after, -1, &init));
	ck_assert_mem_eq(&before, &after, sizeof(before));
	/* valid values are still accepted */
	ck_ok(try(t->from, t->to, IBV_QP_STATE | t->req));
	node_close(&n);
}
END_TEST

/* The largest valid values of all attributes, with each MTU, are accepted. */
START_TEST(extreme_values)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	int mtu;

	open_node();
	for (mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
		bring_to(IBV_QPS_INIT);
		attr = good_attr(IBV_QPS_INIT, IBV_QPS_RTR);
		attr.path_mtu = mtu;
		attr.rq_psn = 0xffffff;
		attr.max_dest_rd_atomic = URXE_MAX_RD_ATOM;
		attr.min_rnr_timer = 31;
		ck_ok(ibv_modify_qp(n.qp, &attr, IBV_QP_STATE | RTR_REQ));
		attr.qp_state = IBV_QPS_RTS;
		attr.sq_psn = 0xffffff;
		attr.timeout = 31;
		attr.retry_cnt = 7;
		attr.rnr_retry = 7;
		attr.max_rd_atomic = URXE_MAX_RD_ATOM;
		ck_ok(ibv_modify_qp(n.qp, &attr, IBV_QP_STATE | RTS_REQ));
		ck_ok(ibv_query_qp(n.qp, &attr, -1, &init));
		ck_assert_int_eq(attr.path_mtu, mtu);
		ck_assert_uint_eq(attr.rq_psn, 0xffffff);
		ck_assert_uint_eq(attr.sq_psn, 0xffffff);
	}
	node_close(&n);
}
END_TEST

/*
 * A PSN is truncated to 24 bits.  Programs pass larger values, of which NICs
 * use the low 24 bits.
 */
START_TEST(psns_have_24_bits)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	open_node();
	bring_to(IBV_QPS_INIT);
	attr = good_attr(IBV_QPS_INIT, IBV_QPS_RTR);
	attr.rq_psn = 0x87654321;
	ck_ok(ibv_modify_qp(n.qp, &attr, IBV_QP_STATE | RTR_REQ));
	attr = good_attr(IBV_QPS_RTR, IBV_QPS_RTS);
	attr.sq_psn = 0x12345678;
	ck_ok(ibv_modify_qp(n.qp, &attr, IBV_QP_STATE | RTS_REQ));
	ck_ok(ibv_query_qp(n.qp, &attr, -1, &init));
	ck_assert_uint_eq(attr.rq_psn, 0x654321);
	ck_assert_uint_eq(attr.sq_psn, 0x345678);
	node_close(&n);
}
END_TEST

/* ibv_query_qp returns all attributes as set by ibv_modify_qp. */
START_TEST(query)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	open_node();
	o.mtu = IBV_MTU_2048;
	o.timeout = 13;
	o.retry_cnt = 5;
	o.rnr_retry = 4;
	o.min_rnr_timer = 12;
	o.max_rd_atomic = 3;
	o.max_dest_rd_atomic = 2;
	o.qp_access = IBV_ACCESS_REMOTE_READ;
	n.o = o;
	bring_to(IBV_QPS_RTS);
	memset(&attr, 0xee, sizeof(attr));
	memset(&init, 0xee, sizeof(init));
	ck_ok(ibv_query_qp(n.qp, &attr, -1, &init));
	ck_assert_int_eq(attr.qp_state, IBV_QPS_RTS);
	ck_assert_int_eq(attr.cur_qp_state, IBV_QPS_RTS);
	ck_assert_int_eq(attr.path_mtu, IBV_MTU_2048);
	ck_assert_uint_eq(attr.rq_psn, o.psn);
	ck_assert_uint_eq(attr.sq_psn, o.psn);
	ck_assert_uint_eq(attr.dest_qp_num, n.qp->qp_num);
	ck_assert_uint_eq(attr.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	ck_assert_uint_eq(attr.pkey_index, 0);
	ck_assert_uint_eq(attr.port_num, 1);
	ck_assert_uint_eq(attr.timeout, 13);
	ck_assert_uint_eq(attr.retry_cnt, 5);
	ck_assert_uint_eq(attr.rnr_retry, 4);
	ck_assert_uint_eq(attr.min_rnr_timer, 12);
	ck_assert_uint_eq(attr.max_rd_atomic, 3);
	ck_assert_uint_eq(attr.max_dest_rd_atomic, 2);
	ck_assert_uint_eq(attr.sq_draining, 0);
	ck_assert_uint_eq(attr.ah_attr.is_global, 1);
	ck_assert_mem_eq(&attr.ah_attr.grh.dgid, &n.gid, 16);
	ck_assert_uint_eq(attr.ah_attr.grh.sgid_index, 0);
	ck_assert_uint_eq(attr.ah_attr.port_num, 1);
	ck_assert_mem_eq(&attr.cap, &o.cap, sizeof(o.cap));
	ck_assert_mem_eq(&init.cap, &o.cap, sizeof(o.cap));
	ck_assert_ptr_eq(init.qp_context, &n);
	ck_assert_ptr_eq(init.send_cq, n.scq);
	ck_assert_ptr_eq(init.recv_cq, n.rcq);
	ck_assert_ptr_null(init.srq);
	ck_assert_int_eq(init.qp_type, IBV_QPT_RC);
	ck_assert_int_eq(init.sq_sig_all, 0);
	node_close(&n);
}
END_TEST

/*
 * After a transition to RESET, from RTS or from ERR, both QPs can be
 * connected again and transfer data.
 */
START_TEST(reset_and_reconnect)
{
	struct opts opts = default_opts();
	struct duo d;
	int i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &opts);
	for (i = 0; i < 5; i++) {
		b_recv(&d, i, 0, 64);
		ck_ok(post(&d, IBV_WR_SEND, i, 0, 8, 0, 0));
		expect_ok(d.a.scq, i, IBV_WC_SEND);
		ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
		ck_ok(qp_to(d.a.qp, i % 2 ? IBV_QPS_RESET : IBV_QPS_ERR));
		ck_ok(qp_to(d.a.qp, IBV_QPS_RESET));
		b_modify(&d, IBV_QPS_RESET);
		duo_connect(&d);
	}
	duo_close(&d);
}
END_TEST

/* ibv_destroy_qp succeeds in every state (bring_to() destroys the QP). */
START_TEST(destroy_in_every_state)
{
	size_t i;

	open_node();
	for (i = 0; i < 6; i++)
		bring_to(states[i]);
	node_close(&n);
}
END_TEST

int main(void)
{
	Suite *s = suite("qp_state");

	add_loop(s, every_pair_of_states, 36);
	add_loop(s, every_mask_bit, (int)TABLE);
	add(s, modify_without_state);
	add(s, current_state);
	add_loop(s, values_out_of_range, (int)BAD_VALUES);
	add(s, extreme_values);
	add(s, psns_have_24_bits);
	add(s, query);
	add_loop(s, reset_and_reconnect, WHERE_COUNT);
	add(s, destroy_in_every_state);
	return run(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Multicast groups of UD QPs: attaching, detaching and delivery. */
#include <arpa/inet.h>
#include <signal.h>
#include <string.h>

#include "shared/layout.h"
#include "../types.h"

#define MCAST_QPN 0xffffff

/* Return the GID of group @i: IPv6, or IPv4 in its mapped form. */
static union ibv_gid group(uint32_t i, bool ipv4)
{
	union ibv_gid gid = { .raw = { 0xff, 0x0e } };

	if (ipv4) {
		memset(&gid, 0, sizeof(gid));
		gid.raw[10] = gid.raw[11] = 0xff;
		gid.raw[12] = 239;
	}
	gid.raw[13] = (uint8_t)(i >> 16);
	gid.raw[14] = (uint8_t)(i >> 8);
	gid.raw[15] = (uint8_t)i;
	return gid;
}

static void open_ud(struct duo *d, enum where where)
{
	struct opts o = default_opts();

	duo_open_unconnected(d, where, MEM_HEAP, MEM_HEAP, &o);
	turn(d, IBV_QPT_UD);
}

#define COPIES 4

struct members {
	union ibv_gid gid;
	uint32_t qpn[COPIES];
};

/* Create QPs of b, attach them, and post a receive for each. */
static void do_attach(struct node *b, void *arg)
{
	static struct ibv_qp *qp[COPIES];
	struct members *m = arg;
	int i;

	b->user = qp;
	for (i = 0; i < COPIES; i++) {
		qp[i] = make_qp(b, IBV_QPT_UD, NULL);
		type_connect(qp[i], &b->o, NULL);
		ck_ok(qp_recv(qp[i], b, (uint64_t)i, 1024 * (size_t)i, 1024));
		ck_ok(ibv_attach_mcast(qp[i], &m->gid, 0));
		m->qpn[i] = qp[i]->qp_num;
	}
}

static void do_detach(struct node *b, void *arg)
{
	struct ibv_qp **qp = b->user;
	struct members *m = arg;
	int i;

	for (i = 0; i < COPIES; i++) {
		/* an attached QP cannot be destroyed */
		ck_assert_int_eq(ibv_destroy_qp(qp[i]), EBUSY);
		ck_ok(ibv_detach_mcast(qp[i], &m->gid, 0));
		ck_ok(ibv_destroy_qp(qp[i]));
	}
}

/* Each attached QP receives a copy of a datagram to the group. */
START_TEST(replication)
{
	const bool ipv4 = _i / WHERE_COUNT;
	struct members m = { .gid = group(1, ipv4) };
	uint32_t got = 0;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct duo d;
	int i;

	open_ud(&d, _i % WHERE_COUNT);
	on_b(&d, do_attach, &m, sizeof(m));
	ah = make_ah(&d.a, &m.gid, 0);
	node_fill(&d.a, 0, 500, 1);
	ck_ok(post_ud(&d.a, 1, 0, 500, ah, MCAST_QPN, QKEY));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	for (i = 0; i < COPIES; i++) {
		wc = b_wait_recv(&d);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.byte_len, GRH + 500);
		ck_assert_uint_eq(wc.src_qp, d.a.qp->qp_num);
		ck_assert_uint_eq(wc.qp_num, m.qpn[wc.wr_id]);
		ck_assert(b_has(&d, 1024 * wc.wr_id + GRH, 500, 1));
		got |= 1u << wc.wr_id;
	}
	ck_assert_uint_eq(got, (1u << COPIES) - 1);
	/* no receives are left: the datagram is dropped */
	ck_ok(post_ud(&d.a, 2, 0, 8, ah, MCAST_QPN, QKEY));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	ck_ok(ibv_destroy_ah(ah));
	on_b(&d, do_detach, &m, sizeof(m));
	duo_close(&d);
}
END_TEST

/*
 * Only QPs that are attached to the destination group, and have the Q_Key of
 * the datagram, receive it.
 */
START_TEST(not_delivered_to_others)
{
	union ibv_gid one = group(1, false), two = group(2, false);
	struct ibv_ah *ah;
	struct duo d;

	open_ud(&d, SAME_PROCESS);
	ck_ok(ibv_attach_mcast(d.b.qp, &one, 0));
	b_recv(&d, 1, 0, 256);
	ah = make_ah(&d.a, &two, 0);
	ck_ok(post_ud(&d.a, 1, 0, 8, ah, MCAST_QPN, QKEY));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_ok(ibv_destroy_ah(ah));
	ah = make_ah(&d.a, &one, 0);
	ck_ok(post_ud(&d.a, 1, 0, 8, ah, MCAST_QPN, QKEY + 1));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	expect_none(d.b.rcq, QUIET_MS);
	ck_ok(post_ud(&d.a, 1, 0, 8, ah, MCAST_QPN, QKEY));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	/* after detaching nothing is received */
	ck_ok(ibv_detach_mcast(d.b.qp, &one, 0));
	b_recv(&d, 1, 0, 256);
	ck_ok(post_ud(&d.a, 1, 0, 8, ah, MCAST_QPN, QKEY));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	expect_none(d.b.rcq, QUIET_MS);
	ck_ok(ibv_destroy_ah(ah));
	duo_close(&d);
}
END_TEST

/*
 * EINVAL for a QP that is not UD, a GID that is not a multicast one, and a QP
 * that is not attached.
 */
START_TEST(errors)
{
	union ibv_gid gid = group(1, false), odd = group(7, true), plain;
	struct opts o = default_opts();
	struct ibv_qp *rc;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	rc = n.qp;
	n.qp = make_qp(&n, IBV_QPT_UD, NULL);
	ck_assert_int_eq(ibv_attach_mcast(rc, &gid, 0), EINVAL);
	ck_assert_int_eq(ibv_detach_mcast(rc, &gid, 0), EINVAL);
	plain = n.gid;
	ck_assert_int_eq(ibv_attach_mcast(n.qp, &plain, 0), EINVAL);
	odd.raw[12] = 223; /* 223.0.0.0/8 is unicast */
	ck_assert_int_eq(ibv_attach_mcast(n.qp, &odd, 0), EINVAL);
	odd.raw[12] = 240; /* 240.0.0.0/4 is reserved */
	ck_assert_int_eq(ibv_attach_mcast(n.qp, &odd, 0), EINVAL);
	ck_assert_int_eq(ibv_detach_mcast(n.qp, &gid, 0), EINVAL);
	/* attaching twice has the effect of attaching once */
	ck_ok(ibv_attach_mcast(n.qp, &gid, 0));
	ck_ok(ibv_attach_mcast(n.qp, &gid, 0));
	ck_ok(ibv_detach_mcast(n.qp, &gid, 0));
	ck_assert_int_eq(ibv_detach_mcast(n.qp, &gid, 0), EINVAL);
	ck_ok(ibv_destroy_qp(rc));
	node_close(&n);
}
END_TEST

/* max_mcast_grp groups can exist; another one is ENOMEM. */
START_TEST(max_groups)
{
	struct opts o = default_opts();
	struct ibv_device_attr dev;
	union ibv_gid gid;
	struct node n;
	int i;

	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(ibv_destroy_qp(n.qp));
	n.qp = make_qp(&n, IBV_QPT_UD, NULL);
	ck_ok(ibv_query_device(n.ctx, &dev));
	for (i = 0; i < dev.max_mcast_grp; i++) {
		gid = group((uint32_t)i, i % 2);
		ck_ok(ibv_attach_mcast(n.qp, &gid, 0));
	}
	gid = group(70000, false);
	ck_assert_int_eq(ibv_attach_mcast(n.qp, &gid, 0), ENOMEM);
	gid = group(5, true);
	ck_ok(ibv_detach_mcast(n.qp, &gid, 0));
	gid = group(70000, false);
	ck_ok(ibv_attach_mcast(n.qp, &gid, 0));
	ck_ok(ibv_detach_mcast(n.qp, &gid, 0));
	for (i = 0; i < dev.max_mcast_grp; i++) {
		gid = group((uint32_t)i, i % 2);
		if (i != 5)
			ck_ok(ibv_detach_mcast(n.qp, &gid, 0));
	}
	node_close(&n);
}
END_TEST

/*
 * max_mcast_qp_attach QPs can be attached to a group, and each receives a
 * copy; another one is ENOMEM.
 */
START_TEST(max_attached_qps)
{
	struct ibv_qp *qp[URXE_MAX_MCAST_ATTACH + 1];
	union ibv_gid gid = group(9, true);
	struct opts o = default_opts();
	struct ibv_device_attr dev;
	struct ibv_ah *ah;
	struct node n;
	int i, max;

	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(ibv_destroy_qp(n.qp));
	n.qp = make_qp(&n, IBV_QPT_UD, NULL);
	type_connect(n.qp, &o, NULL);
	ck_ok(ibv_query_device(n.ctx, &dev));
	max = dev.max_mcast_qp_attach;
	ck_assert_int_eq(max, URXE_MAX_MCAST_ATTACH);
	for (i = 0; i <= max; i++) {
		qp[i] = make_qp(&n, IBV_QPT_UD, NULL);
		type_connect(qp[i], &o, NULL);
		ck_ok(qp_recv(qp[i], &n, (uint64_t)i, 512 * (size_t)i, 512));
		ck_assert_int_eq(ibv_attach_mcast(qp[i], &gid, 0),
				 i < max ? 0 : ENOMEM);
	}
	ah = make_ah(&n, &gid, 0);
	ck_ok(post_ud(&n, 1, 40000, 300, ah, MCAST_QPN, QKEY));
	expect_ok(n.scq, 1, IBV_WC_SEND);
	for (i = 0; i < max; i++)
		ck_assert_int_eq(wait_wc(n.rcq).status, IBV_WC_SUCCESS);
	expect_none(n.rcq, 1);
	for (i = 0; i <= max; i++) {
		if (i < max)
			ck_ok(ibv_detach_mcast(qp[i], &gid, 0));
		ck_ok(ibv_destroy_qp(qp[i]));
	}
	ck_ok(ibv_destroy_ah(ah));
	node_close(&n);
}
END_TEST

/*
 * QPs of a killed process leave their groups: other QPs can be attached in
 * their place.
 */
START_TEST(dead_members)
{
	struct members m = { .gid = group(3, false) };
	struct ibv_qp *qp[URXE_MAX_MCAST_ATTACH];
	struct ibv_context *other;
	struct ibv_ah *ah;
	struct duo d;
	int i;

	open_ud(&d, TWO_PROCESSES);
	on_b(&d, do_attach, &m, sizeof(m));
	ah = make_ah(&d.a, &m.gid, 0);
	ck_ok(post_ud(&d.a, 1, 0, 500, ah, MCAST_QPN, QKEY));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	kill(d.pid, SIGKILL);
	ck_assert_int_eq(reap_child(d.pid), -SIGKILL);
	for (i = 0; i < 10; i++) {
		ck_ok(post_ud(&d.a, 2, 0, 500, ah, MCAST_QPN, QKEY));
		expect_ok(d.a.scq, 2, IBV_WC_SEND);
	}
	/* opening the device reaps the killed process */
	other = open_device();
	for (i = 0; i < URXE_MAX_MCAST_ATTACH; i++) {
		qp[i] = make_qp(&d.a, IBV_QPT_UD, NULL);
		ck_ok(ibv_attach_mcast(qp[i], &m.gid, 0));
	}
	for (i = 0; i < URXE_MAX_MCAST_ATTACH; i++) {
		ck_ok(ibv_detach_mcast(qp[i], &m.gid, 0));
		ck_ok(ibv_destroy_qp(qp[i]));
	}
	ck_ok(ibv_destroy_ah(ah));
	ck_ok(ibv_close_device(other));
	node_close(&d.a);
}
END_TEST

/*
 * With IBV_QP_CREATE_BLOCK_SELF_MCAST_LB (_i == 1) the sending QP does not
 * receive its own datagrams; without it, it does. Other members receive them
 * in both cases.
 */
START_TEST(own_datagrams)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.create_flags = _i ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0,
	};
	union ibv_gid gid = group(1, false);
	struct ibv_ah *ah;
	struct duo d;

	open_ud(&d, SAME_CONTEXT);
	ck_ok(ibv_destroy_qp(d.a.qp));
	init.pd = d.a.pd;
	init.send_cq = d.a.scq;
	init.recv_cq = d.a.rcq;
	init.cap = d.a.o.cap;
	d.a.qp = ibv_create_qp_ex(d.a.ctx, &init);
	ck_nonnull(d.a.qp);
	type_connect(d.a.qp, &d.a.o, NULL);
	ck_ok(ibv_attach_mcast(d.a.qp, &gid, 0));
	ck_ok(ibv_attach_mcast(d.b.qp, &gid, 0));
	ck_ok(post_recv(&d.a, 1, 1024, 256));
	b_recv(&d, 2, 1024, 256);
	ah = make_ah(&d.a, &gid, 0);
	ck_ok(post_ud(&d.a, 3, 0, 8, ah, MCAST_QPN, QKEY));
	expect_ok(d.a.scq, 3, IBV_WC_SEND);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	if (_i)
		expect_none(d.a.rcq, QUIET_MS);
	else
		expect_ok(d.a.rcq, 1, IBV_WC_RECV);
	ck_ok(ibv_destroy_ah(ah));
	/* datagrams of other QPs are received */
	ah = make_ah(&d.b, &gid, 0);
	ck_ok(post_ud(&d.b, 4, 0, 8, ah, MCAST_QPN, QKEY));
	expect_ok(d.b.scq, 4, IBV_WC_SEND);
	if (_i)
		expect_ok(d.a.rcq, 1, IBV_WC_RECV);
	ck_ok(ibv_destroy_ah(ah));
	ck_ok(ibv_detach_mcast(d.a.qp, &gid, 0));
	ck_ok(ibv_detach_mcast(d.b.qp, &gid, 0));
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("mcast");

	add_loop(s, replication, 2 * WHERE_COUNT);
	add(s, not_delivered_to_others);
	add_loop(s, own_datagrams, 2);
	add(s, errors);
	add(s, max_groups);
	add(s, max_attached_qps);
	add(s, dead_members);
	return run(s);
}

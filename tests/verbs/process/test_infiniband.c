// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The link layer InfiniBand (urxe run --link-layer): LIDs, GRHs, P_Keys and
 * their changes.  Node a is on urxe0, node b on urxe1; urxe2 is an Ethernet
 * device.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../types.h"

#define PKEYS 32

static struct opts few_retries(void)
{
	struct opts o = default_opts();

	o.timeout = 8;
	o.retry_cnt = 1;
	return o;
}

static void open_two(struct duo *d, enum where where, const struct opts *o)
{
	device = "urxe0";
	device_b = "urxe1";
	duo_open_unconnected(d, where, MEM_HEAP, MEM_SHARED, o);
}

/* Attributes, GID table, P_Key table and files of an InfiniBand port. */
START_TEST(identity)
{
	struct ibv_context *ctx = open_named("urxe1");
	struct ibv_port_attr port = port_of(ctx);
	const uint64_t guid = ibv_get_device_guid(ctx->device);
	union ibv_gid gid;
	__be16 pkey;
	int i;

	ck_assert_int_eq(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
	ck_assert_int_eq(port.flags & IBV_QPF_GRH_REQUIRED, 0);
	ck_assert_uint_eq(port.lid, 2);
	ck_assert_uint_eq(port.sm_lid, 1);
	ck_assert_uint_eq(port.lmc, 0);
	ck_assert_int_eq(port.pkey_tbl_len, PKEYS);
	ck_assert_int_eq(port.gid_tbl_len, 8);
	ck_assert_uint_eq(port_file(1, "lid"), 2);
	ck_assert_uint_eq(port_file(1, "sm_lid"), 1);
	/* the prefix of the subnet and the GUID of the port */
	ck_ok(ibv_query_gid(ctx, 1, 0, &gid));
	ck_assert_int_eq(gid.raw[0], 0xfe);
	ck_assert_int_eq(gid.raw[1], 0x80);
	ck_assert(gid.global.interface_id == guid);
	for (i = 1; i < port.gid_tbl_len; i++) {
		ck_ok(ibv_query_gid(ctx, 1, i, &gid));
		ck_assert(!gid.global.subnet_prefix);
		ck_assert(!gid.global.interface_id);
	}
	for (i = 0; i < PKEYS; i++) {
		ck_ok(ibv_query_pkey(ctx, 1, i, &pkey));
		ck_assert_int_eq(pkey, i ? 0 : 0xffff);
	}
	ck_assert_int_ne(ibv_query_pkey(ctx, 1, PKEYS, &pkey), 0);
	ck_ok(ibv_close_device(ctx));
	/* the third device is an Ethernet device */
	ctx = open_named("urxe2");
	port = port_of(ctx);
	ck_assert_int_eq(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	ck_assert_uint_eq(port.lid, 0);
	ck_assert_int_eq(port.pkey_tbl_len, 1);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

START_TEST(gid_entry)
{
	struct ibv_context *ctx = open_named("urxe0");
	struct ibv_gid_entry entry;

	ck_ok(ibv_query_gid_ex(ctx, 1, 0, &entry, 0));
	ck_assert_int_eq(entry.gid_type, IBV_GID_TYPE_IB);
	ck_assert_int_eq(entry.ndev_ifindex, 0);
	ck_assert_int_eq(ibv_query_gid_table(ctx, &entry, 1, 0), 1);
	ck_assert_int_eq(entry.gid_type, IBV_GID_TYPE_IB);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* ------------------------------------------------------- connections */

/* How an end is connected, next to the attributes of attr_rtr(). */
struct av {
	struct addr peer;
	bool global;
	uint8_t path_bits;
	uint16_t pkey_index;
};

static void connect_by(struct node *n, struct av *av)
{
	struct ibv_qp_attr attr;
	int mask = attr_init(&attr, &n->o);

	attr.pkey_index = av->pkey_index;
	ck_ok(ibv_modify_qp(n->qp, &attr, mask));
	mask = attr_rtr(&attr, &n->o, &av->peer);
	attr.ah_attr.is_global = av->global;
	attr.ah_attr.src_path_bits = av->path_bits;
	ck_ok(ibv_modify_qp(n->qp, &attr, mask));
	qp_to_rts(n->qp, &n->o);
}

static void do_connect_by(struct node *b, void *av)
{
	connect_by(b, av);
}

static void connect_both(struct duo *d, struct av *a, struct av *b)
{
	on_b(d, do_connect_by, b, sizeof(*b));
	connect_by(&d->a, a);
}

static void write_ok(struct duo *d, uint64_t id)
{
	ck_ok(post(d, IBV_WR_RDMA_WRITE, id, 0, 64, 0, 0));
	expect_ok(d->a.scq, id, IBV_WC_RDMA_WRITE);
}

static void write_lost(struct duo *d, uint64_t id)
{
	ck_ok(post(d, IBV_WR_RDMA_WRITE, id, 0, 64, 0, 0));
	expect(d->a.scq, id, IBV_WC_RETRY_EXC_ERR);
}

/* By LID alone, and with a GRH. */
START_TEST(rc)
{
	struct opts o = default_opts();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct duo d;

	open_two(&d, SAME_PROCESS + (enum where)(_i / 2), &o);
	connect_both(&d, &(struct av){ d.at_b, .global = _i % 2 },
		     &(struct av){ d.at_a, .global = _i % 2 });
	node_fill(&d.a, 0, 4096, 1);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 4096, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_assert(b_has(&d, 0, 4096, 1));
	b_recv(&d, 2, 8192, 64);
	ck_ok(post(&d, IBV_WR_SEND, 3, 0, 64, 0, 0));
	expect_ok(d.a.scq, 3, IBV_WC_SEND);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	ck_ok(ibv_query_qp(d.a.qp, &attr, IBV_QP_AV, &init));
	ck_assert_uint_eq(attr.ah_attr.dlid, d.at_b.lid);
	ck_assert_int_eq(attr.ah_attr.is_global, _i % 2);
	duo_close(&d);
}
END_TEST

/* Addresses that do not match: nothing responds. */
enum mismatch { LID_THERE, LID_HERE, NO_LID, GRH_HERE, OTHER_DGID, MISMATCHES };

START_TEST(mismatches)
{
	struct opts o = few_retries();
	struct av a, b;
	struct duo d;

	open_two(&d, SAME_PROCESS, &o);
	a = (struct av){ .peer = d.at_b };
	b = (struct av){ .peer = d.at_a };
	switch ((enum mismatch)_i) {
	case LID_THERE:
		a.peer.lid = 77;
		break;
	case LID_HERE:
		b.peer.lid = 77;
		break;
	case NO_LID:
		a.peer.lid = 0;
		break;
	case GRH_HERE:
		a.global = true;
		break;
	case OTHER_DGID:
		a.global = b.global = true;
		a.peer.gid = d.at_a.gid;
		break;
	case MISMATCHES:
		break;
	}
	connect_both(&d, &a, &b);
	write_lost(&d, 1);
	duo_close(&d);
}
END_TEST

/* A QP of an InfiniBand device and one of an Ethernet device: no link. */
START_TEST(no_link)
{
	struct opts o = few_retries();
	struct duo d;

	device = _i ? "urxe0" : "urxe2";
	device_b = _i ? "urxe2" : "urxe0";
	duo_open_unconnected(&d, SAME_PROCESS, MEM_HEAP, MEM_SHARED, &o);
	connect_both(&d, &(struct av){ d.at_b, .global = true },
		     &(struct av){ d.at_a, .global = true });
	write_lost(&d, 1);
	duo_close(&d);
}
END_TEST

/*
 * The port of one end gets another LID: the connection breaks, and only
 * contexts of its device get the event.  Connected again, it works.
 */
START_TEST(lid_change)
{
	struct opts o = few_retries();
	const char *who = _i ? "urxe0" : "urxe1";
	struct duo d;

	open_two(&d, SAME_PROCESS, &o);
	duo_connect(&d);
	write_ok(&d, 1);
	urxe_port_set(who, "lid=9");
	if (_i) {
		expect_async(d.a.ctx, IBV_EVENT_LID_CHANGE, NULL);
		expect_no_async(d.b.ctx);
	} else {
		expect_async(d.b.ctx, IBV_EVENT_LID_CHANGE, NULL);
		expect_no_async(d.a.ctx);
	}
	ck_assert_uint_eq(port_of(_i ? d.a.ctx : d.b.ctx).lid, 9);
	ck_assert_uint_eq(port_file(_i ? 0 : 1, "lid"), 9);
	write_lost(&d, 2);
	if (_i)
		d.a.lid = 9;
	else
		d.b.lid = 9;
	duo_renew(&d);
	write_ok(&d, 3);
	/* it also works after the same LID is assigned again */
	urxe_port_set(who, "lid=9");
	write_ok(&d, 4);
	urxe_port_set(who, _i ? "lid=1" : "lid=2");
	duo_close(&d);
}
END_TEST

/* With LMC 2 a port has four LIDs. */
START_TEST(lmc)
{
	struct opts o = few_retries();
	struct av a, b;
	struct duo d;

	open_two(&d, SAME_PROCESS, &o);
	urxe_port_set("urxe1", "lid=8");
	urxe_port_set("urxe1", "lmc=2");
	ck_assert_uint_eq(port_of(d.b.ctx).lmc, 2);
	ck_assert_uint_eq(port_file(1, "lid_mask_count"), 2);
	a = (struct av){ .peer = d.at_b };
	b = (struct av){ .peer = d.at_a, .path_bits = 3 };
	a.peer.lid = (uint16_t)(7 + _i);
	connect_both(&d, &a, &b);
	if (_i >= 1 && _i <= 4)
		write_ok(&d, 1);
	else
		write_lost(&d, 1);
	urxe_port_set("urxe1", "lmc=0");
	urxe_port_set("urxe1", "lid=2");
	duo_close(&d);
}
END_TEST

START_TEST(sm_change)
{
	struct ibv_context *a = open_named("urxe0"), *b = open_named("urxe1");

	urxe_port_set("urxe1", "sm_lid=5");
	expect_async(b, IBV_EVENT_SM_CHANGE, NULL);
	expect_no_async(a);
	ck_assert_uint_eq(port_of(b).sm_lid, 5);
	ck_assert_uint_eq(port_file(1, "sm_lid"), 5);
	urxe_port_set("urxe1", "sm_lid=1");
	ck_ok(ibv_close_device(a));
	ck_ok(ibv_close_device(b));
}
END_TEST

/* ------------------------------------------------------- partitions */

static const struct partition {
	uint16_t a, b;
	bool match;
} partitions[] = {
	{ 0xffff, 0xffff, true },  { 0x8001, 0x8001, true },
	{ 0x8001, 0x0001, true },  { 0x0001, 0x8001, true },
	{ 0x0001, 0x0001, false }, { 0x8001, 0x8002, false },
	{ 0xffff, 0x8001, false }, { 0, 0, false },
};
#define PARTITIONS (int)(sizeof(partitions) / sizeof(*partitions))

static void set_pkey(const char *name, uint16_t pkey)
{
	char text[32];

	snprintf(text, sizeof(text), "pkeys=0xffff,0x7002,0x%x", pkey);
	urxe_port_set(name, text);
}

static void reset_pkeys(void)
{
	urxe_port_set("urxe0", "pkeys=0xffff");
	urxe_port_set("urxe1", "pkeys=0xffff");
}

/* P_Keys of both ends, in entry 2 of the tables. */
START_TEST(pkeys)
{
	const struct partition *p = &partitions[_i];
	struct opts o = few_retries();
	uint32_t bad;
	__be16 pkey;
	struct duo d;

	set_pkey("urxe0", p->a);
	set_pkey("urxe1", p->b);
	open_two(&d, SAME_PROCESS, &o);
	ck_ok(ibv_query_pkey(d.b.ctx, 1, 2, &pkey));
	ck_assert_int_eq(be16toh(pkey), p->b);
	ck_assert_uint_eq(port_file(1, "pkeys/2"), p->b);
	bad = port_of(d.b.ctx).bad_pkey_cntr;
	connect_both(&d, &(struct av){ d.at_b, .pkey_index = 2 },
		     &(struct av){ d.at_a, .pkey_index = 2 });
	if (p->match)
		write_ok(&d, 1);
	else
		write_lost(&d, 1);
	ck_assert_int_eq(port_of(d.b.ctx).bad_pkey_cntr > bad, !p->match);
	duo_close(&d);
	reset_pkeys();
}
END_TEST

/* The P_Key of a connection changes while it is in use. */
START_TEST(pkey_change)
{
	struct opts o = few_retries();
	struct duo d;

	open_two(&d, SAME_PROCESS, &o);
	duo_connect(&d);
	write_ok(&d, 1);
	urxe_port_set("urxe1", "pkeys=0x7fff,0x8001");
	expect_async(d.b.ctx, IBV_EVENT_PKEY_CHANGE, NULL);
	expect_no_async(d.a.ctx);
	write_ok(&d, 2); /* a limited member reaches a full one */
	urxe_port_set("urxe1", "pkeys=0x8001");
	write_lost(&d, 3);
	duo_close(&d);
	reset_pkeys();
}
END_TEST

static void do_second_pkey(struct node *n, void *arg)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .pkey_index = 1 };

	(void)arg;
	ck_ok(ibv_modify_qp(n->qp, &attr, IBV_QP_STATE));
	ck_ok(ibv_modify_qp(n->qp, &attr, IBV_QP_PKEY_INDEX));
	attr.qp_state = IBV_QPS_RTS;
	ck_ok(ibv_modify_qp(n->qp, &attr, IBV_QP_STATE));
}

/* pkey_index changes in SQD, at the requester or at the responder. */
START_TEST(pkey_index_in_sqd)
{
	struct opts o = few_retries();
	struct duo d;

	urxe_port_set("urxe0", "pkeys=0xffff,0x8001");
	urxe_port_set("urxe1", "pkeys=0xffff,0x8001");
	open_two(&d, SAME_PROCESS, &o);
	duo_connect(&d);
	write_ok(&d, 1);
	do_second_pkey(_i ? &d.b : &d.a, NULL);
	write_lost(&d, 2);
	duo_close(&d);
	reset_pkeys();
}
END_TEST

START_TEST(pkey_index)
{
	struct opts o = default_opts();
	struct ibv_qp_attr attr;
	struct duo d;
	int mask;

	open_two(&d, SAME_PROCESS, &o);
	mask = attr_init(&attr, &o);
	attr.pkey_index = PKEYS;
	ck_assert_int_eq(ibv_modify_qp(d.a.qp, &attr, mask), EINVAL);
	attr.pkey_index = PKEYS - 1;
	ck_ok(ibv_modify_qp(d.a.qp, &attr, mask));
	duo_close(&d);
}
END_TEST

/* ------------------------------------------------------- datagrams */

static struct ibv_ah *lid_ah(struct node *n, uint16_t lid,
			     const union ibv_gid *dgid)
{
	struct ibv_ah_attr attr = {
		.dlid = lid, .sl = 3, .is_global = dgid != NULL, .port_num = 1
	};
	struct ibv_ah *ah;

	if (dgid) {
		attr.grh.dgid = *dgid;
		attr.grh.hop_limit = 7;
		attr.grh.traffic_class = 0x28;
	}
	ah = ibv_create_ah(n->pd, &attr);
	ck_nonnull(ah);
	return ah;
}

static void send_to(struct duo *d, uint64_t id, struct ibv_ah *ah)
{
	ck_ok(post_ud(&d->a, id, 0, 64, ah, d->at_b.qpn, QKEY));
	expect_ok(d->a.scq, id, IBV_WC_SEND);
}

/*
 * The completion has the LIDs and the SL, and the GRH if there is one.  An AH
 * made from it leads back.
 */
START_TEST(datagrams)
{
	const bool global = _i;
	struct opts o = default_opts();
	struct ibv_wc wc, back;
	struct ibv_grh *grh;
	struct ibv_ah *ah;
	struct duo d;

	open_two(&d, SAME_PROCESS, &o);
	turn(&d, IBV_QPT_UD);
	urxe_port_set("urxe1", "lid=8");
	urxe_port_set("urxe1", "lmc=2");
	node_fill(&d.a, 0, 64, 5);
	ah = lid_ah(&d.a, 10, global ? &d.at_b.gid : NULL);
	b_recv(&d, 1, 0, GRH + 64);
	send_to(&d, 2, ah);
	wc = b_wait_recv(&d);
	ck_assert_uint_eq(wc.wr_id, 1);
	ck_assert_uint_eq(wc.byte_len, GRH + 64);
	ck_assert_uint_eq(wc.src_qp, d.a.qp->qp_num);
	ck_assert_uint_eq(wc.slid, d.at_a.lid);
	ck_assert_uint_eq(wc.dlid_path_bits, 2);
	ck_assert_uint_eq(wc.sl, 3);
	ck_assert_int_eq(wc.wc_flags, global ? IBV_WC_GRH : 0);
	ck_assert(b_has(&d, GRH, 64, 5));
	grh = d.b.buf;
	if (global) {
		ck_assert_uint_eq(be32toh(grh->version_tclass_flow) >> 20,
				  0x628);
		ck_assert_uint_eq(grh->next_hdr, 0x1b);
		ck_assert_mem_eq(&grh->sgid, &d.at_a.gid, 16);
		ck_assert_mem_eq(&grh->dgid, &d.at_b.gid, 16);
	}
	ck_ok(ibv_destroy_ah(ah));
	/* the answer */
	ah = ibv_create_ah_from_wc(d.b.pd, &wc, grh, 1);
	ck_nonnull(ah);
	ck_ok(post_recv(&d.a, 3, 1024, GRH + 64));
	ck_ok(post_ud(&d.b, 4, 2048, 64, ah, wc.src_qp, QKEY));
	expect_ok(d.b.scq, 4, IBV_WC_SEND);
	back = wait_wc(d.a.rcq);
	ck_assert_uint_eq(back.wr_id, 3);
	ck_assert_uint_eq(back.slid, 10);
	ck_assert_uint_eq(back.sl, 3);
	ck_ok(ibv_destroy_ah(ah));
	urxe_port_set("urxe1", "lmc=0");
	urxe_port_set("urxe1", "lid=2");
	duo_close(&d);
}
END_TEST

static void expect_dropped(struct duo *d, struct ibv_ah *ah)
{
	struct ibv_wc wc;

	send_to(d, 9, ah);
	ck_assert(!b_try_recv(d, &wc));
	ck_ok(ibv_destroy_ah(ah));
}

/* Datagrams with other addresses or P_Keys are dropped. */
START_TEST(dropped_datagrams)
{
	struct opts o = default_opts();
	struct ibv_ah *ah;
	uint32_t bad;
	struct duo d;

	open_two(&d, SAME_PROCESS, &o);
	turn(&d, IBV_QPT_UD);
	b_recv(&d, 1, 0, GRH + 64);
	expect_dropped(&d, lid_ah(&d.a, d.at_a.lid, NULL));
	expect_dropped(&d, lid_ah(&d.a, 77, NULL));
	expect_dropped(&d, lid_ah(&d.a, 0, NULL));
	expect_dropped(&d, lid_ah(&d.a, 0xc000, NULL));
	expect_dropped(&d, lid_ah(&d.a, d.at_b.lid, &d.at_a.gid));
	bad = port_of(d.b.ctx).bad_pkey_cntr;
	urxe_port_set("urxe1", "pkeys=0x8001");
	expect_dropped(&d, lid_ah(&d.a, d.at_b.lid, NULL));
	ck_assert_uint_eq(port_of(d.b.ctx).bad_pkey_cntr, bad + 1);
	reset_pkeys();
	ah = lid_ah(&d.a, d.at_b.lid, NULL);
	send_to(&d, 2, ah);
	ck_assert_uint_eq(b_wait_recv(&d).wr_id, 1);
	ck_ok(ibv_destroy_ah(ah));
	duo_close(&d);
}
END_TEST

/* The fields of an extended CQ. */
START_TEST(extended_cq)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 8,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};
	struct ibv_poll_cq_attr poll = { 0 };
	struct opts o = default_opts();
	struct ibv_cq *old;
	struct ibv_cq_ex *cq;
	struct ibv_ah *ah;
	struct duo d;

	open_two(&d, SAME_PROCESS, &o);
	cq = ibv_create_cq_ex(d.b.ctx, &init);
	ck_nonnull(cq);
	old = d.b.rcq;
	d.b.rcq = ibv_cq_ex_to_cq(cq);
	turn(&d, IBV_QPT_UD);
	ah = lid_ah(&d.a, d.at_b.lid, NULL);
	ck_ok(post_recv(&d.b, 1, 0, GRH + 64));
	send_to(&d, 2, ah);
	while (ibv_start_poll(cq, &poll))
		sleep_ms(1);
	ck_assert_uint_eq(cq->wr_id, 1);
	ck_assert_uint_eq(ibv_wc_read_slid(cq), d.at_a.lid);
	ck_assert_uint_eq(ibv_wc_read_sl(cq), 3);
	ck_assert_uint_eq(ibv_wc_read_dlid_path_bits(cq), 0);
	ck_assert_uint_eq(ibv_wc_read_wc_flags(cq), 0);
	ibv_end_poll(cq);
	ck_ok(ibv_destroy_ah(ah));
	ck_ok(ibv_destroy_qp(d.b.qp));
	d.b.qp = NULL;
	ck_ok(ibv_destroy_cq(d.b.rcq));
	d.b.rcq = old;
	duo_close(&d);
}
END_TEST

/* AHs: only GID 0 exists; any LID is an address. */
START_TEST(address_handles)
{
	struct ibv_ah_attr attr = { .dlid = 77, .port_num = 1 };
	struct opts o = default_opts();
	struct ibv_ah *ah;
	struct duo d;

	open_two(&d, SAME_PROCESS, &o);
	ah = ibv_create_ah(d.a.pd, &attr);
	ck_nonnull(ah);
	ck_ok(ibv_destroy_ah(ah));
	attr.is_global = 1;
	attr.grh.sgid_index = 1;
	ck_errno(ibv_create_ah(d.a.pd, &attr), EINVAL);
	attr.grh.sgid_index = 0;
	ah = ibv_create_ah(d.a.pd, &attr);
	ck_nonnull(ah);
	ck_ok(ibv_destroy_ah(ah));
	duo_close(&d);
}
END_TEST

/*
 * Multicast LIDs are 0xc000 to 0xfffe.  Packets do not reach a port that has
 * not joined the group at the subnet administrator.
 */
START_TEST(multicast)
{
	static const uint16_t bad[] = { 0, 1, 0xbfff, 0xffff };
	union ibv_gid mgid = { .raw = { 0xff, 0x12, 0x40, 0x1b, 0xff,
					0xff, [15] = 1 } };
	struct opts o = default_opts();
	struct ibv_wc wc;
	struct ibv_ah *ah;
	struct duo d;
	size_t i;

	open_two(&d, SAME_PROCESS, &o);
	turn(&d, IBV_QPT_UD);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_int_eq(ibv_attach_mcast(d.b.qp, &mgid, bad[i]),
				 EINVAL);
	ck_ok(ibv_attach_mcast(d.b.qp, &mgid, 0xc000));
	ah = lid_ah(&d.a, 0xc000, &mgid);
	b_recv(&d, 1, 0, GRH + 64);
	ck_ok(post_ud(&d.a, 2, 0, 64, ah, 0xffffff, QKEY));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	ck_assert(!b_try_recv(&d, &wc));
	ck_ok(ibv_detach_mcast(d.b.qp, &mgid, 0xc000));
	ck_ok(ibv_destroy_ah(ah));
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("infiniband");

	/* before the first process of the fabric creates it */
	setenv("URXE_DEVICES", "3", 1);
	setenv("URXE_LINK_LAYER", "infiniband,InfiniBand,ethernet", 1);
	add(s, identity);
	add(s, gid_entry);
	add_loop(s, rc, 4);
	add_loop(s, mismatches, MISMATCHES);
	add_loop(s, no_link, 2);
	add_loop(s, lid_change, 2);
	add_loop(s, lmc, 6);
	add(s, sm_change);
	add_loop(s, pkeys, PARTITIONS);
	add(s, pkey_change);
	add_loop(s, pkey_index_in_sqd, 2);
	add(s, pkey_index);
	add_loop(s, datagrams, 2);
	add(s, dropped_datagrams);
	add(s, extended_cq);
	add(s, address_handles);
	add(s, multicast);
	return run(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Unreliable datagrams (UD): data, the GRH in the receive buffer, Q_Keys and
 * faults.
 */
#include <signal.h>
#include <string.h>

#include "../types.h"

#define UD_ENABLE (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define UD_MORE (IBV_QP_CUR_STATE | IBV_QP_QKEY)

/*
 * UD's part of the state table of the IB specification's Modify QP verb.
 * check_table() adds the transitions to RESET and ERR.
 */
static const struct transition table[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, UD_ENABLE, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, UD_ENABLE },
	{ IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, UD_MORE },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, UD_MORE },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, UD_MORE },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, UD_MORE },
};

static struct ibv_qp *make_ud(struct node *n)
{
	return make_qp(n, IBV_QPT_UD, NULL);
}

/* The transitions of a UD QP, and their attributes. */
START_TEST(states)
{
	struct opts o = default_opts();
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	check_table(&n, make_ud, table, sizeof(table) / sizeof(*table), 0);
	node_close(&n);
}
END_TEST

static struct ibv_ah *open_ud(struct duo *d, enum where where)
{
	struct opts o = default_opts();

	duo_open_unconnected(d, where, MEM_HEAP, MEM_HEAP, &o);
	turn(d, IBV_QPT_UD);
	return make_ah(&d->a, &d->at_b.gid, 0);
}

static void close_ud(struct duo *d, struct ibv_ah *ah)
{
	ck_ok(ibv_destroy_ah(ah));
	duo_close(d);
}

/*
 * Send the first @len bytes of a's buffer to b and wait for the completion.
 */
static void send_b(struct duo *d, struct ibv_ah *ah, uint32_t len)
{
	ck_ok(post_ud(&d->a, 1, 0, len, ah, d->at_b.qpn, QKEY));
	expect_ok(d->a.scq, 1, IBV_WC_SEND);
}

/*
 * Datagrams of 0 to 4096 bytes arrive behind 40 bytes of GRH, with the fields
 * of a UD completion.
 */
START_TEST(sizes)
{
	static const uint32_t len[] = { 0,  1,	8,    39,   40,	  41,
					79, 80, 1024, 1025, 2048, 4096 };
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct duo d;
	size_t i;

	ah = open_ud(&d, _i);
	for (i = 0; i < sizeof(len) / sizeof(*len); i++) {
		node_fill(&d.a, 0, len[i], (unsigned int)i);
		b_recv(&d, i, 0, 8192);
		send_b(&d, ah, len[i]);
		wc = b_wait_recv(&d);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
		ck_assert_uint_eq(wc.wr_id, i);
		ck_assert_uint_eq(wc.byte_len, GRH + len[i]);
		ck_assert_int_eq(wc.wc_flags, IBV_WC_GRH);
		ck_assert_uint_eq(wc.src_qp, d.a.qp->qp_num);
		ck_assert_uint_eq(wc.qp_num, d.at_b.qpn);
		ck_assert_uint_eq(wc.pkey_index, 0);
		ck_assert(b_has(&d, GRH, len[i], (unsigned int)i));
		ck_assert(b_all(&d, 5000, 100, 0));
	}
	close_ud(&d, ah);
}
END_TEST

/*
 * A datagram with immediate data, inline data of two SGEs, and
 * IBV_SEND_SOLICITED.
 */
START_TEST(immediate_inline_solicited)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge[2];
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct duo d;

	ah = open_ud(&d, _i);
	node_fill(&d.a, 0, 60, 1);
	b_recv(&d, 4, 0, 256);
	sge[0] = node_sge(&d.a, 0, 20);
	sge[1] = node_sge(&d.a, 20, 40);
	sge[0].lkey = sge[1].lkey = 0; /* not checked for inline data */
	wr = ud_wr(1, sge, 2, ah, d.at_b.qpn, QKEY);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = htobe32(0xfeedbeef);
	wr.send_flags |= IBV_SEND_INLINE | IBV_SEND_SOLICITED;
	ck_ok(post_wr(d.a.qp, &wr));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	ck_assert_uint_eq(be32toh(wc.imm_data), 0xfeedbeef);
	ck_assert_uint_eq(wc.byte_len, GRH + 60);
	ck_assert(b_has(&d, GRH, 60, 1));
	close_ud(&d, ah);
}
END_TEST

/*
 * Ones' complement sum of the IPv4 header at @p (RFC 1071): 0xffff if its
 * checksum is correct.
 */
static uint16_t checksum(const uint8_t *p)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void check_ipv4(const uint8_t *grh, const union ibv_gid *from,
		       const union ibv_gid *to)
{
	static const uint8_t zero[20];

	/* undefined by IB Annex A17.4.5.2; the adversary fills it */
	if (getenv("URXE_ADVERSARY"))
		ck_assert_mem_ne(grh, zero, 20);
	else
		ck_assert_mem_eq(grh, zero, 20);
	grh += 20;
	ck_assert_uint_eq(grh[0], 0x45);
	ck_assert_uint_eq(grh[1], 0x28); /* traffic class */
	ck_assert_uint_eq(grh[8], 7); /* hop limit */
	ck_assert_uint_eq(grh[9], 17); /* UDP */
	ck_assert_uint_eq(checksum(grh), 0xffff);
	ck_assert_mem_eq(grh + 12, from->raw + 12, 4);
	ck_assert_mem_eq(grh + 16, to->raw + 12, 4);
}

/* Check the header of IPv6 or RoCE v1.  @length: of the packet behind it. */
static void check_grh(const struct ibv_grh *grh, const union ibv_gid *from,
		      const union ibv_gid *to, uint8_t next, uint16_t length)
{
	ck_assert_uint_eq(be32toh(grh->version_tclass_flow),
			  6u << 28 | 0x28 << 20 | 0x12345);
	ck_assert_uint_eq(grh->next_hdr, next);
	ck_assert_uint_eq(be16toh(grh->paylen), length);
	ck_assert_uint_eq(grh->hop_limit, 7);
	ck_assert_mem_eq(grh->sgid.raw, from->raw, 16);
	ck_assert_mem_eq(grh->dgid.raw, to->raw, 16);
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, mapped, 12);
}

/*
 * Next header (BTH, UDP) and length: headers, 64 bytes of data, and ICRC.
 */
#define V1 0x1b, 12 + 8 + 64 + 4
#define V2 17, 8 + 12 + 8 + 64 + 4

/*
 * The GRH of a datagram, and the type in wc.sl, match its GIDs: for each GID
 * of the port, a datagram from it to itself.
 */
START_TEST(headers)
{
	static const union ibv_gid none;
	struct ibv_grh *h;
	struct ibv_gid_entry e;
	struct ibv_wc wc;
	struct ibv_port_attr port;
	struct ibv_ah *ah, *first;
	union ibv_gid gid;
	uint8_t grh[GRH];
	int i, seen = 0;
	struct duo d;

	first = open_ud(&d, SAME_CONTEXT);
	ck_ok(ibv_query_port(d.a.ctx, 1, &port));
	for (i = 0; i < port.gid_tbl_len; i++) {
		ck_ok(ibv_query_gid(d.a.ctx, 1, i, &gid));
		if (!memcmp(&gid, &none, sizeof(gid)))
			continue;
		ck_ok(ibv_query_gid_ex(d.a.ctx, 1, (uint32_t)i, &e, 0));
		ah = make_ah(&d.a, &gid, (uint8_t)i);
		b_recv(&d, 1, 0, 256);
		send_b(&d, ah, 64);
		wc = b_wait_recv(&d);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_int_eq(wc.wc_flags, IBV_WC_GRH);
		node_get(&d.b, 0, grh, sizeof(grh));
		h = (struct ibv_grh *)(void *)grh;
		if (e.gid_type == IBV_GID_TYPE_ROCE_V1) {
			check_grh(h, &gid, &gid, V1);
			ck_assert_uint_eq(wc.sl, 0);
		} else if (is_ipv4(&gid)) {
			check_ipv4(grh, &gid, &gid);
			ck_assert_uint_eq(wc.sl, 8 | 2);
		} else {
			check_grh(h, &gid, &gid, V2);
			ck_assert_uint_eq(wc.sl, 8 | 1);
		}
		ck_ok(ibv_destroy_ah(ah));
		seen++;
	}
	ck_assert_int_gt(seen, 0);
	close_ud(&d, first);
}
END_TEST

/* The 40 bytes of GRH are scattered like data. */
START_TEST(header_over_several_sges)
{
	struct ibv_recv_wr wr = { .wr_id = 3, .num_sge = 3 }, *bad;
	struct ibv_sge sge[3];
	struct ibv_ah *ah;
	struct duo d;

	ah = open_ud(&d, SAME_PROCESS);
	node_fill(&d.a, 0, 100, 1);
	sge[0] = node_sge(&d.b, 0, 25);
	sge[1] = node_sge(&d.b, 100, 15);
	sge[2] = node_sge(&d.b, 200, 100);
	wr.sg_list = sge;
	ck_ok(ibv_post_recv(d.b.qp, &wr, &bad));
	send_b(&d, ah, 100);
	ck_assert_uint_eq(b_wait_recv(&d).byte_len, 140);
	ck_assert(b_has(&d, 200, 100, 1));
	ck_assert(b_all(&d, 25, 75, 0));
	close_ud(&d, ah);
}
END_TEST

/* ---------------------------------------------------------------- Q_Key */

static void do_qkey(struct node *b, void *arg)
{
	struct ibv_qp_attr attr = { .qkey = *(uint32_t *)arg };

	ck_ok(ibv_modify_qp(b->qp, &attr, IBV_QP_QKEY));
}

/*
 * A datagram whose Q_Key is not that of the destination QP is dropped.  A
 * Q_Key may change.
 */
START_TEST(wrong_qkey)
{
	uint32_t qkey = 0x2222;
	struct ibv_ah *ah;
	struct duo d;

	ah = open_ud(&d, _i);
	b_recv(&d, 1, 0, 256);
	ck_ok(post_ud(&d.a, 1, 0, 8, ah, d.at_b.qpn, QKEY + 1));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	on_b(&d, do_qkey, &qkey, sizeof(qkey));
	send_b(&d, ah, 9); /* the previous Q_Key */
	ck_ok(post_ud(&d.a, 2, 0, 16, ah, d.at_b.qpn, qkey));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	ck_assert_uint_eq(b_wait_recv(&d).byte_len, GRH + 16);
	b_expect_no_async(&d);
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	close_ud(&d, ah);
}
END_TEST

/*
 * IB 10.2.5: if the Q_Key of a WR has the high bit set, the Q_Key of the
 * sending QP is used.
 */
START_TEST(controlled_qkey)
{
	uint32_t own = 0x80010000, other = QKEY;
	struct ibv_ah *ah;
	struct duo d;

	ah = open_ud(&d, _i);
	b_recv(&d, 1, 0, 256);
	b_recv(&d, 2, 0, 256);
	ck_ok(post_ud(&d.a, 1, 0, 8, ah, d.at_b.qpn, 0x80000000));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_assert_uint_eq(b_wait_recv(&d).wr_id, 1);
	/* a sender without that Q_Key in its QP cannot use it */
	on_b(&d, do_qkey, &own, sizeof(own));
	ck_ok(post_ud(&d.a, 2, 0, 8, ah, d.at_b.qpn, own));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	do_qkey(&d.a, &own);
	ck_ok(post_ud(&d.a, 3, 0, 12, ah, d.at_b.qpn, own));
	expect_ok(d.a.scq, 3, IBV_WC_SEND);
	ck_assert_uint_eq(b_wait_recv(&d).byte_len, GRH + 12);
	do_qkey(&d.a, &other);
	close_ud(&d, ah);
}
END_TEST

/*
 * A datagram longer than the MTU completes with LOC_LEN_ERR and moves the QP
 * to SQE, from where it can return to RTS.
 */
START_TEST(longer_than_the_mtu)
{
	struct ibv_ah *ah;
	struct duo d;

	ah = open_ud(&d, _i);
	b_recv(&d, 1, 0, 8192);
	ck_ok(post_recv(&d.a, 7, 0, 128));
	ck_ok(post_ud(&d.a, 1, 0, 4097, ah, d.at_b.qpn, QKEY));
	ck_ok(post_ud(&d.a, 2, 0, 8, ah, d.at_b.qpn, QKEY));
	expect(d.a.scq, 1, IBV_WC_LOC_LEN_ERR);
	expect(d.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_SQE);
	/* sends posted in SQE are flushed, receives are not */
	ck_ok(post_ud(&d.a, 3, 0, 8, ah, d.at_b.qpn, QKEY));
	expect(d.a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_none(d.a.rcq, 1);
	ck_ok(qp_to(d.a.qp, IBV_QPS_RTS));
	send_b(&d, ah, 20);
	ck_assert_uint_eq(b_wait_recv(&d).byte_len, GRH + 20);
	close_ud(&d, ah);
}
END_TEST

static void do_send_to(struct node *b, void *arg)
{
	struct addr *to = arg;
	struct ibv_ah *ah = make_ah(b, &to->gid, 0);

	ck_ok(post_ud(b, 1, 0, 8, ah, to->qpn, QKEY));
	expect_ok(b->scq, 1, IBV_WC_SEND);
	ck_ok(ibv_destroy_ah(ah));
}

/* A QP in SQE still receives datagrams. */
START_TEST(receives_in_sqe)
{
	struct ibv_ah *ah;
	struct duo d;

	ah = open_ud(&d, _i);
	ck_ok(post_ud(&d.a, 1, 65536 - 7, 8, ah, d.at_b.qpn, QKEY));
	expect(d.a.scq, 1, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_SQE);
	ck_ok(post_recv(&d.a, 7, 0, 128));
	on_b(&d, do_send_to, &d.at_a, sizeof(d.at_a));
	expect_ok(d.a.rcq, 7, IBV_WC_RECV);
	close_ud(&d, ah);
}
END_TEST

/* Datagrams without a receive are dropped; the sender's WRs succeed. */
START_TEST(no_receive)
{
	struct ibv_ah *ah;
	struct duo d;
	int i;

	ah = open_ud(&d, _i);
	for (i = 0; i < 100; i++)
		send_b(&d, ah, 8);
	b_recv(&d, 1, 0, 256);
	send_b(&d, ah, 77);
	ck_assert_uint_eq(b_wait_recv(&d).byte_len, GRH + 77);
	close_ud(&d, ah);
}
END_TEST

/*
 * IB 9.9.3, class D, as for UC: a datagram that does not fit in its receive,
 * including 40 bytes of GRH, is dropped, and the receive stays posted.
 */
START_TEST(receive_too_short)
{
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct duo d;

	ah = open_ud(&d, _i);
	b_recv(&d, 1, 0, 50);
	b_recv(&d, 2, 0, 30);
	send_b(&d, ah, 11);
	send_b(&d, ah, 10);
	wc = b_wait_recv(&d);
	ck_assert_uint_eq(wc.wr_id, 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	send_b(&d, ah, 0); /* the header alone is longer than 30 bytes */
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	close_ud(&d, ah);
}
END_TEST

static void do_bad_recv(struct node *b, void *arg)
{
	struct ibv_sge sge = node_sge(b, 0, 256);
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 },
			   *bad;

	(void)arg;
	sge.lkey ^= 0x4200;
	ck_ok(ibv_post_recv(b->qp, &wr, &bad));
}

/*
 * A receive with an invalid SGE completes with LOC_PROT_ERR and breaks the
 * receiver's QP.  The sender's WRs succeed.
 */
START_TEST(receive_with_invalid_sge)
{
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct duo d;

	ah = open_ud(&d, _i);
	on_b(&d, do_bad_recv, NULL, 0);
	b_recv(&d, 2, 0, 256);
	send_b(&d, ah, 8);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	ck_assert_uint_eq(wc.wr_id, 1);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	send_b(&d, ah, 8);
	close_ud(&d, ah);
}
END_TEST

/*
 * ibv_post_send refuses all operations except SEND, and a WR without an AH
 * (EINVAL).
 */
START_TEST(refused_operations)
{
	static const int ops[] = { IBV_WR_RDMA_WRITE,
				   IBV_WR_RDMA_WRITE_WITH_IMM,
				   IBV_WR_RDMA_READ,
				   IBV_WR_ATOMIC_FETCH_AND_ADD,
				   IBV_WR_ATOMIC_CMP_AND_SWP,
				   IBV_WR_SEND_WITH_INV,
				   IBV_WR_LOCAL_INV,
				   IBV_WR_BIND_MW,
				   14,
				   15,
				   IBV_WR_TSO };
	struct ibv_send_wr wr;
	struct ibv_ah *ah;
	struct ibv_sge sge;
	struct duo d;
	size_t i;

	ah = open_ud(&d, SAME_CONTEXT);
	sge = node_sge(&d.a, 0, 8);
	for (i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		wr = ud_wr(1, &sge, 1, ah, d.at_b.qpn, QKEY);
		wr.opcode = (enum ibv_wr_opcode)ops[i];
		ck_assert_int_eq(post_wr(d.a.qp, &wr), EINVAL);
	}
	wr = ud_wr(1, &sge, 1, NULL, d.at_b.qpn, QKEY);
	ck_assert_int_eq(post_wr(d.a.qp, &wr), EINVAL);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_RTS);
	close_ud(&d, ah);
}
END_TEST

/* ------------------------------------------------------- destinations */

static void do_state(struct node *b, void *arg)
{
	enum ibv_qp_state to = *(enum ibv_qp_state *)arg;

	type_to(b->qp, to, &b->o, NULL);
}

/*
 * Datagrams to a QP in RESET or INIT are dropped.  In RTR they are received.
 */
START_TEST(destination_not_ready)
{
	enum ibv_qp_state to = IBV_QPS_RESET;
	struct ibv_qp_attr attr;
	struct opts o = default_opts();
	struct addr no_peer = { 0 };
	struct ibv_ah *ah;
	struct duo d;

	ah = open_ud(&d, _i);
	send_b(&d, ah, 8);
	on_b(&d, do_state, &to, sizeof(to));
	send_b(&d, ah, 8);
	to = IBV_QPS_INIT;
	on_b(&d, do_state, &to, sizeof(to));
	b_recv(&d, 1, 0, 256);
	send_b(&d, ah, 9);
	/* RTR of a UD QP requires no attributes, so no peer */
	ck_assert_int_eq(
		type_attr(&attr, IBV_QPT_UD, IBV_QPS_RTR, &o, &no_peer),
		IBV_QP_STATE);
	b_modify(&d, IBV_QPS_RTR);
	send_b(&d, ah, 10);
	ck_assert_uint_eq(b_wait_recv(&d).byte_len, GRH + 10);
	close_ud(&d, ah);
}
END_TEST

static void do_other_type(struct node *b, void *arg)
{
	ck_ok(ibv_destroy_qp(b->qp));
	b->qp = make_qp(b, IBV_QPT_RC, NULL);
	type_connect(b->qp, &b->o, arg);
	ck_ok(post_recv(b, 1, 0, 256));
	*(struct addr *)arg = node_addr(b);
}

/*
 * A datagram to a QP of another type, or to a QP number that does not exist,
 * is dropped.
 */
START_TEST(no_such_destination)
{
	struct addr addr;
	struct ibv_ah *ah;
	struct duo d;

	ah = open_ud(&d, _i);
	addr = d.at_a;
	on_b(&d, do_other_type, &addr, sizeof(addr));
	send_b(&d, ah, 8); /* the QP of this number is gone */
	ck_ok(post_ud(&d.a, 1, 0, 8, ah, addr.qpn, QKEY));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_ok(post_ud(&d.a, 1, 0, 8, ah, 0xfffffe, QKEY));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_ok(post_ud(&d.a, 1, 0, 8, ah, 0, QKEY));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	b_expect_no_async(&d);
	close_ud(&d, ah);
}
END_TEST

#define MANY 150

struct many {
	uint32_t qpn[MANY];
};

static void do_many(struct node *b, void *arg)
{
	static struct ibv_qp *qp[MANY];
	struct many *m = arg;
	int i;

	b->user = qp;
	for (i = 0; i < MANY; i++) {
		qp[i] = make_qp(b, IBV_QPT_UD, NULL);
		type_connect(qp[i], &b->o, NULL);
		ck_ok(qp_recv(qp[i], b, (uint64_t)i, 256 * (size_t)i, 256));
		ck_ok(qp_recv(qp[i], b, (uint64_t)i, 256 * (size_t)i, 256));
		m->qpn[i] = qp[i]->qp_num;
	}
}

static void do_end_many(struct node *b, void *arg)
{
	struct ibv_qp **qp = b->user;
	int i;

	(void)arg;
	for (i = 0; i < MANY; i++)
		ck_ok(ibv_destroy_qp(qp[i]));
}

/*
 * Datagrams to more destinations than a UD QP caches (UD_DESTS), twice in
 * turn.
 */
START_TEST(many_destinations)
{
	struct ibv_ah *ah;
	struct many m;
	struct ibv_wc wc;
	struct duo d;
	int i, k;

	ah = open_ud(&d, _i);
	on_b(&d, do_many, &m, sizeof(m));
	for (k = 0; k < 2; k++) {
		for (i = 0; i < MANY; i++) {
			node_fill(&d.a, 0, 100, (unsigned int)(k * MANY + i));
			ck_ok(post_ud(&d.a, 1, 0, 100, ah, m.qpn[i], QKEY));
			expect_ok(d.a.scq, 1, IBV_WC_SEND);
			wc = b_wait_recv(&d);
			ck_assert_uint_eq(wc.wr_id, i);
			ck_assert_uint_eq(wc.qp_num, m.qpn[i]);
			ck_assert(b_has(&d, 256 * (size_t)i + GRH, 100,
					(unsigned int)(k * MANY + i)));
		}
	}
	on_b(&d, do_end_many, NULL, 0);
	close_ud(&d, ah);
}
END_TEST

/* WRs to a QP of a killed process succeed. */
START_TEST(destination_killed)
{
	struct ibv_ah *ah;
	struct duo d;
	int i;

	ah = open_ud(&d, TWO_PROCESSES);
	for (i = 0; i < 40; i++)
		b_recv(&d, 1, 0, 4136);
	send_b(&d, ah, 4096);
	kill(d.pid, SIGKILL);
	ck_assert_int_eq(reap_child(d.pid), -SIGKILL);
	for (i = 0; i < 30; i++) {
		send_b(&d, ah, i % 2 ? 4096 : 8);
		sleep_ms(8);
	}
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_RTS);
	ck_ok(ibv_destroy_ah(ah));
	node_close(&d.a);
}
END_TEST

/* WRs of a QP in SQD are flushed by a transition to ERR. */
START_TEST(flush)
{
	struct ibv_ah *ah;
	struct duo d;

	ah = open_ud(&d, _i);
	ck_ok(post_recv(&d.a, 1, 0, 64));
	ck_ok(qp_to(d.a.qp, IBV_QPS_SQD));
	ck_ok(post_ud(&d.a, 2, 0, 8, ah, d.at_b.qpn, QKEY));
	expect_none(d.a.scq, 1);
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	expect(d.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect(d.a.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	close_ud(&d, ah);
}
END_TEST

int main(void)
{
	Suite *s = suite("ud");

	add(s, states);
	add_loop(s, sizes, WHERE_COUNT);
	add_loop(s, immediate_inline_solicited, WHERE_COUNT);
	add(s, headers);
	add(s, header_over_several_sges);
	add_loop(s, wrong_qkey, WHERE_COUNT);
	add_loop(s, controlled_qkey, WHERE_COUNT);
	add_loop(s, longer_than_the_mtu, WHERE_COUNT);
	add_loop(s, receives_in_sqe, WHERE_COUNT);
	add_loop(s, no_receive, WHERE_COUNT);
	add_loop(s, receive_too_short, WHERE_COUNT);
	add_loop(s, receive_with_invalid_sge, WHERE_COUNT);
	add(s, refused_operations);
	add_loop(s, destination_not_ready, WHERE_COUNT);
	add_loop(s, no_such_destination, WHERE_COUNT);
	add_loop(s, many_destinations, WHERE_COUNT);
	add(s, destination_killed);
	add_loop(s, flush, WHERE_COUNT);
	return run(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Options "loss" and "reorder": UD and UC messages are lost or overtaken with
 * the option (_i is 0), and not without it (_i is 1).
 */
#include <string.h>

#include "../verbs/types.h"
#include "with.h"

#define MESSAGES 60
#define LEN 64

static struct ibv_ah *open_ud(struct duo *d, const char *options, int without)
{
	struct opts o = default_opts();

	with_options(without ? "ticks=16" : options);
	duo_open_unconnected(d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	turn(d, IBV_QPT_UD);
	return make_ah(&d->a, &d->at_b.gid, 0);
}

/*
 * Send MESSAGES datagrams, each with its number.  Store the numbers in @got
 * in the order of arrival, and return how many arrived.
 */
static unsigned int exchange(struct duo *d, struct ibv_ah *ah, uint8_t *got)
{
	unsigned int i, n = 0;
	struct ibv_wc wc;

	for (i = 0; i < MESSAGES; i++)
		ck_ok(post_recv(&d->b, i, 128 * i, GRH + LEN));
	for (i = 0; i < MESSAGES; i++) {
		memset((char *)d->a.buf + LEN * i, (int)i, LEN);
		ck_ok(post_ud(&d->a, i, LEN * i, LEN, ah, d->at_b.qpn, QKEY));
	}
	/* they complete in order, whether they are lost or not */
	for (i = 0; i < MESSAGES; i++)
		expect_ok(d->a.scq, i, IBV_WC_SEND);
	while (ibv_poll_cq(d->b.rcq, 1, &wc)) {
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.byte_len, GRH + LEN);
		got[n] = ((char *)d->b.buf)[128 * wc.wr_id + GRH];
		ck_assert(node_all(&d->b, 128 * wc.wr_id + GRH, LEN, got[n]));
		n++;
	}
	return n;
}

/* With "loss", some datagrams are lost, and the others arrive in order. */
START_TEST(datagrams_are_lost)
{
	uint8_t got[MESSAGES];
	struct ibv_ah *ah;
	unsigned int i, n;
	struct duo d;

	ah = open_ud(&d, "loss=200", _i);
	n = exchange(&d, ah, got);
	for (i = 1; i < n; i++)
		ck_assert_uint_lt(got[i - 1], got[i]);
	ck_assert(_i ? n == MESSAGES : n && n < MESSAGES);
	ck_ok(ibv_destroy_ah(ah));
	duo_close(&d);
}
END_TEST

/* With "reorder", all datagrams arrive, some of them out of order. */
START_TEST(datagrams_are_overtaken)
{
	unsigned int i, n, back = 0;
	bool there[MESSAGES] = { 0 };
	uint8_t got[MESSAGES];
	struct ibv_ah *ah;
	struct duo d;

	ah = open_ud(&d, "reorder=300", _i);
	n = exchange(&d, ah, got);
	ck_assert_uint_eq(n, MESSAGES);
	for (i = 0; i < n; i++) {
		ck_assert(!there[got[i]]);
		there[got[i]] = true;
		back += i && got[i] < got[i - 1];
	}
	ck_assert(_i ? !back : back > 2);
	ck_ok(ibv_destroy_ah(ah));
	duo_close(&d);
}
END_TEST

/* Errors of the sender are reported also for datagrams that would be lost. */
START_TEST(lost_datagram_is_checked)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_ah *ah;
	struct duo d;

	ah = open_ud(&d, "loss=1000", 0);
	sge = node_sge(&d.a, 0, LEN);
	sge.lkey ^= 0x40;
	wr = ud_wr(1, &sge, 1, ah, d.at_b.qpn, QKEY);
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 1, IBV_WC_LOC_PROT_ERR);
	ck_ok(ibv_destroy_ah(ah));
	duo_close(&d);
}
END_TEST

/* WRs behind one that fails locally are flushed, and do not overtake it. */
START_TEST(nothing_overtakes_a_failed_wr)
{
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct duo d;
	unsigned int i;

	ah = open_ud(&d, "reorder=1000", 0);
	for (i = 0; i < 20; i++) {
		ck_ok(post_recv(&d.b, i, 0, GRH + LEN));
		ck_ok(post_ud(&d.a, 1, 0, 4097, ah, d.at_b.qpn, QKEY));
		ck_ok(post_ud(&d.a, 2, 0, LEN, ah, d.at_b.qpn, QKEY));
		expect(d.a.scq, 1, IBV_WC_LOC_LEN_ERR);
		expect(d.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
		ck_assert_int_eq(ibv_poll_cq(d.b.rcq, 1, &wc), 0);
		ck_ok(qp_to(d.a.qp, IBV_QPS_RTS));
	}
	ck_ok(ibv_destroy_ah(ah));
	duo_close(&d);
}
END_TEST

static void open_uc(struct duo *d, const char *options, int without)
{
	struct opts o = default_opts();

	with_options(without ? "ticks=16" : options);
	duo_open_unconnected(d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	turn(d, IBV_QPT_UC);
}

/* UC SENDs arrive in order, and a lost one consumes no receive. */
START_TEST(uc_sends)
{
	unsigned int i, n = 0, last = 0;
	struct ibv_wc wc;
	struct duo d;

	open_uc(&d, "loss=200,place=500", _i);
	for (i = 0; i < MESSAGES; i++)
		b_recv(&d, i, 128 * i, LEN);
	for (i = 1; i <= MESSAGES; i++) {
		memset((char *)d.a.buf + LEN * i, (int)i, LEN);
		ck_ok(post(&d, IBV_WR_SEND, i, LEN * i, LEN, 0, 0));
	}
	for (i = 1; i <= MESSAGES; i++)
		expect_ok(d.a.scq, i, IBV_WC_SEND);
	for (; ibv_poll_cq(d.b.rcq, 1, &wc); n++) {
		uint8_t which = ((uint8_t *)d.b.buf)[128 * n];

		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.wr_id, n);
		ck_assert_uint_gt(which, last);
		ck_assert(node_all(&d.b, 128 * n, LEN, which));
		last = which;
	}
	ck_assert(_i ? n == MESSAGES : n && n < MESSAGES);
	duo_close(&d);
}
END_TEST

/* A UC WRITE may be lost in whole or in part. */
START_TEST(uc_writes)
{
	unsigned int i, k, n, all = 0, none = 0, some = 0;
	struct duo d;

	open_uc(&d, "loss=500,place=500", _i);
	memset(d.a.buf, 'x', 4096);
	for (i = 0; i < MESSAGES; i++) {
		memset(d.b.buf, 0, 4096);
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 4096, 0, 0));
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
		for (n = 0, k = 0; k < 4096; k++)
			n += ((char *)d.b.buf)[k] == 'x';
		all += n == 4096;
		none += !n;
		some += n && n < 4096;
	}
	ck_assert(_i ? all == MESSAGES : all && none && some);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("adversary, unreliable QPs");

	add_loop(s, datagrams_are_lost, 2);
	add_loop(s, datagrams_are_overtaken, 2);
	add(s, lost_datagram_is_checked);
	add(s, nothing_overtakes_a_failed_wr);
	add_loop(s, uc_sends, 2);
	add_loop(s, uc_writes, 2);
	return run(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* RC SEND and SEND_WITH_IMM: data, scatter/gather, inline data, order. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../harness.h"
#include "shared/layout.h"

/* Each enum where, and each kind of memory at both nodes. */
#define MATRIX (WHERE_COUNT * MEM_COUNT * MEM_COUNT)

static void open_matrix(struct duo *d, int i, const struct opts *o)
{
	duo_open(d, i % WHERE_COUNT, i / WHERE_COUNT % MEM_COUNT,
		 i / WHERE_COUNT / MEM_COUNT, o);
}

static void check_recv(struct duo *d, uint64_t wr_id, uint32_t len)
{
	struct ibv_wc wc = b_wait_recv(d);

	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wr_id, wr_id);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
	ck_assert_uint_eq(wc.byte_len, len);
	ck_assert_uint_eq(wc.qp_num, d->at_b.qpn);
	ck_assert_uint_eq(wc.wc_flags, 0);
}

/* SENDs of 0 bytes to 1 MiB are received intact. */
START_TEST(sizes)
{
	static const uint32_t len[] = { 0,    1,    2,	   7,	  8,	  63,
					64,   65,   79,	   80,	  81,	  255,
					256,  257,  1023,  1024,  1025,	  4095,
					4096, 4097, 65535, 65536, 1 << 20 };
	struct opts o = default_opts();
	struct duo d;
	uint32_t i;

	o.size = (1 << 20) + 4096;
	open_matrix(&d, _i, &o);
	for (i = 0; i < sizeof(len) / sizeof(*len); i++) {
		node_fill(&d.a, 8, len[i], i);
		b_recv(&d, i, 64, len[i] + 32);
		ck_ok(post(&d, IBV_WR_SEND, i, 8, len[i], 0, 0));
		expect_ok(d.a.scq, i, IBV_WC_SEND);
		check_recv(&d, i, len[i]);
		ck_assert(b_has(&d, 64, len[i], i));
	}
	duo_close(&d);
}
END_TEST

/* The part of the receive buffer beyond the message is unchanged. */
START_TEST(no_write_beyond_message)
{
	struct opts o = default_opts();
	uint32_t len;
	struct duo d;

	open_matrix(&d, _i, &o);
	for (len = 0; len < 300; len += 1 + len / 7) {
		b_fill(&d, 0, 1024, 7);
		node_fill(&d.a, 0, len, 8);
		b_recv(&d, len, 0, 1024);
		ck_ok(post(&d, IBV_WR_SEND, len, 0, len, 0, 0));
		expect_ok(d.a.scq, len, IBV_WC_SEND);
		check_recv(&d, len, len);
		ck_assert(b_has(&d, 0, len, 8));
		b_fill(&d, 0, len, 7);
		ck_assert(b_has(&d, 0, 1024, 7));
	}
	duo_close(&d);
}
END_TEST

/* SEND_WITH_IMM delivers its immediate data, also without other data. */
START_TEST(immediate_data)
{
	struct opts o = default_opts();
	struct ibv_wc wc;
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	b_recv(&d, 1, 0, 64);
	ck_ok(post(&d, IBV_WR_SEND_WITH_IMM, 5, 0, 10, 0, 0));
	expect_ok(d.a.scq, 5, IBV_WC_SEND);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
	ck_assert_uint_eq(wc.byte_len, 10);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
	ck_assert_uint_eq(be32toh(wc.imm_data), 0xabcd0005);
	/* a message of length 0 */
	b_recv(&d, 2, 0, 64);
	ck_ok(post(&d, IBV_WR_SEND_WITH_IMM, 6, 0, 0, 0, 0));
	expect_ok(d.a.scq, 6, IBV_WC_SEND);
	wc = b_wait_recv(&d);
	ck_assert_uint_eq(wc.byte_len, 0);
	ck_assert_uint_eq(be32toh(wc.imm_data), 0xabcd0006);
	duo_close(&d);
}
END_TEST

/* An SGE list in a buffer: entry i is @len bytes at @base + i * @gap. */
struct scatter {
	uint64_t wr_id;
	uint32_t n, len, gap;
	size_t base;
};

static void do_scatter_recv(struct node *b, void *arg)
{
	struct ibv_sge sge[URXE_MAX_SGE];
	struct scatter *s = arg;
	struct ibv_recv_wr wr = { .wr_id = s->wr_id,
				  .sg_list = sge,
				  .num_sge = (int)s->n },
			   *bad;
	uint32_t i;

	for (i = 0; i < s->n; i++)
		sge[i] = node_sge(b, s->base + i * s->gap, s->len);
	ck_ok(ibv_post_recv(b->qp, &wr, &bad));
}

static void send_gathered(struct duo *d, const struct scatter *s,
			  unsigned int flags)
{
	struct ibv_sge sge[URXE_MAX_SGE];
	struct ibv_send_wr wr =
		rdma_wr(d, IBV_WR_SEND, s->wr_id, sge, (int)s->n, 0);
	uint32_t i;

	for (i = 0; i < s->n; i++)
		sge[i] = node_sge(&d->a, s->base + i * s->gap, s->len);
	wr.send_flags |= flags;
	ck_ok(post_wr(d->a.qp, &wr));
	/* the SGE list may be reused when ibv_post_send has returned */
	memset(sge, 0xff, sizeof(sge));
	expect_ok(d->a.scq, s->wr_id, IBV_WC_SEND);
}

/* A message that is gathered from 32 SGEs is scattered to 7 SGEs. */
START_TEST(gather_and_scatter)
{
	/* 32 pieces of 77 bytes; 7 pieces of 352 bytes */
	struct scatter many = { 1, 32, 77, 100, 4 };
	struct scatter few = { 1, 7, 352, 700, 1000 };
	struct opts o = default_opts();
	uint32_t i, k, at, total = 32 * 77;
	uint8_t sent[32 * 77], got[32 * 77 + 4], piece[356];
	struct duo d;

	o.cap.max_send_sge = o.cap.max_recv_sge = 32;
	open_matrix(&d, _i, &o);
	node_fill(&d.a, 0, 4096, 17);
	for (i = 0; i < 32; i++) {
		node_get(&d.a, 4 + i * 100, piece, 80);
		memcpy(sent + i * 77, piece, 77);
	}
	on_b(&d, do_scatter_recv, &few, sizeof(few));
	send_gathered(&d, &many, 0);
	check_recv(&d, 1, total);
	if (d.where == TWO_PROCESSES) {
		/* fetch b's buffer by an RDMA READ */
		struct ibv_sge sge = node_sge(&d.a, 8192, 8192);
		struct ibv_send_wr wr =
			rdma_wr(&d, IBV_WR_RDMA_READ, 2, &sge, 1, 0);

		ck_ok(post_wr(d.a.qp, &wr));
		expect_ok(d.a.scq, 2, IBV_WC_RDMA_READ);
	}
	for (i = 0, at = 0; i < 7; i++, at += k) {
		k = total - at < 352 ? total - at : 352;
		if (d.where == TWO_PROCESSES)
			node_get(&d.a, 8192 + 1000 + i * 700, piece, 352);
		else
			node_get(&d.b, 1000 + i * 700, piece, 352);
		memcpy(got + at, piece, k);
	}
	ck_assert_mem_eq(got, sent, total);
	duo_close(&d);
}
END_TEST

/*
 * Lists without SGEs, and lists of SGEs of length 0, are messages of length
 * 0.
 */
START_TEST(empty_lists)
{
	struct scatter none = { 3, 0, 0, 0, 0 };
	struct scatter zeros = { 4, 4, 0, 8, 0 };
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	on_b(&d, do_scatter_recv, &none, sizeof(none));
	send_gathered(&d, &none, 0);
	check_recv(&d, 3, 0);
	on_b(&d, do_scatter_recv, &zeros, sizeof(zeros));
	send_gathered(&d, &zeros, 0);
	check_recv(&d, 4, 0);
	/* the lkey of an SGE of length 0 is not checked */
	b_recv(&d, 5, 0, 64);
	{
		struct ibv_sge sge = { 0, 0, 0xdead };
		struct ibv_send_wr wr = rdma_wr(&d, IBV_WR_SEND, 5, &sge, 1, 0);

		ck_ok(post_wr(d.a.qp, &wr));
	}
	expect_ok(d.a.scq, 5, IBV_WC_SEND);
	check_recv(&d, 5, 0);
	duo_close(&d);
}
END_TEST

/*
 * Inline data is copied by ibv_post_send: the lkey is not checked and the
 * buffer may be changed afterwards.  It survives RNR retries.
 */
START_TEST(inline_data)
{
	struct opts o = default_opts();
	uint8_t data[URXE_MAX_INLINE];
	struct ibv_sge sge = { (uintptr_t)data, 0, 0xbad };
	struct ibv_send_wr wr;
	struct duo d;
	uint32_t len, i;

	o.cap.max_inline_data = URXE_MAX_INLINE;
	open_matrix(&d, _i, &o);
	for (len = 0; len <= URXE_MAX_INLINE; len += 1 + len / 3) {
		/* the lkey is not checked, the buffer may be reused */
		node_fill(&d.a, 0, len, len);
		node_get(&d.a, 0, data, len / 4 * 4);
		for (i = len / 4 * 4; i < len; i++)
			data[i] = 0;
		sge.length = len;
		wr = rdma_wr(&d, IBV_WR_SEND, len, &sge, 1, 0);
		wr.send_flags |= IBV_SEND_INLINE;
		/* no receive yet: the WR stays in the send queue */
		ck_ok(post_wr(d.a.qp, &wr));
		memset(data, 0xee, sizeof(data));
		b_recv(&d, len, 0, URXE_MAX_INLINE);
		expect_ok(d.a.scq, len, IBV_WC_SEND);
		check_recv(&d, len, len);
		ck_assert(b_has(&d, 0, len / 4 * 4, len));
	}
	duo_close(&d);
}
END_TEST

/* Inline data is gathered from several SGEs. */
START_TEST(inline_gathered)
{
	struct scatter many = { 1, 8, 9, 20, 0 };
	struct opts o = default_opts();
	uint8_t want[72], piece[12];
	struct duo d;
	int i;

	o.cap.max_send_sge = 8;
	o.cap.max_inline_data = 72;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d.a, 0, 256, 1);
	for (i = 0; i < 8; i++) {
		node_get(&d.a, i * 20, piece, 12);
		memcpy(want + i * 9, piece, 9);
	}
	b_recv(&d, 1, 0, 100);
	send_gathered(&d, &many, IBV_SEND_INLINE);
	check_recv(&d, 1, 72);
	for (i = 0; i < 9; i++)
		ck_assert(b_load64(&d, i * 8) == *(uint64_t *)(want + i * 8));
	duo_close(&d);
}
END_TEST

/*
 * An unsignaled WR that succeeds generates no CQE, unless the QP has
 * sq_sig_all.
 */
START_TEST(signaling)
{
	struct opts o = default_opts();
	struct duo d;
	int i;

	o.sq_sig_all = _i >= WHERE_COUNT;
	duo_open(&d, _i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 10; i++)
		b_recv(&d, i, 0, 64);
	for (i = 0; i < 9; i++)
		ck_ok(post_unsignaled(&d, IBV_WR_SEND, i, 0, 8, 0, 0));
	ck_ok(post(&d, IBV_WR_SEND, 9, 0, 8, 0, 0));
	for (i = o.sq_sig_all ? 0 : 9; i < 10; i++)
		expect_ok(d.a.scq, i, IBV_WC_SEND);
	expect_none(d.a.scq, QUIET_MS);
	for (i = 0; i < 10; i++)
		check_recv(&d, i, 8);
	duo_close(&d);
}
END_TEST

/*
 * Lists of messages of several packets arrive in order while the PSN wraps
 * around from 0xffffff to 0.
 */
START_TEST(order_and_psn_wrap)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr[16], *bad;
	struct ibv_sge sge[16];
	uint32_t i, round;
	struct duo d;

	o.psn = 0xfffff0;
	o.mtu = IBV_MTU_256;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (round = 0; round < 8; round++) {
		for (i = 0; i < 16; i++) {
			/* three packets each */
			node_fill(&d.a, i * 1024, 600, round * 16 + i);
			sge[i] = node_sge(&d.a, i * 1024, 600 + i);
			wr[i] = rdma_wr(&d, IBV_WR_SEND, i, &sge[i], 1, 0);
			wr[i].next = i < 15 ? &wr[i + 1] : NULL;
			b_recv(&d, i, i * 1024, 1024);
		}
		ck_ok(ibv_post_send(d.a.qp, wr, &bad));
		for (i = 0; i < 16; i++) {
			expect_ok(d.a.scq, i, IBV_WC_SEND);
			check_recv(&d, i, 600 + i);
			ck_assert(b_has(&d, i * 1024, 600, round * 16 + i));
		}
	}
	duo_close(&d);
}
END_TEST

struct traffic {
	uint32_t count;
};

/*
 * Send and receive @t->count messages, up to 32 outstanding in each
 * direction; check the order of the completions.
 */
static void exchange(struct node *n, const struct traffic *t)
{
	uint32_t sent = 0, acked = 0, received = 0, posted = 0, last = 0;
	double end = now_ms() + WAIT_MS;
	struct ibv_sge sge = node_sge(n, 0, 100);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;

	while (acked < t->count || received < t->count) {
		if (acked + received != last) {
			last = acked + received;
			end = now_ms() + WAIT_MS;
		}
		ck_assert(now_ms() < end);
		while (posted < t->count && posted - received < 32) {
			ck_ok(post_recv(n, posted, 4096, 100));
			posted++;
		}
		while (sent < t->count && sent - acked < 32) {
			wr.wr_id = sent++;
			ck_ok(post_wr(n->qp, &wr));
		}
		while (ibv_poll_cq(n->scq, 1, &wc) == 1) {
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
			ck_assert_uint_eq(wc.wr_id, acked++);
		}
		while (ibv_poll_cq(n->rcq, 1, &wc) == 1) {
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
			ck_assert_uint_eq(wc.wr_id, received++);
		}
	}
}

static int far_end(void *arg)
{
	int *sock = arg;
	struct opts o = default_opts();
	struct traffic t = { .count = 20000 };
	struct addr mine, peer;
	struct node n;
	char c;

	node_open(&n, NULL, MEM_HEAP, &o);
	mine = node_addr(&n);
	ck_assert_int_eq(write(sock[1], &mine, sizeof(mine)), sizeof(mine));
	ck_assert_int_eq(read(sock[1], &peer, sizeof(peer)), sizeof(peer));
	node_connect(&n, &peer);
	exchange(&n, &t);
	/* the other node may still be sending */
	ck_assert_int_eq(write(sock[1], "x", 1), 1);
	ck_assert_int_eq(read(sock[1], &c, 1), 1);
	node_close(&n);
	return 0;
}

/* Two processes send to each other at the same time. */
START_TEST(both_directions_at_once)
{
	struct traffic t = { .count = 20000 };
	struct opts o = default_opts();
	struct addr mine, peer;
	struct node n;
	int sock[2];
	pid_t child;
	char c;

	ck_ok(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	child = spawn(far_end, sock);
	node_open(&n, NULL, MEM_HEAP, &o);
	mine = node_addr(&n);
	ck_assert_int_eq(write(sock[0], &mine, sizeof(mine)), sizeof(mine));
	ck_assert_int_eq(read(sock[0], &peer, sizeof(peer)), sizeof(peer));
	node_connect(&n, &peer);
	exchange(&n, &t);
	ck_assert_int_eq(write(sock[0], "x", 1), 1);
	ck_assert_int_eq(read(sock[0], &c, 1), 1);
	node_close(&n);
	ck_assert_int_eq(reap_child(child), 0);
}
END_TEST

/* A QP may be connected to itself. */
START_TEST(loopback)
{
	struct opts o = default_opts();
	struct addr addr;
	struct node n;
	int i;

	node_open(&n, NULL, _i, &o);
	addr = node_addr(&n);
	node_connect(&n, &addr);
	for (i = 0; i < 1000; i++) {
		struct ibv_sge sge = node_sge(&n, 0, 300);
		struct ibv_send_wr wr = { .wr_id = i,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_SEND,
					  .send_flags = IBV_SEND_SIGNALED };

		node_fill(&n, 0, 300, i);
		ck_ok(post_recv(&n, i, 4096, 300));
		ck_ok(post_wr(n.qp, &wr));
		expect_ok(n.scq, i, IBV_WC_SEND);
		expect_ok(n.rcq, i, IBV_WC_RECV);
		ck_assert(node_has(&n, 4096, 300, i));
	}
	node_close(&n);
}
END_TEST

static void do_connect_again(struct node *n, void *arg)
{
	ck_ok(qp_to(n->qp, IBV_QPS_RESET));
	node_connect(n, arg);
}

/*
 * A transition of the receiver to RESET discards its receives.  The sender,
 * which may have cached that receives were posted, does not use them.
 */
START_TEST(receiver_is_reset)
{
	struct opts o = default_opts();
	struct addr from;
	struct duo d;
	int i;

	o.rnr_retry = 0;
	duo_open(&d, _i, MEM_HEAP, MEM_SHARED, &o);
	for (i = 0; i < 4; i++)
		b_recv(&d, i, 64 * i, 64);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	check_recv(&d, 0, 8);
	from = d.at_a;
	from.psn++;
	on_b(&d, do_connect_again, &from, sizeof(from));
	b_recv(&d, 5, 1024, 64);
	node_fill(&d.a, 0, 8, 9);
	ck_ok(post(&d, IBV_WR_SEND, 2, 0, 8, 0, 0));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	check_recv(&d, 5, 8);
	ck_assert(b_has(&d, 1024, 8, 9));
	ck_ok(post(&d, IBV_WR_SEND, 3, 0, 8, 0, 0));
	ck_assert_int_eq(wait_wc(d.a.scq).status, IBV_WC_RNR_RETRY_EXC_ERR);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("rc_send");

	add_loop(s, sizes, MATRIX);
	add_loop(s, no_write_beyond_message, MATRIX);
	add_loop(s, immediate_data, WHERE_COUNT);
	add_loop(s, gather_and_scatter, MATRIX);
	add_loop(s, empty_lists, WHERE_COUNT);
	add_loop(s, inline_data, MATRIX);
	add_loop(s, inline_gathered, WHERE_COUNT);
	add_loop(s, signaling, 2 * WHERE_COUNT);
	add_loop(s, order_and_psn_wrap, WHERE_COUNT);
	add(s, both_directions_at_once);
	add_loop(s, loopback, MEM_COUNT);
	add_loop(s, receiver_is_reset, WHERE_COUNT);
	return run(s);
}

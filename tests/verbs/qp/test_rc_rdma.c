// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* RC RDMA: WRITE, WRITE_WITH_IMM and READ. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "../harness.h"
#include "shared/layout.h"

#define MATRIX (WHERE_COUNT * MEM_COUNT * MEM_COUNT)

static void open_matrix(struct duo *d, int i, const struct opts *o)
{
	duo_open(d, i % WHERE_COUNT, i / WHERE_COUNT % MEM_COUNT,
		 i / WHERE_COUNT / MEM_COUNT, o);
}

static const uint32_t sizes[] = { 0,	1,    2,    3,	   4,	   7,	8,
				  9,	63,   64,   65,	   255,	   256, 1023,
				  1024, 1025, 4096, 65537, 1 << 20 };
#define SIZES (sizeof(sizes) / sizeof(*sizes))

/*
 * WRITE transfers exactly the bytes of the range, for sizes from 0 to 1 MiB
 * and unaligned addresses.
 */
START_TEST(write_sizes)
{
	struct opts o = default_opts();
	struct duo d;
	uint32_t i, len;

	o.size = (1 << 20) + 4096;
	open_matrix(&d, _i, &o);
	for (i = 0; i < SIZES; i++) {
		len = sizes[i];
		b_fill(&d, 0, len + 128, 200);
		node_fill(&d.a, 13, len, i);
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 13, len, 33, 0));
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
		ck_assert(b_has(&d, 33, len, i));
		/* bytes before and after the range are unchanged */
		ck_assert(b_has(&d, 0, 33, 200));
		node_fill(&d.a, 0, len + 128, 200);
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 33, len, 33, 0));
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
		ck_assert(b_has(&d, 0, len + 128, 200));
	}
	duo_close(&d);
}
END_TEST

/*
 * Return whether [from, to) contains what node_fill() of [0, to) stored.
 * Overwrites [0, from).
 */
static bool node_has_from(struct node *n, size_t from, size_t to,
			  unsigned int seed)
{
	node_fill(n, 0, from, seed);
	return node_has(n, 0, to, seed);
}

/*
 * READ transfers exactly the bytes of the range, for sizes from 0 to 1 MiB
 * and unaligned addresses.
 */
START_TEST(read_sizes)
{
	struct opts o = default_opts();
	struct ibv_wc wc;
	struct duo d;
	uint32_t i, len;

	o.size = (1 << 20) + 4096;
	open_matrix(&d, _i, &o);
	for (i = 0; i < SIZES; i++) {
		len = sizes[i];
		b_fill(&d, 21, len, i);
		node_fill(&d.a, 0, len + 128, 100);
		ck_ok(post(&d, IBV_WR_RDMA_READ, i, 37, len, 21, 0));
		wc = expect_ok(d.a.scq, i, IBV_WC_RDMA_READ);
		ck_assert_uint_eq(wc.byte_len, len);
		ck_assert(node_has(&d.a, 37, len, i));
		ck_assert(node_has(&d.a, 0, 37, 100));
		ck_assert(node_has_from(&d.a, 37 + len, len + 128, 100));
	}
	duo_close(&d);
}
END_TEST

/*
 * WRITE_WITH_IMM writes to the remote range and consumes a receive, which
 * gets the immediate data and the length.  The receive's buffer is not
 * written.
 */
START_TEST(write_with_immediate)
{
	struct opts o = default_opts();
	struct ibv_wc wc;
	struct duo d;
	uint32_t i, len;

	open_matrix(&d, _i, &o);
	for (i = 0; i < 20; i++) {
		len = i * 77;
		b_fill(&d, 8192, 64, 3);
		b_recv(&d, 100 + i, 8192, i % 2 ? 64 : 0);
		node_fill(&d.a, 0, len, i);
		ck_ok(post(&d, IBV_WR_RDMA_WRITE_WITH_IMM, i, 0, len, 64, 0));
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
		wc = b_wait_recv(&d);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.wr_id, 100 + i);
		ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		ck_assert_uint_eq(wc.byte_len, len);
		ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
		ck_assert_uint_eq(be32toh(wc.imm_data), 0xabcd0000 | i);
		ck_assert(b_has(&d, 64, len, i));
		/* the receive's buffer is unchanged */
		ck_assert(b_has(&d, 8192, 64, 3));
	}
	duo_close(&d);
}
END_TEST

/*
 * WRITE and READ consume no receive and generate no CQE or event at the
 * responder.
 */
START_TEST(rdma_consumes_no_receive)
{
	struct opts o = default_opts();
	struct ibv_wc wc;
	struct duo d;
	int i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	b_recv(&d, 1, 0, 64);
	for (i = 0; i < 20; i++) {
		ck_ok(post(&d, i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, i,
			   0, 64, 64, 0));
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	}
	/* the first CQE of b is that of this SEND */
	ck_ok(post(&d, IBV_WR_SEND, 50, 0, 9, 0, 0));
	expect_ok(d.a.scq, 50, IBV_WC_SEND);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
	ck_assert_uint_eq(wc.byte_len, 9);
	b_expect_no_async(&d);
	duo_close(&d);
}
END_TEST

/*
 * WRITE gathers from, and READ scatters to, a list of URXE_MAX_SGE SGEs, one
 * of them empty.
 */
START_TEST(gather_write_scatter_read)
{
	struct opts o = default_opts();
	struct ibv_sge sge[URXE_MAX_SGE];
	struct ibv_send_wr wr;
	uint32_t i, total = 0;
	struct duo d;

	o.cap.max_send_sge = URXE_MAX_SGE;
	open_matrix(&d, _i, &o);
	/* a pattern in pieces of 0 to URXE_MAX_SGE - 1 bytes */
	for (i = 0; i < URXE_MAX_SGE; i++)
		total += i;
	node_fill(&d.a, 0, total, 5);
	for (i = 0, total = 0; i < URXE_MAX_SGE; i++) {
		sge[i] = node_sge(&d.a, total, i);
		total += i;
	}
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 1, sge, URXE_MAX_SGE, 40);
	ck_ok(post_wr(d.a.qp, &wr));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_assert(b_has(&d, 40, total, 5));
	node_fill(&d.a, 0, 65536, 1);
	for (i = 0; i < URXE_MAX_SGE; i++)
		sge[i].addr = d.a.base + 32768 - (i + 1) * 64;
	wr = rdma_wr(&d, IBV_WR_RDMA_READ, 2, sge, URXE_MAX_SGE, 40);
	ck_ok(post_wr(d.a.qp, &wr));
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_READ);
	/* concatenate the pieces, which READ stored backwards */
	for (i = 0, total = 0; i < URXE_MAX_SGE; i++) {
		uint8_t piece[64];

		node_get(&d.a, 32768 - (i + 1) * 64, piece, 64);
		if (d.a.buf)
			memcpy((char *)d.a.buf + 40000 + total, piece, i);
		total += i;
	}
	if (d.a.buf)
		ck_assert(node_has(&d.a, 40000, total, 5));
	duo_close(&d);
}
END_TEST

/*
 * Inline data is copied by ibv_post_send, needs no lkey, and may be changed
 * afterwards.
 */
START_TEST(inline_write)
{
	struct opts o = default_opts();
	uint8_t data[200];
	struct ibv_sge sge = { (uintptr_t)data, 200, 0 };
	struct ibv_send_wr wr;
	struct duo d;

	o.cap.max_inline_data = 200;
	open_matrix(&d, _i, &o);
	node_fill(&d.a, 0, 200, 6);
	node_get(&d.a, 0, data, 200);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 1, &sge, 1, 100);
	wr.send_flags |= IBV_SEND_INLINE;
	ck_ok(post_wr(d.a.qp, &wr));
	memset(data, 0, sizeof(data));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_assert(b_has(&d, 100, 200, 6));
	duo_close(&d);
}
END_TEST

/*
 * Requests of length 0 succeed with an invalid rkey and remote address, which
 * are not checked.
 */
START_TEST(zero_length_needs_no_key)
{
	static const enum ibv_wr_opcode op[] = { IBV_WR_RDMA_WRITE,
						 IBV_WR_RDMA_READ,
						 IBV_WR_RDMA_WRITE_WITH_IMM };
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct duo d;
	int i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	b_recv(&d, 1, 0, 0);
	for (i = 0; i < 3; i++) {
		wr = rdma_wr(&d, op[i], i, NULL, 0, 0);
		wr.wr.rdma.rkey = 0x12345678;
		wr.wr.rdma.remote_addr = 0xdead0000;
		ck_ok(post_wr(d.a.qp, &wr));
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	}
	ck_assert_uint_eq(b_wait_recv(&d).byte_len, 0);
	b_expect_no_async(&d);
	duo_close(&d);
}
END_TEST

/*
 * A READ returns data of an earlier WRITE.  A WR with IBV_SEND_FENCE waits
 * for earlier READs.
 */
START_TEST(order)
{
	struct opts o = default_opts();
	struct duo d;
	uint32_t i;

	open_matrix(&d, _i, &o);
	for (i = 0; i < 100; i++) {
		node_fill(&d.a, 0, 4096, i);
		node_fill(&d.a, 8192, 4096, i + 1);
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 4096, 0, 0));
		ck_ok(post(&d, IBV_WR_RDMA_READ, 2, 8192, 4096, 0, 0));
		/* write the data of the READ to another address */
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 3, 8192, 4096, 16384,
			   IBV_SEND_FENCE));
		expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
		expect_ok(d.a.scq, 2, IBV_WC_RDMA_READ);
		expect_ok(d.a.scq, 3, IBV_WC_RDMA_WRITE);
		ck_assert(node_has(&d.a, 8192, 4096, i));
		ck_assert(b_has(&d, 16384, 4096, i));
	}
	duo_close(&d);
}
END_TEST

/*
 * With max_rd_atomic 1, 60 READs that are posted at once succeed one after
 * the other.
 */
START_TEST(many_reads)
{
	struct opts o = default_opts();
	struct duo d;
	int i, round;

	o.max_rd_atomic = o.max_dest_rd_atomic = 1;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	b_fill(&d, 0, 65536, 1);
	for (round = 0; round < 10; round++) {
		for (i = 0; i < 60; i++)
			ck_ok(post(&d, IBV_WR_RDMA_READ, i, i * 1024, 1024,
				   i * 1024, 0));
		for (i = 0; i < 60; i++)
			expect_ok(d.a.scq, i, IBV_WC_RDMA_READ);
		ck_assert(node_has(&d.a, 0, 60 * 1024, 1));
		node_fill(&d.a, 0, 65536, 0);
	}
	duo_close(&d);
}
END_TEST

/*
 * Data of a WRITE is visible before the completion of the receive of a later
 * SEND.
 */
START_TEST(write_visible_before_send)
{
	struct opts o = default_opts();
	struct ibv_wc wc;
	struct duo d;
	uint32_t i;

	open_matrix(&d, _i, &o);
	for (i = 0; i < 200; i++) {
		node_fill(&d.a, 0, 8192, i);
		b_recv(&d, i, 0, 0);
		ck_ok(post_unsignaled(&d, IBV_WR_RDMA_WRITE, i, 0, 8192, 0, 0));
		ck_ok(post(&d, IBV_WR_SEND, i, 0, 0, 0, 0));
		wc = b_wait_recv(&d);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert(b_has(&d, 0, 8192, i));
		expect_ok(d.a.scq, i, IBV_WC_SEND);
	}
	duo_close(&d);
}
END_TEST

/* Poll a byte of b's buffer until a's WRITE has changed it. */
static void do_watch(struct node *b, void *arg)
{
	_Atomic uint8_t *p = (_Atomic uint8_t *)b->buf + 999;
	double end = now_ms() + WAIT_MS;

	(void)arg;
	while (*p != 0x77)
		ck_assert(now_ms() < end);
}

/*
 * A WRITE becomes visible to a program that polls memory and calls no verbs.
 */
START_TEST(write_visible_in_polled_memory)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, TWO_PROCESSES, MEM_HEAP, _i, &o);
	memset((char *)d.a.buf + 999, 0x77, 1);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 1000, 0, 0));
	on_b(&d, do_watch, NULL, 0);
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

/*
 * A message longer than 1 GiB completes with LOC_LEN_ERR.  Nothing is
 * written.
 */
START_TEST(longer_than_max_msg_sz)
{
	const size_t piece = 64 << 20;
	struct opts o = default_opts();
	struct ibv_sge sge[17];
	struct ibv_send_wr wr;
	struct ibv_mr *mr;
	struct duo d;
	char *p;
	int i;

	o.cap.max_send_sge = 17;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	p = mmap(NULL, piece, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ck_assert(p != MAP_FAILED);
	mr = ibv_reg_mr(d.a.pd, p, piece, 0);
	ck_nonnull(mr);
	for (i = 0; i < 17; i++) {
		sge[i].addr = (uintptr_t)p;
		sge[i].length = piece;
		sge[i].lkey = mr->lkey;
	}
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 1, sge, 17, 0);
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 1, IBV_WC_LOC_LEN_ERR);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_ERR);
	b_expect_no_async(&d);
	ck_ok(ibv_dereg_mr(mr));
	duo_close(&d);
}
END_TEST

/*
 * WRITE and READ with overlapping source and destination have the result of
 * memmove().  Devices do not guarantee this.
 */
START_TEST(overlapping)
{
	static const struct {
		uint32_t from, to, len;
	} moves[] = { { 0, 0, 30000 },	  { 0, 8, 4096 },    { 8, 0, 4096 },
		      { 0, 1, 4095 },	  { 1, 0, 4095 },    { 0, 4, 8 },
		      { 3, 4, 100 },	  { 0, 8, 65528 },   { 8, 0, 65528 },
		      { 5, 1000, 30001 }, { 1000, 5, 30001 } };
	enum ibv_wr_opcode op = _i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
	static char want[65536], got[65536];
	struct opts o = default_opts();
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct addr self;
	struct node n;
	uint32_t from, to;
	size_t i;

	if (under_adversary())
		return;
	node_open(&n, NULL, _i / 2, &o);
	self = node_addr(&n);
	node_connect(&n, &self);
	for (i = 0; i < sizeof(moves) / sizeof(*moves); i++) {
		node_fill(&n, 0, sizeof(want), i);
		node_get(&n, 0, want, sizeof(want));
		from = moves[i].from;
		to = moves[i].to;
		memmove(want + to, want + from, moves[i].len);
		sge = node_sge(&n, op == IBV_WR_RDMA_READ ? to : from,
			       moves[i].len);
		wr = (struct ibv_send_wr){ .wr_id = i,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = op,
					   .send_flags = IBV_SEND_SIGNALED };
		wr.wr.rdma.remote_addr =
			n.base + (op == IBV_WR_RDMA_READ ? from : to);
		wr.wr.rdma.rkey = n.mr->rkey;
		ck_ok(ibv_post_send(n.qp, &wr, &bad));
		expect(n.scq, i, IBV_WC_SUCCESS);
		node_get(&n, 0, got, sizeof(got));
		ck_assert_msg(!memcmp(got, want, sizeof(got)), "move %zu", i);
	}
	node_close(&n);
}
END_TEST

int main(void)
{
	Suite *s = suite("rc_rdma");

	add_loop(s, write_sizes, MATRIX);
	add_loop(s, read_sizes, MATRIX);
	add_loop(s, write_with_immediate, MATRIX);
	add_loop(s, rdma_consumes_no_receive, WHERE_COUNT);
	add_loop(s, gather_write_scatter_read, MATRIX);
	add_loop(s, inline_write, MATRIX);
	add_loop(s, zero_length_needs_no_key, WHERE_COUNT);
	add_loop(s, order, MATRIX);
	add_loop(s, many_reads, WHERE_COUNT);
	add_loop(s, write_visible_before_send, MATRIX);
	add_loop(s, write_visible_in_polled_memory, MEM_DM);
	add_loop(s, longer_than_max_msg_sz, WHERE_COUNT);
	add_loop(s, overlapping, 2 * MEM_COUNT);
	return run(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* RC atomics: compare-and-swap and fetch-and-add. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../harness.h"

#define MATRIX (WHERE_COUNT * MEM_COUNT * MEM_COUNT)
#define FA IBV_WR_ATOMIC_FETCH_AND_ADD
#define CS IBV_WR_ATOMIC_CMP_AND_SWP

static void open_matrix(struct duo *d, int i)
{
	struct opts o = default_opts();

	duo_open(d, i % WHERE_COUNT, i / WHERE_COUNT % MEM_COUNT,
		 i / WHERE_COUNT / MEM_COUNT, &o);
}

/* Execute an atomic on b's word at @off; return its previous value. */
static uint64_t atomic_op(struct duo *d, enum ibv_wr_opcode op, size_t off,
			  uint64_t compare_add, uint64_t swap)
{
	struct ibv_wc wc;
	uint64_t before;

	ck_ok(post_atomic(d, op, 9, 128, off, compare_add, swap));
	wc = expect_ok(d->a.scq, 9,
		       op == FA ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP);
	ck_assert_uint_eq(wc.byte_len, 8);
	node_get(&d->a, 128, &before, 8);
	return before;
}

/*
 * FETCH_AND_ADD adds modulo 2^64, returns the previous value, and changes no
 * other byte of either buffer.
 */
START_TEST(fetch_and_add)
{
	struct duo d;

	open_matrix(&d, _i);
	b_store64(&d, 64, 40);
	ck_assert(atomic_op(&d, FA, 64, 2, 0) == 40);
	ck_assert(b_load64(&d, 64) == 42);
	/* adds modulo 2^64, so it can subtract */
	ck_assert(atomic_op(&d, FA, 64, (uint64_t)-43, 0) == 42);
	ck_assert(b_load64(&d, 64) == UINT64_MAX);
	ck_assert(atomic_op(&d, FA, 64, 1, 77) == UINT64_MAX);
	ck_assert(b_load64(&d, 64) == 0);
	ck_assert(atomic_op(&d, FA, 64, 0x0123456789abcdef, 0) == 0);
	ck_assert(b_load64(&d, 64) == 0x0123456789abcdef);
	/* adjacent words are unchanged at both nodes */
	ck_assert(b_load64(&d, 56) == 0 && b_load64(&d, 72) == 0);
	ck_assert(node_all(&d.a, 120, 8, 0) && node_all(&d.a, 136, 8, 0));
	duo_close(&d);
}
END_TEST

/*
 * CMP_AND_SWP compares 64 bits, stores only if they are equal, and always
 * returns the previous value.
 */
START_TEST(compare_and_swap)
{
	struct duo d;

	open_matrix(&d, _i);
	b_store64(&d, 8, 5);
	ck_assert(atomic_op(&d, CS, 8, 5, 6) == 5);
	ck_assert(b_load64(&d, 8) == 6);
	/* a failed comparison returns the value and changes nothing */
	ck_assert(atomic_op(&d, CS, 8, 5, 7) == 6);
	ck_assert(b_load64(&d, 8) == 6);
	ck_assert(atomic_op(&d, CS, 8, 6, UINT64_MAX) == 6);
	ck_assert(b_load64(&d, 8) == UINT64_MAX);
	/* all 64 bits are compared */
	ck_assert(atomic_op(&d, CS, 8, 0xffffffff, 1) == UINT64_MAX);
	ck_assert(b_load64(&d, 8) == UINT64_MAX);
	duo_close(&d);
}
END_TEST

/* The result is scattered over two SGEs of 4 bytes. */
START_TEST(result_is_scattered)
{
	struct opts o = default_opts();
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = sge,
				  .num_sge = 2,
				  .opcode = FA,
				  .send_flags = IBV_SEND_SIGNALED };
	uint64_t before, want = 0x1122334455667788;
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	b_store64(&d, 0, want);
	sge[0] = node_sge(&d.a, 0, 4);
	sge[1] = node_sge(&d.a, 4, 4);
	wr.wr.atomic.remote_addr = d.at_b.base;
	wr.wr.atomic.rkey = d.at_b.rkey;
	wr.wr.atomic.compare_add = 1;
	ck_ok(post_wr(d.a.qp, &wr));
	expect_ok(d.a.scq, 1, IBV_WC_FETCH_ADD);
	node_get(&d.a, 0, &before, 8);
	ck_assert(before == want);
	duo_close(&d);
}
END_TEST

/*
 * An atomic whose address is not a multiple of 8 is a REM_INV_REQ_ERR, breaks
 * both QPs, and changes nothing.
 */
START_TEST(misaligned)
{
	struct opts o = default_opts();
	struct duo d;
	int off;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (off = 1; off < 8; off++) {
		ck_ok(post_atomic(&d, off % 2 ? FA : CS, off, 0, 64 + off, 0,
				  1));
		expect(d.a.scq, off, IBV_WC_REM_INV_REQ_ERR);
		b_expect_async(&d, IBV_EVENT_QP_REQ_ERR);
		ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
		ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_ERR);
		ck_assert(b_all(&d, 0, 256, 0));
		duo_renew(&d);
	}
	duo_close(&d);
}
END_TEST

/*
 * SGEs that are not 8 bytes in total are refused by ibv_post_send or complete
 * with LOC_LEN_ERR.
 */
START_TEST(wrong_length)
{
	static const uint32_t len[] = { 0, 4, 7, 9, 16 };
	struct opts o = default_opts();
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct duo d;
	size_t i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < sizeof(len) / sizeof(*len); i++) {
		sge = node_sge(&d.a, 0, len[i]);
		wr = (struct ibv_send_wr){ .wr_id = i,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = FA,
					   .send_flags = IBV_SEND_SIGNALED };
		wr.wr.atomic.remote_addr = d.at_b.base;
		wr.wr.atomic.rkey = d.at_b.rkey;
		wr.wr.atomic.compare_add = 1;
		/* NICs refuse it in ibv_post_send or in the completion */
		if (post_wr(d.a.qp, &wr))
			continue;
		wc = expect(d.a.scq, i, IBV_WC_LOC_LEN_ERR);
		ck_assert_uint_eq(wc.qp_num, d.a.qp->qp_num);
		ck_assert(b_load64(&d, 0) == 0);
		duo_renew(&d);
	}
	duo_close(&d);
}
END_TEST

#define ROUNDS turns_of(20000)

/* Execute ROUNDS fetch-and-adds of 1, up to 32 outstanding. */
static void hammer(struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_sge sge,
		   uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = FA,
				  .send_flags = IBV_SEND_SIGNALED };
	int posted = 0, done = 0;
	struct ibv_wc wc;

	wr.wr.atomic.remote_addr = addr;
	wr.wr.atomic.rkey = rkey;
	wr.wr.atomic.compare_add = 1;
	while (done < ROUNDS) {
		while (posted < ROUNDS && posted - done < 32) {
			ck_ok(post_wr(qp, &wr));
			posted++;
		}
		wc = wait_wc(cq);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		done++;
	}
}

static int far_hammer(void *arg)
{
	int *sock = arg;
	struct opts o = default_opts();
	struct addr mine, target;
	struct node n;

	node_open(&n, NULL, MEM_HEAP, &o);
	mine = node_addr(&n);
	ck_assert_int_eq(write(sock[1], &mine, sizeof(mine)), sizeof(mine));
	ck_assert_int_eq(read(sock[1], &target, sizeof(target)),
			 sizeof(target));
	node_connect(&n, &target);
	hammer(n.qp, n.scq, node_sge(&n, 0, 8), target.base, target.rkey);
	node_close(&n);
	return 0;
}

/*
 * Atomics on one word by another process, and by the owning process over a QP
 * that is connected to itself, are atomic to each other.  MEM_COUNT kinds of
 * memory.
 */
START_TEST(concurrent_atomics)
{
	struct opts o = default_opts();
	struct addr mine, peer;
	struct node owner, self;
	uint64_t sum;
	int sock[2];
	pid_t child;

	may_leak();
	ck_ok(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	child = spawn(far_hammer, sock);
	node_open(&owner, NULL, _i, &o);
	node_open(&self, owner.ctx, MEM_HEAP, &o);
	/* a QP in the owner's PD, connected to itself */
	ck_ok(ibv_destroy_qp(self.qp));
	ck_ok(ibv_dereg_mr(self.mr));
	ck_ok(ibv_dealloc_pd(self.pd));
	self.pd = owner.pd;
	self.mr = ibv_reg_mr(self.pd, self.buf, self.o.size, ALL_ACCESS);
	ck_nonnull(self.mr);
	node_make_qp(&self);
	peer = node_addr(&self);
	node_connect(&self, &peer);

	mine = node_addr(&owner);
	ck_assert_int_eq(write(sock[0], &mine, sizeof(mine)), sizeof(mine));
	ck_assert_int_eq(read(sock[0], &peer, sizeof(peer)), sizeof(peer));
	node_connect(&owner, &peer);
	hammer(self.qp, self.scq, node_sge(&self, 0, 8), owner.base,
	       owner.mr->rkey);
	ck_assert_int_eq(reap_child(child), 0);
	node_get(&owner, 0, &sum, 8);
	ck_assert_uint_eq(sum, 2 * ROUNDS);
}
END_TEST

/*
 * Atomics are atomic for the whole device (IBV_ATOMIC_HCA): two processes add
 * to one word that is registered in two contexts of its process, each through
 * another MR.
 */
START_TEST(one_word_in_two_mrs)
{
	struct opts o = default_opts();
	struct addr mine[2], peer;
	struct node n[2];
	struct ibv_mr *mr;
	int sock[2][2], i;
	pid_t child[2];
	uint64_t sum;

	may_leak();
	for (i = 0; i < 2; i++) {
		ck_ok(socketpair(AF_UNIX, SOCK_STREAM, 0, sock[i]));
		child[i] = spawn(far_hammer, sock[i]);
	}
	for (i = 0; i < 2; i++) {
		node_open(&n[i], NULL, _i, &o);
		mine[i] = node_addr(&n[i]);
	}
	mr = ibv_reg_mr(n[1].pd, n[0].buf, o.size, ALL_ACCESS);
	ck_nonnull(mr);
	mine[1].base = mine[0].base;
	mine[1].rkey = mr->rkey;
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(read(sock[i][0], &peer, sizeof(peer)),
				 sizeof(peer));
		node_connect(&n[i], &peer);
		ck_assert_int_eq(write(sock[i][0], &mine[i], sizeof(peer)),
				 sizeof(peer));
	}
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(reap_child(child[i]), 0);
	node_get(&n[0], 0, &sum, 8);
	ck_assert_uint_eq(sum, 2 * ROUNDS);
}
END_TEST

int main(void)
{
	Suite *s = suite("rc_atomic");

	add_loop(s, fetch_and_add, MATRIX);
	add_loop(s, compare_and_swap, MATRIX);
	add_loop(s, result_is_scattered, WHERE_COUNT);
	add_loop(s, misaligned, WHERE_COUNT);
	add_loop(s, wrong_length, WHERE_COUNT);
	add_loop(s, concurrent_atomics, MEM_COUNT);
	add_loop(s, one_word_in_two_mrs, MEM_DM);
	return run(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * READs and atomics, one after the other and in lists, for which the cached
 * results of the previous WR are not sufficient: a key of either end has
 * fewer access rights, or the address is not one of an aligned word.
 */
#include <string.h>

#include "../harness.h"

#define W IBV_WR_RDMA_WRITE
#define R IBV_WR_RDMA_READ
#define FA IBV_WR_ATOMIC_FETCH_AND_ADD
#define CS IBV_WR_ATOMIC_CMP_AND_SWP

#define ENDS (WHERE_COUNT * MEM_COUNT) /* from ENDS on: with ibv_wr_*() */

static void open_ends(struct duo *d, int i, struct opts *o)
{
	enum mem mem = i % ENDS / WHERE_COUNT;

	o->built = i >= ENDS;
	duo_open(d, i % WHERE_COUNT, mem, mem, o);
}

/* Fill the requester's cache by WRITEs. */
static void warm_up(struct duo *d)
{
	int i;

	for (i = 0; i < 2; i++) {
		ck_ok(post(d, W, 99, 1024, 8, 1024, 0));
		expect_ok(d->a.scq, 99, IBV_WC_RDMA_WRITE);
	}
}

static uint64_t a_load64(struct duo *d, size_t off)
{
	uint64_t v;

	node_get(&d->a, off, &v, sizeof(v));
	return v;
}

/* Atomics and READs return what those before them have stored. */
START_TEST(fetch_returns_earlier_stores)
{
	struct opts o = default_opts();
	struct duo d;
	uint64_t i;

	open_ends(&d, _i, &o);
	b_store64(&d, 0, 100);
	for (i = 0; i < 20; i++) {
		ck_ok(post_atomic(&d, FA, 4 * i, 8, 0, 3, 0));
		expect_ok(d.a.scq, 4 * i, IBV_WC_FETCH_ADD);
		ck_assert_uint_eq(a_load64(&d, 8), 100 + 4 * i);
		ck_ok(post_atomic(&d, CS, 4 * i + 1, 8, 0, 103 + 4 * i,
				  104 + 4 * i));
		expect_ok(d.a.scq, 4 * i + 1, IBV_WC_COMP_SWAP);
		ck_assert_uint_eq(a_load64(&d, 8), 103 + 4 * i);
		ck_ok(post_atomic(&d, CS, 4 * i + 2, 8, 0, 1, 2));
		expect_ok(d.a.scq, 4 * i + 2, IBV_WC_COMP_SWAP);
		ck_assert_uint_eq(a_load64(&d, 8), 104 + 4 * i);
		ck_ok(post(&d, R, 4 * i + 3, 16, 8, 0, 0));
		ck_assert_uint_eq(
			expect_ok(d.a.scq, 4 * i + 3, IBV_WC_RDMA_READ)
				.byte_len,
			8);
		ck_assert_uint_eq(a_load64(&d, 16), 104 + 4 * i);
	}
	/* READs of other lengths, at unaligned addresses */
	b_fill(&d, 64, 3000, 7);
	ck_ok(post(&d, R, 1, 4001, 2999, 65, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_READ);
	ck_ok(post(&d, R, 2, 4000, 3000, 64, 0));
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_READ);
	ck_assert(node_has(&d.a, 4000, 3000, 7));
	duo_close(&d);
}
END_TEST

#define LIST 12

struct list {
	struct ibv_sge sge[LIST];
	struct ibv_send_wr wr[LIST];
};

static void list_add(struct duo *d, struct list *l, int i,
		     enum ibv_wr_opcode op, size_t a_off, size_t b_off)
{
	l->sge[i] = node_sge(&d->a, a_off, 8);
	l->wr[i] = rdma_wr(d, op, i, &l->sge[i], 1, b_off);
	if (op == FA || op == CS) {
		l->wr[i].wr.atomic.remote_addr = d->at_b.base + b_off;
		l->wr[i].wr.atomic.rkey = d->at_b.rkey;
		l->wr[i].wr.atomic.compare_add = 10;
		l->wr[i].wr.atomic.swap = 5;
	}
	l->wr[i].next = i + 1 < LIST ? &l->wr[i + 1] : NULL;
}

/*
 * In a list of READs, WRITEs and atomics, each WR finds what those before it
 * have stored.
 */
START_TEST(list_of_all_kinds)
{
	struct opts o = default_opts();
	struct list l;
	struct duo d;
	int i, turn;

	open_ends(&d, _i, &o);
	warm_up(&d);
	for (turn = 0; turn < 4; turn++) {
		b_store64(&d, 0, 1);
		b_store64(&d, 8, 0);
		node_put(&d.a, 0, &(uint64_t){ 10 }, 8);
		list_add(&d, &l, 0, R, 64, 0); /* 1 */
		list_add(&d, &l, 1, W, 0, 0); /* 10 */
		list_add(&d, &l, 2, R, 72, 0); /* 10 */
		list_add(&d, &l, 3, R, 80, 8); /* 0 */
		list_add(&d, &l, 4, CS, 88, 0); /* 10, then 5 */
		list_add(&d, &l, 5, FA, 96, 0); /* 5, then 15 */
		list_add(&d, &l, 6, FA, 104, 8); /* 0, then 10 */
		list_add(&d, &l, 7, R, 112, 0); /* 15 */
		list_add(&d, &l, 8, W, 112, 8); /* 15: fenced */
		list_add(&d, &l, 9, R, 120, 8); /* 15 */
		list_add(&d, &l, 10, W, 0, 8); /* 10 */
		list_add(&d, &l, 11, CS, 128, 8); /* 10, then 5 */
		l.wr[8].send_flags |= IBV_SEND_FENCE;
		if (turn % 2)
			l.wr[2].send_flags = l.wr[6].send_flags = 0;
		ck_ok(post_list(&d.a, l.wr));
		for (i = 0; i < LIST; i++)
			if (l.wr[i].send_flags)
				ck_assert_uint_eq(
					expect(d.a.scq, i, IBV_WC_SUCCESS)
						.byte_len,
					8);
		ck_assert_uint_eq(a_load64(&d, 64), 1);
		ck_assert_uint_eq(a_load64(&d, 72), 10);
		ck_assert_uint_eq(a_load64(&d, 80), 0);
		ck_assert_uint_eq(a_load64(&d, 88), 10);
		ck_assert_uint_eq(a_load64(&d, 96), 5);
		ck_assert_uint_eq(a_load64(&d, 104), 0);
		ck_assert_uint_eq(a_load64(&d, 112), 15);
		ck_assert_uint_eq(a_load64(&d, 120), 15);
		ck_assert_uint_eq(a_load64(&d, 128), 10);
		ck_assert_uint_eq(b_load64(&d, 0), 15);
		ck_assert_uint_eq(b_load64(&d, 8), 5);
	}
	duo_close(&d);
}
END_TEST

/*
 * The rkey permits WRITEs, which have used it.  READs and atomics with it are
 * refused.
 */
START_TEST(rkey_without_access)
{
	struct opts o = default_opts();
	struct duo d;

	o.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	warm_up(&d);
	ck_ok(post(&d, R, 1, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	duo_renew(&d);
	warm_up(&d);
	ck_ok(post_atomic(&d, FA, 1, 0, 0, 1, 0));
	expect(d.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	ck_assert_uint_eq(b_load64(&d, 0), 0);
	duo_renew(&d);
	warm_up(&d);
	duo_close(&d);
}
END_TEST

/*
 * The responder's QP does not permit the operation: it is refused, although
 * the rkey permits it.
 */
START_TEST(qp_without_access)
{
	const struct {
		enum ibv_wr_opcode op;
		unsigned int access;
	} cases[] = {
		{ R, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC },
		{ FA, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ },
		{ W, IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_READ },
	};
	struct opts o = default_opts();
	struct duo d;
	int i;

	for (i = 0; i < 3; i++) {
		o.qp_access = cases[i].access;
		duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
		if (cases[i].op == W) {
			ck_ok(post(&d, R, 1, 1024, 8, 1024, 0));
			expect(d.a.scq, 1, IBV_WC_SUCCESS);
			ck_ok(post(&d, W, 1, 0, 8, 0, 0));
		} else if (cases[i].op == R) {
			warm_up(&d);
			ck_ok(post(&d, R, 1, 0, 8, 0, 0));
		} else {
			warm_up(&d);
			ck_ok(post_atomic(&d, FA, 1, 0, 0, 1, 0));
		}
		expect(d.a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
		ck_assert_uint_eq(b_load64(&d, 0), 0);
		duo_close(&d);
	}
}
END_TEST

/* Change the access flags of b's QP in state RTS. */
static void do_forbid(struct node *b, void *arg)
{
	struct ibv_qp_attr attr = { .qp_access_flags = *(unsigned int *)arg };

	ck_ok(ibv_modify_qp(b->qp, &attr, IBV_QP_ACCESS_FLAGS));
}

/*
 * An operation is refused from the time that ibv_modify_qp() removes its
 * access flag in RTS.
 */
START_TEST(access_flag_removed)
{
	struct opts o = default_opts();
	unsigned int left = IBV_ACCESS_REMOTE_READ;
	struct duo d;
	int i;

	for (i = 0; i < 2; i++) {
		duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
		warm_up(&d);
		on_b(&d, do_forbid, &left, sizeof(left));
		ck_ok(post(&d, R, 1, 0, 8, 0, 0));
		expect(d.a.scq, 1, IBV_WC_SUCCESS);
		if (i)
			ck_ok(post_atomic(&d, FA, 2, 0, 0, 1, 0));
		else
			ck_ok(post(&d, W, 2, 1024, 8, 0, 0));
		expect(d.a.scq, 2, IBV_WC_REM_INV_REQ_ERR);
		ck_assert_uint_eq(b_load64(&d, 0), 0);
		duo_close(&d);
	}
}
END_TEST

/*
 * An lkey without IBV_ACCESS_LOCAL_WRITE can be the source of WRITEs.  READs
 * and atomics cannot store there: IBV_WC_LOC_PROT_ERR.
 */
START_TEST(read_only_lkey)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct duo d;
	int i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	mr = ibv_reg_mr(d.a.pd, d.a.buf, o.size, 0);
	ck_nonnull(mr);
	for (i = 0; i < 2; i++) {
		warm_up(&d);
		sge = node_sge(&d.a, 0, 8);
		sge.lkey = mr->lkey;
		wr = rdma_wr(&d, W, 1, &sge, 1, 0);
		ck_ok(post_list(&d.a, &wr));
		expect(d.a.scq, 1, IBV_WC_SUCCESS);
		wr = rdma_wr(&d, i ? FA : R, 2, &sge, 1, 0);
		if (i) {
			wr.wr.atomic.remote_addr = d.at_b.base;
			wr.wr.atomic.rkey = d.at_b.rkey;
			wr.wr.atomic.compare_add = 0;
		}
		memset(d.a.buf, 3, 8);
		ck_ok(post_list(&d.a, &wr));
		expect(d.a.scq, 2, IBV_WC_LOC_PROT_ERR);
		ck_assert(node_all(&d.a, 0, 8, 3));
		duo_renew(&d);
	}
	ck_ok(ibv_dereg_mr(mr));
	duo_close(&d);
}
END_TEST

/*
 * Atomics fail on a misaligned address, outside of the MR, and with another
 * length than 8; READs fail beyond the end of the MR.
 */
START_TEST(invalid_fetch_ranges)
{
	struct opts o = default_opts();
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct duo d;

	open_ends(&d, _i, &o);
	warm_up(&d);
	ck_ok(post_atomic(&d, FA, 1, 0, 4, 1, 0));
	expect(d.a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	duo_renew(&d);
	warm_up(&d);
	ck_ok(post_atomic(&d, CS, 1, 0, o.size - 4, 0, 1));
	expect(d.a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	duo_renew(&d);
	warm_up(&d);
	ck_ok(post_atomic(&d, CS, 1, 0, o.size, 0, 1));
	expect(d.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	duo_renew(&d);
	warm_up(&d);
	sge = node_sge(&d.a, 0, 16);
	wr = rdma_wr(&d, FA, 1, &sge, 1, 0);
	wr.wr.atomic.remote_addr = d.at_b.base;
	wr.wr.atomic.rkey = d.at_b.rkey;
	wr.wr.atomic.compare_add = 1;
	ck_ok(post_list(&d.a, &wr));
	expect(d.a.scq, 1, IBV_WC_LOC_LEN_ERR);
	duo_renew(&d);
	warm_up(&d);
	ck_ok(post(&d, R, 1, 0, 64, o.size - 63, 0));
	expect(d.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	ck_assert_uint_eq(b_load64(&d, 0), 0);
	duo_close(&d);
}
END_TEST

/*
 * Move b's MR, with addresses from 0, to memory 4 bytes after an 8-byte
 * boundary.  So if the address in a WR is a multiple of 8 that of the memory
 * is not, and conversely.
 */
static void do_rereg(struct node *b, void *arg)
{
	*(uint32_t *)arg = b->mr->rkey;
	ck_ok(ibv_rereg_mr(b->mr,
			   IBV_REREG_MR_CHANGE_TRANSLATION |
				   IBV_REREG_MR_CHANGE_ACCESS,
			   NULL, (char *)b->buf + 4, 4096,
			   ALL_ACCESS | IBV_ACCESS_ZERO_BASED));
}

/*
 * Atomics require that the address in the WR and that of the memory are
 * multiples of 8.
 */
START_TEST(misaligned_memory)
{
	struct opts o = default_opts();
	struct duo d;
	uint32_t rkey;

	duo_open(&d, _i / 2, MEM_HEAP, MEM_HEAP, &o);
	warm_up(&d);
	on_b(&d, do_rereg, &rkey, sizeof(rkey));
	d.at_b.base = 0;
	warm_up(&d);
	ck_ok(post_atomic(&d, FA, 1, 0, 8 + _i % 2 * 4, 1, 0));
	expect(d.a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	duo_close(&d);
}
END_TEST

/*
 * READs and atomics that exceed max_dest_rd_atomic, after WRITEs, which do
 * not count: the first that exceeds it fails.
 */
START_TEST(max_dest_rd_atomic_after_writes)
{
	struct opts o = default_opts();
	struct list l;
	struct duo d;
	int i;

	o.max_dest_rd_atomic = 3;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	warm_up(&d);
	for (i = 0; i < LIST; i++)
		list_add(&d, &l, i, i < 2 ? W : i % 2 ? R : FA, 64, 0);
	ck_ok(post_list(&d.a, l.wr));
	for (i = 0; i < 5; i++)
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	expect(d.a.scq, 5, IBV_WC_REM_INV_REQ_ERR);
	for (i = 6; i < LIST; i++)
		expect(d.a.scq, i, IBV_WC_WR_FLUSH_ERR);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("direct_fetch");

	add_loop(s, fetch_returns_earlier_stores, 2 * ENDS);
	add_loop(s, list_of_all_kinds, 2 * ENDS);
	add_loop(s, rkey_without_access, WHERE_COUNT);
	add_loop(s, qp_without_access, WHERE_COUNT);
	add_loop(s, access_flag_removed, WHERE_COUNT);
	add_loop(s, read_only_lkey, WHERE_COUNT);
	add_loop(s, invalid_fetch_ranges, 2 * ENDS);
	add_loop(s, misaligned_memory, 2 * WHERE_COUNT);
	add_loop(s, max_dest_rd_atomic_after_writes, WHERE_COUNT);
	return run(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The null MR (ibv_alloc_null_mr), and MRs of length 0. */
#include <string.h>

#include "../access.h"
#include "../harness.h"

static void open_it(struct duo *d, int where)
{
	struct opts o = default_opts();

	duo_open(d, where, MEM_HEAP, MEM_HEAP, &o);
}

/* The null MR covers all addresses and keeps its PD in use. */
START_TEST(fields)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr = ibv_alloc_null_mr(pd);

	ck_nonnull(mr);
	ck_assert_ptr_eq(mr->pd, pd);
	ck_assert_ptr_eq(mr->context, ctx);
	ck_assert_ptr_eq(mr->addr, NULL);
	ck_assert_uint_eq(mr->length, SIZE_MAX);
	ck_assert_uint_ne(mr->lkey, 0);
	ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY);
	/* man ibv_alloc_null_mr: not for ibv_rereg_mr */
	ck_assert_int_eq(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* As a source the null MR has zeros, alone and between other SGEs. */
START_TEST(source)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge[3];
	struct ibv_mr *null;
	struct duo d;

	open_it(&d, _i);
	null = ibv_alloc_null_mr(d.a.pd);
	ck_nonnull(null);
	node_fill(&d.a, 0, 4096, 1);
	b_fill(&d, 0, 30000, 2);
	sge[0] = node_sge(&d.a, 0, 100);
	sge[1] = (struct ibv_sge){ 0x1234567, 20000, null->lkey };
	sge[2] = node_sge(&d.a, 0, 50);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 1, sge, 3, 0);
	ck_ok(post_wr(d.a.qp, &wr));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_assert(b_has(&d, 0, 100, 1));
	ck_assert(b_all(&d, 100, 20000, 0));
	ck_assert(b_has(&d, 20100, 50, 1));
	b_fill(&d, 0, 100, 2);
	b_recv(&d, 3, 0, 64);
	wr = rdma_wr(&d, IBV_WR_SEND, 2, &sge[1], 1, 0);
	sge[1].length = 64;
	ck_ok(post_wr(d.a.qp, &wr));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	ck_assert(b_all(&d, 0, 64, 0));
	ck_ok(ibv_dereg_mr(null));
	duo_close(&d);
}
END_TEST

/* Post a receive whose first SGE, of length *arg, is in the null MR. */
static void do_null_recv(struct node *b, void *arg)
{
	uint32_t len = *(uint32_t *)arg;
	struct ibv_sge sge[2];
	struct ibv_recv_wr wr = { .wr_id = 4, .sg_list = sge, .num_sge = 2 },
			   *bad;

	if (!b->user)
		b->user = ibv_alloc_null_mr(b->pd);
	sge[0] = (struct ibv_sge){ 0, len, ((struct ibv_mr *)b->user)->lkey };
	sge[1] = node_sge(b, 0, 100);
	ck_ok(ibv_post_recv(b->qp, &wr, &bad));
}

static void do_null_free(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(ibv_dereg_mr(b->user));
}

/*
 * As a destination the null MR discards data, such as the first part of a
 * message.
 */
START_TEST(sink)
{
	uint32_t len[] = { 8, 40, 5000 }, i;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_mr *null;
	struct duo d;

	open_it(&d, _i);
	node_fill(&d.a, 0, 6000, 1);
	for (i = 0; i < 3; i++) {
		on_b(&d, do_null_recv, &len[i], sizeof(len[i]));
		ck_ok(post(&d, IBV_WR_SEND, 2, 0, len[i] + 20, 0, 0));
		expect_ok(d.a.scq, 2, IBV_WC_SEND);
		ck_assert_uint_eq(b_wait_recv(&d).byte_len, len[i] + 20);
	}
	on_b(&d, do_null_free, NULL, 0);
	/* the data of an RDMA READ, too */
	null = ibv_alloc_null_mr(d.a.pd);
	sge = (struct ibv_sge){ UINT64_MAX / 2, 4096, null->lkey };
	wr = rdma_wr(&d, IBV_WR_RDMA_READ, 1, &sge, 1, 0);
	ck_ok(post_wr(d.a.qp, &wr));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_READ);
	ck_assert(node_has(&d.a, 0, 6000, 1));
	ck_ok(ibv_dereg_mr(null));
	duo_close(&d);
}
END_TEST

static void do_null(struct node *b, void *arg)
{
	b->user = ibv_alloc_null_mr(b->pd);
	*(uint32_t *)arg = ((struct ibv_mr *)b->user)->lkey;
}

/* The key of the null MR gives no remote access. */
START_TEST(no_remote_access)
{
	struct duo d;
	uint32_t key;

	open_it(&d, _i);
	on_b(&d, do_null, &key, sizeof(key));
	ck_write(&d, 0, key, 8, IBV_WC_REM_ACCESS_ERR);
	ck_read(&d, 0, key, 8, IBV_WC_REM_ACCESS_ERR);
	on_b(&d, do_null_free, NULL, 0);
	duo_close(&d);
}
END_TEST

/* No window can be bound to the null MR. */
START_TEST(no_window)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
	struct ibv_mr *null;
	struct ibv_mw *mw;
	struct duo d;

	open_it(&d, SAME_CONTEXT);
	null = ibv_alloc_null_mr(d.a.pd);
	mw = ibv_alloc_mw(d.a.pd, IBV_MW_TYPE_1);
	bind.bind_info = (struct ibv_mw_bind_info){ null, 0, 64,
						    IBV_ACCESS_REMOTE_READ };
	ck_ok(ibv_bind_mw(d.a.qp, mw, &bind));
	ck_assert_int_eq(wait_wc(d.a.scq).status, IBV_WC_MW_BIND_ERR);
	ck_ok(ibv_dealloc_mw(mw));
	ck_ok(ibv_dereg_mr(null));
	duo_close(&d);
}
END_TEST

struct zero {
	uint32_t rkey;
	uint64_t addr;
};

static void do_zero(struct node *b, void *arg)
{
	struct zero *z = arg;
	struct ibv_mr *mr = ibv_reg_mr(b->pd, b->buf + 8, 0, ALL_ACCESS);

	ck_nonnull(mr);
	b->user = mr;
	z->rkey = mr->rkey;
	z->addr = (uintptr_t)mr->addr;
}

/* An MR of length 0 allows requests of length 0 only. */
START_TEST(zero_length_mr)
{
	struct zero z = { 0 };
	struct duo d;

	open_it(&d, _i);
	on_b(&d, do_zero, &z, sizeof(z));
	ck_write(&d, z.addr, z.rkey, 1, IBV_WC_REM_ACCESS_ERR);
	ck_write(&d, z.addr, z.rkey, 0, IBV_WC_SUCCESS);
	on_b(&d, do_null_free, NULL, 0);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("null_mr");

	add(s, fields);
	add_loop(s, source, WHERE_COUNT);
	add_loop(s, sink, WHERE_COUNT);
	add_loop(s, no_remote_access, WHERE_COUNT);
	add(s, no_window);
	add_loop(s, zero_length_mr, WHERE_COUNT);
	return run(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ATOMIC WRITE by ibv_post_send(), and the access flags for FLUSH. */
#include <string.h>

#include "../access.h"
#include "../harness.h"

/* Values that older verbs.h do not define. */
#define WR_ATOMIC_WRITE 15
#define WC_ATOMIC_WRITE 9
#define CAP_ATOMIC_WRITE (1ull << 40)
#define CAP_FLUSH (3ull << 38)

static int post_it(struct duo *d, size_t b_off, uint32_t len)
{
	struct ibv_sge sge = node_sge(&d->a, 0, len);
	struct ibv_send_wr wr = rdma_wr(d, WR_ATOMIC_WRITE, 3, &sge, 1, b_off);

	return post_wr(d->a.qp, &wr);
}

START_TEST(capabilities)
{
	struct ibv_context *ctx = open_device();
	struct ibv_device_attr_ex a;

	ck_ok(ibv_query_device_ex(ctx, NULL, &a));
	ck_assert(a.device_cap_flags_ex & CAP_ATOMIC_WRITE);
	ck_assert_uint_eq(a.device_cap_flags_ex & CAP_FLUSH, CAP_FLUSH);
	ck_assert_uint_eq((uint32_t)a.device_cap_flags_ex,
			  a.orig_attr.device_cap_flags);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/*
 * An ATOMIC WRITE stores 8 bytes and nothing else, in each kind of memory,
 * with b in each place.
 */
START_TEST(write_8)
{
	enum where where = _i / MEM_COUNT;
	enum mem mem = _i % MEM_COUNT;
	struct opts o = default_opts();
	uint64_t v = 0x1122334455667788ull;
	struct duo d;

	duo_open(&d, where, MEM_HEAP, mem, &o);
	node_put(&d.a, 0, &v, 8);
	ck_ok(post_it(&d, 16, 8));
	expect_ok(d.a.scq, 3, WC_ATOMIC_WRITE);
	ck_assert_uint_eq(b_load64(&d, 16), v);
	ck_assert(b_all(&d, 0, 16, 0));
	ck_assert(b_all(&d, 24, 100, 0));
	duo_close(&d);
}
END_TEST

/*
 * ATOMIC WRITEs fail that have another length than 8, a misaligned address, a
 * range outside of the MR, or a QP without IBV_ACCESS_REMOTE_WRITE.
 */
START_TEST(refused)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post_it(&d, 0, 4));
	expect(d.a.scq, 3, IBV_WC_LOC_LEN_ERR);
	duo_renew(&d);
	ck_ok(post_it(&d, 4, 8));
	expect(d.a.scq, 3, IBV_WC_REM_INV_REQ_ERR);
	duo_renew(&d);
	ck_ok(post_it(&d, o.size, 8));
	expect(d.a.scq, 3, IBV_WC_REM_ACCESS_ERR);
	duo_close(&d);
	o.qp_access = IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_READ;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post_it(&d, 0, 8));
	expect(d.a.scq, 3, IBV_WC_REM_INV_REQ_ERR);
	duo_close(&d);
}
END_TEST

/*
 * The address in the request is a multiple of 8, but that of the memory is
 * not: the request is refused.
 */
START_TEST(misaligned_region)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct duo d;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	mr = ibv_reg_mr(d.b.pd, (char *)d.b.buf + 4, 64,
			ALL_ACCESS | IBV_ACCESS_ZERO_BASED);
	ck_nonnull(mr);
	sge = node_sge(&d.a, 0, 8);
	wr = rdma_wr(&d, WR_ATOMIC_WRITE, 3, &sge, 1, 0);
	wr.wr.rdma.remote_addr = 8;
	wr.wr.rdma.rkey = mr->rkey;
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 3, IBV_WC_REM_INV_REQ_ERR);
	ck_ok(ibv_dereg_mr(mr));
	duo_close(&d);
}
END_TEST

/*
 * Registration for FLUSH to global visibility (1 << 8) succeeds.  Persistence
 * (1 << 9) requires memory of a file, and fails with EINVAL for other memory.
 */
START_TEST(flush_access)
{
	struct opts o = default_opts();
	struct ibv_mr *mr;
	struct duo d;

	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	mr = ibv_reg_mr(d.a.pd, d.a.buf, 64, ALL_ACCESS | 1 << 8);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	ck_errno(ibv_reg_mr(d.a.pd, d.a.buf, 64, ALL_ACCESS | 1 << 9), EINVAL);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("atomic_write");

	add(s, capabilities);
	add_loop(s, write_8, WHERE_COUNT * MEM_COUNT);
	add_loop(s, refused, WHERE_COUNT);
	add(s, misaligned_region);
	add(s, flush_access);
	return run(s);
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the tests of copy path 4 share. */
#pragma once

#include "forbid.h"
#include "types.h"

#define R IBV_WR_RDMA_READ
#define W IBV_WR_RDMA_WRITE
#define S IBV_WR_SEND
#define BIG 16384

/* Perform each operation once and verify the data. */
static inline void exchange(struct duo *d, unsigned int seed)
{
	struct ibv_wc wc;
	uint64_t old;

	node_fill(&d->a, 0, BIG, seed);
	ck_ok(post(d, W, 1, 0, BIG, BIG, 0));
	expect_ok(d->a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_assert(b_has(d, BIG, BIG, seed));
	b_fill(d, 0, BIG, seed + 1);
	ck_ok(post(d, R, 2, BIG, BIG, 0, 0));
	expect_ok(d->a.scq, 2, IBV_WC_RDMA_READ);
	ck_assert(node_has(&d->a, BIG, BIG, seed + 1));
	b_recv(d, 3, 2 * BIG, BIG);
	ck_ok(post(d, S, 3, 0, BIG, 0, 0));
	expect_ok(d->a.scq, 3, IBV_WC_SEND);
	wc = b_wait_recv(d);
	ck_assert_uint_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.byte_len, BIG);
	ck_assert(b_has(d, 2 * BIG, BIG, seed));
	b_store64(d, 0, 40);
	ck_ok(post_atomic(d, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, BIG, 0, 2, 0));
	expect_ok(d->a.scq, 4, IBV_WC_FETCH_ADD);
	node_get(&d->a, BIG, &old, 8);
	ck_assert_uint_eq(old, 40);
	ck_assert_uint_eq(b_load64(d, 0), 42);
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A single RDMA access by a to memory other than b's default MR. */
#pragma once

#include "harness.h"

/*
 * Post one WR, wait for its completion and return the status.  After an error
 * both QPs are replaced by duo_renew().
 */
static inline enum ibv_wc_status access_to(struct duo *d, enum ibv_wr_opcode op,
					   uint64_t addr, uint32_t rkey,
					   uint32_t len)
{
	struct ibv_sge sge = node_sge(&d->a, 0, len);
	struct ibv_send_wr wr = rdma_wr(d, op, 1, &sge, 1, 0);
	enum ibv_wc_status status;

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	    op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 0;
	}
	ck_ok(post_wr(d->a.qp, &wr));
	status = wait_wc(d->a.scq).status;
	if (status != IBV_WC_SUCCESS)
		duo_renew(d);
	return status;
}

#define ck_write(d, addr, rkey, len, status)                               \
	ck_assert_int_eq(access_to(d, IBV_WR_RDMA_WRITE, addr, rkey, len), \
			 status)
#define ck_read(d, addr, rkey, len, status)                               \
	ck_assert_int_eq(access_to(d, IBV_WR_RDMA_READ, addr, rkey, len), \
			 status)

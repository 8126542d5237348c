// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "deregistered-early",
	.wrong = "an MR is deregistered while a WR that uses it is outstanding",
	.seen = "ydb-platform/nbs#6290, openucx/ucx#6819", .found = "gather")
{
	struct ibv_mr *mr;
	struct pair p;

	PAIR(&p);
	mr = ibv_reg_mr(the_pd(), p.a.buf, BUF, IBV_ACCESS_LOCAL_WRITE);
	expect(mr, "ibv_reg_mr fails");
	POST(&p.a, .op = IBV_WR_RDMA_WRITE, .addr = p.a.buf, .lkey = mr->lkey,
	     .len = 64, .flags = IBV_SEND_SIGNALED);
	if (corrected)
		wait_for(&p.a);
	ibv_dereg_mr(mr);
	if (!corrected)
		wait_for(&p.a);
}

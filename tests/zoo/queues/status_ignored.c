// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "status-ignored",
	.wrong = "the status of a completion is not checked",
	.seen = "bytedance/InfiniStore#90", .found = "any run")
{
	struct ibv_wc wc = { 0 };
	uint32_t rkey;
	struct pair p;

	PAIR(&p);
	rkey = p.b.mr->rkey;
	memset(p.b.buf, 'A', 64);
	ibv_dereg_mr(p.b.mr); /* the lease has expired */
	POST(&p.a, .op = IBV_WR_RDMA_READ, .len = 64, .rkey = rkey,
	     .flags = IBV_SEND_SIGNALED);
	expect(next_wc(&p.a, &wc), "no completion");
	if (corrected && wc.status)
		return; /* a program would request another lease */
	expect(all_are(p.a.buf, 'A', 64), "the data of a failed READ was used");
}

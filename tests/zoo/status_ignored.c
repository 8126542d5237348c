// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "zoo.h"

ANIMAL(.name = "status-ignored",
       .wrong = "a completion is there, and nobody asks for its status",
       .seen = "bytedance/InfiniStore#90", .found = "any run")
{
	struct ibv_wc wc = { 0 };
	uint32_t rkey;
	struct pair p;

	PAIR(&p);
	rkey = p.b.mr->rkey;
	memset(p.b.buf, 'A', 64);
	ibv_dereg_mr(p.b.mr); /* its lease is over */
	POST(&p.a, .op = IBV_WR_RDMA_READ, .len = 64, .rkey = rkey,
	     .flags = IBV_SEND_SIGNALED);
	expect(next_wc(&p.a, &wc), "a completion does not come");
	if (corrected && wc.status)
		return; /* and ask for another lease */
	expect(all_are(p.a.buf, 'A', 64), "what was not read is used");
}

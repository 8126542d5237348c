// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "write-after-read",
	.wrong =
		"the source of a READ is overwritten by a later WRITE without a fence",
	.seen = "openucx/ucx#7215", .found = "overtake")
{
	struct pair p;

	PAIR(&p);
	memset(p.b.buf, 'A', 64);
	memset(p.a.buf + 4096, 'B', 64);
	POST(&p.a, .op = IBV_WR_RDMA_READ, .len = 64);
	POST(&p.a, .op = IBV_WR_RDMA_WRITE, .from = 4096, .len = 64,
	     .flags = IBV_SEND_SIGNALED | (corrected ? IBV_SEND_FENCE : 0));
	wait_for(&p.a);
	expect(all_are(p.a.buf, 'A', 64),
	       "the READ returned the data of the WRITE");
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "two-qps-data-flag",
	.wrong =
		"data is written over one QP, and the flag that announces it over another",
	.seen = "flagos-ai/FlagCX#461", .found = "gather, place")
{
	char *flag;
	struct pair p, q;

	PAIR(&p);
	PAIR(&q, .same_as = &p);
	memset(p.a.buf, 'A', 65);
	flag = p.b.buf + 64;
	POST(&p.a, .op = IBV_WR_RDMA_WRITE, .len = 64,
	     .flags = IBV_SEND_SIGNALED);
	if (corrected)
		wait_for(&p.a);
	POST(&q.a, .op = IBV_WR_RDMA_WRITE, .from = 64, .at = 64, .len = 1);
	while (!seen_byte(flag))
		look_busy(&p.a);
	expect(all_are(p.b.buf, 'A', 64), "the flag arrived before the data");
}

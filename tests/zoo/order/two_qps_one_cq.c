// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "two-qps-one-cq",
	.wrong =
		"completions of two QPs are assumed to be in the order of the posts",
	.seen = "-", .found = "overtake, complete")
{
	struct pair p, q;
	size_t at = 0;

	PAIR(&p);
	PAIR(&q, .same_as = &p);
	memset(p.b.buf, 'A', 2048);
	POST(&p.a, .op = IBV_WR_RDMA_READ, .len = 64, .id = 0,
	     .flags = IBV_SEND_SIGNALED);
	POST(&q.a, .op = IBV_WR_RDMA_READ, .from = 1024, .at = 1024, .len = 64,
	     .id = 1024, .flags = IBV_SEND_SIGNALED);
	if (corrected)
		at = wait_for(&p.a).wr_id;
	else
		wait_for(&p.a); /* assumed to be that of the first READ */
	expect(all_are(p.a.buf + at, 'A', 64),
	       "the completion was that of the second READ");
}

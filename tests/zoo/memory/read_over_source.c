// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "read-over-source",
	.wrong =
		"a READ overwrites the source of an outstanding WRITE of another QP",
	.seen = "-", .found = "gather")
{
	struct pair p, q;

	PAIR(&p);
	PAIR(&q, .same_as = &p);
	memset(p.a.buf, 'A', 64);
	memset(p.b.buf + 4096, 'B', 64);
	POST(&p.a, .op = IBV_WR_RDMA_WRITE, .len = 64,
	     .flags = IBV_SEND_SIGNALED);
	if (corrected)
		wait_for(&p.a);
	POST(&q.a, .op = IBV_WR_RDMA_READ, .at = 4096, .len = 64,
	     .flags = IBV_SEND_SIGNALED);
	wait_for(&p.a);
	if (!corrected)
		wait_for(&p.a);
	expect(all_are(p.b.buf, 'A', 64),
	       "the WRITE sent the data of the READ");
}

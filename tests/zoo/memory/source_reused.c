// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "source-reused",
	.wrong = "a source buffer is changed before the completion",
	.seen = "nfs-ganesha/nfs-ganesha#14", .found = "gather")
{
	struct pair p;

	PAIR(&p);
	memset(p.a.buf, 'A', 64);
	POST(&p.a, .op = IBV_WR_RDMA_WRITE, .len = 64,
	     .flags = IBV_SEND_SIGNALED);
	if (corrected)
		wait_for(&p.a);
	memset(p.a.buf, 'B', 64);
	if (!corrected)
		wait_for(&p.a);
	expect(all_are(p.b.buf, 'A', 64), "later data was sent");
}

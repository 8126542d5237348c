// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "read-early",
	.wrong = "the data of a READ is used before its completion",
	.seen = "-", .found = "overtake, place")
{
	struct pair p;

	PAIR(&p);
	memset(p.b.buf, 'A', 64);
	POST(&p.a, .op = IBV_WR_RDMA_READ, .len = 64,
	     .flags = IBV_SEND_SIGNALED);
	if (corrected)
		wait_for(&p.a);
	expect(all_are(p.a.buf, 'A', 64), "the data has not arrived");
}

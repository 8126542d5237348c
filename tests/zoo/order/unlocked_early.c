// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "unlocked-early",
	.wrong =
		"the lock of a record is released by a WRITE without a fence after a READ of the record",
	.seen = "openucx/ucx#7215", .found = "overtake")
{
	uint64_t *lock;
	struct pair p;

	PAIR(&p);
	lock = (uint64_t *)(void *)(p.b.buf + 4096);
	*lock = 1;
	memset(p.b.buf, 'A', 64);
	POST(&p.a, .op = IBV_WR_RDMA_READ, .len = 64,
	     .flags = IBV_SEND_SIGNALED);
	POST(&p.a, .op = IBV_WR_RDMA_WRITE, .from = 4096, .at = 4096, .len = 8,
	     .flags = corrected ? IBV_SEND_FENCE : 0);
	while (seen_word(lock))
		look_busy(&p.a);
	memset(p.b.buf, 'B', 64); /* the next owner of the lock */
	wait_for(&p.a);
	expect(all_are(p.a.buf, 'A', 64),
	       "the record was read after the lock was released");
}

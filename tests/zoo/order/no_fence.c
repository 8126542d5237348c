// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "no-fence",
	.wrong = "a SEND of the data of an earlier READ has no IBV_SEND_FENCE",
	.seen = "openucx/ucx#8221", .found = "overtake")
{
	struct pair p;

	PAIR(&p);
	memset(p.b.buf, 'A', 64);
	post_receive(&p.b, 1, 4096, 64);
	POST(&p.a, .op = IBV_WR_RDMA_READ, .len = 64);
	POST(&p.a, .op = IBV_WR_SEND, .len = 64,
	     .flags = corrected ? IBV_SEND_FENCE : 0);
	wait_for(&p.b);
	expect(all_are(p.b.buf + 4096, 'A', 64), "the old data was sent");
}

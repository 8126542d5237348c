// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "inline-after-read",
	.wrong =
		"the destination of a READ is sent inline: it is copied at once, despite the fence",
	.seen = "-", .found = "overtake, place")
{
	struct pair p;

	PAIR(&p);
	memset(p.b.buf, 'A', 64);
	post_receive(&p.b, 1, 4096, 64);
	POST(&p.a, .op = IBV_WR_RDMA_READ, .len = 64);
	POST(&p.a, .op = IBV_WR_SEND, .len = 64,
	     .flags = IBV_SEND_FENCE | (corrected ? 0 : IBV_SEND_INLINE));
	wait_for(&p.b);
	expect(all_are(p.b.buf + 4096, 'A', 64), "the old data was sent");
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "two-senders",
	.wrong =
		"messages of two QPs are assumed to arrive in the order in which they were sent",
	.seen = "-", .found = "gather, deliver")
{
	struct pair p, q;

	PAIR(&p);
	PAIR(&q, .same_as = &p);
	post_receive(&p.b, 1, 0, 64);
	post_receive(&q.b, 2, 64, 64);
	POST(&p.a, .op = IBV_WR_SEND, .len = 64, .flags = IBV_SEND_SIGNALED);
	if (corrected)
		wait_for(&p.a);
	POST(&q.a, .op = IBV_WR_SEND, .len = 64);
	expect(wait_for(&p.b).wr_id == 1, "the second message arrived first");
	expect(wait_for(&p.b).wr_id == 2, "the first message arrived second");
}

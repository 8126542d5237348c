// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "cleared-late",
	.wrong =
		"the buffer of a receive is cleared after the receive was posted",
	.seen = "linux-rdma/perftest#9", .rule = "receive-written")
{
	struct pair p;

	PAIR(&p);
	memset(p.b.buf, 'o', 256); /* of an older message */
	if (corrected)
		memset(p.b.buf, 0, 256);
	post_receive(&p.b, 1, 0, 256);
	if (!corrected)
		memset(p.b.buf, 0, 256);
	memset(p.a.buf, 'A', 64);
	POST(&p.a, .op = IBV_WR_SEND, .len = 64);
	wait_for(&p.b);
	expect(all_are(p.b.buf, 'A', 64), "the message was cleared");
}

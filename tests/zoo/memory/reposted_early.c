// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "reposted-early",
	.wrong = "a receive is posted again before its message was read",
	.seen = "pmodels/mpich#3632", .found = "fill")
{
	struct pair p;

	PAIR(&p);
	memset(p.a.buf, 'A', 64);
	post_receive(&p.b, 1, 0, 64);
	POST(&p.a, .op = IBV_WR_SEND, .len = 64);
	wait_for(&p.b);
	if (!corrected)
		post_receive(&p.b, 1, 0, 64);
	expect(all_are(p.b.buf, 'A', 64), "the message was overwritten");
	post_receive(&p.b, 1, 0, 64);
}

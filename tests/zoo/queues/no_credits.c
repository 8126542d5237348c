// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

#define MESSAGES 8

PROGRAM(.name = "no-credits",
	.wrong =
		"the completion of a SEND is assumed to mean that the peer has a receive for the next one",
	.seen = "spdk/spdk#2429, ydb-platform/nbs#5790", .found = "any run")
{
	struct pair p;
	int i;

	PAIR(&p); /* rnr_retry is 0 */
	post_receive(&p.b, 1, 0, 64);
	for (i = 0; i < MESSAGES; i++) {
		POST(&p.a, .op = IBV_WR_SEND, .len = 64,
		     .flags = IBV_SEND_SIGNALED);
		wait_for(&p.a);
		if (!corrected)
			continue;
		/* the receiver grants a credit, here by a WRITE */
		wait_for(&p.b);
		post_receive(&p.b, 1, 0, 64);
		POST(&p.b, .op = IBV_WR_RDMA_WRITE, .len = 1,
		     .flags = IBV_SEND_SIGNALED);
		wait_for(&p.b);
	}
}

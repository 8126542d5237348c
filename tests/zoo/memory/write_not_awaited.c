// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

/* A real peer is notified over TCP, for example; here it reads at once. */
PROGRAM(.name = "write-not-awaited",
	.wrong = "the peer is notified of a WRITE before the WRITE completes",
	.seen = "chimera-nas/chimera#1064, w180112/RDMA-example#3",
	.found = "gather, place")
{
	struct pair p;

	PAIR(&p);
	memset(p.a.buf, 'A', 64);
	POST(&p.a, .op = IBV_WR_RDMA_WRITE, .len = 64,
	     .flags = IBV_SEND_SIGNALED);
	if (corrected)
		wait_for(&p.a);
	expect(all_are(p.b.buf, 'A', 64), "the data has not arrived");
}

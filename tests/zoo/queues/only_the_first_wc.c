// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

#define WRITES 8

PROGRAM(.name = "only-the-first-wc",
	.wrong =
		"ibv_poll_cq returns two completions, and only wc[0] is processed",
	.seen = "linux-rdma/perftest#137", .found = "complete")
{
	int posted = 0, done = 0, polls, n;
	struct ibv_wc wc[4];
	struct pair p;

	PAIR(&p);
	for (polls = 0; done < WRITES && polls < 100000; polls++) {
		if (posted < WRITES) {
			POST(&p.a, .op = IBV_WR_RDMA_WRITE, .len = 8,
			     .flags = IBV_SEND_SIGNALED);
			posted++;
		}
		n = ibv_poll_cq(p.a.cq, 4, wc);
		if (n > 0)
			done += corrected ? n : 1;
	}
	expect(done == WRITES, "a completion was not processed");
}

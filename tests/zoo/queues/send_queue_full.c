// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

#define SENDS 16

PROGRAM(.name = "send-queue-full",
	.wrong =
		"no WR is signaled, so no completion is polled, and the send queue becomes full",
	.seen = "uccl-project/uccl#267, apache/brpc#3132, ofiwg/libfabric#1802",
	.found = "any run")
{
	struct pair p;
	int i;

	PAIR(&p, .sends = SENDS);
	for (i = 1; i <= 4 * SENDS; i++) {
		POST(&p.a, .op = IBV_WR_RDMA_WRITE, .len = 8,
		     .flags = corrected && i % SENDS == 0 ? IBV_SEND_SIGNALED :
							    0);
		if (corrected && i % SENDS == 0)
			wait_for(&p.a);
	}
}

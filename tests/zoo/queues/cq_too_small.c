// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

#define SENDS 16

PROGRAM(.name = "cq-too-small",
	.wrong =
		"the CQ has fewer entries than the queues that complete into it",
	.seen = "ROCm/rccl#1374, ofiwg/libfabric#4913", .found = "any run")
{
	struct pair p;
	int i;

	PAIR(&p, .sends = SENDS, .cqe = corrected ? SENDS : 4);
	for (i = 0; i < SENDS; i++)
		POST(&p.a, .op = IBV_WR_RDMA_WRITE, .len = 8,
		     .flags = IBV_SEND_SIGNALED);
	for (i = 0; i < SENDS; i++)
		wait_for(&p.a);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

#define SLOTS 4

PROGRAM(.name = "slots-reused",
	.wrong =
		"slots of a ring are filled again because the send queue has room, before their WRs complete",
	.seen = "kvcache-ai/Mooncake#1567", .found = "gather")
{
	struct pair p;
	uint64_t i;

	PAIR(&p);
	for (i = 0; i < 2 * SLOTS; i++) {
		if (corrected && i == SLOTS)
			wait_for(&p.a);
		memset(p.a.buf + i % SLOTS * 64, 'A' + (int)i, 64);
		POST(&p.a, .op = IBV_WR_RDMA_WRITE, .from = i % SLOTS * 64,
		     .len = 64, .at = i * 64,
		     .flags = i % SLOTS == SLOTS - 1 ? IBV_SEND_SIGNALED : 0);
	}
	wait_for(&p.a);
	if (!corrected)
		wait_for(&p.a);
	for (i = 0; i < 2 * SLOTS; i++)
		expect(all_are(p.b.buf + i * 64, (char)('A' + i), 64),
		       "a slot was sent with the data of the next lap");
}

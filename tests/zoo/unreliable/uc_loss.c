// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

#define MESSAGES 16

PROGRAM(.name = "uc-loss", .wrong = "UC is assumed to retransmit lost messages",
	.seen = "hellas-ai/thunderbolt-ibverbs#77", .found = "loss")
{
	struct ibv_wc wc;
	struct pair p;
	uint32_t i;

	PAIR(&p, .type = IBV_QPT_UC);
	for (i = 0; i < MESSAGES; i++)
		post_receive(&p.b, i, 0, 64);
	for (i = 0; i < MESSAGES; i++) {
		do {
			POST(&p.a, .op = IBV_WR_RDMA_WRITE_WITH_IMM, .len = 64,
			     .imm = i, .flags = IBV_SEND_SIGNALED);
			wait_for(&p.a);
			wc.imm_data = MESSAGES;
			/* a duplicate would be detected by its number */
		} while (!next_wc(&p.b, &wc) && corrected);
		expect(wc.imm_data == i, "a message was lost");
	}
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

#define MESSAGES 16

static void send_message(struct pair *p, uint32_t i)
{
	post_receive(&p->b, 1, 0, 2048);
	POST(&p->a, .op = IBV_WR_SEND_WITH_IMM, .len = 64, .imm = i);
}

PROGRAM(.name = "ud-loss", .wrong = "datagrams are assumed not to be lost",
	.seen = "ofiwg/libfabric#1621", .found = "loss")
{
	bool received[MESSAGES] = { false };
	uint32_t i, n = 0;
	struct ibv_wc wc;
	struct pair p;

	PAIR(&p, .type = IBV_QPT_UD, .sends = 64);
	for (i = 0; i < MESSAGES; i++)
		send_message(&p, i);
	while (n < MESSAGES) {
		if (next_wc(&p.b, &wc)) {
			n += !received[wc.imm_data];
			received[wc.imm_data] = true;
			continue;
		}
		expect(corrected, "a datagram was lost");
		for (i = 0; received[i]; i++)
			;
		/* no WR is signaled; a new QP has an empty send queue */
		PAIR(&p, .type = IBV_QPT_UD);
		send_message(&p, i);
	}
}

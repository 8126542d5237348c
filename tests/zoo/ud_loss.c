// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "zoo.h"

#define MESSAGES 16

static void say(struct pair *p, uint32_t i)
{
	post_receive(&p->b, 1, 0, 2048);
	POST(&p->a, .op = IBV_WR_SEND_WITH_IMM, .len = 64, .imm = i);
}

ANIMAL(.name = "ud-loss", .wrong = "no datagram gets lost",
       .seen = "ofiwg/libfabric#1621", .found = "loss")
{
	bool heard[MESSAGES] = { false };
	uint32_t i, n = 0;
	struct ibv_wc wc;
	struct pair p;

	PAIR(&p, .type = IBV_QPT_UD, .sends = 64);
	for (i = 0; i < MESSAGES; i++)
		say(&p, i);
	while (n < MESSAGES) {
		if (next_wc(&p.b, &wc)) {
			n += !heard[wc.imm_data];
			heard[wc.imm_data] = true;
			continue;
		}
		expect(corrected, "a datagram does not come");
		for (i = 0; heard[i]; i++)
			;
		/* all are unsignaled, and a new QP has room */
		PAIR(&p, .type = IBV_QPT_UD);
		say(&p, i);
	}
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

#define MESSAGES 16

PROGRAM(.name = "ud-order", .wrong = "datagrams are assumed to arrive in order",
	.seen = "ofiwg/libfabric#1217", .found = "reorder")
{
	uint32_t i, last = 0;
	struct ibv_wc wc;
	struct pair p;

	PAIR(&p, .type = IBV_QPT_UD);
	for (i = 0; i < MESSAGES; i++) {
		post_receive(&p.b, 1, 0, 2048);
		POST(&p.a, .op = IBV_WR_SEND_WITH_IMM, .len = 64, .imm = i);
	}
	while (next_wc(&p.b, &wc)) { /* or it was lost */
		expect(corrected || wc.imm_data >= last,
		       "an earlier datagram arrived later");
		last = wc.imm_data;
	}
}

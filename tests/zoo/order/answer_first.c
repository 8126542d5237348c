// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "answer-first",
	.wrong =
		"a request is treated as finished when its response arrives, before its SEND completes",
	.seen = "ydb-platform/nbs#481, ofiwg/libfabric#11084, zrlio/disni#44",
	.found = "complete")
{
	bool sent = false, answered = false, request = true;
	struct pair p;
	struct ibv_wc wc;

	PAIR(&p);
	post_receive(&p.a, 1, 4096, 64);
	post_receive(&p.b, 1, 4096, 64);
	POST(&p.a, .op = IBV_WR_SEND, .len = 64, .flags = IBV_SEND_SIGNALED);
	wait_for(&p.b);
	POST(&p.b, .op = IBV_WR_SEND, .len = 64);
	while (!sent || !answered) {
		wc = wait_for(&p.a);
		if (wc.opcode == IBV_WC_SEND) {
			expect(request,
			       "the SEND of a finished request completes");
			sent = true;
		} else {
			answered = true;
		}
		if (corrected ? sent && answered : answered)
			request = false;
	}
}

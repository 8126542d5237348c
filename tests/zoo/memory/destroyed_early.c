// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "destroyed-early",
	.wrong = "the QP is destroyed before its last SEND completes",
	.seen = "ofiwg/libfabric#6720", .found = "gather, deliver")
{
	struct ibv_wc wc;
	struct pair p;

	PAIR(&p);
	post_receive(&p.b, 1, 0, 64);
	POST(&p.a, .op = IBV_WR_SEND, .len = 64, .flags = IBV_SEND_SIGNALED);
	if (corrected)
		wait_for(&p.a);
	ibv_destroy_qp(p.a.qp);
	expect(next_wc(&p.b, &wc), "the last message did not arrive");
}

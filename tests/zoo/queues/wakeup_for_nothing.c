// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

#define MESSAGES 16

static void sleep_until_event(struct pair *p)
{
	struct ibv_cq *cq;
	void *arg;

	expect(!ibv_get_cq_event(p->b.chan, &cq, &arg),
	       "ibv_get_cq_event fails");
	ibv_ack_cq_events(cq, 1);
}

PROGRAM(.name = "wakeup-for-nothing",
	.wrong = "an event is assumed to imply that the CQ has a completion",
	.seen = "man ibv_get_cq_event", .found = "wake")
{
	struct ibv_wc wc;
	struct pair p;
	int i, n;

	PAIR(&p, .channel = true);
	for (i = 0; i < MESSAGES; i++) {
		post_receive(&p.b, 1, 0, 64);
		POST(&p.a, .op = IBV_WR_SEND, .len = 64);
		for (n = 0; !n;) {
			ibv_req_notify_cq(p.b.cq, 0);
			n = ibv_poll_cq(p.b.cq, 1, &wc);
			if (n)
				break;
			sleep_until_event(&p);
			n = ibv_poll_cq(p.b.cq, 1, &wc);
			expect(n || corrected, "an event without a completion");
		}
	}
}

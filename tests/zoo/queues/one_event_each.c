// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

#define MESSAGES 4

static void sleep_until_event(struct pair *p)
{
	struct ibv_cq *cq;
	void *arg;

	expect(!ibv_get_cq_event(p->b.chan, &cq, &arg),
	       "ibv_get_cq_event fails");
	ibv_ack_cq_events(cq, 1);
}

PROGRAM(.name = "one-event-each",
	.wrong = "the program waits for an event for each completion",
	.seen = "linux-rdma/perftest#137, ydb-platform/nbs#449", .found = "arm",
	.hangs = true)
{
	int i, received = 0;
	struct ibv_wc wc;
	struct pair p;

	PAIR(&p, .channel = true);
	ibv_req_notify_cq(p.b.cq, 0);
	for (i = 0; i < MESSAGES; i++) {
		post_receive(&p.b, 1, 0, 64);
		POST(&p.a, .op = IBV_WR_SEND, .len = 64);
	}
	while (received < MESSAGES) {
		sleep_until_event(&p);
		if (corrected) { /* the buggy program arms after the poll */
			ibv_req_notify_cq(p.b.cq, 0);
			while (ibv_poll_cq(p.b.cq, 1, &wc) == 1)
				received++;
		} else {
			received += ibv_poll_cq(p.b.cq, 1, &wc) == 1;
			ibv_req_notify_cq(p.b.cq, 0);
		}
	}
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

#define MESSAGES 8

static int drain(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n = 0;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		n++;
	return n;
}

static void sleep_until_event(struct pair *p)
{
	struct ibv_cq *cq;
	void *arg;

	expect(!ibv_get_cq_event(p->a.chan, &cq, &arg),
	       "ibv_get_cq_event fails");
	ibv_ack_cq_events(cq, 1);
}

/* Receives and sends have separate CQs. */
PROGRAM(.name = "lost-wakeup",
	.wrong =
		"two CQs are armed, and only one is polled again before the thread sleeps",
	.seen = "apache/brpc#3415, ofiwg/libfabric#796", .found = "arm",
	.hangs = true)
{
	struct pair p;
	int i, n;

	PAIR(&p, .channel = true, .one_send_cq = true);
	for (i = 0; i < MESSAGES; i++) {
		post_receive(&p.a, 1, 0, 64);
		POST(&p.b, .op = IBV_WR_SEND, .len = 64);
		for (n = 0; !n;) {
			n = drain(p.a.rcq);
			drain(p.a.cq);
			if (n)
				break;
			ibv_req_notify_cq(p.a.rcq, 0);
			ibv_req_notify_cq(p.a.cq, 0);
			drain(p.a.cq);
			if (corrected && (n = drain(p.a.rcq)))
				break;
			sleep_until_event(&p);
		}
	}
}

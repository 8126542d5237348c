// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "events-not-acked",
	.wrong = "events of two CQs are all acknowledged for one of the CQs",
	.seen = "openucx/ucx#1039", .found = "any run", .hangs = true)
{
	struct ibv_cq *cq[2] = { NULL, NULL };
	struct ibv_comp_channel *chan;
	struct pair p, q;
	void *arg;
	int i;

	PAIR(&p, .channel = true);
	chan = p.b.chan;
	PAIR(&q);
	cq[0] = ibv_create_cq(the_device(), 4, NULL, chan, 0);
	expect(cq[0], "ibv_create_cq fails");
	q.b.cq = q.b.rcq = cq[0];
	PAIR(&q, .same_as = &q);
	ibv_req_notify_cq(p.b.cq, 0);
	ibv_req_notify_cq(q.b.cq, 0);
	post_receive(&p.b, 1, 0, 64);
	post_receive(&q.b, 2, 0, 64);
	POST(&p.a, .op = IBV_WR_SEND, .len = 64);
	POST(&q.a, .op = IBV_WR_SEND, .len = 64);
	for (i = 0; i < 2; i++) {
		expect(!ibv_get_cq_event(chan, &cq[i], &arg),
		       "ibv_get_cq_event fails");
		if (corrected)
			ibv_ack_cq_events(cq[i], 1);
	}
	if (!corrected)
		ibv_ack_cq_events(cq[1], 2);
	ibv_destroy_qp(p.b.qp);
	ibv_destroy_qp(q.b.qp);
	expect(!ibv_destroy_cq(p.b.cq) && !ibv_destroy_cq(q.b.cq),
	       "ibv_destroy_cq fails");
}

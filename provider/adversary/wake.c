// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wake-ups for nothing (man ibv_get_cq_event: "an extra event"): a completion
 * that came between the arming and the next poll raises an event, and is polled
 * before that is fetched.  Who arms a CQ cannot know of what is not polled yet
 * whether it came before the arming or behind it.  So that may raise the event;
 * else cq_arm() spares the program it.
 */
#include "engine/cq_arm.h"
#include "met.h"
#include "parts.h"
#include "verbs/cq.h"

static struct pabi_ops next;
static const struct adversary *with;

static int adversary_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	int ret = next.req_notify_cq(ibcq, solicited_only);

	if (!ret &&
	    met_turn(with, met_find(with, MET_CQ, ibcq), KNOB_wake, NULL))
		cq_arm_again(to_ucq(ibcq));
	return ret;
}

void wake_wrap(struct pabi_ops *ops, const struct adversary *a)
{
	next = *ops;
	with = a;
	if (a->knob[KNOB_wake])
		ops->req_notify_cq = adversary_req_notify_cq;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Arming a CQ.  It is for what comes after it, and of what came before nobody is
 * told (IB 11.4.2.2); cq_arm.h is kinder (arm).
 *
 * Wake-ups for nothing (wake; man ibv_get_cq_event: "an extra event"): a completion
 * that came between the arming and the next poll raises an event, and is polled
 * before that is fetched.  Who arms a CQ cannot know of what is not polled yet
 * whether it came before the arming or behind it.  So that may raise the event;
 * else cq_arm() spares the program it.
 */
#include <errno.h>

#include "engine/cq_arm.h"
#include "met.h"
#include "parts.h"
#include "verbs/cq.h"

static struct pabi_ops next;
static const struct adversary *with;

static int wake_arm(struct ibv_cq *ibcq, int solicited_only, bool kind)
{
	if (kind)
		return next.req_notify_cq(ibcq, solicited_only);
	return cq_arm_next(to_ucq(ibcq), solicited_only ? URXE_ARM_SOLICITED :
							  URXE_ARM_NEXT);
}

static int adversary_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct met *m = met_find(with, MET_CQ, ibcq);
	bool kind = !met_turn(with, m, KNOB_arm, NULL);
	int ret = wake_arm(ibcq, solicited_only, kind);

	if (ret)
		errno = ret;
	else if (kind && met_turn(with, m, KNOB_wake, NULL))
		cq_arm_again(to_ucq(ibcq));
	return ret;
}

void wake_wrap(struct pabi_ops *ops, const struct adversary *a)
{
	next = *ops;
	with = a;
	if (a->knob[KNOB_wake] || a->knob[KNOB_arm])
		ops->req_notify_cq = adversary_req_notify_cq;
}

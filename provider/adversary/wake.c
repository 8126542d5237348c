// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The options "arm" and "wake": variants of ibv_req_notify_cq that the
 * specification allows.
 *
 * arm: an armed CQ raises an event for the next completion only (IB
 * 11.4.2.2). Completions that were added before, and not polled, raise none.
 * Without this option cq_arm() raises an event at once for a completion that
 * no event has announced (engine/poll/cq_arm.h).
 *
 * wake: the event may be an extra one (ibv_get_cq_event(3)). If a completion
 * arrives between the arming and the next poll, it raises an event, and the
 * program may poll the completion before it fetches the event. A program
 * cannot tell whether a completion that it has not polled arrived before the
 * arming or after it. So each of them may raise the event. Without this
 * option cq_arm() avoids such events.
 */
#include <errno.h>

#include "engine/poll/cq_arm.h"
#include "object_seed.h"
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
	struct object_seed *m = object_seed_find(with, OBJECT_CQ, ibcq);
	bool kind = !object_seed_decide(with, m, ADV_arm, NULL);
	int ret = wake_arm(ibcq, solicited_only, kind);

	if (ret)
		errno = ret;
	else if (kind && object_seed_decide(with, m, ADV_wake, NULL))
		cq_arm_again(to_ucq(ibcq));
	return ret;
}

void wake_wrap(struct pabi_ops *ops, const struct adversary *a)
{
	next = *ops;
	with = a;
	if (a->option[ADV_wake] || a->option[ADV_arm])
		ops->req_notify_cq = adversary_req_notify_cq;
}

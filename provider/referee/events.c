// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Count the completion events and async events of each object that libibverbs
 * delivers to the program.  unpolled.c compares the counts with those of the
 * acknowledged events.
 */
#include "referee.h"
#include "shadow.h"

static void referee_cq_event(struct ibv_cq *cq)
{
	struct shadow_cq *c;

	referee_lock();
	c = shadow_cq(cq);
	if (c)
		c->s.events++;
	referee_unlock();
	referee_next.cq_event(cq);
}

/* Return the shadow of the object whose acknowledgement counts, or NULL. */
static struct shadow *event_object(const struct ibv_async_event *e)
{
	switch (e->event_type) {
	case IBV_EVENT_CQ_ERR:
		return shadow_find(SHADOW_CQ, e->element.cq);
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return shadow_find(SHADOW_QP, e->element.qp);
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return shadow_find(SHADOW_SRQ, e->element.srq);
	default:
		return NULL;
	}
}

static void referee_async_event(struct ibv_context *ctx,
				struct ibv_async_event *e)
{
	struct shadow *s;

	referee_next.async_event(ctx, e);
	referee_lock();
	s = event_object(e);
	if (s)
		s->async_events++;
	referee_unlock();
}

void referee_wrap_events(struct pabi_ops *ops)
{
	ops->async_event = referee_async_event;
	ops->cq_event = referee_cq_event;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completions that are not polled, and completion events that are not read.
 */
#include <infiniband/verbs.h>
#include <string.h>

#include "base/plural.h"
#include "fabric/reason.h"
#include "shared/cq_ring.h"
#include "stall.h"

static struct stall *stall_of_cq(struct stalls *s, const struct view_cq *q,
				 const char *kind, uint64_t place)
{
	/* CQ numbers are unique only within a context */
	struct stall *out = stall_add(s, kind, &q->process,
				      place ^ (uint64_t)q->ctx->slot << 48);

	out->cq = q->index;
	return out;
}

/* Append the oldest unpolled completion. */
static void cq_append_first(struct stall *out, const struct view_cq *q)
{
	const struct urxe_cqe *e = &q->first;

	if (!cq_ring_is_ready(e, q->head))
		return;
	stall_append(out, "; the oldest is of QP 0x%x, wr_id %llu", e->qpn,
		     (unsigned long long)e->wr_id);
	if (e->status)
		stall_append(out, ", %s", reason_status_name(e->status));
}

/*
 * Add a wait if events of the CQ were raised and not read, or are still to be
 * written to the channel. Return whether it was added.
 */
static bool cq_events(struct stalls *s, const struct view_cq *q)
{
	const uint32_t fetched = load_relaxed(&q->sh.comp_fetched);
	const uint32_t unread = load_relaxed(&q->sh.comp_events) - fetched;
	const uint32_t pending = load_relaxed(&q->sh.pending_events);
	struct stall *out;

	if ((!unread || unread > INT32_MAX) && !pending)
		return false;
	out = stall_of_cq(s, q, "event-unread", fetched);
	stall_append(out,
		     "CQ %u: %u event%s not read, %u completion%s not polled",
		     q->index, unread + pending, plural_is(unread + pending),
		     q->unread, plural_is(q->unread));
	if (pending)
		stall_append(
			out,
			"; %u of the events %s not yet written to the channel by the owning process",
			pending, pending == 1 ? "is" : "are");
	stall_ends(out, "ibv_get_cq_event by %s", process_name(&q->process));
	return true;
}

/*
 * The reason why no event reports the unpolled completions, as the kind of
 * the wait. NULL: the CQ has no channel, or an event is due.
 */
static const char *cq_silence(const struct view_cq *q)
{
	if (!q->sh.channel)
		return NULL;
	switch (URXE_ARM_KIND(load_relaxed(&q->sh.arm))) {
	case URXE_ARM_NONE:
		return "cq-not-armed";
	case URXE_ARM_SOLICITED:
		return "cq-solicited";
	}
	return load_relaxed(&q->sh.held_back) ? "cq-moderated" : NULL;
}

static void cq_append_silence(struct stall *out, const struct view_cq *q)
{
	const uint32_t m = load_relaxed(&q->sh.moderate);

	if (!strcmp(out->kind, "cq-not-armed"))
		stall_append(
			out,
			"; the CQ is not armed, and no event is pending, so ibv_get_cq_event does not return");
	else if (!strcmp(out->kind, "cq-solicited"))
		stall_append(
			out,
			"; the CQ is armed for solicited completions only");
	else if (!strcmp(out->kind, "cq-moderated"))
		stall_append(
			out,
			"; moderation (ibv_modify_cq) delays the event: %u of %u completion%s, period %u us",
			load_relaxed(&q->sh.held_back), URXE_MODERATE_COUNT(m),
			plural(URXE_MODERATE_COUNT(m)), URXE_MODERATE_US(m));
}

static void cq_unread(struct stalls *s, const struct view_cq *q)
{
	const char *silence = cq_silence(q);
	struct stall *out;

	if (!q->unread)
		return;
	out = stall_of_cq(s, q, silence ? silence : "cq-unread", q->head);
	stall_append(out, "CQ %u has %u unpolled completion%s (%u entries)",
		     q->index, q->unread, plural(q->unread), q->depth);
	cq_append_silence(out, q);
	cq_append_first(out, q);
	stall_ends(out,
		   silence ? "ibv_req_notify_cq or ibv_poll_cq by %s" :
			     "ibv_poll_cq by %s",
		   process_name(&q->process));
}

void stalls_of_cqs(struct stalls *s, const struct view *v)
{
	const struct view_cq *q;
	struct stall *out;

	for (q = v->cq; q < v->cq + v->cqs; q++) {
		if (!q->ctx->alive)
			continue;
		if (load_relaxed(&q->sh.error)) {
			out = stall_of_cq(s, q, "cq-overrun", 0);
			stall_append(
				out,
				"CQ %u of %u entries was overrun or is damaged, and accepts no more completions",
				q->index, q->depth);
			stall_ends(
				out,
				"ibv_destroy_cq (IBV_EVENT_CQ_ERR was raised)");
		}
		if (!cq_events(s, q))
			cq_unread(s, q);
	}
}

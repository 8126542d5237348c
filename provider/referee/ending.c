// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Detection of MRs, MWs and AHs that are destroyed, or MRs that are
 * re-registered, while outstanding WRs need them.  objects.c calls
 * memory_ending() under referee_lock(), before the verb.
 */
#include "memory.h"
#include "memory_wr.h"

static bool wr_needs_mr(const struct shadow_wr *wr, const struct shadow_mr *mr)
{
	uint32_t i;

	if (wr->mw && wr->bind.mr == mr->s.handle)
		return true;
	for (i = 0; i < wr->num_sge && !wr->is_inline; i++)
		if (wr->sge[i].length && wr->sge[i].lkey == mr->lkey)
			return true;
	return false;
}

static bool wr_needs(const struct shadow_wr *wr, const struct shadow *s)
{
	switch (s->type) {
	case SHADOW_MR:
		return wr_needs_mr(wr, to_shadow_mr(s));
	case SHADOW_MW:
		return wr->mw && wr->mw == s->handle;
	case SHADOW_AH:
		return wr->ah && wr->ah == s->handle;
	default:
		return false;
	}
}

static enum rule ending_rule(const struct shadow *s,
			     const struct shadow_queue *q,
			     const struct shadow_wr *wr)
{
	if (wr->receive)
		return RULE_receive_without_mr;
	if (wr->nth < q->answered)
		return RULE_ended_on_answer;
	switch (s->type) {
	case SHADOW_MR:
		return RULE_mr_in_flight;
	case SHADOW_MW:
		return RULE_mw_in_flight;
	default:
		return RULE_ah_in_flight;
	}
}

static void ending_report(const struct shadow *s, const struct shadow_queue *q,
			  const struct shadow_wr *wr)
{
	char name[FINDING_NAME], other[FINDING_NAME];
	const struct finding f = {
		.rule = ending_rule(s, q, wr),
		.object = shadow_name(s, name),
		.at_is = "WR posted",
		.at = &wr->posted,
		.here = true,
	};

	finding_report(&f, "is destroyed or changed while a WR uses it: %s",
		       queue_wr_name(q, wr, other));
}

/* Report the first such WR of each queue. */
void memory_ending(struct shadow *s)
{
	const struct shadow_queue *q;
	const struct shadow_wr *wr;

	if (s->inherited || (s->type != SHADOW_MR && s->type != SHADOW_MW &&
			     s->type != SHADOW_AH))
		return;
	for (q = queue_first(); q; q = q->next_queue) {
		for (wr = q->head; wr && !wr_needs(wr, s); wr = wr->next)
			;
		if (wr && memory_is_at_work(q))
			ending_report(s, q, wr);
	}
}

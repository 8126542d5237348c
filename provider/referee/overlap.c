// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * WRs in flight that have the same bytes.
 *
 * The order of a queue's own WRs is the specification's (IB 10.8.3.3): what
 * comes after a READ or an atomic waits for it if it has a fence.  WRs of
 * different queues have none.
 *
 * Programs that throw results away have one place for all of them, so targets
 * that are exactly the same are a note: receives, atomics, READs of the same
 * bytes, and READs of at most 8, which only wait for what was written.
 */
#include "engine/opcode.h"
#include "journal.h"
#include "memory_wr.h"

/* ------------------------------------------------------- both are written */

static bool span_equal(const struct span *a, const struct span *b)
{
	return a->at == b->at && a->end == b->end;
}

/* Is that what programs do who do not care which result is left? */
static bool overlap_is_meant(const struct memory *m, const struct span *span,
			     const struct flight_entry *e)
{
	const struct shadow_wr *a = m->wr, *b = e->of->wr;
	bool reads = a->opcode == IBV_WR_RDMA_READ;

	if (!span_equal(span, &e->span) || m->use != e->of->use)
		return false;
	if (m->use == MEMORY_RECEIVE)
		return true;
	if (reads != (b->opcode == IBV_WR_RDMA_READ))
		return false;
	return !reads || span->end - span->at <= 8 ||
	       (a->rkey == b->rkey && a->remote_addr == b->remote_addr);
}

static enum rule overlap_of_targets(const struct memory *m,
				    const struct span *span,
				    const struct flight_entry *e)
{
	return overlap_is_meant(m, span, e) ? RULE_targets_shared :
					      RULE_targets_overlap;
}

/* ------------------------------------------------------- one is read */

/* m sends what e will write. */
static enum rule overlap_of_source(const struct memory *m,
				   const struct span *span,
				   const struct flight_entry *e)
{
	(void)span;
	if (e->of->use == MEMORY_RECEIVE)
		return RULE_source_received;
	if (m->wr->is_inline || e->of->q != m->q)
		return RULE_fetch_not_done;
	return m->wr->flags & IBV_SEND_FENCE ? RULES : RULE_fence_missing;
}

/*
 * m will write what e sends.  A READ or an atomic is answered after what is
 * before it in its queue has arrived.
 */
static enum rule overlap_of_target(const struct memory *m,
				   const struct span *span,
				   const struct flight_entry *e)
{
	(void)span;
	return m->use == MEMORY_RECEIVE || e->of->q == m->q ?
		       RULE_source_received :
		       RULE_source_fetched;
}

/* ------------------------------------------------------- at the other end */

/* Nothing holds m back behind e, a READ or an atomic of its own queue. */
static enum rule overlap_of_reads(const struct memory *m,
				  const struct span *span,
				  const struct flight_entry *e)
{
	(void)span;
	return e->of->q == m->q && !(m->wr->flags & IBV_SEND_FENCE) ?
		       RULE_write_after_read :
		       RULES;
}

/*
 * A queue's own are in order but for WRITEs behind an atomic, and atomics are
 * so to each other.  Who got a message may have been told that the other one is
 * there.
 */
static enum rule overlap_of_remotes(const struct memory *m,
				    const struct span *span,
				    const struct flight_entry *e)
{
	bool writes = wr_is(m->wr, WQE_WRITE_OPS);
	const struct memory *other = e->of;
	bool wrote = wr_is(other->wr, WQE_WRITE_OPS);

	if (other->q == m->q)
		return writes && other->use == MEMORY_FETCH ?
			       overlap_of_reads(m, span, e) :
			       RULES;
	return (writes || wrote) && !memory_is_answered(other) &&
			       other->since >= memory_heard ?
		       RULE_remote_overlap :
		       RULES;
}

/* ------------------------------------------------------- what is told */

/* Of all that m meets, the worst. */
struct overlap {
	enum rule rule; /* RULES: none */
	const struct memory *other;
	struct span common;
};

static void overlap_note(struct overlap *o, enum rule rule,
			 const struct span *span, const struct flight_entry *e)
{
	if (rule == RULES ||
	    (o->rule != RULES && rules[rule].level >= rules[o->rule].level))
		return;
	o->rule = rule;
	o->other = e->of;
	o->common.at = span->at > e->span.at ? span->at : e->span.at;
	o->common.end = span->end < e->span.end ? span->end : e->span.end;
}

static void overlap_tell(const struct overlap *o, const struct memory *m)
{
	static const char *const text[RULES] = {
		[RULE_targets_overlap] = "writes what is to be written by",
		[RULE_targets_shared] = "writes what is to be written by",
		[RULE_source_received] =
			"a device reads and writes the same bytes, with",
		[RULE_source_fetched] = "writes what is being sent by",
		[RULE_fence_missing] =
			"sends, without IBV_SEND_FENCE, the result of",
		[RULE_fetch_not_done] =
			"sends, and no fence holds it back, the result of",
		[RULE_write_after_read] =
			"writes, without IBV_SEND_FENCE, to the bytes of",
		[RULE_remote_overlap] =
			"writes to the rkey's bytes that are to be written by",
	};
	char name[FINDING_NAME], other[FINDING_NAME];
	const struct finding f = {
		.rule = o->rule,
		.object = queue_wr_name(m->q, m->wr, name),
		.at_is = "the other was posted",
		.at = &o->other->wr->posted,
		.here = true,
	};

	finding_tell(&f, "%s %s (0x%llx, %llu bytes)", text[o->rule],
		     queue_wr_name(o->other->q, o->other->wr, other),
		     (unsigned long long)o->common.at,
		     (unsigned long long)(o->common.end - o->common.at));
}

/* ------------------------------------------------------- the tables */

typedef enum rule overlap_fn(const struct memory *m, const struct span *span,
			     const struct flight_entry *e);

static void overlap_look(struct overlap *o, const struct memory *m,
			 const struct span *span, uint32_t key,
			 const struct flight_table *t, overlap_fn *fn)
{
	const struct flight_entry *e;
	struct flight_look l;

	flight_look_begin(&l, t, span, key);
	while ((e = flight_look_next(&l)))
		overlap_note(o, fn(m, span, e), span, e);
}

/* The same with all bytes here, which may change from now on. */
static void overlap_look_here(struct overlap *o, struct memory *m,
			      const struct flight_table *t, overlap_fn *fn)
{
	const struct flight_entry *e;
	struct flight_look l;
	int s;

	for (s = 0; s < m->spans.n; s++) {
		overlap_look(o, m, &m->spans.span[s], 0, t, fn);
		flight_look_begin(&l, t, &m->spans.span[s], 0);
		while ((e = flight_look_next(&l)))
			m->met = e->of->met = true;
	}
}

/* What WRs of other processes write; this one may have been told of the rest.
 */
static void overlap_look_elsewhere(const struct memory *m)
{
	struct journal_other other;
	char name[FINDING_NAME];
	const struct finding f = {
		.rule = RULE_remote_overlap,
		.object = queue_wr_name(m->q, m->wr, name),
		.here = true,
	};

	if (wr_is(m->wr, WQE_WRITE_OPS) &&
	    journal_other_writes(m->ctx, m->wr->rkey, &m->remote, memory_heard,
				 &other))
		finding_tell(
			&f,
			"writes to the rkey's bytes that are to be written by QP 0x%x of process %d (0x%llx, %llu bytes)",
			other.qpn, other.pid, (unsigned long long)other.span.at,
			(unsigned long long)(other.span.end - other.span.at));
}

void overlap_check(struct memory *m)
{
	struct overlap o = { .rule = RULES };

	if (m->use == MEMORY_SOURCE) {
		overlap_look_here(&o, m, &memory_targets, overlap_of_source);
	} else {
		overlap_look_here(&o, m, &memory_targets, overlap_of_targets);
		overlap_look_here(&o, m, &memory_sources, overlap_of_target);
	}
	if (m->remote.at != m->remote.end) {
		overlap_look(&o, m, &m->remote, m->wr->rkey, &memory_remotes,
			     overlap_of_remotes);
		overlap_look(&o, m, &m->remote, m->wr->rkey, &memory_reads,
			     overlap_of_reads);
	}
	if (o.rule != RULES)
		overlap_tell(&o, m);
	else if (m->remote.at != m->remote.end)
		overlap_look_elsewhere(m);
}

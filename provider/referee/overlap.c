// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Detection of outstanding WRs that access the same bytes, with at least one
 * of them writing.
 *
 * memory.c calls overlap_check() under referee_lock(), for each WR before its
 * post.  It looks the WR's ranges up in the tables of outstanding WRs
 * (flight_table.h), and reports the most severe conflict.
 *
 * WRs of one queue are ordered as IB 10.8.3.3 says: a WR behind a READ or an
 * atomic waits for it only if it has a fence.  WRs of different queues are
 * not ordered.
 *
 * Programs that discard results write them all to one place.  So two targets
 * that are equal are a note: receives, atomics, READs of the same remote
 * bytes, and READs of at most 8 bytes, which only wait for WRITEs.
 */
#include "base/plural.h"
#include "shared/opcode.h"
#include "referee/ranges/journal.h"
#include "memory_wr.h"

/* ------------------------------------------------------- two targets */

static bool span_equal(const struct span *a, const struct span *b)
{
	return a->at == b->at && a->end == b->end;
}

/* Do the two WRs write where the program discards results? */
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

/* ------------------------------------------------------- source, target */

/* m reads bytes that e will write.  RULES: no conflict. */
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
 * m will write bytes that e reads.  A READ or an atomic is answered after the
 * WRs before it in its queue have arrived, so in one queue it is only a note.
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

/* ------------------------------------------------------- remote bytes */

/*
 * m writes remote bytes that e, a READ or an atomic, accesses.  In one queue
 * m may pass e if m has no fence.
 */
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
 * m and e write the same remote bytes.  WRs of one queue are ordered, except
 * a WRITE behind an atomic.  Atomics are atomic with respect to each other.
 * There is no conflict if this process has received a message since e was
 * posted: the message may mean that e has arrived.
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
			       other->since >= memory_received_at ?
		       RULE_remote_overlap :
		       RULES;
}

/* ------------------------------------------------------- reports */

/* The most severe conflict of m so far. */
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

static void overlap_report(const struct overlap *o, const struct memory *m)
{
	static const char *const text[RULES] = {
		[RULE_targets_overlap] = "writes the same bytes as",
		[RULE_targets_shared] = "writes the same bytes as",
		[RULE_source_received] = "writes bytes that are being sent by",
		[RULE_source_fetched] = "writes bytes that are being sent by",
		[RULE_fence_missing] =
			"sends, without IBV_SEND_FENCE, the result of",
		[RULE_fetch_not_done] =
			"sends, on another QP or inline, where a fence has no effect, the result of",
		[RULE_write_after_read] =
			"writes, without IBV_SEND_FENCE, remote bytes accessed by",
		[RULE_remote_overlap] = "writes the same bytes of the rkey as",
	};
	const char *what = text[o->rule];
	char name[FINDING_NAME], other[FINDING_NAME];
	const struct finding f = {
		.rule = o->rule,
		.object = queue_wr_name(m->q, m->wr, name),
		.at_is = "other WR posted",
		.at = &o->other->wr->posted,
		.here = true,
	};

	if (o->rule == RULE_source_received && m->use == MEMORY_SOURCE)
		what = "sends bytes that will be written by";
	finding_report(&f, "%s %s (%llu byte%s at 0x%llx)", what,
		       queue_wr_name(o->other->q, o->other->wr, other),
		       (unsigned long long)(o->common.end - o->common.at),
		       plural(o->common.end - o->common.at),
		       (unsigned long long)o->common.at);
}

/* ------------------------------------------------------- the tables */

typedef enum rule overlap_fn(const struct memory *m, const struct span *span,
			     const struct flight_entry *e);

static void overlap_look(struct overlap *o, const struct memory *m,
			 const struct span *span, uint32_t key,
			 const struct flight_table *t, overlap_fn *fn)
{
	const struct flight_entry *e;
	struct flight_iter l;

	flight_iter_begin(&l, t, span, key);
	while ((e = flight_iter_next(&l)))
		overlap_note(o, fn(m, span, e), span, e);
}

/*
 * The same for the local ranges of m.  The bytes of overlapping WRs may
 * change from now on, so mark the WRs (met).
 */
static void overlap_check_local(struct overlap *o, struct memory *m,
				const struct flight_table *t, overlap_fn *fn)
{
	const struct flight_entry *e;
	struct flight_iter l;
	int s;

	for (s = 0; s < m->spans.n; s++) {
		overlap_look(o, m, &m->spans.span[s], 0, t, fn);
		flight_iter_begin(&l, t, &m->spans.span[s], 0);
		while ((e = flight_iter_next(&l)))
			m->unchecked = e->of->unchecked = true;
	}
}

/*
 * Report a WR of another process that writes the same remote bytes.  WRs that
 * were posted before this process last received a message are skipped: the
 * message may mean that they have arrived.
 */
static void overlap_check_other_processes(const struct memory *m)
{
	struct journal_other other;
	char name[FINDING_NAME];
	const struct finding f = {
		.rule = RULE_remote_overlap,
		.object = queue_wr_name(m->q, m->wr, name),
		.here = true,
	};

	if (wr_is(m->wr, WQE_WRITE_OPS) &&
	    journal_other_writes(m->ctx, m->wr->rkey, &m->remote,
				 memory_received_at, &other))
		finding_report(
			&f,
			"writes the same bytes of the rkey as QP 0x%x of process %d (%llu byte%s at 0x%llx)",
			other.qpn, other.pid,
			(unsigned long long)(other.span.end - other.span.at),
			plural(other.span.end - other.span.at),
			(unsigned long long)other.span.at);
}

void overlap_check(struct memory *m)
{
	struct overlap o = { .rule = RULES };

	if (m->use == MEMORY_SOURCE) {
		overlap_check_local(&o, m, &memory_targets, overlap_of_source);
	} else {
		overlap_check_local(&o, m, &memory_targets, overlap_of_targets);
		overlap_check_local(&o, m, &memory_sources, overlap_of_target);
	}
	if (m->remote.at != m->remote.end) {
		overlap_look(&o, m, &m->remote, m->wr->rkey, &memory_remotes,
			     overlap_of_remotes);
		overlap_look(&o, m, &m->remote, m->wr->rkey, &memory_reads,
			     overlap_of_reads);
	}
	if (o.rule != RULES)
		overlap_report(&o, m);
	else if (m->remote.at != m->remote.end)
		overlap_check_other_processes(m);
}

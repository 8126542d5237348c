// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Detection of buffers of outstanding WRs that change, or that are not
 * mapped.
 *
 * memory.c calls these functions under referee_lock().  A snapshot of the
 * bytes (snapshot.h) is compared when the program is about to see the
 * completion:
 *
 *	send, WRITE	snapshot before the post, of all bytes
 *	receive		snapshot after the post, because the adversary fills
 *			the buffer in it; only bytes behind the end of the
 *			message are compared, which a device does not write
 *	READ, atomic	snapshot of the result when it was written (fetch.c)
 *
 * No change is reported if there may be another writer.  That is so if
 * another outstanding WR has the same bytes.  It is also so if a peer may
 * write to them, unless all programs of the fabric that have a QP are checked
 * and their journal has no such write.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/plural.h"
#include "base/madvise.h"
#include "engine/qp/qp.h"
#include "engine/mem/vma.h"
#include "referee/ranges/journal.h"
#include "memory_wr.h"
#include "verbs/qp.h"

static void change_report(enum rule rule, const struct memory *m,
			  const struct span *where, const char *text)
{
	char name[FINDING_NAME];
	const struct finding f = {
		.rule = rule,
		.object = queue_wr_name(m->q, m->wr, name),
		.at_is = "posted",
		.at = &m->wr->posted,
	};

	finding_report(
		&f,
		"%s: %llu byte%s at 0x%llx; the WR has %llu byte%s at 0x%llx",
		text, (unsigned long long)(where->end - where->at),
		plural(where->end - where->at), (unsigned long long)where->at,
		(unsigned long long)m->spans.len, plural(m->spans.len),
		(unsigned long long)m->spans.span[0].at);
}

/* ------------------------------------------------------- unmapped memory */

static void change_report_gone(const struct memory *m, uint64_t at, bool write,
			       const char *text)
{
	int saved = errno;
	struct vma file;
	char name[FINDING_NAME];
	const struct finding f = {
		.rule = RULE_memory_gone,
		.object = queue_wr_name(m->q, m->wr, name),
		.at_is = "posted",
		.at = &m->wr->posted,
	};

	/*
	 * process_vm_readv(2) also fails for memory that is mapped, such as
	 * that of a device
	 */
	if (vma_check(at, 1, write, &file))
		finding_report(&f, "%s: 0x%llx", text, (unsigned long long)at);
	errno = saved;
}

/*
 * Populate the page for writing.  False: it is not writable, or the kernel
 * cannot tell; change_report_gone() checks the mapping.
 */
static bool page_is_writable(uint64_t page)
{
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *first = (void *)(uintptr_t)page;
	int saved = errno;
	bool ok = !madvise(first, len, MADV_POPULATE_WRITE);

	errno = saved;
	return ok;
}

/*
 * Report memory that a device will write to and that is not writable: the
 * first and the last page of each SGE.
 */
static void change_check_writable(const struct memory *m)
{
	static const char text[] = "the buffer is not mapped, or not writable";
	uint64_t mask = ~((uint64_t)sysconf(_SC_PAGESIZE) - 1), first, last;
	const struct span *s;
	int i;

	for (i = 0; i < m->spans.n; i++) {
		s = &m->spans.span[i];
		first = s->at & mask;
		last = (s->end - 1) & mask;
		if (!page_is_writable(first))
			change_report_gone(m, s->at, true, text);
		else if (last != first && !page_is_writable(last))
			change_report_gone(m, s->end - 1, true, text);
	}
}

/* ------------------------------------------------------- changed memory */

void change_begin(struct memory *m)
{
	uint64_t missing;

	if (m->wr->is_inline)
		return;
	if (m->use != MEMORY_SOURCE) {
		change_check_writable(m);
		return;
	}
	m->before = snapshot_take(&m->spans, &missing);
	if (missing)
		change_report_gone(m, missing, false,
				   "the buffer is not mapped");
}

void change_posted(struct memory *m)
{
	uint64_t missing;

	if (m->use == MEMORY_RECEIVE && !m->before && !m->unchecked)
		m->before = snapshot_take(&m->spans, &missing);
}

/* Does the MR allow remote writes to bytes of m? */
static bool mr_is_open(const struct shadow_mr *mr, const struct memory *m)
{
	const unsigned int opens = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_ATOMIC |
				   IBV_ACCESS_MW_BIND;
	const struct span all = { mr->addr, mr->addr + mr->length };
	int i;

	if (mr->null || !(mr->access & opens))
		return false;
	if (mr->dm || mr->imported || !mr->addr)
		return true; /* its addresses are not known */
	for (i = 0; i < m->spans.n; i++)
		if (span_overlaps(&m->spans.span[i], &all))
			return true;
	return false;
}

/* Does the QP allow remote writes? */
static bool qp_is_open(const struct shadow_qp *s)
{
	const struct urxe_qp *qp = to_uqp(s->qp);

	return load_relaxed(&qp->sh->access) &
	       (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
}

/* May a peer have written to bytes of m since it was posted? */
static bool change_is_peers(const struct memory *m)
{
	bool mr = false, qp = false;
	const struct shadow *s;

	for (s = shadow_first(); s && !(mr && qp); s = s->next) {
		if (s->type == SHADOW_MR)
			mr |= mr_is_open(to_shadow_mr(s), m);
		else if (s->type == SHADOW_QP)
			qp |= qp_is_open(to_shadow_qp(s));
	}
	return mr && qp &&
	       journal_may_have_written(m->ctx, &m->spans, m->since);
}

/*
 * Is it certain that the completion is that of m?  It is not if several
 * receives of the queue have the same wr_id; then those receives are not
 * checked either.  It is not for an XRC SRQ, whose completions do not name
 * the SRQ.
 */
static bool change_is_known(const struct memory *m)
{
	const struct shadow_wr *wr;
	struct memory *other;
	bool known = !m->q->is_srq || !to_shadow_srq(m->q->owner)->cq;

	for (wr = m->q->head; wr; wr = wr->next) {
		if (wr == m->wr || wr->wr_id != m->wr->wr_id)
			continue;
		known = false;
		other = wr->memory;
		if (other)
			other->unchecked = true;
	}
	return known;
}

/*
 * Return the offset of the first byte to compare: of a receive that behind
 * the end of the message.  -1: none.  That is so if the receive has no
 * completion, or if it completed for a WRITE with immediate data.
 */
static int64_t change_first(const struct memory *m, const struct ibv_wc *wc)
{
	if (m->use != MEMORY_RECEIVE)
		return 0;
	if (!wc || wc->opcode != IBV_WC_RECV)
		return -1;
	return wc->byte_len;
}

/*
 * Does the change begin right behind a message shorter than half of the
 * buffer, as if the program cleared the buffer?  A change elsewhere may be
 * other data of the program, in a buffer that is longer than any message: UCX
 * has the header of the next buffer there.
 */
static bool change_is_near(const struct memory *m, const struct span *where,
			   uint64_t first)
{
	return first < m->spans.len / 2 &&
	       where->at == spans_address(&m->spans,
					  snapshot_block(m->before, first));
}

static void change_report_which(const struct memory *m,
				const struct span *where, uint64_t first)
{
	if (m->use == MEMORY_FETCH)
		change_report(
			RULE_fetch_written, m, where,
			"the result changed before the completion was polled");
	else if (m->use == MEMORY_RECEIVE)
		change_report(
			change_is_near(m, where, first) ? RULE_receive_written :
							  RULE_receive_touched,
			m, where,
			"bytes behind the message changed while the receive was posted");
	else if (memory_is_answered(m))
		change_report(
			RULE_source_reused, m, where,
			"the buffer changed after a message arrived and before the completion was polled");
	else
		change_report(
			RULE_source_changed, m, where,
			"the buffer changed before the completion was polled");
}

/*
 * Return the last outstanding WR of the queue of m that sends bytes of m, or
 * NULL.
 */
static struct memory *change_last(const struct memory *m)
{
	const struct flight_entry *e;
	struct memory *last = NULL;
	struct flight_iter l;
	int i;

	for (i = 0; i < m->spans.n; i++) {
		flight_iter_begin(&l, &memory_sources, &m->spans.span[i], 0);
		while ((e = flight_iter_next(&l)))
			if (e->of->q == m->q &&
			    (!last || e->of->wr->nth > last->wr->nth))
				last = e->of;
	}
	return last;
}

/*
 * The earlier WR is checked now: the program may have changed the bytes for m
 * already, and an unsignaled WR may have no completion of its own.
 */
void change_check_earlier(const struct memory *m)
{
	struct memory *last;

	last = m->use == MEMORY_SOURCE && !m->wr->is_inline ? change_last(m) :
							      NULL;
	if (last)
		change_check(last, NULL);
}

void change_check(struct memory *m, const struct ibv_wc *wc)
{
	bool known = m->use != MEMORY_RECEIVE || change_is_known(m);
	struct span where;
	int64_t first;

	if (m->use == MEMORY_FETCH)
		m->before = fetch_take(m);
	if (!m->before || m->unchecked ||
	    (wc && wc->status != IBV_WC_SUCCESS) || !memory_is_at_work(m->q))
		return;
	first = known ? change_first(m, wc) : -1;
	if (first < 0)
		return;
	switch (snapshot_compare(m->before, &m->spans, (uint64_t)first,
				 &where)) {
	case SNAPSHOT_SAME:
		break;
	case SNAPSHOT_MISSING:
		if (m->use == MEMORY_SOURCE && memory_is_answered(m))
			change_report(
				RULE_source_reused, m, &where,
				"the buffer was unmapped after a message arrived and before the completion was polled");
		else
			change_report_gone(
				m, where.at, false,
				"the buffer was unmapped before the completion was polled");
		m->unchecked = true; /* report it once */
		break;
	case SNAPSHOT_CHANGED:
		if (!change_is_peers(m))
			change_report_which(m, &where, (uint64_t)first);
		m->unchecked = true; /* report it once */
		break;
	}
}

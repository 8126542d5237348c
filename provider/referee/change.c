// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Bytes of WRs in flight that change, or that are not there.
 *
 * What a WR sends is compared when the program is about to see that it is done.
 * Of a receive what is behind the end of the message is: nobody but the program
 * writes there.  It is looked at after the post, because the adversary fills
 * the buffer.
 *
 * No fault is found where somebody else may have written: another WR in flight
 * has the same bytes; or a peer may write to them, unless all programs of the
 * fabric are checked and their journal says that none did.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/madvise.h"
#include "engine/qp.h"
#include "engine/vma.h"
#include "journal.h"
#include "memory_wr.h"
#include "verbs/qp.h"

static void change_tell(enum rule rule, const struct memory *m,
			const struct span *where, const char *text)
{
	char name[FINDING_NAME];
	const struct finding f = {
		.rule = rule,
		.object = queue_wr_name(m->q, m->wr, name),
		.at_is = "posted",
		.at = &m->wr->posted,
	};

	finding_tell(&f, "%s: 0x%llx, %llu bytes; the WR has %llu at 0x%llx",
		     text, (unsigned long long)where->at,
		     (unsigned long long)(where->end - where->at),
		     (unsigned long long)m->spans.len,
		     (unsigned long long)m->spans.span[0].at);
}

/* ------------------------------------------------------- not there */

static void change_tell_gone(const struct memory *m, uint64_t at, bool write,
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

	/* what the kernel does not read for us may be there, as a device's is
	 */
	if (vma_check(at, 1, write, &file))
		finding_tell(&f, "%s: 0x%llx", text, (unsigned long long)at);
	errno = saved;
}

/* Could be; which change_tell_gone() looks at again. */
static bool page_is_writable(uint64_t page)
{
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *first = (void *)(uintptr_t)page;
	int saved = errno;
	bool ok = !madvise(first, len, MADV_POPULATE_WRITE);

	errno = saved;
	return ok;
}

/* Where a device will write, at both ends of each SGE. */
static void change_check_writable(const struct memory *m)
{
	static const char text[] =
		"what a device is to write to is not mapped, or not writable";
	uint64_t mask = ~((uint64_t)sysconf(_SC_PAGESIZE) - 1), first, last;
	const struct span *s;
	int i;

	for (i = 0; i < m->spans.n; i++) {
		s = &m->spans.span[i];
		first = s->at & mask;
		last = (s->end - 1) & mask;
		if (!page_is_writable(first))
			change_tell_gone(m, s->at, true, text);
		else if (last != first && !page_is_writable(last))
			change_tell_gone(m, s->end - 1, true, text);
	}
}

/* ------------------------------------------------------- changed */

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
		change_tell_gone(m, missing, false,
				 "what is to be sent is not mapped");
}

void change_posted(struct memory *m)
{
	uint64_t missing;

	if (m->use == MEMORY_RECEIVE && !m->before && !m->met)
		m->before = snapshot_take(&m->spans, &missing);
}

/* May peers write to bytes of m by an rkey? */
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
		return true; /* who knows where that is */
	for (i = 0; i < m->spans.n; i++)
		if (span_meets(&m->spans.span[i], &all))
			return true;
	return false;
}

/* ... and is there a QP that lets them? */
static bool qp_is_open(const struct shadow_qp *s)
{
	const struct urxe_qp *qp = to_uqp(s->qp);

	return load_relaxed(&qp->sh->access) &
	       (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
}

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
 * Where several are in flight with one wr_id nobody knows whose wc is, nor, if
 * it was another's, whose the next is; and that of an XRC SRQ does not say of
 * which SRQ it is.
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
			other->met = true;
	}
	return known;
}

/*
 * The first byte that no message was written to; -1: that is not known, or of
 * no interest, as that of a receive which only tells of a WRITE.
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
 * Does the change begin right behind a short message, as if the buffer was
 * cleared?  Elsewhere it may be something of the program that lies in a buffer
 * which is longer than any message: UCX has the next one's header there.
 */
static bool change_is_near(const struct memory *m, const struct span *where,
			   uint64_t first)
{
	return first < m->spans.len / 2 &&
	       where->at == spans_address(&m->spans,
					  snapshot_block(m->before, first));
}

static void change_tell_which(const struct memory *m, const struct span *where,
			      uint64_t first)
{
	if (m->use == MEMORY_FETCH)
		change_tell(
			RULE_fetch_written, m, where,
			"what it brought changed before this was seen to be done");
	else if (m->use == MEMORY_RECEIVE)
		change_tell(
			change_is_near(m, where, first) ? RULE_receive_written :
							  RULE_receive_touched,
			m, where,
			"what is behind the message changed while the receive was posted");
	else if (memory_is_answered(m))
		change_tell(
			RULE_source_reused, m, where,
			"what was sent changed after a message came and before this was done");
	else
		change_tell(RULE_source_changed, m, where,
			    "what is sent changed before this was done");
}

/* The last WR of m's queue that sends bytes of m, too; NULL: there is none. */
static struct memory *change_last(const struct memory *m)
{
	const struct flight_entry *e;
	struct memory *last = NULL;
	struct flight_look l;
	int i;

	for (i = 0; i < m->spans.n; i++) {
		flight_look_begin(&l, &memory_sources, &m->spans.span[i], 0);
		while ((e = flight_look_next(&l)))
			if (e->of->q == m->q &&
			    (!last || e->of->wr->nth > last->wr->nth))
				last = e->of;
	}
	return last;
}

/* Its completion may never come, if it is unsignaled. */
void change_again(const struct memory *m)
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
	if (!m->before || m->met || (wc && wc->status != IBV_WC_SUCCESS) ||
	    !memory_is_at_work(m->q))
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
			change_tell(
				RULE_source_reused, m, &where,
				"what was sent was unmapped after a message came and before this was done");
		else
			change_tell_gone(
				m, where.at, false,
				"its memory was unmapped before it was done");
		m->met = true; /* once is enough */
		break;
	case SNAPSHOT_CHANGED:
		if (!change_is_peers(m))
			change_tell_which(m, &where, (uint64_t)first);
		m->met = true; /* once is enough */
		break;
	}
}

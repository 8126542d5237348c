// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The memory of outstanding WRs: struct memory and the tables of address
 * ranges (memory_wr.h).  The checks are in overlap.c (WRs that share bytes)
 * and change.c (bytes that change or are not mapped).
 *
 * queue.c calls these functions when a WR is posted, when its completion is
 * polled, and when it is freed; objects.c and leave.c when a PD of a context
 * is created, and when the context has no objects left.  referee_lock() is
 * held, except in memory_init() and memory_after_fork().
 *
 * If there is no memory for struct memory or a table entry, the WR is not
 * checked: wr->memory is NULL.  If an lkey is not valid, only the WR's range
 * at the responder is checked.
 */
#include <stdlib.h>

#include "shared/opcode.h"
#include "referee/ranges/journal.h"
#include "memory.h"
#include "memory_wr.h"
#include "verbs/context.h"
#include "verbs/qp.h"
#include "verbs/srq.h"
#include "verbs/xrc.h"

struct flight_table memory_sources, memory_targets, memory_remotes,
	memory_reads;
uint64_t memory_received_at; /* journal position at the last polled receive */

/* Return the context and the PD (*pd) of the WRs of a queue. */
static struct urxe_context *memory_context(const struct shadow_queue *q,
					   uint32_t *pd)
{
	struct urxe_srq *srq;
	struct urxe_qp *qp;

	if (q->is_srq) {
		srq = to_usrq(to_shadow_srq(q->owner)->srq);
		*pd = srq->sh->pd;
		return srq->ctx;
	}
	qp = to_uqp(to_shadow_qp(q->owner)->qp);
	*pd = qp->sh->pd;
	return qp->ctx;
}

static bool qp_is_at_work(const struct shadow_qp *qp)
{
	enum ibv_qp_state state = qp_state(to_uqp(qp->qp));

	return state == IBV_QPS_RTR || state == IBV_QPS_RTS ||
	       state == IBV_QPS_SQD;
}

/*
 * Return whether messages to the QP may consume receives of the SRQ.  An XRC
 * target QP may consume those of any SRQ of its XRC domain.
 */
static bool qp_has_srq(const struct shadow_qp *qp, const struct shadow_srq *srq)
{
	const struct urxe_xrcd *of = to_vsrq(srq->srq)->xrcd, *xrcd;

	if (qp->type != IBV_QPT_XRC_RECV)
		return qp->srq == srq;
	xrcd = to_vqp(qp->qp)->xrcd;
	return of && xrcd && of->index == xrcd->index;
}

bool memory_is_at_work(const struct shadow_queue *q)
{
	struct shadow *s;

	/* while an object is being destroyed its shadow is in no list */
	if (shadow_find(q->owner->type, q->owner->handle) != q->owner)
		return false;
	if (!q->is_srq)
		return qp_is_at_work(to_shadow_qp(q->owner));
	for (s = shadow_first(); s; s = s->next)
		if (s->type == SHADOW_QP &&
		    qp_has_srq(to_shadow_qp(s), to_shadow_srq(q->owner)) &&
		    qp_is_at_work(to_shadow_qp(s)))
			return true;
	return false;
}

static enum memory_use memory_use_of(const struct shadow_wr *wr)
{
	if (wr->receive)
		return MEMORY_RECEIVE;
	if (wr_is(wr, WQE_FETCH_OPS))
		return MEMORY_FETCH;
	return MEMORY_SOURCE;
}

/* Return the range that a WR writes at the responder; it may be empty. */
static struct span memory_remote_of(const struct shadow_wr *wr)
{
	struct span s = { wr->remote_addr, wr->remote_addr };
	uint32_t i;

	if (wr_is(wr, WQE_WRITE_OPS))
		for (i = 0; i < wr->num_sge; i++)
			s.end += wr->sge[i].length;
	else if (wr_is(wr, WQE_ATOMIC_OPS | WQE_BIT(URXE_WR_ATOMIC_WRITE)))
		s.end += 8;
	return s;
}

/*
 * Return the range that a READ reads at the responder; empty if it is at most
 * 8 bytes.  Programs use such READs to wait until their WRITEs have arrived,
 * and ignore the data.
 */
static struct span memory_read_of(const struct shadow_wr *wr)
{
	struct span s = { wr->remote_addr, wr->remote_addr };
	uint32_t i;

	if (wr->receive || wr->opcode != IBV_WR_RDMA_READ)
		return s;
	for (i = 0; i < wr->num_sge; i++)
		s.end += wr->sge[i].length;
	if (s.end - s.at <= 8)
		s.end = s.at;
	return s;
}

static struct memory *memory_new(struct shadow_queue *q, struct shadow_wr *wr)
{
	struct memory *m = calloc(1, sizeof(*m));
	uint32_t pd;

	if (!m)
		return NULL;
	m->q = q;
	m->wr = wr;
	m->use = memory_use_of(wr);
	m->remote = memory_remote_of(wr);
	m->read = memory_read_of(wr);
	m->ctx = memory_context(q, &pd);
	m->since = journal_now(m->ctx);
	if (wr->is_inline)
		spans_of_program(&m->spans, wr->sge, (int)wr->num_sge);
	else if (!spans_resolve(&m->spans, m->ctx, pd, wr->sge,
				(int)wr->num_sge))
		m->spans.n = 0;
	return m;
}

void memory_posting(struct shadow_queue *q, struct shadow_wr *wr)
{
	struct memory *m = memory_new(q, wr);
	struct flight_table *t;
	bool ok = true;
	int i;

	if (!m)
		return;
	wr->memory = m;
	overlap_check(m);
	change_check_earlier(m);
	change_begin(m);
	t = m->use == MEMORY_SOURCE ? &memory_sources : &memory_targets;
	for (i = 0; ok && i < m->spans.n && !wr->is_inline; i++)
		ok = flight_table_add(t, &m->spans.span[i], 0, m);
	if (ok && m->remote.at != m->remote.end) {
		ok = flight_table_add(&memory_remotes, &m->remote, wr->rkey, m);
		m->written = journal_write(m->ctx, q->owner->number, wr->rkey,
					   &m->remote);
	}
	if (ok && m->read.at != m->read.end)
		ok = flight_table_add(&memory_reads, &m->read, wr->rkey, m);
	if (!ok)
		memory_forget(wr);
}

void memory_posted(struct shadow_wr *wr)
{
	if (wr->memory)
		change_posted(wr->memory);
}

void memory_done(struct shadow_queue *q, struct shadow_wr *wr,
		 const struct ibv_wc *wc)
{
	struct shadow_qp *qp;

	if (wr->memory)
		change_check(wr->memory, wc);
	if (!wr->receive || !wc)
		return;
	/*
	 * A message from the peer may confirm all WRs that this QP posted
	 * before.  It may also mean that earlier WRITEs of any QP or process
	 * have arrived (memory_received_at).
	 */
	qp = q->is_srq ? shadow_qp_numbered(q->owner->context, wc->qp_num) :
			 to_shadow_qp(q->owner);
	if (qp) {
		qp->sq.answered = qp->sq.posted;
		memory_received_at = journal_now(to_uqp(qp->qp)->ctx);
	}
}

void memory_forget(struct shadow_wr *wr)
{
	struct memory *m = wr->memory;
	int i;

	if (!m)
		return;
	wr->memory = NULL;
	for (i = 0; i < m->spans.n; i++)
		flight_table_remove(m->use == MEMORY_SOURCE ? &memory_sources :
							      &memory_targets,
				    &m->spans.span[i], m);
	flight_table_remove(&memory_remotes, &m->remote, m);
	flight_table_remove(&memory_reads, &m->read, m);
	if (m->use == MEMORY_FETCH)
		free(fetch_take(m));
	journal_done(m->written);
	free(m->before);
	free(m);
}

void memory_unknown(const struct shadow_queue *q, const struct shadow_wr *wr)
{
	if (q->is_send && !wr->memory && wr_is(wr, WQE_FETCH_OPS))
		fetch_drop(q);
}

void memory_joins(struct ibv_context *context)
{
	journal_join(to_uctx(context));
}

void memory_leaves(struct ibv_context *context)
{
	journal_leave(to_uctx(context));
}

void memory_init(void)
{
	fetch_init();
}

/*
 * The outstanding WRs belong to the parent, and the memory here is a copy:
 * stop checking them.
 */
void memory_after_fork(void)
{
	struct shadow_queue *q;
	struct shadow_wr *wr;
	struct memory *m;

	fetch_after_fork();
	flight_table_clear(&memory_sources);
	flight_table_clear(&memory_targets);
	flight_table_clear(&memory_remotes);
	flight_table_clear(&memory_reads);
	for (q = queue_first(); q; q = q->next_queue)
		for (wr = q->head; wr; wr = wr->next) {
			m = wr->memory;
			if (!m)
				continue;
			m->unchecked = true;
			m->written = 0; /* the parent calls journal_done() */
		}
}

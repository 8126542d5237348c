// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Snapshots of the results of READs and atomics, taken when the result is
 * known.
 *
 * The engine calls fetch_request() (engine/core/observe.h) with qp->lock held,
 * where it must not block, and so does not take referee_lock().  Therefore
 * the snapshots are in a list with a lock of its own, which is the innermost
 * lock.  memory.c and change.c call the other functions under
 * referee_lock().  A snapshot is taken out when the program is about to see
 * the completion, or when the WR is dropped.  It is matched by QP, wr_id and
 * addresses.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core/observe.h"
#include "engine/qp/qp.h"
#include "memory_wr.h"
#include "verbs/qp.h"

struct fetched {
	struct fetched *next;
	const struct urxe_qp *qp;
	uint64_t wr_id;
	struct spans spans;
	struct snapshot *brought;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fetched *all, **end = &all;

static bool fetched_resolve(struct fetched *f, const struct urxe_qp *qp,
			    const struct urxe_wqe *w)
{
	struct ibv_sge sge[URXE_MAX_SGE];
	int i;

	for (i = 0; i < w->num_sge && i < URXE_MAX_SGE; i++) {
		sge[i].addr = w->sge[i].addr;
		sge[i].length = w->sge[i].length;
		sge[i].lkey = w->sge[i].lkey;
	}
	return spans_resolve(&f->spans, qp->ctx, qp->sh->pd, sge, i);
}

/* Append a snapshot of the result; nothing, if it cannot be taken. */
static void fetched_note(const struct urxe_qp *qp, const struct urxe_wqe *w)
{
	struct fetched *f = calloc(1, sizeof(*f));
	uint64_t missing;

	if (!f)
		return;
	f->qp = qp;
	f->wr_id = w->wr_id;
	if (fetched_resolve(f, qp, w))
		f->brought = snapshot_take(&f->spans, &missing);
	if (!f->brought) {
		free(f);
		return;
	}
	pthread_mutex_lock(&lock);
	*end = f;
	end = &f->next;
	pthread_mutex_unlock(&lock);
}

static void fetch_request(enum observe_point point, const struct urxe_qp *qp,
			  const struct urxe_wqe *w, uint32_t what)
{
	if (point == OBSERVE_ANSWERED && what == IBV_WC_SUCCESS &&
	    WQE_BIT(w->opcode & 31) & WQE_FETCH_OPS)
		fetched_note(qp, w);
}

static struct urxe_observer observer = { .request = fetch_request };

void fetch_init(void)
{
	observer_add(&observer);
}

/*
 * In the child the lock may be held by a thread that does not exist there,
 * and the list belongs to the parent: start with an empty one.
 */
void fetch_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	all = NULL;
	end = &all;
}

static bool fetched_is_of_queue(const struct fetched *f,
				const struct shadow_queue *q)
{
	return f->qp == to_uqp(to_shadow_qp(q->owner)->qp);
}

static bool fetched_is_of(const struct fetched *f, const struct memory *m)
{
	return fetched_is_of_queue(f, m->q) && f->wr_id == m->wr->wr_id &&
	       f->spans.n == m->spans.n &&
	       !memcmp(f->spans.span, m->spans.span,
		       (size_t)m->spans.n * sizeof(m->spans.span[0]));
}

/* Remove *p from the list, and return its snapshot. */
static struct snapshot *fetched_take(struct fetched **p)
{
	struct fetched *f = *p;
	struct snapshot *brought = f->brought;

	*p = f->next;
	if (end == &f->next)
		end = p;
	free(f);
	return brought;
}

struct snapshot *fetch_take(const struct memory *m)
{
	struct snapshot *brought = NULL;
	struct fetched **p;

	pthread_mutex_lock(&lock);
	for (p = &all; *p && !fetched_is_of(*p, m); p = &(*p)->next)
		;
	if (*p)
		brought = fetched_take(p);
	pthread_mutex_unlock(&lock);
	return brought;
}

void fetch_drop(const struct shadow_queue *q)
{
	struct fetched **p = &all;

	pthread_mutex_lock(&lock);
	while (*p)
		if (fetched_is_of_queue(*p, q))
			free(fetched_take(p));
		else
			p = &(*p)->next;
	pthread_mutex_unlock(&lock);
}

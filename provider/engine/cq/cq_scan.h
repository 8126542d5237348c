/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The completions of a CQ that were not polled: those of a former ring
 * (struct urxe_backlog), then those of the ring.  Callers are threads of the
 * owner, inside cq->gate.
 */
#pragma once

#include "cq.h"

/* Completions of a former ring, after a resize; cq_resize.c. */
struct urxe_backlog {
	uint32_t head, count;
	struct urxe_cqe cqe[];
};

/* Number of completions polled so far; the caller is inside the gate. */
static inline uint32_t cq_polled(const struct urxe_cq *cq)
{
	const struct urxe_backlog *b = cq->backlog;

	return cq->polled_before + cq->head + (b ? b->head : 0);
}

/*
 * Return the i-th completion, from 0, that was not polled yet, or NULL.  The
 * caller is inside the gate.
 */
const struct urxe_cqe *cq_peek(const struct urxe_cq *cq, uint32_t i);

/*
 * Among the completions that were not polled, from the i-th on, find the
 * (skip + 1)-th that an arming of this kind applies to.  Return its index
 * plus 1, or 0 if there is none.  The caller is inside the gate.
 */
uint32_t cq_find(const struct urxe_cq *cq, uint32_t i, uint32_t skip,
		 uint32_t kind);
/*
 * Number of completions that were announced and not polled.  The caller is
 * inside the gate.
 */
uint32_t cq_announced(const struct urxe_cq *cq);
/*
 * A process has died: raise the event of an armed CQ that has a completion
 * which no event announced, because the producer may have died between the
 * two.  The same if the CQ is no longer armed, and there was no event: the
 * producer cleared the arm word first.  The caller is outside of the gate.
 * False: try again.
 */
bool cq_announce_missed(struct urxe_cq *cq);

/* Call fn for all completions that were not polled; inside the gate. */
typedef void cq_each_fn(struct urxe_cqe *e, void *arg);
void cq_each(struct urxe_cq *cq, cq_each_fn *fn, void *arg);

/* Drop the completions of a QP that is destroyed or reset. */
void cq_forget_qp(struct urxe_cq *cq, uint32_t qpn);

/* Return false if a forked process has polled this ring as well. */
static inline bool cq_is_ours(const struct urxe_cq *cq)
{
	return likely(load_relaxed(cq->ring.head) == cq->head);
}

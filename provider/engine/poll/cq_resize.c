// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_resize_cq: replace the ring of a CQ without losing completions.
 *
 * shared/cq_ring.h has the protocol.  The resizer closes the old ring with a
 * MOVED claim, so that producers continue in the new one, waits until no
 * guard names the CQ (quiesce_cq()), and moves what is left of the old ring
 * to a backlog in private memory.  The backlog is polled before the new ring.
 *
 * The caller holds the poller's lock and is inside the gate.  It may have to
 * wait for producers in other processes.  Errors are ENOMEM, EINVAL if more
 * completions wait than the new size, or if the ring fills faster than it is
 * drained, and EIO if the ring is damaged.  After an error the old ring is
 * still in use.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "cq_resize.h"
#include "engine/cq/cq.h"
#include "engine/cq/eager.h"
#include "cq_arm.h"
#include "engine/core/log.h"
#include "poller.h"
#include "engine/run/quiesce.h"

/*
 * Allocate a backlog with room for the rest of the old one and two rings of
 * entries; copy the rest of the old one.  NULL: no memory.
 */
static struct urxe_backlog *backlog_new(const struct urxe_cq *cq)
{
	const struct urxe_backlog *old = cq->backlog;
	uint32_t left = old ? old->count - old->head : 0;
	struct urxe_backlog *b;

	b = malloc(sizeof(*b) + (left + 2 * ((size_t)cq->ring.mask + 1)) *
					sizeof(b->cqe[0]));
	if (!b)
		return NULL;
	b->head = 0;
	b->count = left;
	if (left)
		memcpy(b->cqe, &old->cqe[old->head], left * sizeof(b->cqe[0]));
	return b;
}

/*
 * Move entries from the ring to the backlog, until the ring is empty or the
 * backlog has @max entries.
 */
static void backlog_drain(struct urxe_cq *cq, struct urxe_backlog *b,
			  uint32_t max)
{
	struct urxe_cqe *e;

	while (b->count < max && (e = poll_ring(cq))) {
		poll_leaves_ring(cq, e);
		memcpy(&b->cqe[b->count++], e, sizeof(*e));
		cq_ring_release(&cq->ring, ++cq->head);
	}
}

/*
 * Move one entry to the backlog, or skip it if it is not ready.  The caller
 * has waited for all producers, so such an entry never becomes ready: its
 * producer is dead or it is damaged.
 */
static void backlog_settle(struct urxe_cq *cq, struct urxe_backlog *b)
{
	uint32_t head = cq->head;

	backlog_drain(cq, b, b->count + 1);
	if (cq->head != head)
		return;
	cq_ring_release(&cq->ring, ++cq->head);
}

/* Number of completions to be polled, without those of destroyed QPs. */
static uint32_t backlog_waiting(const struct urxe_backlog *b)
{
	uint32_t i, n = 0;

	for (i = 0; i < b->count; i++)
		n += b->cqe[i].qpn != 0;
	return n;
}

/* The ring is full: drain it until it can be closed.  0 or errno. */
static int cq_make_end(struct urxe_cq *cq, struct urxe_backlog *b, uint32_t max,
		       uint32_t *end)
{
	uint32_t head, i;

	for (i = 0; i <= cq->ring.mask; i++) {
		if (b->count >= max)
			return EINVAL; /* filled faster than drained */
		head = cq->head;
		backlog_drain(cq, b, max);
		if (cq->head == head) {
			quiesce_cq(cq->ctx->fabric, cq->ctx->arena, cq->index);
			backlog_settle(cq, b);
		}
		if (cq_ring_close(&cq->ring, end))
			return 0;
	}
	urxe_why("ibv_resize_cq: the ring of the CQ is damaged");
	return EIO;
}

/*
 * Close the ring at position *end, publish the next one, and wait until no
 * producer uses the old one.  0 or errno.
 */
static int cq_move_producers(struct urxe_cq *cq, uint64_t next,
			     struct urxe_backlog *b, uint32_t max,
			     uint32_t *end)
{
	struct urxe_cq_sh *sh = cq->sh;
	int ret;

	cq_arm_forget(cq);
	eager_suspend(cq);
	cq_start_ring(cq, next);
	store_relaxed(&sh->next_ring, next);
	if (!cq_ring_close(&cq->ring, end)) {
		ret = cq_make_end(cq, b, max, end);
		if (ret)
			return ret;
	}
	store_seq_cst(&sh->ring, next);
	quiesce_cq(cq->ctx->fabric, cq->ctx->arena, cq->index);
	return 0;
}

/* 0 or errno; the backlog may have new entries in either case. */
static int cq_replace_ring(struct urxe_cq *cq, struct urxe_backlog *b, int cqe)
{
	uint32_t max = b->count + cq->ring.mask + 1;
	uint64_t next, old = cq->ring_word;
	uint32_t end, i;
	int ret;

	backlog_drain(cq, b, max);
	if (backlog_waiting(b) > (uint32_t)cqe) {
		urxe_why(
			"ibv_resize_cq: %u completion%s unpolled, but cqe is %d",
			backlog_waiting(b), plural_is(backlog_waiting(b)), cqe);
		return EINVAL;
	}
	ret = cq_ring_new(cq->ctx, cqe, &next);
	if (ret)
		return -ret;
	next |= ~old & URXE_CQ_PARITY;
	ret = cq_move_producers(cq, next, b, max, &end);
	if (ret) {
		cq_ring_free(cq->ctx, next);
		return ret;
	}
	for (i = 0; i <= cq->ring.mask && cq->head != end; i++)
		backlog_settle(cq, b);
	cq_ring_free(cq->ctx, old);
	cq_use_ring(cq, next);
	return 0;
}

int cq_resize(struct urxe_cq *cq, int cqe)
{
	struct urxe_backlog *b = backlog_new(cq);
	uint32_t polled = cq_polled(cq);
	int ret;

	if (!b)
		return ENOMEM;
	ret = cq_replace_ring(cq, b, cqe);
	eager_resume(cq);
	free(cq->backlog);
	cq->backlog = b;
	if (!b->count) {
		free(b);
		cq->backlog = NULL;
	}
	store_relaxed(&cq->closely, true); /* poll the backlog first */
	cq->polled_before += polled - cq_polled(cq);
	return ret;
}

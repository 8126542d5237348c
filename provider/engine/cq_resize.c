// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A completion queue gets another ring; the protocol is in cq_ring.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cq.h"
#include "cq_arm.h"
#include "log.h"
#include "poll.h"
#include "quiesce.h"

/* Room for what is left of the old backlog and two rings full of entries. */
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

/* Poll the ring into the backlog, until it is empty or has max entries. */
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
 * The same for the next entry when all who were producing have left: what is
 * not ready now will never be, because its claimer is dead or it was damaged.
 */
static void backlog_settle(struct urxe_cq *cq, struct urxe_backlog *b)
{
	uint32_t head = cq->head;

	backlog_drain(cq, b, b->count + 1);
	if (cq->head != head)
		return;
	cq_ring_release(&cq->ring, ++cq->head);
}

/* Completions that polling will show; those of dead QPs it drops. */
static uint32_t backlog_waiting(const struct urxe_backlog *b)
{
	uint32_t i, n = 0;

	for (i = 0; i < b->count; i++)
		n += b->cqe[i].qpn != 0;
	return n;
}

/* The ring is full: make a place to end it with.  0 or errno. */
static int cq_make_end(struct urxe_cq *cq, struct urxe_backlog *b, uint32_t max,
		       uint32_t *end)
{
	uint32_t head, i;

	for (i = 0; i <= cq->ring.mask; i++) {
		if (b->count >= max)
			return EINVAL; /* it fills faster than it is drained */
		head = cq->head;
		backlog_drain(cq, b, max);
		if (cq->head == head) {
			quiesce_cq(cq->ctx->fabric, cq->ctx->arena, cq->index);
			backlog_settle(cq, b);
		}
		if (cq_ring_close(&cq->ring, end))
			return 0;
	}
	urxe_why("ibv_resize_cq: the ring is damaged");
	return EIO;
}

/*
 * End the ring, have the next one taken, and wait until nobody is in the old
 * one.  0 or errno.
 */
static int cq_move_producers(struct urxe_cq *cq, uint64_t next,
			     struct urxe_backlog *b, uint32_t max,
			     uint32_t *end)
{
	struct urxe_cq_sh *sh = cq->sh;
	int ret;

	cq_arm_forget(cq);
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

static int cq_replace_ring(struct urxe_cq *cq, struct urxe_backlog *b, int cqe)
{
	uint32_t max = b->count + cq->ring.mask + 1;
	uint64_t next, old = cq->ring_word;
	uint32_t end, i;
	int ret;

	backlog_drain(cq, b, max);
	if (backlog_waiting(b) > (uint32_t)cqe) {
		urxe_why("ibv_resize_cq: %u completions wait, %d are asked for",
			 backlog_waiting(b), cqe);
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
	free(cq->backlog);
	cq->backlog = b;
	if (!b->count) {
		free(b);
		cq->backlog = NULL;
	}
	store_relaxed(&cq->closely, true); /* the backlog comes first */
	cq->polled_before += polled - cq_polled(cq);
	return ret;
}

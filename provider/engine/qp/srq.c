// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues: creation, destruction, and posting. The ring is that
 * of rq.c. Requesters of many QPs and processes consume it
 * (shared/rq_ring.h).
 *
 * srq_unlink() invalidates `live`, then waits for the guards that name the
 * SRQ and for this process's pollers.
 */
#include <string.h>

#include "engine/copy/bounce.h"
#include "conn.h"
#include "engine/core/process.h"
#include "engine/run/quiesce.h"
#include "engine/run/service.h"
#include "shared/bitmap.h"
#include "srq.h"

static void srq_publish(struct urxe_srq *srq, const struct srq_params *p)
{
	struct urxe_context *ctx = srq->ctx;
	struct urxe_srq_sh *sh = srq->sh;

	hint_store(sh->pd, p->pd);
	sh->type = p->cq ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	sh->xrcd = p->xrcd;
	hint_store(sh->cq, p->cq ? p->cq->index : 0);
	sh->async_fifo = p->async_fifo;
	sh->pid = urxe_pid;
	sh->tag = p->tag;
	store_relaxed(&sh->limit, p->limit);
	pthread_mutex_lock(&ctx->lock);
	store_release(&ctx->srq[srq->index], srq);
	if (p->cq)
		p->cq->refs++;
	pthread_mutex_unlock(&ctx->lock);
	store_release(&sh->live, sh->made);
}

int srq_open(struct urxe_srq *srq, struct urxe_context *ctx,
	     const struct srq_params *p)
{
	uint32_t made;
	int ret;

	srq->ctx = ctx;
	srq->cq = p->cq;
	ret = fabric_obj_get(ctx->fabric, ctx->slot, URXE_OBJ_SRQ);
	if (ret)
		return ret;
	ret = arena_index_take(ctx->arena->srq_map, URXE_MAX_SRQ);
	if (ret < 0)
		goto err_put;
	srq->index = ret;
	srq->sh = &ctx->arena->srq[srq->index];
	ret = arena_reserve(ctx->cmd_fd, (char *)srq->sh - (char *)ctx->arena,
			    sizeof(*srq->sh));
	if (ret)
		goto err_index;
	made = srq->sh->made + 1;
	memset(srq->sh, 0, sizeof(*srq->sh));
	srq->sh->made = made ? made : 1;
	if (p->cq) /* XRC: any process may name it */
		ret = bounce_expose(ctx);
	if (ret)
		goto err_index;
	ret = rq_create(ctx, &srq->rq, &srq->sh->rq, p->max_wr, p->max_sge,
			false, true);
	if (ret)
		goto err_index;
	srq_publish(srq, p);
	return 0;

err_index:
	bitmap_clear(ctx->arena->srq_map, srq->index, 1);
err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_SRQ);
	return ret;
}

bool srq_unlink(struct urxe_srq *srq)
{
	struct urxe_context *ctx = srq->ctx;
	bool busy;

	pthread_mutex_lock(&ctx->lock);
	busy = srq->refs;
	pthread_mutex_unlock(&ctx->lock);
	if (busy)
		return false;
	store_seq_cst(&srq->sh->live, 0);
	store_seq_cst(&ctx->srq[srq->index], NULL);
	quiesce_srq(ctx->fabric, ctx->arena, srq->index);
	cq_wait_pollers(ctx);
	return true;
}

void srq_close(struct urxe_srq *srq)
{
	struct urxe_context *ctx = srq->ctx;

	pthread_mutex_lock(&ctx->lock);
	if (srq->cq)
		srq->cq->refs--;
	pthread_mutex_unlock(&ctx->lock);
	rq_destroy(ctx, &srq->rq);
	bitmap_clear(ctx->arena->srq_map, srq->index, 1);
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_SRQ);
}

void srq_wake_waiters(struct urxe_srq *srq)
{
	struct urxe_dev *dev = srq->ctx->fabric->dev;
	uint32_t slot, who;

	who = exchange_seq_cst(&srq->sh->rq.waiter, 0);
	if (who != URXE_WAIT_MANY) {
		if (who)
			service_wake_slot(srq->ctx->fabric, who - 1);
		return;
	}
	for (slot = 0; slot < URXE_MAX_CTX; slot++)
		if (load_relaxed(&dev->ctx[slot].state) == URXE_CTX_LIVE)
			service_wake_slot(srq->ctx->fabric, slot);
}

int srq_post_recv(struct urxe_srq *srq, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad)
{
	int ret = rq_post(srq->ctx, &srq->rq, NULL, wr, bad);

	if (unlikely(load_seq_cst(&srq->sh->rq.waiter)))
		srq_wake_waiters(srq);
	return ret;
}

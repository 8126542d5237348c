// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "flush.h"
#include "peer.h"
#include "qp.h"
#include "retry.h"
#include "rq.h"

static uint32_t pow2_up(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

static uint32_t stride_for(uint32_t max_sge)
{
	uint32_t n = sizeof(struct urxe_recv) +
		     max_sge * sizeof(struct urxe_sge);

	return n <= 32 ? 32 : (n + URXE_LINE - 1) / URXE_LINE * URXE_LINE;
}

int rq_create(struct urxe_context *ctx, struct urxe_rq *rq,
	      struct urxe_rq_sh *sh, uint32_t max_wr, uint32_t max_sge)
{
	uint32_t depth = pow2_up(max_wr ? max_wr : 1);
	uint64_t bytes;

	memset(sh, 0, sizeof(*sh));
	pthread_mutex_init(&rq->lock.mutex, NULL);
	rq->sh = sh;
	rq->max_wr = max_wr;
	rq->max_sge = max_sge;
	rq->mask = depth - 1;
	rq->stride = stride_for(max_sge);
	if (!max_wr)
		return 0;
	bytes = (uint64_t)depth * rq->stride;
	sh->ring = arena_alloc(ctx->arena, ctx->cmd_fd, bytes);
	if (!sh->ring)
		return -ENOMEM;
	rq->ring = arena_ptr(ctx->arena, sh->ring, bytes);
	sh->depth = depth;
	sh->stride = rq->stride;
	sh->max_sge = max_sge;
	sh->max_wr = max_wr;
	return 0;
}

void rq_destroy(struct urxe_context *ctx, struct urxe_rq *rq)
{
	if (rq->ring)
		arena_free(ctx->arena, ctx->cmd_fd, rq->sh->ring,
			   (uint64_t)(rq->mask + 1) * rq->stride);
	pthread_mutex_destroy(&rq->lock.mutex);
}

void rq_reset(struct urxe_rq *rq)
{
	rq->prod = 0;
	atomic_store_explicit(&rq->tail, 0, memory_order_relaxed);
	atomic_store_explicit(&rq->sh->prod, 0, memory_order_relaxed);
	atomic_store_explicit(&rq->sh->cons, 0, memory_order_relaxed);
	atomic_store_explicit(&rq->sh->done, 0, memory_order_release);
}

bool rq_view_init(struct urxe_rq_view *v, struct urxe_arena *a,
		  struct urxe_rq_sh *sh)
{
	uint32_t depth = sh->depth, stride = sh->stride, sge = sh->max_sge;

	v->sh = sh;
	v->mask = depth - 1;
	v->stride = stride;
	v->max_sge = sge;
	v->ring = NULL;
	if (!depth)
		return true; /* a QP that cannot receive */
	if (depth & (depth - 1) || depth > 2 * URXE_MAX_QP_WR ||
	    sge > URXE_MAX_SGE || stride < stride_for(sge) || stride > 4096)
		return false;
	v->ring = arena_ptr(a, sh->ring, (uint64_t)depth * stride);
	return v->ring;
}

static int push(struct urxe_rq *rq, const struct ibv_recv_wr *wr)
{
	struct urxe_recv *r;
	uint64_t total = 0;
	int i;

	if (rq->prod - atomic_load_explicit(&rq->tail, memory_order_acquire) >=
	    rq->max_wr)
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	r = rq_slot(rq, rq->prod);
	r->wr_id = wr->wr_id;
	r->num_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++) {
		r->sge[i].addr = wr->sg_list[i].addr;
		r->sge[i].length = wr->sg_list[i].length;
		r->sge[i].lkey = wr->sg_list[i].lkey;
		total += wr->sg_list[i].length;
	}
	r->total = total < UINT32_MAX ? total : UINT32_MAX;
	rq->prod++;
	return 0;
}

int rq_post(struct urxe_rq *rq, struct ibv_recv_wr *wr,
	    struct ibv_recv_wr **bad)
{
	int ret = 0;

	for (; wr; wr = wr->next) {
		ret = push(rq, wr);
		if (ret) {
			*bad = wr;
			break;
		}
	}
	atomic_store_explicit(&rq->sh->prod, rq->prod, memory_order_seq_cst);
	return ret;
}

/* A requester is parked for want of a receive: have it look again. */
static void wake_waiter(struct urxe_qp *qp)
{
	struct urxe_fabric *f = qp->ctx->fabric;
	uint32_t slot;
	struct urxe_peer *p;

	slot = atomic_exchange_explicit(&qp->sh->waiter, 0,
					memory_order_seq_cst);
	if (!slot || slot > URXE_MAX_CTX)
		return;
	slot--;
	p = peer_get(f, slot, atomic_load_explicit(&f->dev->ctx[slot].gen,
						   memory_order_relaxed));
	if (!p)
		return;
	service_wake(p->arena);
	peer_put(p);
}

int urxe_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad)
{
	struct urxe_qp *qp = to_uqp(ibqp);
	enum ibv_qp_state state;
	int ret;

	urxe_lock(&qp->rq.lock);
	if (unlikely(qp_state(qp) == IBV_QPS_RESET || ibqp->srq)) {
		*bad = wr;
		ret = EINVAL;
		urxe_unlock(&qp->rq.lock);
		return ret;
	}
	ret = rq_post(&qp->rq, wr, bad);
	urxe_unlock(&qp->rq.lock);
	if (unlikely(atomic_load_explicit(&qp->sh->waiter,
					  memory_order_seq_cst)))
		wake_waiter(qp);
	state = qp_state(qp);
	if (unlikely(state == IBV_QPS_ERR)) {
		urxe_lock(&qp->lock);
		flush_qp(qp);
		urxe_unlock(&qp->lock);
	}
	return ret;
}

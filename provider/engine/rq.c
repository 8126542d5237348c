// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log2.h"
#include "flush.h"
#include "verbs/qp.h"
#include "quiesce.h"
#include "retry.h"
#include "rq.h"

static uint32_t stride_for(uint32_t max_sge)
{
	uint32_t n = sizeof(struct urxe_recv) +
		     max_sge * sizeof(struct urxe_sge);

	return n <= 32 ? 32 : (n + URXE_LINE - 1) / URXE_LINE * URXE_LINE;
}

/* Room for max_wr receives; the ring word, 0 if there is no memory. */
static uint64_t make_ring(struct urxe_context *ctx, uint32_t max_wr,
			  uint32_t stride)
{
	uint32_t log = log2_up(max_wr);
	uint64_t offset;

	offset = arena_alloc(ctx->arena, ctx->cmd_fd, (uint64_t)stride << log);
	return offset ? offset | log : 0;
}

static void use_ring(struct urxe_context *ctx, struct urxe_rq *rq,
		     uint64_t word, uint32_t max_wr)
{
	rq->mask = (1u << (word & (URXE_PAGE - 1))) - 1;
	rq->max_wr = max_wr;
	rq->ring = (char *)ctx->arena + (word & ~(uint64_t)(URXE_PAGE - 1));
	atomic_store_explicit(&rq->sh->ring, word, memory_order_release);
}

static void free_ring(struct urxe_context *ctx, uint64_t word, uint32_t stride)
{
	arena_free(ctx->arena, ctx->cmd_fd, word & ~(uint64_t)(URXE_PAGE - 1),
		   (uint64_t)stride << (word & (URXE_PAGE - 1)));
}

/* Room for max_wr tickets, no fewer than there are in old. */
static struct urxe_kept_set *make_kept(const struct urxe_kept_set *old,
				       uint32_t max_wr, uint32_t max_sge)
{
	uint32_t stride = sizeof(struct urxe_kept) + sizeof(struct urxe_recv) +
			  max_sge * sizeof(struct urxe_sge);
	struct urxe_kept_set *set;

	if (old && old->count > max_wr)
		max_wr = old->count;
	set = calloc(1, sizeof(*set) + (size_t)max_wr * stride);
	if (!set)
		return NULL;
	set->count = max_wr;
	set->stride = stride;
	if (old)
		memcpy(set->slot, old->slot, (size_t)old->count * stride);
	return set;
}

/*
 * Use a bigger set from now on.  Pollers may still have released tickets in
 * the old one until they were waited for.
 */
static void replace_kept(struct urxe_context *ctx, struct urxe_rq *rq,
			 struct urxe_kept_set *set)
{
	struct urxe_kept_set *old = rq_kept_set(rq);
	struct urxe_kept *k;
	uint32_t i;

	atomic_store_explicit(&rq->kept, set, memory_order_release);
	quiesce(ctx);
	for (i = 0; i < old->count; i++) {
		k = kept_at(old, i);
		if (!atomic_load_explicit(&k->out, memory_order_relaxed))
			atomic_store_explicit(&kept_at(set, i)->out, false,
					      memory_order_relaxed);
	}
	free(old);
}

int rq_create(struct urxe_context *ctx, struct urxe_rq *rq,
	      struct urxe_rq_sh *sh, uint32_t max_wr, uint32_t max_sge,
	      bool single_threaded, bool crowd)
{
	struct urxe_kept_set *set = NULL;
	uint64_t word;

	memset(sh, 0, sizeof(*sh));
	urxe_lock_init(&rq->lock, single_threaded);
	rq->sh = sh;
	rq->max_sge = max_sge;
	rq->stride = stride_for(max_sge);
	if (!max_wr)
		return 0;
	if (crowd) {
		set = make_kept(NULL, max_wr, max_sge);
		if (!set)
			return -ENOMEM;
	}
	word = make_ring(ctx, max_wr, rq->stride);
	if (!word) {
		free(set);
		return -ENOMEM;
	}
	atomic_store_explicit(&rq->kept, set, memory_order_release);
	sh->stride = rq->stride;
	sh->max_sge = max_sge;
	use_ring(ctx, rq, word, max_wr);
	return 0;
}

void rq_destroy(struct urxe_context *ctx, struct urxe_rq *rq)
{
	if (rq->ring)
		free_ring(ctx, atomic_load_explicit(&rq->sh->ring,
						    memory_order_relaxed),
			  rq->stride);
	free(rq_kept_set(rq));
	urxe_lock_destroy(&rq->lock);
}

int rq_resize(struct urxe_context *ctx, struct urxe_rq *rq, uint32_t max_wr)
{
	uint64_t old = atomic_load_explicit(&rq->sh->ring,
					    memory_order_relaxed), word;
	uint32_t i, tail, old_mask = rq->mask;
	struct urxe_kept_set *set = NULL, *kept = rq_kept_set(rq);
	const char *from = rq->ring;

	tail = atomic_load_explicit(&rq->tail, memory_order_acquire);
	if (!max_wr || max_wr > URXE_MAX_SRQ_WR || rq->prod - tail > max_wr)
		return EINVAL;
	if (kept && max_wr > kept->count) {
		set = make_kept(kept, max_wr, rq->max_sge);
		if (!set)
			return ENOMEM;
	}
	word = make_ring(ctx, max_wr, rq->stride);
	if (!word) {
		free(set);
		return ENOMEM;
	}
	rq->mask = (1u << (word & (URXE_PAGE - 1))) - 1;
	rq->ring = (char *)ctx->arena + (word & ~(uint64_t)(URXE_PAGE - 1));
	for (i = tail; i != rq->prod; i++)
		memcpy(rq_slot(rq, i),
		       from + (uint64_t)(i & old_mask) * rq->stride,
		       rq->stride);
	use_ring(ctx, rq, word, max_wr);
	if (set)
		replace_kept(ctx, rq, set);
	else
		quiesce(ctx);
	free_ring(ctx, old, rq->stride);
	return 0;
}

void rq_reset(struct urxe_rq *rq)
{
	struct urxe_kept_set *kept = rq_kept_set(rq);
	uint32_t i;

	for (i = 0; kept && i < kept->count; i++)
		atomic_store_explicit(&kept_at(kept, i)->out, false,
				      memory_order_relaxed);
	rq->prod = 0;
	atomic_store_explicit(&rq->tail, 0, memory_order_relaxed);
	atomic_store_explicit(&rq->sh->prod, 0, memory_order_relaxed);
	atomic_store_explicit(&rq->sh->cons, 0, memory_order_relaxed);
	atomic_store_explicit(&rq->sh->done, 0, memory_order_release);
}

bool rq_view_load(struct urxe_rq_view *v)
{
	uint64_t word = atomic_load_explicit(&v->sh->ring,
					     memory_order_acquire);
	uint32_t log = word & (URXE_PAGE - 1);

	v->ring = NULL;
	v->ring_word = word;
	if (!word)
		return true; /* a QP that cannot receive */
	if (log > 15)
		return false;
	v->mask = (1u << log) - 1;
	v->ring = arena_ptr(v->arena, word & ~(uint64_t)(URXE_PAGE - 1),
			    (uint64_t)v->stride << log);
	return v->ring;
}

bool rq_view_init(struct urxe_rq_view *v, struct urxe_arena *a,
		  struct urxe_rq_sh *sh)
{
	v->sh = sh;
	v->arena = a;
	v->stride = sh->stride;
	v->max_sge = sh->max_sge;
	if (v->max_sge > URXE_MAX_SGE || v->stride > 4096 ||
	    (v->stride && v->stride < stride_for(v->max_sge)))
		return false;
	return rq_view_load(v);
}

/* A ticket that is not out; there is one, because the queue is not full. */
static uint32_t take_ticket(struct urxe_rq *rq)
{
	struct urxe_kept_set *kept = rq_kept_set(rq);
	uint32_t t = rq->next_ticket, count = kept->count, i;

	for (i = 0; i < count; i++, t++) {
		if (t >= count)
			t = 0;
		if (!atomic_load_explicit(&kept_at(kept, t)->out,
					  memory_order_acquire))
			break;
	}
	rq->next_ticket = t + 1;
	return t;
}

/* Remember what is in the slot at prod. */
static void keep(struct urxe_rq *rq, struct urxe_recv *r)
{
	uint32_t ticket = take_ticket(rq);
	struct urxe_kept *k = kept_at(rq_kept_set(rq), ticket);

	r->ticket = ticket;
	memcpy(kept_recv(k), r, sizeof(*r) + r->num_sge * sizeof(r->sge[0]));
	k->pos = rq->prod;
	atomic_store_explicit(&k->out, true, memory_order_relaxed);
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
	if (rq_kept_set(rq))
		keep(rq, r);
	rq->prod++;
	return 0;
}

void rq_post_again(struct urxe_rq *rq, struct urxe_kept *k, uint32_t ticket)
{
	const struct urxe_recv *r = kept_recv(k);

	memcpy(rq_slot(rq, rq->prod), r,
	       sizeof(*r) + r->num_sge * sizeof(r->sge[0]));
	rq_slot(rq, rq->prod)->ticket = ticket;
	k->pos = rq->prod++;
	/* it left its old position as if it had been polled */
	atomic_fetch_add_explicit(&rq->tail, 1, memory_order_relaxed);
	atomic_store_explicit(&rq->sh->prod, rq->prod, memory_order_seq_cst);
}

static int append(struct urxe_rq *rq, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad)
{
	int ret = 0;

	urxe_lock(&rq->lock);
	for (; wr; wr = wr->next) {
		ret = push(rq, wr);
		if (ret) {
			*bad = wr;
			break;
		}
	}
	atomic_store_explicit(&rq->sh->prod, rq->prod, memory_order_seq_cst);
	urxe_unlock(&rq->lock);
	return ret;
}

int rq_post(struct urxe_context *ctx, struct urxe_rq *rq,
	    struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int ret;

	if (rq_kept_set(rq) && rq_deaths(ctx))
		rq_recover_now(ctx, false);
	ret = append(rq, wr, bad);
	if (unlikely(ret == ENOMEM && rq_kept_set(rq)) && rq_recover_now(ctx, true))
		ret = append(rq, *bad, bad);
	if (unlikely(ret == ENOMEM))
		urxe_why("a receive is refused: the queue is full (max_wr %u)",
			 rq->max_wr);
	else if (unlikely(ret))
		urxe_why("a receive is refused: %d SGEs, and max_sge is %u",
			 (*bad)->num_sge, rq->max_sge);
	return ret;
}

void rq_wake_waiter(struct urxe_qp *qp)
{
	uint32_t who = atomic_exchange_explicit(&qp->sh->waiter, 0,
						memory_order_seq_cst);

	if (who)
		service_wake_slot(qp->ctx->fabric, who - 1);
}

int urxe_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad)
{
	struct urxe_qp *qp = to_uqp(ibqp);
	enum ibv_qp_state state;
	int ret;

	if (unlikely(!qp->rq.sh)) { /* it has an SRQ, or it is XRC */
		urxe_why("ibv_post_recv: QP 0x%x has no receive queue: it has an SRQ, or is XRC",
			 qp->vqp.qp.qp_num);
		*bad = wr;
		return EINVAL;
	}
	if (unlikely(qp_state(qp) == IBV_QPS_RESET)) {
		urxe_why("ibv_post_recv: QP 0x%x is in RESET, not yet in INIT",
			 qp->vqp.qp.qp_num);
		*bad = wr;
		return EINVAL;
	}
	ret = rq_post(qp->ctx, &qp->rq, wr, bad);
	if (unlikely(atomic_load_explicit(&qp->sh->waiter,
					  memory_order_seq_cst)))
		rq_wake_waiter(qp);
	state = qp_state(qp);
	if (unlikely(state == IBV_QPS_ERR)) {
		urxe_lock(&qp->lock);
		flush_qp(qp);
		urxe_unlock(&qp->lock);
	}
	return ret;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receive queues of QPs and SRQs: creation, resize, reset, and posting. The
 * protocol between the owner, which posts, and the requesters, which consume,
 * is in shared/rq_ring.h.
 *
 * rq->lock serializes posting, resize and reset. Pollers release slots
 * without it. A queue with several requesters has a set of kept receives,
 * indexed by ticket (rq.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log2.h"
#include "flush.h"
#include "engine/core/log.h"
#include "qp.h"
#include "engine/run/quiesce.h"
#include "rq.h"
#include "engine/run/service.h"
#include "engine/core/tally.h"

/*
 * Allocate a ring for @max_wr receives. Return its ring word, or 0 if there
 * is no memory.
 */
static uint64_t rq_make_ring(struct urxe_context *ctx, uint32_t max_wr,
			     uint32_t stride)
{
	uint32_t log = log2_up(max_wr);
	uint64_t offset;

	offset = arena_alloc_ring(ctx->arena, ctx->cmd_fd,
				  (uint64_t)stride << log);
	return offset ? URXE_RQ_RING(offset, log) : 0;
}

static void rq_use_ring(struct urxe_context *ctx, struct urxe_rq *rq,
			uint64_t word, uint32_t max_wr)
{
	rq->ring_word = word;
	rq->mask = (1u << URXE_RQ_LOG(word)) - 1;
	rq->ring = (char *)ctx->arena + URXE_RQ_OFFSET(word);
	rq->max_wr = max_wr;
}

static void rq_free_ring(struct urxe_context *ctx, uint64_t word,
			 uint32_t stride)
{
	arena_free_ring(ctx->arena, ctx->cmd_fd, URXE_RQ_OFFSET(word),
			(uint64_t)stride << URXE_RQ_LOG(word));
}

static inline void recv_sge_set(struct urxe_recv_sge *s, struct urxe_sge v)
{
	store_relaxed(&s->addr, v.addr);
	store_relaxed(&s->length, v.length);
	store_relaxed(&s->lkey, v.lkey);
}

static void recv_copy(struct urxe_recv *to, const struct urxe_recv *from)
{
	uint16_t i, n = load_relaxed(&from->num_sge);

	store_relaxed(&to->wr_id, load_relaxed(&from->wr_id));
	store_relaxed(&to->num_sge, n);
	store_relaxed(&to->ticket, load_relaxed(&from->ticket));
	for (i = 0; i < n; i++)
		recv_sge_set(&to->sge[i], recv_sge(&from->sge[i]));
}

/*
 * Copy an entry of the kept set. A poller may release it meanwhile;
 * kept_replace() corrects that.
 */
static void kept_copy(struct urxe_kept *to, struct urxe_kept *from)
{
	store_relaxed(&to->out, load_relaxed(&from->out));
	to->pos = from->pos;
	recv_copy(kept_recv(to), kept_recv(from));
}

/*
 * Allocate a set of @max_wr tickets, at least as many as @old has, and copy
 * @old to it.
 */
static struct urxe_kept_set *kept_make(struct urxe_kept_set *old,
				       uint32_t max_wr, uint32_t max_sge)
{
	uint32_t stride = sizeof(struct urxe_kept) + sizeof(struct urxe_recv) +
			  max_sge * sizeof(struct urxe_recv_sge);
	struct urxe_kept_set *set;
	uint32_t i;

	if (old && old->count > max_wr)
		max_wr = old->count;
	set = calloc(1, sizeof(*set) + (size_t)max_wr * stride);
	if (!set)
		return NULL;
	set->count = max_wr;
	set->stride = stride;
	for (i = 0; old && i < old->count; i++)
		kept_copy(kept_at(set, i), kept_at(old, i));
	return set;
}

/*
 * Replace the kept set by a larger one. Pollers may release tickets in the
 * old set until cq_wait_pollers() returns, so these are released in the new
 * set afterwards. The old set is freed.
 */
static void kept_replace(struct urxe_context *ctx, struct urxe_rq *rq,
			 struct urxe_kept_set *set)
{
	struct urxe_kept_set *old = rq_kept_set(rq);
	struct urxe_kept *k;
	uint32_t i;

	store_release(&rq->kept, set);
	cq_wait_pollers(ctx);
	for (i = 0; i < old->count; i++) {
		k = kept_at(old, i);
		if (!load_relaxed(&k->out))
			store_relaxed(&kept_at(set, i)->out, false);
	}
	free(old);
}

int rq_create(struct urxe_context *ctx, struct urxe_rq *rq,
	      struct urxe_rq_sh *sh, uint32_t max_wr, uint32_t max_sge,
	      bool single_threaded, bool shared)
{
	struct urxe_kept_set *set = NULL;
	uint64_t word;

	memset(sh, 0, sizeof(*sh));
	urxe_lock_init(&rq->lock, single_threaded);
	rq->sh = sh;
	rq->max_sge = max_sge;
	rq->stride = rq_stride(max_sge);
	if (!max_wr)
		return 0;
	if (shared) {
		set = kept_make(NULL, max_wr, max_sge);
		if (!set)
			return -ENOMEM;
		store_relaxed(&ctx->has_kept, true);
	}
	word = rq_make_ring(ctx, max_wr, rq->stride);
	if (!word) {
		free(set);
		return -ENOMEM;
	}
	store_release(&rq->kept, set);
	sh->max_sge = max_sge;
	rq_use_ring(ctx, rq, word, max_wr);
	store_release(&sh->ring, word);
	return 0;
}

void rq_destroy(struct urxe_context *ctx, struct urxe_rq *rq)
{
	if (rq->ring)
		rq_free_ring(ctx, rq->ring_word, rq->stride);
	free(rq_kept_set(rq));
}

int rq_resize(struct urxe_context *ctx, struct urxe_rq *rq, uint32_t srq,
	      uint32_t max_wr)
{
	uint64_t old = rq->ring_word, word;
	uint32_t i, tail, old_mask = rq->mask;
	struct urxe_kept_set *set = NULL, *kept = rq_kept_set(rq);
	const char *from = rq->ring;

	tail = load_acquire(&rq->tail);
	if (!max_wr || max_wr > URXE_MAX_SRQ_WR || rq->prod - tail > max_wr)
		return EINVAL;
	if (kept && max_wr > kept->count) {
		set = kept_make(kept, max_wr, rq->max_sge);
		if (!set)
			return ENOMEM;
	}
	word = rq_make_ring(ctx, max_wr, rq->stride);
	if (!word) {
		free(set);
		return ENOMEM;
	}
	rq_use_ring(ctx, rq, word, max_wr);
	for (i = tail; i != rq->prod; i++)
		memcpy(rq_slot(rq, i),
		       from + (uint64_t)(i & old_mask) * rq->stride,
		       rq->stride);
	/* seq_cst: invalidates the old ring, see presence.h */
	store_seq_cst(&rq->sh->ring, word);
	quiesce_srq(ctx->fabric, ctx->arena, srq);
	if (set)
		kept_replace(ctx, rq, set);
	rq_free_ring(ctx, old, rq->stride);
	return 0;
}

void rq_reset(struct urxe_rq *rq)
{
	struct urxe_kept_set *kept = rq_kept_set(rq);
	uint32_t i;

	for (i = 0; kept && i < kept->count; i++)
		store_relaxed(&kept_at(kept, i)->out, false);
	rq->prod = 0;
	store_relaxed(&rq->tail, 0);
	store_relaxed(&rq->sh->prod, 0);
	store_relaxed(&rq->sh->cons, 0);
	store_release(&rq->sh->done, 0);
}

bool rq_view_load(struct urxe_rq_view *v, struct urxe_arena *a)
{
	uint64_t word = load_acquire(&v->sh->ring);
	uint32_t log = URXE_RQ_LOG(word);

	v->ring = NULL;
	v->ring_word = word;
	if (!word)
		return true; /* the QP has no receives */
	if (log > URXE_RQ_MAX_LOG)
		return false;
	v->mask = (1u << log) - 1;
	v->ring =
		arena_ptr(a, URXE_RQ_OFFSET(word), (uint64_t)v->stride << log);
	return v->ring;
}

bool rq_view_init(struct urxe_rq_view *v, struct urxe_arena *a,
		  struct urxe_rq_sh *sh)
{
	v->sh = sh;
	rq_view_forget(v);
	v->max_sge = sh->max_sge;
	if (v->max_sge > URXE_MAX_SGE)
		return false;
	v->stride = rq_stride(v->max_sge);
	return rq_view_load(v, a);
}

/* Return a free ticket. There is one because the queue is not full. */
static uint32_t rq_take_ticket(struct urxe_rq *rq)
{
	struct urxe_kept_set *kept = rq_kept_set(rq);
	uint32_t t = rq->next_ticket, count = kept->count, i;

	for (i = 0; i < count; i++, t++) {
		if (t >= count)
			t = 0;
		if (!load_acquire(&kept_at(kept, t)->out))
			break;
	}
	rq->next_ticket = t + 1;
	return t;
}

/*
 * Keep the receive that is posted at prod: take a ticket, and return the copy
 * to fill in.
 */
static struct urxe_recv *rq_keep(struct urxe_rq *rq)
{
	uint32_t ticket = rq_take_ticket(rq);
	struct urxe_kept *k = kept_at(rq_kept_set(rq), ticket);

	store_relaxed(&kept_recv(k)->ticket, ticket);
	k->pos = rq->prod;
	store_relaxed(&k->out, true);
	return kept_recv(k);
}

static inline int __attribute__((always_inline))
rq_push(struct urxe_rq *rq, const struct ibv_recv_wr *wr)
{
	struct urxe_recv *slot = rq_slot(rq, rq->prod), *r = slot;
	const struct ibv_sge *sge = wr->sg_list;
	int i;

	if (rq->prod - load_acquire(&rq->tail) >= rq->max_wr)
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	if (rq_kept_set(rq))
		r = rq_keep(rq);
	store_relaxed(&r->wr_id, wr->wr_id);
	store_relaxed(&r->num_sge, wr->num_sge);
	for (i = 0; i < wr->num_sge; i++, sge++)
		recv_sge_set(
			&r->sge[i],
			(struct urxe_sge){ sge->addr, sge->length, sge->lkey });
	if (r != slot)
		recv_copy(slot, r);
	rq->prod++;
	return 0;
}

void rq_repost(struct urxe_rq *rq, struct urxe_kept *k)
{
	recv_copy(rq_slot(rq, rq->prod), kept_recv(k));
	k->pos = rq->prod++;
	/* the old position is released as if it had been polled */
	fetch_add_relaxed(&rq->tail, 1);
	store_seq_cst(&rq->sh->prod, rq->prod);
}

/*
 * Return whether the QP is in RESET. rq->lock is held, which rq_reset() needs
 * as well.
 */
static bool rq_is_reset(const struct urxe_qp *qp)
{
	return qp && qp_state(qp) == IBV_QPS_RESET;
}

static inline int __attribute__((always_inline))
rq_append(struct urxe_rq *rq, const struct urxe_qp *qp, struct ibv_recv_wr *wr,
	  struct ibv_recv_wr **bad)
{
	int ret = 0;

	urxe_lock(&rq->lock);
	for (; wr; wr = wr->next) {
		ret = unlikely(rq_is_reset(qp)) ? EINVAL : rq_push(rq, wr);
		if (ret) {
			*bad = wr;
			break;
		}
	}
	store_seq_cst(&rq->sh->prod, rq->prod);
	urxe_unlock(&rq->lock);
	return ret;
}

/*
 * *@bad was not posted, because of @ret.  Post it and the WRs after it if
 * receives can be recovered; otherwise log the reason.
 */
static int __attribute__((cold, noinline))
rq_refuse(struct urxe_context *ctx, struct urxe_rq *rq,
	  const struct urxe_qp *qp, struct ibv_recv_wr **bad, int ret)
{
	const char *verb = qp ? "ibv_post_recv" : "ibv_post_srq_recv";

	if (ret == ENOMEM && rq_kept_set(rq) && rq_recover_now(ctx, true))
		ret = rq_append(rq, qp, *bad, bad);
	if (!ret)
		return 0;
	if (ret == ENOMEM) {
		fetch_add_relaxed(&urxe_tally.full, 1);
		urxe_why("%s: the queue is full (max_wr %u)", verb, rq->max_wr);
	} else if (rq_is_reset(qp)) {
		urxe_why("ibv_post_recv: QP 0x%x is in RESET, not yet in INIT",
			 qp->qpn);
	} else {
		urxe_why("%s: %d SGEs, but max_sge is %u", verb,
			 (*bad)->num_sge, rq->max_sge);
	}
	errno = ret;
	return ret;
}

static inline int __attribute__((always_inline))
rq_post_list(struct urxe_context *ctx, struct urxe_rq *rq,
	     const struct urxe_qp *qp, struct ibv_recv_wr *wr,
	     struct ibv_recv_wr **bad)
{
	int ret;

	if (rq_kept_set(rq) && rq_needs_recovery(ctx))
		rq_recover_now(ctx, false);
	ret = rq_append(rq, qp, wr, bad);
	return likely(!ret) ? 0 : rq_refuse(ctx, rq, qp, bad, ret);
}

int rq_post(struct urxe_context *ctx, struct urxe_rq *rq,
	    const struct urxe_qp *qp, struct ibv_recv_wr *wr,
	    struct ibv_recv_wr **bad)
{
	return rq_post_list(ctx, rq, qp, wr, bad);
}

void rq_wake_waiter(struct urxe_qp *qp)
{
	uint32_t who = exchange_seq_cst(&qp->sh->rq.waiter, 0);

	if (who)
		service_wake_slot(qp->ctx->fabric, who - 1);
}

/* It has an SRQ or is of type XRC. */
static int __attribute__((cold, noinline))
rq_is_missing(const struct urxe_qp *qp)
{
	urxe_why(
		"ibv_post_recv: QP 0x%x has no receive queue: the QP has an SRQ, or is an XRC QP",
		qp->qpn);
	errno = EINVAL;
	return EINVAL;
}

static void __attribute__((cold, noinline)) rq_flush_posted(struct urxe_qp *qp)
{
	urxe_lock(&qp->lock);
	flush_qp(qp);
	urxe_unlock(&qp->lock);
}

int rq_post_recv(struct urxe_qp *qp, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad)
{
	int ret;

	if (unlikely(!qp->rq.sh)) {
		*bad = wr;
		return rq_is_missing(qp);
	}
	ret = rq_post_list(qp->ctx, &qp->rq, qp, wr, bad);
	if (unlikely(load_seq_cst(&qp->sh->rq.waiter)))
		rq_wake_waiter(qp);
	if (unlikely(qp_state(qp) == IBV_QPS_ERR))
		rq_flush_posted(qp);
	return ret;
}

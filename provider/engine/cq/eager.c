// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Eager buffers: allocation and return.  See eager.h. */
#include "cq_scan.h"
#include "eager.h"
#include "engine/run/quiesce.h"

/* Buffers of a context: 2 MiB */
#define EAGER_BUFFERS 4
/* A buffer that is not used for this time, in ns, is freed. */
#define EAGER_IDLE_NS 1000000000ull

void eager_want(struct urxe_cq_view *v)
{
	if (load_relaxed(&v->sh->eager_wanted) != EAGER_NOT_WANTED)
		return;
	store_relaxed(&v->sh->eager_wanted, EAGER_WANTED);
	/* for the next poll; an event follows with the message */
	store_release(&v->sh->attention, 1);
}

/* Processes of a fork may do this at the same time. */
void eager_provide_slow(struct urxe_cq *cq)
{
	struct urxe_context *ctx = cq->ctx;
	uint64_t at = 0, none = 0;

	store_relaxed(&cq->sh->eager_wanted, EAGER_TRIED);
	if (load_relaxed(&cq->sh->eager_base))
		return;
	if (fetch_add_relaxed(&ctx->eager_buffers, 1) < EAGER_BUFFERS)
		at = arena_alloc(ctx->arena, ctx->cmd_fd, URXE_EAGER_SIZE);
	if (!at)
		goto err_count;
	if (!cas_acq_rel(&cq->sh->eager_base, &none, at))
		goto err_free;
	cq->eager_counted = true;
	store_relaxed(&cq->eager_used, true);
	store_seq_cst(&cq->sh->eager, at);
	return;

err_free:
	arena_free(ctx->arena, ctx->cmd_fd, at, URXE_EAGER_SIZE);
err_count:
	fetch_sub_relaxed(&ctx->eager_buffers, 1);
}

void eager_suspend(struct urxe_cq *cq)
{
	store_seq_cst(&cq->sh->eager, 0);
}

void eager_resume(struct urxe_cq *cq)
{
	store_seq_cst(&cq->sh->eager, load_relaxed(&cq->sh->eager_base));
}

void eager_free(struct urxe_cq *cq)
{
	const uint64_t at = exchange_relaxed(&cq->sh->eager_base, 0);
	struct urxe_context *ctx = cq->ctx;

	if (!at)
		return;
	if (eager_fits(at))
		arena_free(ctx->arena, ctx->cmd_fd, at, URXE_EAGER_SIZE);
	if (cq->eager_counted)
		fetch_sub_relaxed(&ctx->eager_buffers, 1);
	cq->eager_counted = false;
	store_relaxed(&cq->sh->eager_wanted, EAGER_NOT_WANTED);
}

/*
 * Free the buffer if no entry of the ring uses it: positions are claimed in
 * order, and the one at head is not claimed.  The gate is locked.
 */
static void eager_try_free(struct urxe_cq *cq)
{
	struct urxe_context *ctx = cq->ctx;
	const struct guard_object o = { GUARD_OF_CQ, ctx->slot, cq->index, 0 };
	const _Atomic uint64_t *claim =
		&cq->ring.claim[cq->head & cq->ring.mask];

	eager_suspend(cq);
	if (quiesce_try(ctx->fabric, ctx->arena, &o) &&
	    !cq_ring_is_claimed(load_acquire(claim), cq->head))
		eager_free(cq);
	eager_resume(cq);
}

void eager_return(struct urxe_context *ctx, uint64_t now)
{
	struct urxe_cq *cq;

	for (cq = ctx->cqs; cq; cq = cq->next) {
		if (likely(!load_relaxed(&cq->sh->eager))) {
			if (load_relaxed(&cq->sh->eager_wanted) == EAGER_TRIED)
				store_relaxed(&cq->sh->eager_wanted,
					      EAGER_NOT_WANTED);
			continue;
		}
		if (exchange_relaxed(&cq->eager_used, false)) {
			cq->eager_idle_at = now + EAGER_IDLE_NS;
			continue;
		}
		/* another process of a fork may poll, too */
		if (now < cq->eager_idle_at || load_relaxed(&cq->forked) ||
		    !gate_trylock(&cq->gate))
			continue;
		eager_try_free(cq);
		gate_unlock(&cq->gate);
	}
}

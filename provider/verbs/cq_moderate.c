// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>

#include "base/clock.h"
#include "cq_moderate.h"
#include "engine/retry.h"

static uint32_t limits(const struct urxe_cq_sh *sh)
{
	return atomic_load_explicit(&sh->moderate, memory_order_relaxed);
}

int urxe_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	const struct ibv_moderate_cq *m = &attr->moderate;
	struct urxe_cq *cq = to_ucq(ibcq);

	if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return EINVAL;
	if (!(attr->attr_mask & IBV_CQ_ATTR_MODERATE))
		return 0;
	atomic_store_explicit(&cq->sh->moderate,
			      (uint32_t)m->cq_period << 16 | m->cq_count,
			      memory_order_relaxed);
	/* what waits now waits by the old limits no more */
	if (atomic_load_explicit(&cq->sh->held_back, memory_order_relaxed))
		cq_fire(&cq->view, true);
	if (m->cq_period)
		service_need(cq->ctx);
	return 0;
}

bool cq_hold_back(struct urxe_cq_view *v)
{
	uint32_t m = limits(v->sh), n;

	if (!m)
		return false;
	n = atomic_fetch_add_explicit(&v->sh->held_back, 1,
				      memory_order_relaxed) + 1;
	if ((m & 0xffff) && n >= (m & 0xffff))
		return false;
	if (n == 1 && m >> 16)
		service_wake(v->arena);
	return true;
}

void cq_hold_reset(struct urxe_cq *cq)
{
	if (!limits(cq->sh))
		return;
	atomic_store_explicit(&cq->sh->held_back, 0, memory_order_relaxed);
	if (!cq->ctx->service)
		service_need(cq->ctx); /* a forked child has none */
}

uint64_t cq_hold_expire(struct urxe_context *ctx)
{
	uint64_t now = 0, next = UINT64_MAX;
	struct urxe_cq *cq;
	uint32_t m;

	pthread_mutex_lock(&ctx->lock);
	for (cq = ctx->cqs; cq; cq = cq->next) {
		m = limits(cq->sh);
		if (!(m >> 16))
			continue;
		if (!atomic_load_explicit(&cq->sh->held_back,
					  memory_order_relaxed)) {
			cq->hold_until = 0;
			continue;
		}
		if (!now)
			now = clock_now();
		if (!cq->hold_until)
			cq->hold_until = now + (m >> 16) * 1000ull;
		if (now >= cq->hold_until) {
			cq->hold_until = 0;
			atomic_store_explicit(&cq->sh->held_back, 0,
					      memory_order_relaxed);
			cq_fire(&cq->view, true);
		} else if (cq->hold_until < next) {
			next = cq->hold_until;
		}
	}
	pthread_mutex_unlock(&ctx->lock);
	return next;
}

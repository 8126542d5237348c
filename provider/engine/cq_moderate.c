// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "base/clock.h"
#include "cq_moderate.h"
#include "peer.h"
#include "service.h"

static uint32_t limits(const struct urxe_cq_sh *sh)
{
	return atomic_load_explicit(&sh->moderate, memory_order_relaxed);
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
		service_wake(v->peer->arena);
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

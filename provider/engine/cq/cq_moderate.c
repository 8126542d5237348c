// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * CQ moderation (ibv_modify_cq): holding back the events of an armed CQ until
 * cq_count completions are there or cq_period has passed, see cq_moderate.h.
 *
 * The producer, or the owner that arms, calls cq_hold_back() before it raises
 * an event; true: not yet.  The owner that arms calls cq_hold_reset().  If
 * there is a period, the first completion that is held back wakes the service
 * thread of the owner, which calls cq_hold_expire().
 */
#include "base/clock.h"
#include "cq_moderate.h"
#include "engine/mem/peer.h"
#include "engine/run/service.h"

bool cq_hold_back(struct urxe_cq_view *v)
{
	uint32_t m = cq_limits(v->sh), n;

	if (!m)
		return false;
	n = fetch_add_relaxed(&v->sh->held_back, 1) + 1;
	if (URXE_MODERATE_COUNT(m) && n >= URXE_MODERATE_COUNT(m))
		return false;
	if (n == 1 && URXE_MODERATE_US(m))
		service_wake(v->peer->arena);
	return true;
}

void cq_hold_reset(struct urxe_cq *cq)
{
	if (cq_limits(cq->sh))
		store_relaxed(&cq->sh->held_back, 0);
}

uint64_t cq_hold_expire(struct urxe_context *ctx)
{
	uint64_t now = 0, next = UINT64_MAX;
	struct urxe_cq *cq;
	uint32_t m;

	pthread_mutex_lock(&ctx->lock);
	for (cq = ctx->cqs; cq; cq = cq->next) {
		m = cq_limits(cq->sh);
		if (!URXE_MODERATE_US(m))
			continue;
		if (!load_relaxed(&cq->sh->held_back)) {
			cq->hold_until = 0;
			continue;
		}
		if (!now)
			now = clock_now();
		if (!cq->hold_until)
			cq->hold_until = now + URXE_MODERATE_US(m) * 1000ull;
		if (now >= cq->hold_until) {
			cq->hold_until = 0;
			store_relaxed(&cq->sh->held_back, 0);
			cq_fire(&cq->view, true);
		} else if (cq->hold_until < next) {
			next = cq->hold_until;
		}
	}
	pthread_mutex_unlock(&ctx->lock);
	return next;
}

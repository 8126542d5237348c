// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A round of the service thread: all work that is due in a context. See
 * run/service.c for when rounds run.
 *
 *   - IB timers and transports (retry.c),
 *   - this context's guards, if a destroyer requests it (qp_check_guard()),
 *   - events that peers could not raise, and held events of moderated CQs
 *     (event.c, cq_moderate.c),
 *   - peers that died, and files that are not needed any more (peer.c),
 *   - lost receives (rq_recover.c), eager buffers that are not used.
 */
#include "base/clock.h"
#include "engine/cq/cq_moderate.h"
#include "engine/cq/eager.h"
#include "engine/cq/event.h"
#include "engine/mem/peer.h"
#include "engine/qp/qp.h"
#include "retry.h"
#include "round.h"
#include "engine/qp/rq.h"

/*
 * Interval in ns of liveness checks if a peer cannot be watched, or a process
 * has died.
 */
#define LIVENESS_CHECK_NS 100000000ull
/* Interval in ns of liveness checks if all peers are watched. */
#define LIVENESS_RECHECK_NS EVENT_COUNT_NAP

/*
 * Verify this context's guards. A destroyer in another process requested it
 * after it had waited long for one.
 */
static void round_check_guards(struct urxe_context *ctx)
{
	struct urxe_qp *qp;
	uint32_t i;

	if (!load_relaxed(&ctx->arena->check_guards))
		return;
	store_relaxed(&ctx->arena->check_guards, 0);
	pthread_mutex_lock(&ctx->lock);
	for (i = 0; i < URXE_MAX_QP; i++) {
		qp = context_qp(ctx, i);
		if (qp)
			qp_check_guard(qp);
	}
	pthread_mutex_unlock(&ctx->lock);
}

/* Return the interval of liveness checks in ns. */
static uint64_t round_period(const struct urxe_context *ctx, bool woken)
{
	return woken && !rq_needs_recovery(ctx) ? LIVENESS_RECHECK_NS :
						  LIVENESS_CHECK_NS;
}

uint64_t round_run(struct urxe_context *ctx, uint64_t *liveness, bool woken)
{
	uint64_t next = retry_all(ctx), held, kept, now;

	round_check_guards(ctx);
	kept = event_resend(ctx);
	if (kept < next)
		next = kept;
	held = cq_hold_expire(ctx);
	if (held < next)
		next = held;
	now = clock_now();
	if (*liveness > now + round_period(ctx, woken))
		*liveness = now + round_period(ctx, woken);
	if (now >= *liveness || load_relaxed(&ctx->arena->files_unused)) {
		exchange_acq_rel(&ctx->arena->files_unused, 0);
		peers_check();
		pthread_mutex_lock(&ctx->lock);
		rq_recover(ctx);
		eager_return(ctx, now);
		pthread_mutex_unlock(&ctx->lock);
		*liveness = now + round_period(ctx, woken);
	}
	if (peer_any_foreign() && *liveness < next)
		next = *liveness;
	return next;
}

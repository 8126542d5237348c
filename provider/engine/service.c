// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A context's service thread.  It is started when something was parked or a
 * foreign context was met, sleeps on the futex in the arena, and has two
 * jobs: the IB timers (retry.c), and looking now and then whether the peers
 * whose memory we have mapped are still alive.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "cq_moderate.h"
#include "peer.h"
#include "retry.h"
#include "rq.h"
#include "service.h"

/* A dead peer is noticed within this time even if nothing is parked. */
#define LIFE_CHECK_NS 100000000ull

/* When it looks again if need be: who holds up a flush is about to leave. */
#define AGAIN_NS 50000

struct urxe_service {
	pthread_t thread;
	struct urxe_context *ctx;
	_Atomic bool stop;
};

void service_wake(struct urxe_arena *a)
{
	event_count_ring(&a->wake);
}

void service_wake_slot(struct urxe_fabric *f, uint32_t slot)
{
	struct urxe_peer *p;

	if (slot >= URXE_MAX_CTX)
		return;
	p = peer_get(f, slot, load_relaxed(&f->dev->ctx[slot].gen));
	if (!p)
		return;
	service_wake(p->arena);
	peer_put(p);
}

/* The context whose service thread this is. */
static _Thread_local struct urxe_context *serving;
/* Another round is needed: maybe for a QP that this one had passed. */
static _Thread_local bool again;

static void *service_main(void *arg)
{
	struct urxe_service *s = arg;
	struct urxe_context *ctx = s->ctx;
	struct event_count *wake = &ctx->arena->wake;
	uint64_t now, next, held, life = 0;
	uint32_t seen;

	serving = ctx;
	for (;;) {
		seen = event_count_read(wake);
		if (load_acquire(&s->stop))
			return NULL;
		again = false;
		next = retry_all(ctx);
		held = cq_hold_expire(ctx);
		if (held < next)
			next = held;
		now = clock_now();
		if (now >= life) {
			peer_look_after();
			pthread_mutex_lock(&ctx->lock);
			rq_recover(ctx);
			pthread_mutex_unlock(&ctx->lock);
			life = now + LIFE_CHECK_NS;
		}
		if (peer_any_foreign() && life < next)
			next = life;
		if (again && next > now + AGAIN_NS)
			next = now + AGAIN_NS;
		if (next > now)
			event_count_wait(wake, seen,
					 next - now < EVENT_COUNT_NAP ?
						 next - now :
						 EVENT_COUNT_NAP);
	}
}

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;

void service_after_fork(struct urxe_context *ctx)
{
	pthread_mutex_init(&start_lock, NULL);
	ctx->service = NULL;
}

void service_need(struct urxe_context *ctx)
{
	struct urxe_service *s;

	if (serving == ctx) {
		again = true;
		return;
	}
	pthread_mutex_lock(&start_lock);
	if (ctx->service) {
		service_wake(ctx->arena);
	} else if ((s = calloc(1, sizeof(*s)))) {
		s->ctx = ctx;
		if (thread_start(&s->thread, service_main, s))
			ctx->service = s;
		else
			free(s);
	}
	pthread_mutex_unlock(&start_lock);
}

void service_stop(struct urxe_context *ctx)
{
	struct urxe_service *s = ctx->service;

	if (!s)
		return;
	store_release(&s->stop, true);
	service_wake(ctx->arena);
	pthread_join(s->thread, NULL);
	ctx->service = NULL;
	free(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A context's service thread.  It is started when something was parked, a
 * foreign context was met or a CQ is armed, sleeps on the futex in the arena,
 * and has three jobs: the IB timers (retry.c), events that peers could not
 * raise (event.c), and looking now and then whether the peers whose memory we
 * have mapped are still alive.
 *
 * If no thread can be made, those who poll do its work (service_stand_in), and
 * who wants to sleep (ibv_req_notify_cq) gets an error.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/thread.h"
#include "cq_moderate.h"
#include "event.h"
#include "log.h"
#include "peer.h"
#include "qp.h"
#include "retry.h"
#include "rq.h"
#include "service.h"
#include "shared/bitmap.h"

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

static struct urxe_peer *service_of_slot(struct urxe_fabric *f, uint32_t slot)
{
	if (slot >= URXE_MAX_CTX)
		return NULL;
	return peer_get(f, slot, load_relaxed(&f->dev->ctx[slot].gen));
}

void service_wake_slot(struct urxe_fabric *f, uint32_t slot)
{
	struct urxe_peer *p = service_of_slot(f, slot);

	if (!p)
		return;
	service_wake(p->arena);
	peer_put(p);
}

void service_ask_guards(struct urxe_fabric *f, uint32_t slot)
{
	struct urxe_peer *p = service_of_slot(f, slot);

	if (!p)
		return;
	store_release(&p->arena->check_guards, 1);
	service_wake(p->arena);
	peer_put(p);
}

/* Somebody has waited long for one of our guards. */
static void service_check_guards(struct urxe_context *ctx)
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

/* The context whose service thread this is. */
static thread_own struct urxe_context *serving;
/* Another round is needed: maybe for a QP that this one had passed. */
static thread_own bool again;

/*
 * What there is to do.  Returns when to come again, UINT64_MAX for never; *life
 * is when peers' lives are looked at.
 */
static uint64_t service_round(struct urxe_context *ctx, uint64_t *life)
{
	uint64_t next = retry_all(ctx), held, kept, now;

	service_check_guards(ctx);
	kept = event_resend(ctx);
	if (kept < next)
		next = kept;
	held = cq_hold_expire(ctx);
	if (held < next)
		next = held;
	now = clock_now();
	if (now >= *life) {
		peer_look_after();
		pthread_mutex_lock(&ctx->lock);
		rq_recover(ctx);
		pthread_mutex_unlock(&ctx->lock);
		*life = now + LIFE_CHECK_NS;
	}
	if (peer_any_foreign() && *life < next)
		next = *life;
	return next;
}

static void *service_main(void *arg)
{
	struct urxe_service *s = arg;
	struct urxe_context *ctx = s->ctx;
	struct event_count *wake = &ctx->arena->wake;
	uint64_t now, next, life = 0;
	uint32_t seen;

	serving = ctx;
	for (;;) {
		seen = event_count_read(wake);
		if (load_acquire(&s->stop))
			return NULL;
		again = false;
		next = service_round(ctx, &life);
		now = clock_now();
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
	store_relaxed(&ctx->service, NULL);
}

static struct urxe_service *service_start(struct urxe_context *ctx)
{
	struct urxe_service *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ctx = ctx;
	if (thread_start(&s->thread, service_main, s))
		return s;
	free(s);
	return NULL;
}

/* All who poll come by. */
static void service_ask_pollers(struct urxe_context *ctx)
{
	struct urxe_arena *a = ctx->arena;
	uint32_t i;

	store_release(&ctx->unserved, true);
	for (i = 0; i < URXE_MAX_CQ; i++)
		if (bitmap_test(a->cq_map, i) && load_relaxed(&a->cq[i].live))
			store_release(&a->cq[i].attention, 1);
}

bool service_is_me(void)
{
	return serving;
}

bool service_need(struct urxe_context *ctx)
{
	struct urxe_service *s;

	if (serving == ctx) {
		again = true;
		return true;
	}
	pthread_mutex_lock(&start_lock);
	s = load_relaxed(&ctx->service);
	if (s) {
		service_wake(ctx->arena);
	} else {
		s = service_start(ctx);
		store_release(&ctx->service, s);
		if (s)
			store_relaxed(&ctx->unserved, false);
	}
	pthread_mutex_unlock(&start_lock);
	if (!s && !load_relaxed(&ctx->unserved)) {
		urxe_why("no thread can be made: timers run, and dead peers are noticed, only while the program polls");
		service_ask_pollers(ctx);
	}
	return s;
}

void service_stand_in(struct urxe_context *ctx, struct urxe_cq_sh *polled)
{
	uint64_t life = load_relaxed(&ctx->life_at), now = clock_now(), next;

	if (now >= life && service_need(ctx))
		return; /* there is one now */
	if (now >= load_relaxed(&ctx->round_at)) {
		next = service_round(ctx, &life);
		store_relaxed(&ctx->life_at, life);
		store_relaxed(&ctx->round_at, next < life ? next : life);
	}
	store_release(&polled->attention, 1);
}

void service_stop(struct urxe_context *ctx)
{
	struct urxe_service *s = load_relaxed(&ctx->service);

	if (!s)
		return;
	store_release(&s->stop, true);
	service_wake(ctx->arena);
	pthread_join(s->thread, NULL);
	store_relaxed(&ctx->service, NULL);
	free(s);
}

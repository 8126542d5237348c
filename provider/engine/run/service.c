// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The service thread of a context. service_need() starts it, for example when
 * a send queue is parked, a peer's context is mapped or a CQ is armed. It
 * sleeps on a futex in the arena (arena->wake). In each round it does the work
 * that is due (ctx->round, exec/round.c).
 *
 * The exit of a peer process wakes the thread (peer_watch). While a peer
 * cannot be watched, or a death has not been handled, the thread checks the
 * peers every 100 ms. A missed wake-up, because the process
 * that had to pass it on was killed too or because memory was damaged, is
 * found by a check every few seconds.
 *
 * If no thread can be created, pollers run its rounds (service_run_by_poller),
 * and ibv_req_notify_cq fails.
 *
 * Memory order of service_need_by(): the thread stores service_at =
 * UINT64_MAX and executes a fence before its round. The caller makes its work
 * visible and executes a fence before it loads service_at. So either the
 * round sees the work, or the caller sees UINT64_MAX and wakes the thread
 * (Dekker).
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/thread.h"
#include "engine/copy/nofault.h"
#include "engine/core/log.h"
#include "engine/mem/peer.h"
#include "service.h"
#include "shared/bitmap.h"

/*
 * Delay in ns before the next round if this one was incomplete, for example
 * because a requester prevented a flush.
 */
#define REPEAT_NS 50000

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

void service_request_guard_check(struct urxe_fabric *f, uint32_t slot)
{
	struct urxe_peer *p = service_of_slot(f, slot);

	if (!p)
		return;
	store_release(&p->arena->check_guards, 1);
	service_wake(p->arena);
	peer_put(p);
}

bool service_request_unmap(struct urxe_fabric *f, uint32_t slot)
{
	struct urxe_peer *p = service_of_slot(f, slot);

	if (!p)
		return false;
	store_release(&p->arena->files_unused, 1);
	service_wake(p->arena);
	peer_put(p);
	return true;
}

/* The context that this service thread serves, else NULL. */
static thread_own struct urxe_context *serving;
/*
 * Set if another round is needed, for example for a QP that this round has
 * already passed.
 */
static thread_own bool repeat_round;

/*
 * Collect the futex words to sleep on: those of the peers, and
 * dev->recover_gen. Also make this thread show that its process is alive, if
 * the thread that did so has exited.
 */
static bool service_watch(struct urxe_context *ctx, struct peer_watch *w)
{
	struct urxe_fabric *f = ctx->fabric;
	/* load before the round that handles them; ctx->recovered_gen lags */
	uint32_t recover_gen = load_acquire(&f->dev->recover_gen);

	process_publish_liveness(f);
	if (!peer_watch(w))
		return false;
	w->word[w->n++] =
		(struct futex_word){ &f->dev->recover_gen, recover_gen };
	return true;
}

/*
 * Mark the thread awake. Work that is created from now on may be missed by
 * this round; see the memory order above.
 */
static void service_awake(struct urxe_context *ctx)
{
	store_seq_cst(&ctx->service_at, UINT64_MAX);
	atomic_thread_fence(memory_order_seq_cst);
}

static void *service_main(void *arg)
{
	struct urxe_service *s = arg;
	struct urxe_context *ctx = s->ctx;
	struct event_count *wake = &ctx->arena->wake;
	uint64_t now, next, due, liveness = 0;
	struct peer_watch watch;
	uint32_t seen;
	bool woken;

	nofault_begin_thread();
	serving = ctx;
	for (;;) {
		service_awake(ctx);
		seen = event_count_read(wake);
		if (load_acquire(&s->stop))
			return NULL;
		repeat_round = false;
		woken = service_watch(ctx, &watch);
		next = ctx->round(ctx, &liveness, woken);
		now = clock_now();
		if (repeat_round && next > now + REPEAT_NS)
			next = now + REPEAT_NS;
		if (next > now + EVENT_COUNT_NAP)
			next = now + EVENT_COUNT_NAP;
		due = load_relaxed(&ctx->service_due);
		if (due > now && due < next)
			next = due;
		store_seq_cst(&ctx->service_at, next);
		if (next > now)
			event_count_wait_words(wake, seen, watch.word, watch.n,
					       next - now);
		if (woken)
			process_wake_others(watch.word, watch.n - 1);
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
	service_awake(ctx);
	if (thread_start(&s->thread, service_main, s))
		return s;
	free(s);
	return NULL;
}

/* Make all pollers of the context call service_run_by_poller(). */
static void service_notify_pollers(struct urxe_context *ctx)
{
	struct urxe_arena *a = ctx->arena;
	uint32_t i;

	store_release(&ctx->no_service_thread, true);
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
		repeat_round = true;
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
			store_relaxed(&ctx->no_service_thread, false);
	}
	pthread_mutex_unlock(&start_lock);
	if (!s && !load_relaxed(&ctx->no_service_thread)) {
		urxe_note(
			"the service thread cannot be created: timers run, and dead peers are detected, only while the program polls");
		service_notify_pollers(ctx);
	}
	return s;
}

bool service_need_by(struct urxe_context *ctx, uint64_t at)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (load_acquire(&ctx->service) && load_seq_cst(&ctx->service_at) <= at)
		return true;
	store_relaxed(&ctx->service_due, at);
	return service_need(ctx);
}

void service_run_by_poller(struct urxe_context *ctx, struct urxe_cq_sh *polled)
{
	uint64_t liveness = load_relaxed(&ctx->liveness_at), now = clock_now(),
		 next;

	if (now >= liveness && service_need(ctx))
		return; /* a thread was created */
	if (now >= load_relaxed(&ctx->round_at)) {
		next = ctx->round(ctx, &liveness, false);
		store_relaxed(&ctx->liveness_at, liveness);
		store_relaxed(&ctx->round_at,
			      next < liveness ? next : liveness);
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

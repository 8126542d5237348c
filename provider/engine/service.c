// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A context's service thread.  It is started when something was parked or a
 * foreign context was met, sleeps on the futex in the arena, and has two
 * jobs: the IB timers (retry.c), and looking now and then whether the peers
 * whose memory we have mapped are still alive.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "verbs/cq_moderate.h"
#include "peer.h"
#include "retry.h"
#include "rq.h"

/* A dead peer is noticed within this time even if nothing is parked. */
#define LIFE_CHECK_NS 100000000ull

struct urxe_service {
	pthread_t thread;
	struct urxe_context *ctx;
	_Atomic bool stop;
};

static void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000),
			       .tv_nsec = (long)(ns % 1000000000) };

	syscall(SYS_futex, word, FUTEX_WAIT, value,
		ns == UINT64_MAX ? NULL : &ts, NULL, 0);
}

void service_wake(struct urxe_arena *a)
{
	atomic_fetch_add_explicit(&a->wake, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&a->sleepers, memory_order_seq_cst))
		syscall(SYS_futex, &a->wake, FUTEX_WAKE, INT_MAX, NULL, NULL,
			0);
}

void service_wake_slot(struct urxe_fabric *f, uint32_t slot)
{
	struct urxe_peer *p;

	if (slot >= URXE_MAX_CTX)
		return;
	p = peer_get(f, slot, atomic_load_explicit(&f->dev->ctx[slot].gen,
						   memory_order_relaxed));
	if (!p)
		return;
	service_wake(p->arena);
	peer_put(p);
}

/* The context whose service thread this is. */
static _Thread_local struct urxe_context *serving;

static void *service_main(void *arg)
{
	struct urxe_service *s = arg;
	struct urxe_context *ctx = s->ctx;
	_Atomic uint32_t *wake = &ctx->arena->wake;
	uint64_t now, next, held, life = 0;
	uint32_t seen;

	serving = ctx;
	while (!atomic_load_explicit(&s->stop, memory_order_acquire)) {
		atomic_fetch_add_explicit(&ctx->arena->sleepers, 1,
					  memory_order_seq_cst);
		seen = atomic_load_explicit(wake, memory_order_seq_cst);
		next = retry_all(ctx);
		held = cq_hold_expire(ctx);
		if (held < next)
			next = held;
		now = urxe_now();
		if (now >= life) {
			peer_bury_dead();
			pthread_mutex_lock(&ctx->lock);
			rq_recover(ctx);
			pthread_mutex_unlock(&ctx->lock);
			life = now + LIFE_CHECK_NS;
		}
		if (peer_any_foreign() && life < next)
			next = life;
		if (!atomic_load_explicit(&s->stop, memory_order_acquire) &&
		    next > now)
			futex_wait(wake, seen,
				   next == UINT64_MAX ? next : next - now);
		atomic_fetch_sub_explicit(&ctx->arena->sleepers, 1,
					  memory_order_seq_cst);
	}
	return NULL;
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
	sigset_t all, old;

	if (serving == ctx)
		return; /* it looks again by itself */
	pthread_mutex_lock(&start_lock);
	if (!ctx->service && (s = calloc(1, sizeof(*s)))) {
		s->ctx = ctx;
		/* the application's signals are not ours to take */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		if (pthread_create(&s->thread, NULL, service_main, s))
			free(s);
		else
			ctx->service = s;
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		pthread_mutex_unlock(&start_lock);
		return;
	}
	pthread_mutex_unlock(&start_lock);
	service_wake(ctx->arena);
}

void service_stop(struct urxe_context *ctx)
{
	struct urxe_service *s = ctx->service;

	if (!s)
		return;
	atomic_store_explicit(&s->stop, true, memory_order_release);
	service_wake(ctx->arena);
	pthread_join(s->thread, NULL);
	ctx->service = NULL;
	free(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Events: writing completion events and async events to the FIFOs from which
 * their owner reads them, and keeping those that cannot be written; event.h.
 *
 * A producer in any process calls event_send_comp() and event_send_async(),
 * with no lock of the receiving process.  The owner of the context calls
 * event_resend(): from its service thread, when it polls, and when it fetches
 * an event.  event_drop() is called when an object is destroyed.
 *
 * If a FIFO cannot be written (-EAGAIN: it is full; or no descriptor is
 * free), the event is kept in the receiver's arena: a completion event as a
 * count in the CQ, an async event in a table (shared/kept_event.h).  If the
 * FIFO has no reader (-ENXIO), the event is dropped.  An async event is lost
 * only if the table is full; that is logged.
 *
 * event_delay_async() has all async events of a context kept for a while; the
 * adversary uses it.
 *
 * A producer keeps the event and then sets kept_events (seq_cst); the owner
 * clears it with an exchange (seq_cst) and then looks for events.  So no
 * event stays behind.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "channel.h"
#include "cq.h"
#include "event.h"
#include "engine/core/log.h"
#include "engine/mem/peer.h"
#include "engine/run/service.h"
#include "shared/bitmap.h"
#include "shared/kept_event.h"

/*
 * Have the owner of the arena write the events that are kept there: its
 * service thread if it has one, and any thread that polls one of its CQs.
 */
static void event_leave(struct urxe_peer *p)
{
	struct urxe_arena *a = p->arena;
	uint32_t i;

	store_seq_cst(&a->kept_events, 1);
	for (i = 0; i < URXE_MAX_CQ; i++)
		if (bitmap_test(a->cq_map, i) && load_relaxed(&a->cq[i].live))
			store_release(&a->cq[i].attention, 1);
	service_wake(a);
}

/* ------------------------------------------------------- of a CQ */

/* 0: the event was written, or the FIFO has no reader.  Else -errno. */
static int event_try_comp(struct urxe_cq_view *v)
{
	int ret = v->channel ? channel_send(v->channel, v->sh->tag) : -ENOMEM;

	if (!ret)
		fetch_add_release(&v->sh->comp_events, 1);
	return ret == -ENXIO ? 0 : ret;
}

void event_send_comp(struct urxe_cq_view *v)
{
	int ret = event_try_comp(v);

	if (!ret)
		return;
	fetch_add_release(&v->sh->pending_events, 1);
	if (ret == -EAGAIN) { /* its reader writes it later */
		store_seq_cst(&v->peer->arena->kept_events, 1);
		return;
	}
	urxe_note("completion event delayed: %s", strerror(-ret));
	event_leave(v->peer);
}

/*
 * A FIFO has room for fewer events, and each thread that reads one calls
 * event_resend().  A larger count is replaced by 1.
 */
#define PENDING_MAX 65536

/* Write the CQ's pending events.  False: some are left. */
static bool event_resend_comp(struct urxe_cq_view *v)
{
	uint32_t n = exchange_acq_rel(&v->sh->pending_events, 0);

	if (unlikely(n > PENDING_MAX))
		n = 1;
	while (n && !event_try_comp(v))
		n--;
	if (n)
		fetch_add_relaxed(&v->sh->pending_events, n);
	return !n;
}

static bool event_resend_cqs(struct urxe_context *ctx)
{
	struct urxe_arena *a = ctx->arena;
	struct urxe_cq_view v;
	bool all = true;
	uint32_t i;

	/* also CQs of other processes that share this context */
	for (i = 0; i < URXE_MAX_CQ; i++) {
		if (!bitmap_test(a->cq_map, i) ||
		    !load_relaxed(&a->cq[i].pending_events) ||
		    !cq_view_init(&v, ctx->self, i))
			continue;
		all &= event_resend_comp(&v);
		cq_view_fini(&v);
	}
	return all;
}

/* ------------------------------------------------------- asynchronous */

void event_send_async(struct urxe_peer *peer, uint32_t fifo, uint64_t element,
		      enum ibv_event_type type)
{
	struct urxe_arena *a = peer->arena;
	const bool once = element != 1; /* 1: the port or device */
	int ret;

	if (unlikely(load_relaxed(&a->keeps_async)) &&
	    kept_event_put(a->kept, fifo, element, type, once)) {
		event_leave(peer);
		return;
	}
	ret = fifo_send_async(peer->fabric, peer->slot, peer->gen, fifo,
			      element, type);
	if (!ret || ret == -ENXIO)
		return;
	urxe_note("async event %d delayed: %s", (int)type,
		  ret == -EAGAIN ? "the FIFO is full" : strerror(-ret));
	if (kept_event_put(peer->arena->kept, fifo, element, type, once))
		event_leave(peer);
	else
		urxe_note("async event %d lost: too many events are unread",
			  (int)type);
}

/*
 * Write the async events that are kept; false: some are left.  ctx->lock is
 * held, so event_drop() finds an event in the table or in the FIFO.
 */
static bool event_resend_kept(struct urxe_context *ctx)
{
	struct urxe_peer *p = ctx->self;
	struct kept_event e;
	bool all = true;
	uint32_t i;
	int ret;

	for (i = 0; i < URXE_KEPT_EVENTS; i++) {
		if (!kept_event_take(&ctx->arena->kept[i], &e))
			continue;
		ret = fifo_send_async(p->fabric, p->slot, p->gen, e.fifo,
				      e.element, e.type);
		if (!ret || ret == -ENXIO)
			continue;
		kept_event_put(ctx->arena->kept, e.fifo, e.element, e.type,
			       false);
		all = false;
	}
	return all;
}

static bool event_resend_async(struct urxe_context *ctx)
{
	bool all;

	pthread_mutex_lock(&ctx->lock);
	all = event_resend_kept(ctx);
	pthread_mutex_unlock(&ctx->lock);
	return all;
}

void event_drop(struct urxe_context *ctx, uint64_t element)
{
	struct urxe_kept_event *k = ctx->arena->kept;
	struct kept_event e;
	uint32_t i;

	pthread_mutex_lock(&ctx->lock);
	for (i = 0; i < URXE_KEPT_EVENTS; i++, k++)
		if (load_acquire(&k->word) &&
		    load_relaxed(&k->element) == element)
			kept_event_take(k, &e);
	pthread_mutex_unlock(&ctx->lock);
}

bool event_delay_async(struct urxe_context *ctx,
		       uint64_t (*late)(struct urxe_context *ctx))
{
	/* fork() clears keeps_async for all processes of the context */
	if (load_acquire(&ctx->async_delay) &&
	    load_acquire(&ctx->arena->keeps_async))
		return true;
	if (!service_need(ctx))
		return false;
	store_release(&ctx->async_delay, late);
	store_release(&ctx->arena->keeps_async, 1);
	return true;
}

/*
 * Return when the kept events are to be written, ns; 0: at once.  The time is
 * chosen once for all events that wait.
 */
static uint64_t event_due(struct urxe_context *ctx, uint64_t now)
{
	uint64_t (*late)(struct urxe_context *) =
		load_acquire(&ctx->async_delay);
	uint64_t at = load_acquire(&ctx->async_at), mine;

	if (!late || at)
		return at;
	mine = now + late(ctx);
	return cas_acq_rel(&ctx->async_at, &at, mine) ? mine : at;
}

static bool event_any_kept(const struct urxe_context *ctx)
{
	uint32_t i;

	for (i = 0; i < URXE_KEPT_EVENTS; i++)
		if (load_acquire(&ctx->arena->kept[i].word))
			return true;
	return false;
}

uint64_t event_resend(struct urxe_context *ctx)
{
	uint64_t at = 0, now;
	bool all;

	if (likely(!load_relaxed(&ctx->arena->kept_events)))
		return UINT64_MAX;
	/* seq_cst: what was kept before the flag was set is seen */
	if (!exchange_seq_cst(&ctx->arena->kept_events, 0))
		return UINT64_MAX;
	all = event_resend_cqs(ctx);
	now = clock_now();
	if (event_any_kept(ctx))
		at = event_due(ctx, now);
	if (at > now) {
		store_seq_cst(&ctx->arena->kept_events, 1);
		return at;
	}
	store_release(&ctx->async_at, 0);
	all &= event_resend_async(ctx);
	if (!all)
		store_seq_cst(&ctx->arena->kept_events, 1);
	return UINT64_MAX;
}

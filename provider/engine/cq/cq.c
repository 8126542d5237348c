// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: the producer's side, and creating and destroying CQs.
 *
 * A CQ is a ring in shared memory with many producers, in any process, and
 * one poller.  shared/cq_ring.h has the protocol, the states of an entry and
 * the memory order.  poller.c is the poller's side, cq_resize.c replaces rings,
 * cq_arm.c has the events.
 *
 * Producers are requesters, for their own CQ and for the responder's, the
 * wire server, and the owner when it flushes.  A producer has a guard raised
 * from cq_begin() to cq_end(), so that a resize waits for it.  A CQ is
 * destroyed after its QPs and SRQs, so it has no producers then.
 *
 * If the ring is full, the CQ is broken: cq_break() raises IBV_EVENT_CQ_ERR
 * once, and no more completions are accepted.  With URXE_CQ_IGNORE_OVERRUN
 * the completion is dropped instead.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log2.h"
#include "channel.h"
#include "cq.h"
#include "cq_moderate.h"
#include "eager.h"
#include "event.h"
#include "engine/core/log.h"
#include "engine/core/observe.h"
#include "engine/mem/peer.h"
#include "engine/core/process.h"
#include "shared/bitmap.h"

/* ---------------------------------------------------------- producing */

bool cq_view_init(struct urxe_cq_view *v, struct urxe_peer *peer,
		  uint32_t index)
{
	struct cq_ring r;

	v->peer = NULL;
	if (index >= URXE_MAX_CQ)
		return false;
	v->sh = &peer->arena->cq[index];
	v->own = NULL;
	v->channel = NULL;
	if (!load_acquire(&v->sh->live) ||
	    !cq_find_ring(peer->arena, v->sh, load_relaxed(&v->sh->ring), &r))
		return false;
	v->peer = peer;
	if (v->sh->channel)
		v->channel = channel_get(peer, v->sh->channel - 1);
	return true;
}

void cq_view_fini(struct urxe_cq_view *v)
{
	if (v->channel)
		channel_put(v->channel);
	v->channel = NULL;
}

void cq_break(struct urxe_cq_view *v, const char *why)
{
	struct urxe_cq_sh *sh = v->sh;

	if (exchange_acq_rel(&sh->error, 1))
		return;
	urxe_note("CQ %u: %s; IBV_EVENT_CQ_ERR is raised",
		  (unsigned int)(sh - v->peer->arena->cq), why);
	event_raise(v->peer, sh, IBV_EVENT_CQ_ERR);
}

/*
 * The ring is full.  If overruns are ignored, let the caller fill ref->lost,
 * which is dropped; otherwise break the CQ.
 */
static bool cq_no_room(struct urxe_cq_view *v, struct urxe_cqe_ref *ref)
{
	if (v->sh->flags & URXE_CQ_IGNORE_OVERRUN) {
		ref->slot.cqe = &ref->lost;
		ref->slot.pos = load_relaxed(&v->sh->tail_hint[URXE_CQ_HINT(
			load_relaxed(&v->sh->ring))]);
		return true;
	}
	cq_break(v, "overrun: more completions than entries");
	return false;
}

static enum cq_claim cq_claim(struct urxe_cq_view *v, uint64_t word,
			      struct urxe_cqe_ref *ref)
{
	struct cq_ring r;

	if (!cq_find_ring(v->peer->arena, v->sh, word, &r))
		return CQ_MOVED; /* no valid ring */
	return cq_ring_claim(&r, cq_producer(v), &ref->slot);
}

bool cq_begin_slow(struct urxe_cq_view *v, struct urxe_cqe_ref *ref)
{
	/* seq_cst: after the guard was raised, see cq_ring.h */
	enum cq_claim got = cq_claim(v, load_seq_cst(&v->sh->ring), ref);

	/* once: a second resize waits for our guard */
	if (got == CQ_MOVED)
		got = cq_claim(v, load_relaxed(&v->sh->next_ring), ref);
	return got == CQ_FULL ? cq_no_room(v, ref) : got == CQ_CLAIMED;
}

void cq_known_forget(struct urxe_cq_known *k)
{
	static struct cq_none {
		_Atomic uint64_t claim; /* of no valid state */
		_Atomic uint32_t pos;
	} none;

	*k = (struct urxe_cq_known){
		.ring = { .claim = &none.claim,
			  .tail_hint = &none.pos,
			  .head_seen = &none.pos,
			  .head = &none.pos },
		.watched = true,
	};
}

bool cq_begin_unknown(struct urxe_cq_view *v, struct urxe_cq_known *k,
		      struct urxe_cqe_ref *ref)
{
	/* if that ring was closed meanwhile, claiming reports CQ_MOVED */
	const uint64_t word = load_seq_cst(&v->sh->ring);

	if (word != k->word) {
		cq_known_forget(k);
		if (!cq_find_ring(v->peer->arena, v->sh, word, &k->ring))
			return false;
		k->word = word;
		k->watched = v->sh->channel || v->sh->flags & URXE_CQ_TIMESTAMP;
	}
	return cq_begin(v, ref);
}

uint64_t cq_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static bool cq_is_armed(const struct urxe_cq_view *v, uint32_t arm,
			bool solicited)
{
	uint32_t kind = URXE_ARM_KIND(arm);

	return v->sh->channel && (kind == URXE_ARM_NEXT ||
				  (kind == URXE_ARM_SOLICITED && solicited));
}

void cq_fire(struct urxe_cq_view *v, bool solicited)
{
	uint32_t arm = load_seq_cst(&v->sh->arm);

	if (!cq_is_armed(v, arm, solicited))
		return;
	/* one event for each arming: of the thread whose CAS succeeds */
	if (!cas_seq_cst(&v->sh->arm, &arm, URXE_ARM_NONE))
		return;
	event_send_comp(v);
}

void cq_notify(struct urxe_cq_view *v, uint32_t pos, bool solicited)
{
	uint32_t arm = load_seq_cst(&v->sh->arm);

	if (!cq_is_armed(v, arm, solicited) || URXE_ARM_KNEW(arm, pos))
		return;
	if (v->own && cq_in_batch(v->own)) {
		v->own->batch_event = URXE_ARM_KIND(arm);
		return;
	}
	if (cq_hold_back(v))
		return;
	while (!cas_seq_cst(&v->sh->arm, &arm, URXE_ARM_NONE))
		if (!cq_is_armed(v, arm, solicited) || URXE_ARM_KNEW(arm, pos))
			return;
	event_send_comp(v);
}

static void __attribute__((cold)) cq_observe(const struct urxe_cqe_ref *ref)
{
	if (ref->slot.cqe != &ref->lost)
		observe_completion(ref->slot.cqe);
}

bool cq_publish_watched(struct urxe_cq_view *v, const struct urxe_cqe_ref *ref,
			bool *solicited)
{
	struct urxe_cqe *e = ref->slot.cqe;

	if (unlikely(urxe_observers != NULL))
		cq_observe(ref);
	if (v->sh->flags & URXE_CQ_TIMESTAMP)
		e->timestamp = cq_clock();
	if (!v->sh->channel) {
		cq_ring_publish(e, ref->slot.pos, memory_order_release);
		return false;
	}
	*solicited |= e->status != IBV_WC_SUCCESS;
	if (*solicited)
		e->wc_flags |= URXE_CQE_SOLICITED;
	cq_ring_publish(e, ref->slot.pos, memory_order_seq_cst);
	return true;
}

void cq_attention(struct urxe_cq_view *v)
{
	store_seq_cst(&v->sh->attention, 1);
	cq_fire(v, true);
}

/* ---------------------------------------------------------- life */

int cq_ring_new(struct urxe_context *ctx, uint32_t cqe, uint64_t *word)
{
	uint32_t log = log2_up(cqe);
	uint64_t offset =
		arena_alloc(ctx->arena, ctx->cmd_fd, cq_ring_bytes(log));

	if (!offset)
		return -ENOMEM;
	*word = URXE_CQ_RING(offset, log);
	return 0;
}

void cq_ring_free(struct urxe_context *ctx, uint64_t word)
{
	arena_free(ctx->arena, ctx->cmd_fd, URXE_CQ_OFFSET(word),
		   cq_ring_bytes(URXE_CQ_LOG(word)));
}

void cq_start_ring(struct urxe_cq *cq, uint64_t word)
{
	struct cq_ring r;

	if (cq_find_ring(cq->ctx->arena, cq->sh, word, &r))
		cq_ring_init(&r, 0);
}

void cq_use_ring(struct urxe_cq *cq, uint64_t word)
{
	cq->ring_word = word;
	cq_find_ring(cq->ctx->arena, cq->sh, word, &cq->ring);
	cq->head = 0;
}

/* Initialize the shared slot; `live` is stored last (release). */
static void cq_enter(struct urxe_cq *cq, const struct cq_params *p)
{
	struct urxe_cq_sh *sh = cq->sh;

	memset(sh, 0, sizeof(*sh));
	sh->channel = p->channel;
	sh->flags = p->flags;
	sh->tag = p->tag;
	sh->pid = urxe_pid;
	sh->async_fifo = p->async_fifo;
	store_relaxed(&sh->attention,
		      load_relaxed(&cq->ctx->no_service_thread));
	cq_ring_init(&cq->ring, 0);
	store_relaxed(&sh->ring, cq->ring_word);
	store_release(&sh->live, 1);
}

/*
 * Open the CQ's channel for writing.  The owner needs it for its own events
 * and for those that peers could not write (event.c).
 */
static int cq_open_channel(struct urxe_cq *cq)
{
	struct urxe_channel *ch = cq->view.channel;
	int ret = ch ? channel_open(ch) : -ENOMEM;

	return ret ? fabric_fail(
			     -ret,
			     "the completion channel cannot be opened for writing") :
		     0;
}

/* Allocate the index, the shared slot and the ring.  0 or -errno. */
static int cq_setup(struct urxe_cq *cq, const struct cq_params *p)
{
	struct urxe_context *ctx = cq->ctx;
	uint64_t word;
	int ret;

	ret = fabric_obj_get(ctx->fabric, ctx->slot, URXE_OBJ_CQ);
	if (ret)
		return ret;
	ret = arena_index_take(ctx->arena->cq_map, URXE_MAX_CQ);
	if (ret < 0)
		goto err_put;
	cq->index = ret;
	cq->sh = &ctx->arena->cq[cq->index];
	ret = arena_reserve(ctx->cmd_fd, (char *)cq->sh - (char *)ctx->arena,
			    sizeof(*cq->sh));
	if (ret)
		goto err_index;
	ret = cq_ring_new(ctx, p->cqe, &word);
	if (ret)
		goto err_index;
	cq_use_ring(cq, word);
	cq_enter(cq, p);
	if (!cq_view_init(&cq->view, ctx->self, cq->index)) {
		ret = -EPROTO;
		goto err_ring;
	}
	cq->view.own = cq;
	ret = p->channel ? cq_open_channel(cq) : 0;
	if (ret)
		goto err_view;
	return 0;

err_view:
	cq_view_fini(&cq->view);
	store_release(&cq->sh->live, 0);
err_ring:
	cq_ring_free(ctx, word);
err_index:
	bitmap_clear(ctx->arena->cq_map, cq->index, 1);
err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_CQ);
	return ret;
}

int cq_open(struct urxe_cq *cq, struct urxe_context *ctx,
	    const struct cq_params *p)
{
	int ret;

	cq->ctx = ctx;
	cq->single_threaded = p->single_threaded;
	cq->quick = presence_cheap && !cq->single_threaded;
	ret = cq_setup(cq, p);
	if (ret)
		return ret;
	mutex_init(&cq->lock);
	gate_init(&cq->gate);
	pthread_mutex_lock(&ctx->lock);
	cq->next = ctx->cqs;
	ctx->cqs = cq;
	pthread_mutex_unlock(&ctx->lock);
	return 0;
}

void cq_close(struct urxe_cq *cq)
{
	struct urxe_context *ctx = cq->ctx;

	cq_view_fini(&cq->view);
	eager_free(cq);
	cq_ring_free(ctx, cq->ring_word);
	bitmap_clear(ctx->arena->cq_map, cq->index, 1);
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_CQ);
	free(cq->backlog);
}

void cq_wait_pollers(struct urxe_context *ctx)
{
	struct urxe_cq *cq;

	pthread_mutex_lock(&ctx->lock);
	presence_barrier();
	for (cq = ctx->cqs; cq; cq = cq->next)
		gate_wait(&cq->gate);
	pthread_mutex_unlock(&ctx->lock);
}

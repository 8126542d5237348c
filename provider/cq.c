// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues: their life, and the producers' side. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bitmap.h"
#include "context.h"
#include "cq.h"
#include "event.h"
#include "peer.h"

/* ---------------------------------------------------------- producing */

/* Read the ring's place; the numbers may be anything. */
static bool load_ring(struct urxe_cq_view *v)
{
	uint64_t w = atomic_load_explicit(&v->sh->ring, memory_order_acquire);
	uint32_t log = w & (URXE_PAGE - 1);

	if (log > 16)
		return false;
	v->ring = arena_ptr(v->peer->arena, w & ~(uint64_t)(URXE_PAGE - 1),
			    sizeof(*v->ring) << log);
	v->mask = (1u << log) - 1;
	v->ring_word = w;
	return v->ring;
}

bool cq_view_init(struct urxe_cq_view *v, struct urxe_peer *peer,
		  uint32_t index, uint16_t owner)
{
	if (index >= URXE_MAX_CQ)
		return false;
	v->peer = peer;
	v->sh = &peer->arena->cq[index];
	v->owner = owner;
	v->event_fd = -1;
	return atomic_load_explicit(&v->sh->live, memory_order_acquire) &&
	       load_ring(v);
}

void cq_view_fini(struct urxe_cq_view *v)
{
	if (v->event_fd >= 0)
		close(v->event_fd);
	v->event_fd = -1;
}

static void overrun(struct urxe_cq_view *v)
{
	if (atomic_exchange_explicit(&v->sh->error, 1, memory_order_acq_rel))
		return;
	urxe_why("CQ overrun: more completions than its %u entries",
		 v->mask + 1);
	event_raise(v->peer, v->sh->async_fifo, v->sh->user, IBV_EVENT_CQ_ERR);
}

bool cq_begin(struct urxe_cq_view *v, struct urxe_cqe_ref *ref)
{
	for (;;) {
		if (unlikely(atomic_load_explicit(&v->sh->error,
						  memory_order_relaxed)))
			return false;
		switch (cq_ring_claim(v->ring, v->mask, &v->sh->tail_hint,
				      v->owner, &ref->cqe, &ref->pos)) {
		case CQ_CLAIMED:
			return true;
		case CQ_MOVED:
			if (load_ring(v))
				continue;
			return false;
		case CQ_FULL:
			overrun(v);
			return false;
		}
	}
}

static uint64_t wallclock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void cq_end(struct urxe_cq_view *v, const struct urxe_cqe_ref *ref,
	    const struct urxe_completion *c, uint8_t inline_len)
{
	struct urxe_cqe *e = ref->cqe;

	e->wr_id = c->wr_id;
	e->qpn = c->qpn;
	e->byte_len = c->byte_len;
	e->imm = c->imm;
	e->src_qp = c->src_qp;
	e->wqe = c->wqe;
	e->status = c->status;
	e->opcode = c->opcode;
	e->wc_flags = c->wc_flags;
	e->inline_len = inline_len;
	if (unlikely(v->sh->flags & URXE_CQ_TIMESTAMP))
		e->timestamp = wallclock();
	if (likely(!v->sh->channel)) {
		cq_ring_publish(e, ref->pos, memory_order_release);
		return;
	}
	cq_ring_publish(e, ref->pos, memory_order_seq_cst);
	cq_notify(v, c->solicited || c->status != IBV_WC_SUCCESS);
}

bool cq_complete(struct urxe_cq_view *v, const struct urxe_completion *c)
{
	struct urxe_cqe_ref ref;

	if (!cq_begin(v, &ref))
		return false;
	cq_end(v, &ref, c, 0);
	return true;
}

int cq_event_fd(struct urxe_cq_view *v)
{
	int fd = atomic_load_explicit(&v->event_fd, memory_order_acquire);
	int none = -1;

	if (fd >= 0)
		return fd;
	fd = event_open(v->peer, v->sh->channel);
	if (fd < 0 || atomic_compare_exchange_strong_explicit(
			      &v->event_fd, &none, fd, memory_order_acq_rel,
			      memory_order_acquire))
		return fd;
	close(fd); /* another thread was faster */
	return none;
}

void cq_notify(struct urxe_cq_view *v, bool solicited)
{
	uint32_t arm = atomic_load_explicit(&v->sh->arm, memory_order_seq_cst);

	if (!v->sh->channel || arm == URXE_ARM_NONE ||
	    (arm == URXE_ARM_SOLICITED && !solicited))
		return;
	/* one event for each arming, whoever comes first */
	if (!atomic_compare_exchange_strong_explicit(
		    &v->sh->arm, &arm, URXE_ARM_NONE, memory_order_seq_cst,
		    memory_order_relaxed))
		return;
	if (!event_send_comp(cq_event_fd(v), v->sh->user))
		atomic_fetch_add_explicit(&v->sh->pending_events, 1,
					  memory_order_release);
}

void cq_attention(struct urxe_cq_view *v)
{
	atomic_store_explicit(&v->sh->attention, 1, memory_order_seq_cst);
	cq_notify(v, true);
}

/* ---------------------------------------------------------- life */

static uint32_t log2_up(uint32_t n)
{
	uint32_t log = 0;

	while (1u << log < n)
		log++;
	return log;
}

static int take_index(struct urxe_context *ctx)
{
	struct urxe_arena *a = ctx->arena;
	uint32_t i;

	fabric_mutex_lock(&a->lock);
	i = bitmap_find(a->cq_map, URXE_MAX_CQ, 0, 1, 1);
	if (i < URXE_MAX_CQ)
		bitmap_set(a->cq_map, i, 1);
	pthread_mutex_unlock(&a->lock);
	return i < URXE_MAX_CQ ? (int)i : -ENOMEM;
}

static void drop_index(struct urxe_context *ctx, uint32_t index)
{
	fabric_mutex_lock(&ctx->arena->lock);
	bitmap_clear(ctx->arena->cq_map, index, 1);
	pthread_mutex_unlock(&ctx->arena->lock);
}

/* Memory for a ring of 1 << log entries, laid out for position first on. */
static int make_ring(struct urxe_cq *cq, uint32_t log)
{
	struct urxe_context *ctx = cq->ctx;

	cq->ring_bytes = sizeof(struct urxe_cqe) << log;
	cq->ring_offset = arena_alloc(ctx->arena, ctx->cmd_fd, cq->ring_bytes);
	if (!cq->ring_offset)
		return -ENOMEM;
	cq_ring_init(arena_ptr(ctx->arena, cq->ring_offset, cq->ring_bytes),
		     1u << log, 0);
	return 0;
}

static void publish(struct urxe_cq *cq, uint32_t log, uint32_t channel)
{
	struct urxe_cq_sh *sh = cq->sh;

	memset(sh, 0, sizeof(*sh));
	sh->channel = channel;
	sh->user = (uintptr_t)&cq->vcq.cq;
	sh->pid = urxe_pid;
	sh->async_fifo = urxe_async_fifo(cq->ctx);
	atomic_store_explicit(&sh->ring, cq->ring_offset | log,
			      memory_order_relaxed);
	atomic_store_explicit(&sh->live, 1, memory_order_release);
}

static int setup(struct urxe_cq *cq, uint32_t log, uint32_t channel)
{
	struct urxe_context *ctx = cq->ctx;
	int ret;

	ret = fabric_obj_get(ctx->fabric, ctx->slot, URXE_OBJ_CQ);
	if (ret)
		return ret;
	ret = take_index(ctx);
	if (ret < 0)
		goto err_put;
	cq->index = ret;
	cq->sh = &ctx->arena->cq[cq->index];
	ret = arena_reserve(ctx->cmd_fd, (char *)cq->sh - (char *)ctx->arena,
			    sizeof(*cq->sh));
	if (ret)
		goto err_index;
	ret = make_ring(cq, log);
	if (ret)
		goto err_index;
	publish(cq, log, channel);
	if (!cq_view_init(&cq->view, ctx->self, cq->index, ctx->slot)) {
		ret = -EPROTO;
		goto err_ring;
	}
	return 0;

err_ring:
	arena_free(ctx->arena, ctx->cmd_fd, cq->ring_offset, cq->ring_bytes);
err_index:
	drop_index(ctx, cq->index);
err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_CQ);
	return ret;
}

struct ibv_cq *urxe_create_cq(struct ibv_context *ibctx, int cqe,
			      struct ibv_comp_channel *channel, int vector)
{
	struct urxe_context *ctx = to_uctx(ibctx);
	uint32_t log, number = 0;
	struct urxe_cq *cq;
	int ret, saved = errno;

	if (cqe < 1 || cqe > URXE_MAX_CQE || vector < 0 ||
	    vector >= URXE_NUM_COMP_VECTORS)
		return urxe_fail(-EINVAL, "ibv_create_cq: cqe or comp_vector");
	if (channel) {
		ret = fifo_number(channel->fd, &number);
		if (ret)
			return urxe_fail(ret, "ibv_create_cq: the channel");
		number++;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->ctx = ctx;
	pthread_mutex_init(&cq->lock.mutex, NULL);
	log = log2_up(cqe);
	ret = setup(cq, log, number);
	if (ret) {
		free(cq);
		return urxe_fail(ret, "ibv_create_cq");
	}
	cq->vcq.cq.cqe = 1u << log > URXE_MAX_CQE ? URXE_MAX_CQE : 1u << log;
	cq->vcq.cq.handle = cq->index;
	pthread_mutex_lock(&ctx->lock);
	cq->next = ctx->cqs;
	ctx->cqs = cq;
	pthread_mutex_unlock(&ctx->lock);
	errno = saved;
	return &cq->vcq.cq;
}

static bool unlink_cq(struct urxe_cq *cq)
{
	struct urxe_context *ctx = cq->ctx;
	struct urxe_cq **p;
	bool idle;

	pthread_mutex_lock(&ctx->lock);
	idle = !cq->refs;
	for (p = &ctx->cqs; idle && *p; p = &(*p)->next) {
		if (*p == cq) {
			*p = cq->next;
			break;
		}
	}
	pthread_mutex_unlock(&ctx->lock);
	return idle;
}

int urxe_destroy_cq(struct ibv_cq *ibcq)
{
	struct urxe_cq *cq = to_ucq(ibcq);
	struct urxe_context *ctx = cq->ctx;
	int saved = errno;

	if (!unlink_cq(cq))
		return EBUSY;
	atomic_store_explicit(&cq->sh->arm, URXE_ARM_NONE,
			      memory_order_seq_cst);
	atomic_store_explicit(&cq->sh->live, 0, memory_order_release);
	event_wait_cq(cq);
	cq_view_fini(&cq->view);
	arena_free(ctx->arena, ctx->cmd_fd, cq->ring_offset, cq->ring_bytes);
	drop_index(ctx, cq->index);
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_CQ);
	pthread_mutex_destroy(&cq->lock.mutex);
	free(cq);
	errno = saved;
	return 0;
}

int urxe_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct urxe_cq *cq = to_ucq(ibcq);
	uint32_t want = solicited_only ? URXE_ARM_SOLICITED : URXE_ARM_NEXT;
	uint32_t arm;

	if (!cq->sh->channel)
		return 0; /* nobody could hear it */
	arm = atomic_load_explicit(&cq->sh->arm, memory_order_relaxed);
	/* an arming for any completion is not weakened by a later one */
	do {
		if (arm == URXE_ARM_NEXT)
			want = URXE_ARM_NEXT;
	} while (!atomic_compare_exchange_weak_explicit(
		&cq->sh->arm, &arm, want, memory_order_seq_cst,
		memory_order_relaxed));
	/* a peer changed a QP before we armed: nobody else will say so */
	if (atomic_load_explicit(&cq->sh->attention, memory_order_seq_cst))
		cq_notify(&cq->view, true);
	return 0;
}

/* Core has read one of this CQ's events from the channel. */
void urxe_cq_event(struct ibv_cq *ibcq)
{
	struct urxe_cq *cq = to_ucq(ibcq);

	pthread_mutex_lock(&cq->ctx->lock);
	cq->comp_reported++;
	pthread_mutex_unlock(&cq->ctx->lock);
	event_resend(cq->ctx);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues: their life, and the producers' side. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log2.h"
#include "abi/context.h"
#include "cq.h"
#include "cq_moderate.h"
#include "event.h"
#include "pd.h"
#include "engine/peer.h"
#include "engine/poll.h"

/* ---------------------------------------------------------- producing */

/* Entries and mask of a ring; NULL if the word, which may be anything, lies. */
static struct urxe_cqe *ring_at(struct urxe_arena *a, uint64_t word,
				uint32_t *mask)
{
	uint64_t offset = URXE_CQ_OFFSET(word), end;
	uint32_t log = URXE_CQ_LOG(word);

	end = offset + (sizeof(struct urxe_cqe) << log);
	if (unlikely(log > 18 || offset < URXE_HEAP_OFFSET ||
		     offset > URXE_ARENA_SIZE || end > URXE_ARENA_SIZE))
		return NULL;
	*mask = (1u << log) - 1;
	return (struct urxe_cqe *)(void *)((char *)a + offset);
}

bool cq_view_init(struct urxe_cq_view *v, struct urxe_peer *peer,
		  uint32_t index, uint16_t owner)
{
	uint32_t mask;

	if (index >= URXE_MAX_CQ)
		return false;
	v->peer = peer;
	v->arena = peer->arena;
	v->sh = &peer->arena->cq[index];
	v->owner = owner;
	atomic_store_explicit(&v->event_fd, -1, memory_order_relaxed);
	return atomic_load_explicit(&v->sh->live, memory_order_acquire) &&
	       ring_at(v->arena,
		       atomic_load_explicit(&v->sh->ring, memory_order_relaxed),
		       &mask);
}

void cq_view_fini(struct urxe_cq_view *v)
{
	int fd = atomic_exchange_explicit(&v->event_fd, -1,
					  memory_order_relaxed);

	if (fd >= 0)
		close(fd);
}

static void overrun(struct urxe_cq_view *v)
{
	if (atomic_exchange_explicit(&v->sh->error, 1, memory_order_acq_rel))
		return;
	urxe_why("CQ overrun: there are more completions than entries");
	event_raise_cq(v->peer, v->sh, IBV_EVENT_CQ_ERR);
}

/* No room.  Where overruns are ignored, the completion gets lost. */
static bool no_room(struct urxe_cq_view *v, struct urxe_cqe_ref *ref)
{
	if (v->sh->flags & URXE_CQ_IGNORE_OVERRUN) {
		ref->cqe = &ref->lost;
		ref->pos = 0;
		return true;
	}
	overrun(v);
	return false;
}

static inline bool begin(struct urxe_cq_view *v, struct urxe_cqe_ref *ref)
{
	struct urxe_cq_sh *sh = v->sh;
	struct urxe_cqe *ring;
	uint64_t word;
	uint32_t mask;
	int hop;

	if (unlikely(atomic_load_explicit(&sh->error, memory_order_relaxed)))
		return false;
	/* seq_cst: after our guard went up, see cq_ring.h */
	word = atomic_load_explicit(&sh->ring, memory_order_seq_cst);
	/* no second resize gets past our guard */
	for (hop = 0; hop < 2; hop++) {
		ring = ring_at(v->arena, word, &mask);
		if (unlikely(!ring))
			return false;
		switch (cq_ring_claim(ring, mask,
				      &sh->tail_hint[!!(word & URXE_CQ_PARITY)],
				      v->owner, &ref->cqe, &ref->pos)) {
		case CQ_CLAIMED:
			return true;
		case CQ_FULL:
			return no_room(v, ref);
		case CQ_MOVED:
			word = atomic_load_explicit(&sh->next_ring,
						    memory_order_relaxed);
		}
	}
	return false;
}

bool cq_begin(struct urxe_cq_view *v, struct urxe_cqe_ref *ref)
{
	return begin(v, ref);
}

uint64_t cq_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static bool is_armed(const struct urxe_cq_view *v, uint32_t arm, bool solicited)
{
	return v->sh->channel && (arm == URXE_ARM_NEXT ||
				  (arm == URXE_ARM_SOLICITED && solicited));
}

void cq_fire(struct urxe_cq_view *v, bool solicited)
{
	uint32_t arm = atomic_load_explicit(&v->sh->arm, memory_order_seq_cst);

	if (!is_armed(v, arm, solicited))
		return;
	/* one event for each arming, whoever comes first */
	if (!atomic_compare_exchange_strong_explicit(
		    &v->sh->arm, &arm, URXE_ARM_NONE, memory_order_seq_cst,
		    memory_order_relaxed))
		return;
	if (!event_send_comp(cq_event_fd(v), v->sh))
		atomic_fetch_add_explicit(&v->sh->pending_events, 1,
					  memory_order_release);
}

/* A completion was published. */
static void notify(struct urxe_cq_view *v, bool solicited)
{
	uint32_t arm = atomic_load_explicit(&v->sh->arm, memory_order_seq_cst);

	if (is_armed(v, arm, solicited) && !cq_hold_back(v))
		cq_fire(v, solicited);
}

static inline void end(struct urxe_cq_view *v, struct urxe_cqe *e,
		       uint32_t pos, const struct urxe_completion *c,
		       uint8_t inline_len)
{
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
		e->timestamp = cq_clock();
	if (likely(!v->sh->channel)) {
		cq_ring_publish(e, pos, memory_order_release);
		return;
	}
	cq_ring_publish(e, pos, memory_order_seq_cst);
	notify(v, c->solicited || c->status != IBV_WC_SUCCESS);
}

void cq_end(struct urxe_cq_view *v, const struct urxe_cqe_ref *ref,
	    const struct urxe_completion *c, uint8_t inline_len)
{
	end(v, ref->cqe, ref->pos, c, inline_len);
}

bool cq_complete(struct urxe_cq_view *v, const struct urxe_completion *c)
{
	struct urxe_cqe_ref ref;

	if (!begin(v, &ref))
		return false;
	end(v, ref.cqe, ref.pos, c, 0);
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

void cq_attention(struct urxe_cq_view *v)
{
	atomic_store_explicit(&v->sh->attention, 1, memory_order_seq_cst);
	cq_fire(v, true);
}

/* ---------------------------------------------------------- life */

int cq_ring_new(struct urxe_context *ctx, int cqe, uint64_t *word)
{
	uint32_t log = log2_up(cqe);
	uint64_t bytes = sizeof(struct urxe_cqe) << log;
	uint64_t offset = arena_alloc(ctx->arena, ctx->cmd_fd, bytes);

	if (!offset)
		return -ENOMEM;
	cq_ring_init(arena_ptr(ctx->arena, offset, bytes), 1u << log, 0);
	*word = offset | log;
	return 0;
}

void cq_ring_free(struct urxe_context *ctx, uint64_t word)
{
	arena_free(ctx->arena, ctx->cmd_fd, URXE_CQ_OFFSET(word),
		   sizeof(struct urxe_cqe) << URXE_CQ_LOG(word));
}

void cq_use_ring(struct urxe_cq *cq, uint64_t word)
{
	uint32_t depth = 1u << URXE_CQ_LOG(word);

	cq->ring_word = word;
	cq->ring = ring_at(cq->ctx->arena, word, &cq->mask);
	cq->head = 0;
	cq->stuck = 0;
	cq->vcq.cq.cqe = depth > URXE_MAX_CQE ? URXE_MAX_CQE : depth;
}

static void publish(struct urxe_cq *cq, uint32_t channel, uint32_t flags)
{
	struct urxe_cq_sh *sh = cq->sh;

	memset(sh, 0, sizeof(*sh));
	sh->channel = channel;
	sh->flags = flags;
	sh->user = (uintptr_t)&cq->vcq.cq;
	sh->pid = urxe_pid;
	sh->async_fifo = urxe_async_fifo(cq->ctx);
	atomic_store_explicit(&sh->ring, cq->ring_word, memory_order_relaxed);
	atomic_store_explicit(&sh->live, 1, memory_order_release);
}

/* Index, shared slot and ring. */
static int setup(struct urxe_cq *cq, const struct cq_request *r,
		 uint32_t channel)
{
	struct urxe_context *ctx = cq->ctx;
	uint64_t word;
	int ret;

	ret = fabric_obj_get(ctx->fabric, ctx->slot, URXE_OBJ_CQ);
	if (ret)
		return ret;
	ret = arena_index_take(ctx->arena, ctx->arena->cq_map, URXE_MAX_CQ);
	if (ret < 0)
		goto err_put;
	cq->index = ret;
	cq->sh = &ctx->arena->cq[cq->index];
	ret = arena_reserve(ctx->cmd_fd, (char *)cq->sh - (char *)ctx->arena,
			    sizeof(*cq->sh));
	if (ret)
		goto err_index;
	ret = cq_ring_new(ctx, r->cqe, &word);
	if (ret)
		goto err_index;
	cq_use_ring(cq, word);
	publish(cq, channel, r->flags);
	if (!cq_view_init(&cq->view, ctx->self, cq->index, ctx->slot)) {
		ret = -EPROTO;
		goto err_ring;
	}
	return 0;

err_ring:
	cq_ring_free(ctx, word);
err_index:
	arena_index_drop(ctx->arena, ctx->arena->cq_map, cq->index);
err_put:
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_CQ);
	return ret;
}

static void free_cq(struct urxe_cq *cq)
{
	pthread_mutex_destroy(&cq->lock);
	gate_destroy(&cq->gate);
	free(cq->backlog);
	free(cq);
}

struct urxe_cq *cq_create(struct urxe_context *ctx, const struct cq_request *r)
{
	uint32_t channel = 0;
	struct urxe_cq *cq;
	int ret;

	if (r->cqe < 1 || r->cqe > URXE_MAX_CQE || r->vector < 0 ||
	    r->vector >= URXE_NUM_COMP_VECTORS)
		return urxe_fail(-EINVAL, "ibv_create_cq: cqe or comp_vector");
	if (r->channel) {
		ret = fifo_number(r->channel->fd, &channel);
		if (ret)
			return urxe_fail(ret, "ibv_create_cq: the channel");
		channel++;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->ctx = ctx;
	cq->single_threaded = r->single_threaded;
	pthread_mutex_init(&cq->lock, NULL);
	gate_init(&cq->gate);
	ret = setup(cq, r, channel);
	if (ret) {
		free_cq(cq);
		return urxe_fail(ret, "ibv_create_cq");
	}
	cq->vcq.cq.handle = cq->index;
	pthread_mutex_lock(&ctx->lock);
	cq->next = ctx->cqs;
	ctx->cqs = cq;
	pthread_mutex_unlock(&ctx->lock);
	return cq;
}

struct ibv_cq *urxe_create_cq(struct ibv_context *ibctx, int cqe,
			      struct ibv_comp_channel *channel, int vector)
{
	const struct cq_request r = { .cqe = cqe,
				      .vector = vector,
				      .channel = channel };
	int saved = errno;
	struct urxe_cq *cq = cq_create(to_uctx(ibctx), &r);

	if (!cq)
		return NULL;
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
	if (idle)
		poll_drop(cq);
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

	if (!unlink_cq(cq)) {
		urxe_why("ibv_destroy_cq: QPs or SRQs still use it");
		return EBUSY;
	}
	atomic_store_explicit(&cq->sh->arm, URXE_ARM_NONE,
			      memory_order_seq_cst);
	atomic_store_explicit(&cq->sh->live, 0, memory_order_release);
	event_wait_cq(cq);
	cq_view_fini(&cq->view);
	cq_ring_free(ctx, cq->ring_word);
	arena_index_drop(ctx->arena, ctx->arena->cq_map, cq->index);
	fabric_obj_put(ctx->fabric, ctx->slot, URXE_OBJ_CQ);
	if (cq->parent)
		pd_put(cq->parent);
	free_cq(cq);
	errno = saved;
	return 0;
}

/*
 * Would a poll find a completion?  Either we see it, or its producer sees that
 * the CQ is armed.
 */
static bool has_more(struct urxe_cq *cq)
{
	bool more;

	/* whoever is polling finds it */
	if (cq->single_threaded ?
		    atomic_load_explicit(&cq->batch_thread,
					 memory_order_relaxed) != 0 :
				  pthread_mutex_trylock(&cq->lock))
		return false;
	atomic_thread_fence(memory_order_seq_cst);
	gate_enter(&cq->gate);
	more = cq->backlog || poll_ring(cq);
	gate_leave(&cq->gate);
	cq_unlock(cq);
	return more;
}

/*
 * With completions left unpolled the event comes at once.  The specification
 * has it come with the next one (IB 11.4.2.2), for which a program may wait in
 * vain that arms and does not poll once more.  UCX does that: it is written
 * for ConnectX, whose arming names the poller's position.
 */
int urxe_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct urxe_cq *cq = to_ucq(ibcq);
	uint32_t want = solicited_only ? URXE_ARM_SOLICITED : URXE_ARM_NEXT;
	uint32_t arm;

	if (!cq->sh->channel)
		return 0; /* nobody could hear it */
	arm = atomic_load_explicit(&cq->sh->arm, memory_order_relaxed);
	if (arm == URXE_ARM_NONE)
		cq_hold_reset(cq);
	/* an arming for any completion is not weakened by a later one */
	do {
		if (arm == URXE_ARM_NEXT)
			want = URXE_ARM_NEXT;
	} while (!atomic_compare_exchange_weak_explicit(
		&cq->sh->arm, &arm, want, memory_order_seq_cst,
		memory_order_relaxed));
	/* a peer changed a QP before we armed: nobody else will say so */
	if (atomic_load_explicit(&cq->sh->attention, memory_order_seq_cst) ||
	    (want == URXE_ARM_NEXT && !cq_is_moderated(cq->sh) && has_more(cq)))
		cq_fire(&cq->view, true);
	return 0;
}

/* Core has read one of this CQ's events from the channel. */
void urxe_cq_event(struct ibv_cq *ibcq)
{
	event_resend(to_ucq(ibcq)->ctx);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Copy path 4, the requester's side; shared/bounce_slot.h has the protocol. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "bounce.h"
#include "log.h"

/*
 * Before it sleeps the requester looks at its slot, first without a pause, then
 * giving way to others: to copy a slot takes as long as to wake a sleeper.
 */
#define SPINS 2000
#define YIELD_NS 40000

#define BOUNCE_LOOK_NS 20000000ull /* how often a sleeper looks around */

/* One request in the making. */
struct ask {
	struct urxe_context *ctx;
	struct urxe_peer *peer;
	struct urxe_bouncer *b;
	struct urxe_bounce_ring *ring;
	struct urxe_bounce_slot *slot;
	char *data;
	uint64_t word; /* of the slot, while it is ours */
	uint64_t patience; /* ns */
	bool committed;
	/* how long nothing has moved over there */
	uint32_t beat;
	uint64_t since;
};

static bool bouncer_is_gone(struct urxe_bouncer *b)
{
	uint32_t owner = load_acquire(&b->owner);

	return !owner || load_acquire(&b->gone) == owner;
}

/* Who copies for the process that registered k; one that died, or NULL. */
static struct urxe_bouncer *bouncer_of(struct urxe_arena *a,
				       const struct urxe_key *k)
{
	bool foreign = k->flags & URXE_MR_FOREIGN;
	struct urxe_bouncer *b, *dead = NULL;

	for (b = a->bouncer; b < a->bouncer + URXE_BOUNCERS; b++) {
		if (load_acquire(&b->pid) != k->pid ||
		    load_relaxed(&b->foreign) != foreign)
			continue;
		if (!bouncer_is_gone(b))
			return b;
		dead = b;
	}
	return dead;
}

/* False, and it is known to all then: its thread or its process ended. */
static bool bouncer_lives(struct urxe_fabric *f, struct urxe_bouncer *b)
{
	uint32_t owner = load_acquire(&b->owner);

	if (bouncer_is_gone(b))
		return false;
	if (!process_is_dead(f, owner))
		return true;
	store_release(&b->gone, owner);
	return false;
}

static void ask_restart_clock(struct ask *q)
{
	q->beat = load_relaxed(&q->b->beat);
	q->since = clock_now();
}

/* It lives; has it done nothing at all for too long? */
static bool ask_is_late(struct ask *q)
{
	uint32_t beat = load_relaxed(&q->b->beat);

	if (beat != q->beat) {
		ask_restart_clock(q);
		return false;
	}
	return clock_now() - q->since > q->patience;
}

static enum transfer_status ask_give_up(struct ask *q)
{
	urxe_why("process %d does not run: nobody copies for it",
		 (int)load_relaxed(&q->b->pid));
	store_seq_cst(&q->b->stuck, 1);
	/* when it runs again it says so */
	event_count_ring(&q->b->wake);
	return q->committed ? TRANSFER_DENIED : TRANSFER_GONE;
}

/* The ring is reserved when it is first needed, by the bouncer. */
static enum transfer_status ask_await_ring(struct ask *q)
{
	if (load_acquire(&q->b->slots))
		return TRANSFER_OK;
	/* rung always: another one may have died before he rang */
	store_seq_cst(&q->b->wanted, URXE_BOUNCE_WANTED);
	event_count_ring(&q->b->wake);
	while (!load_acquire(&q->b->slots)) {
		if (load_acquire(&q->b->wanted) == URXE_BOUNCE_REFUSED) {
			urxe_why("no shared memory is left to copy through");
			return q->committed ? TRANSFER_DENIED : TRANSFER_GONE;
		}
		if (!bouncer_lives(q->peer->fabric, q->b))
			return TRANSFER_GONE;
		if (ask_is_late(q))
			return ask_give_up(q);
		sched_yield();
	}
	return TRANSFER_OK;
}

static bool ask_take_slot(struct ask *q, struct urxe_bounce_slot *s,
			  uint64_t word)
{
	uint64_t mine = BOUNCE_CLAIM(word, q->ctx->slot, q->ctx->gen);

	if (!cas_acquire(&s->word, &word, mine))
		return false;
	q->slot = s;
	q->data = q->ring->data[s - q->ring->slot];
	q->word = mine;
	event_count_init(&s->answered);
	return true;
}

/* A slot that is free, or whose requester was killed. */
static bool ask_find_slot(struct ask *q, bool doubt)
{
	uint32_t i, n = bouncer_slots(q->b);
	struct urxe_bounce_slot *s;
	uint64_t word;

	for (i = 0; i < n; i++) {
		s = &q->ring->slot[i];
		word = load_relaxed(&s->word);
		if (BOUNCE_STATE(word) != BOUNCE_FREE &&
		    (!doubt || BOUNCE_STATE(word) == BOUNCE_SERVING ||
		     BOUNCE_STATE(word) == BOUNCE_LEFT ||
		     fabric_context_alive(q->peer->fabric, BOUNCE_OWNER(word),
					  BOUNCE_GEN(word))))
			continue;
		if (ask_take_slot(q, s, word))
			return true;
	}
	return false;
}

static bool ask_move(struct ask *q, enum bounce_state to)
{
	uint64_t word = q->word;

	if (!cas_seq_cst(&q->slot->word, &word, bounce_word(word, to)))
		return false;
	q->word = bounce_word(q->word, to);
	return true;
}

/* Is the answer there?  A word that is not ours any more has none. */
static bool ask_is_answered(const struct ask *q)
{
	uint64_t word = load_acquire(&q->slot->word);

	return word != q->word && word != bounce_word(q->word, BOUNCE_SERVING);
}

/* Nobody waits for the answer any more.  False: it is there. */
static bool ask_leave(struct ask *q)
{
	uint64_t serving = bounce_word(q->word, BOUNCE_SERVING);

	return ask_move(q, BOUNCE_FREE) ||
	       cas_seq_cst(&q->slot->word, &serving,
			   bounce_word(serving, BOUNCE_LEFT));
}

/* No answer yet: sleep, and see whether there can be one. */
static enum transfer_status ask_sleep(struct ask *q)
{
	struct urxe_bounce_slot *s = q->slot;
	uint32_t seen = event_count_read(&s->answered);

	if (!ask_is_answered(q))
		event_count_wait(&s->answered, seen, BOUNCE_LOOK_NS);
	if (ask_is_answered(q))
		return TRANSFER_OK;
	if (!bouncer_lives(q->peer->fabric, q->b))
		return TRANSFER_GONE;
	if (ask_is_late(q) && ask_leave(q))
		return ask_give_up(q);
	return TRANSFER_OK;
}

/* Post the slot and wait; then the answer stands in it. */
static enum transfer_status ask_post(struct ask *q)
{
	enum transfer_status status;
	uint64_t start;
	unsigned int i;

	if (!ask_move(q, BOUNCE_POSTED))
		return TRANSFER_GONE;
	event_count_ring(&q->b->wake);
	for (i = 0; i < SPINS && !ask_is_answered(q); i++)
		;
	start = clock_now();
	while (!ask_is_answered(q) && clock_now() - start < YIELD_NS)
		sched_yield();
	while (!ask_is_answered(q)) {
		status = ask_sleep(q);
		if (status)
			return status;
	}
	q->word = bounce_word(q->word, BOUNCE_DONE);
	return load_acquire(&q->slot->word) == q->word ? TRANSFER_OK :
							 TRANSFER_GONE;
}

/* Claim a slot to fill. */
static enum transfer_status ask_open(struct ask *q, struct urxe_context *ctx,
				     struct urxe_peer *peer,
				     struct urxe_bouncer *b, bool committed)
{
	struct urxe_arena *a = peer->arena;
	enum transfer_status status;
	uint32_t turns;

	q->ctx = ctx;
	q->peer = peer;
	q->b = b;
	q->ring = &a->ring[b - a->bouncer];
	q->committed = committed;
	q->patience = committed ? BOUNCE_COMMITTED_NS : BOUNCE_PATIENCE_NS;
	if (bouncer_is_gone(b) || (!committed && load_seq_cst(&b->stuck)))
		return TRANSFER_GONE;
	ask_restart_clock(q);
	status = ask_await_ring(q);
	for (turns = 1; !status && !ask_find_slot(q, turns % 256 == 0);
	     turns++) {
		if (turns % 256 == 0 && !bouncer_lives(peer->fabric, b))
			return TRANSFER_GONE;
		if (turns % 64 == 0 && ask_is_late(q))
			return ask_give_up(q);
		sched_yield();
	}
	return status;
}

static void ask_close(struct ask *q)
{
	ask_move(q, BOUNCE_FREE);
}

/* As many ranges as fit; returns the number of bytes. */
static uint32_t ask_fill(struct ask *q, const struct transfer_batch *b)
{
	struct urxe_bounce_slot *s = q->slot;
	uint32_t bytes = 0, n = 0, i;
	uint64_t len;

	for (i = 0; i < b->n && n < URXE_BOUNCE_RANGES; i++) {
		len = b->remote[i].iov_len;
		if (len > URXE_BOUNCE_BYTES - bytes)
			len = URXE_BOUNCE_BYTES - bytes;
		if (!len)
			continue;
		s->range[n].va = (uintptr_t)b->remote[i].iov_base;
		s->range[n].length = len;
		s->range[n].key = (uint32_t)load_relaxed(&b->key[i]->live);
		if (b->write)
			memcpy(q->data + bytes, b->local[i].iov_base, len);
		bytes += len;
		n++;
	}
	s->op = b->write ? URXE_BOUNCE_WRITE : URXE_BOUNCE_READ;
	s->count = n;
	return bytes;
}

/* The bytes that were read. */
static void ask_scatter(const struct ask *q, const struct iovec *to, uint32_t n)
{
	const char *from = q->data;
	uint64_t len;

	for (; n; to++, from += len, n -= len) {
		len = to->iov_len < n ? to->iov_len : n;
		memcpy(to->iov_base, from, len);
	}
}

/* One slot's worth. */
static enum transfer_status
bounce_step(struct transfer_batch *b, struct urxe_bouncer *to, uint64_t *moved)
{
	enum transfer_status status;
	uint32_t bytes, done;
	struct ask q;

	status = ask_open(&q, b->ctx, b->peer, to, b->committed);
	if (status)
		return status;
	bytes = ask_fill(&q, b);
	status = ask_post(&q);
	if (status)
		return status;
	done = q.slot->done < bytes ? q.slot->done : bytes;
	if (q.slot->error == EACCES)
		status = TRANSFER_REVOKED;
	else if (q.slot->error || done < bytes)
		status = TRANSFER_FAULT;
	if (!b->write)
		ask_scatter(&q, b->local, done);
	iov_advance(b->local, b->n, done);
	iov_advance(b->remote, b->n, done);
	*moved += done;
	ask_close(&q);
	return status;
}

enum transfer_status bounce_flush(struct transfer_batch *b, uint64_t *moved)
{
	enum transfer_status status = TRANSFER_OK;
	struct urxe_bouncer *to = bouncer_of(b->peer->arena, b->key[0]);

	if (!to)
		return fabric_context_alive(b->peer->fabric, b->peer->slot,
					    b->peer->gen) ?
			       TRANSFER_DENIED :
			       TRANSFER_GONE;
	while (!status && *moved < b->bytes)
		status = bounce_step(b, to, moved);
	return status;
}

/* A request that moves no bytes: was it answered, and served? */
static bool bounce_request(struct urxe_context *ctx, struct urxe_peer *peer,
			   struct urxe_bouncer *b, enum urxe_bounce_op op,
			   struct urxe_bounce_range range)
{
	struct ask q;
	bool ok;

	if (ask_open(&q, ctx, peer, b, false))
		return false;
	if (op == URXE_BOUNCE_PERSIST)
		q.patience = BOUNCE_SYNC_NS;
	q.slot->op = op;
	q.slot->count = 0;
	q.slot->range[0] = range;
	if (ask_post(&q))
		return false;
	ok = !q.slot->error;
	ask_close(&q);
	return ok;
}

bool bounce_answers(struct urxe_context *ctx, struct urxe_peer *peer)
{
	const struct urxe_bounce_range none = { 0 };
	struct urxe_bouncer *b = peer->arena->bouncer;
	int i, saved = errno;
	bool ok = true;

	for (i = 0; ok && i < URXE_BOUNCERS; i++, b++)
		if (load_acquire(&b->pid) && !bouncer_is_gone(b))
			ok = bounce_request(ctx, peer, b, URXE_BOUNCE_PING,
					    none);
	errno = saved;
	return ok;
}

bool bounce_persist(struct urxe_context *ctx, struct urxe_peer *peer,
		    const struct urxe_key *k)
{
	struct urxe_bouncer *to = bouncer_of(peer->arena, k);
	const struct urxe_bounce_range range = {
		.va = k->va, .key = (uint32_t)load_relaxed(&k->live)
	};
	int saved = errno;
	bool ok;

	ok = to && bounce_request(ctx, peer, to, URXE_BOUNCE_PERSIST, range);
	errno = saved;
	return ok;
}

/* What dead requesters asked for, and is not being served yet, is dropped. */
static void bouncer_cancel_dead(struct urxe_fabric *f, struct urxe_arena *a,
				struct urxe_bouncer *b)
{
	uint32_t i, n = bouncer_slots(b);
	_Atomic uint64_t *slot;
	int saved = errno;
	uint64_t word;

	for (i = 0; i < n; i++) {
		slot = &a->ring[b - a->bouncer].slot[i].word;
		word = load_relaxed(slot);
		if (BOUNCE_STATE(word) == BOUNCE_POSTED &&
		    !fabric_context_alive(f, BOUNCE_OWNER(word),
					  BOUNCE_GEN(word)))
			cas_seq_cst(slot, &word,
				    bounce_word(word, BOUNCE_FREE));
	}
	errno = saved;
}

/* Whose work is waited for. */
struct worker {
	struct urxe_fabric *f;
	struct urxe_bouncer *b;
};

static bool worker_is_dead(void *arg)
{
	struct worker *w = arg;

	/* it may not be at work at all, and then mends its word */
	event_count_ring(&w->b->wake);
	return !bouncer_lives(w->f, w->b);
}

void bounce_quiesce(struct urxe_fabric *f, struct urxe_arena *a)
{
	struct worker w = { .f = f, .b = a->bouncer };

	for (; w.b < a->bouncer + URXE_BOUNCERS; w.b++) {
		/* if a slot was taken before we could, it is at work */
		bouncer_cancel_dead(f, a, w.b);
		presence_wait(&w.b->at_work, worker_is_dead, &w);
	}
}

bool bounce_quiesce_try(struct urxe_fabric *f, struct urxe_arena *a)
{
	struct worker w = { .f = f, .b = a->bouncer };
	uint64_t until = 0;

	for (; w.b < a->bouncer + URXE_BOUNCERS; w.b++) {
		bouncer_cancel_dead(f, a, w.b);
		while (presence_is_inside(&w.b->at_work) &&
		       !worker_is_dead(&w)) {
			if (!until)
				until = clock_now() + QUIESCE_TRY_NS;
			if (clock_now() > until)
				return false;
			sched_yield();
		}
	}
	return true;
}

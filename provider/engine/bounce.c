// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Copy path 4, the requester's side; bounce.h has the protocol. */
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

#define BOUNCE_LOOK_NS 20000000ull /* how often a life is doubted */

/* One request in the making. */
struct ask {
	struct urxe_context *ctx;
	struct urxe_peer *peer;
	struct urxe_bouncer *b;
	struct urxe_bounce_ring *ring;
	struct urxe_bounce_slot *slot;
	char *data;
	uint64_t word; /* of the slot, while it is ours */
	bool committed;
	/* how long nothing has moved over there */
	uint32_t beat;
	uint64_t since;
};

static bool is_gone(struct urxe_bouncer *b)
{
	return load_acquire(&b->gone);
}

/* Who copies for the process that registered k; one that died, or NULL. */
static struct urxe_bouncer *find(struct urxe_arena *a, const struct urxe_key *k)
{
	bool foreign = k->flags & URXE_MR_FOREIGN;
	struct urxe_bouncer *b, *dead = NULL;

	for (b = a->bouncer; b < a->bouncer + URXE_BOUNCERS; b++) {
		if (load_acquire(&b->pid) != k->pid ||
		    load_relaxed(&b->foreign) != foreign)
			continue;
		if (!is_gone(b))
			return b;
		dead = b;
	}
	return dead;
}

/* Its mutex is free if its thread is dead. */
static bool look_for_life(struct urxe_bouncer *b)
{
	if (is_gone(b))
		return false;
	if (!robust_trylock(&b->alive))
		return true;
	store_release(&b->gone, 1);
	robust_unlock(&b->alive);
	return false;
}

static void start_clock(struct ask *q)
{
	q->beat = load_relaxed(&q->b->beat);
	q->since = clock_now();
}

/* It lives; has it done nothing at all for too long? */
static bool out_of_patience(struct ask *q)
{
	uint32_t beat = load_relaxed(&q->b->beat);

	if (beat != q->beat) {
		start_clock(q);
		return false;
	}
	return !q->committed && clock_now() - q->since > BOUNCE_PATIENCE_NS;
}

static enum transfer_status give_up(struct ask *q)
{
	urxe_why("process %d does not run: nobody copies for it",
		 (int)load_relaxed(&q->b->pid));
	store_seq_cst(&q->b->stuck, 1);
	/* when it runs again it says so */
	event_count_ring(&q->b->wake);
	return TRANSFER_GONE;
}

/* The ring is reserved when it is first needed, by the bouncer. */
static enum transfer_status await_ring(struct ask *q)
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
		if (!look_for_life(q->b))
			return TRANSFER_GONE;
		if (out_of_patience(q))
			return give_up(q);
		sched_yield();
	}
	return TRANSFER_OK;
}

static bool take(struct ask *q, struct urxe_bounce_slot *s, uint64_t word)
{
	uint64_t mine = (word & ~(BOUNCE_COUNT_ONE - 1)) + BOUNCE_COUNT_ONE;

	mine |= (uint64_t)q->ctx->slot << 3 | (uint64_t)q->ctx->gen << 12 |
		BOUNCE_FILLING;
	if (!cas_acquire(&s->word, &word, mine))
		return false;
	q->slot = s;
	q->data = q->ring->data[s - q->ring->slot];
	q->word = mine;
	event_count_init(&s->answered);
	return true;
}

/* A slot that is free, or whose requester was killed. */
static bool find_slot(struct ask *q, bool doubt)
{
	uint32_t i, n = load_acquire(&q->b->slots);
	struct urxe_bounce_slot *s;
	uint64_t word;

	for (i = 0; i < n && i < URXE_BOUNCE_SLOTS; i++) {
		s = &q->ring->slot[i];
		word = load_relaxed(&s->word);
		if (BOUNCE_STATE(word) != BOUNCE_FREE &&
		    (!doubt || BOUNCE_STATE(word) == BOUNCE_SERVING ||
		     fabric_context_alive(q->peer->fabric, BOUNCE_OWNER(word),
					  BOUNCE_GEN(word))))
			continue;
		if (take(q, s, word))
			return true;
	}
	return false;
}

static enum transfer_status claim(struct ask *q)
{
	enum transfer_status status;
	uint32_t turns;

	if (is_gone(q->b) || (!q->committed && load_seq_cst(&q->b->stuck)))
		return TRANSFER_GONE;
	start_clock(q);
	status = await_ring(q);
	for (turns = 1; !status && !find_slot(q, turns % 256 == 0); turns++) {
		if (turns % 256 == 0 && !look_for_life(q->b))
			return TRANSFER_GONE;
		if (turns % 64 == 0 && out_of_patience(q))
			return give_up(q);
		sched_yield();
	}
	return status;
}

static bool move_on(struct ask *q, enum bounce_state to, memory_order order)
{
	uint64_t word = q->word;

	if (!atomic_compare_exchange_strong_explicit(
		    &q->slot->word, &word, bounce_word(word, to), order,
		    memory_order_relaxed))
		return false;
	q->word = bounce_word(q->word, to);
	return true;
}

/* Is the answer there?  A word that is not ours any more has none. */
static bool answered(struct ask *q, enum transfer_status *status)
{
	uint64_t word = load_acquire(&q->slot->word);

	if (word == bounce_word(q->word, BOUNCE_DONE)) {
		q->word = word;
		*status = TRANSFER_OK;
		return true;
	}
	if (word == q->word || word == bounce_word(q->word, BOUNCE_SERVING))
		return false;
	*status = TRANSFER_GONE;
	return true;
}

/* Nothing yet: sleep, and look after it. */
static enum transfer_status doze(struct ask *q)
{
	struct urxe_bounce_slot *s = q->slot;
	enum transfer_status status;
	uint32_t seen = event_count_read(&s->answered);

	if (!answered(q, &status))
		event_count_wait(&s->answered, seen, BOUNCE_LOOK_NS);
	if (answered(q, &status))
		return TRANSFER_OK;
	if (!look_for_life(q->b))
		return TRANSFER_GONE;
	if (out_of_patience(q) && move_on(q, BOUNCE_FREE, memory_order_relaxed))
		return give_up(q);
	return TRANSFER_OK;
}

/* Post the slot and wait; then the answer stands in it. */
static enum transfer_status ask(struct ask *q)
{
	enum transfer_status status = TRANSFER_GONE;
	uint64_t start;
	unsigned int i;

	if (!move_on(q, BOUNCE_POSTED, memory_order_seq_cst))
		return TRANSFER_GONE;
	event_count_ring(&q->b->wake);
	for (i = 0; i < SPINS; i++)
		if (answered(q, &status))
			return status;
	for (start = clock_now(); clock_now() - start < YIELD_NS; sched_yield())
		if (answered(q, &status))
			return status;
	while (!answered(q, &status)) {
		status = doze(q);
		if (status)
			break;
	}
	return status;
}

static enum transfer_status open_ask(struct ask *q, struct urxe_context *ctx,
				     struct urxe_peer *peer,
				     struct urxe_bouncer *b, bool committed)
{
	struct urxe_arena *a = peer->arena;

	q->ctx = ctx;
	q->peer = peer;
	q->b = b;
	q->ring = &a->ring[b - a->bouncer];
	q->committed = committed;
	return claim(q);
}

static void close_ask(struct ask *q)
{
	move_on(q, BOUNCE_FREE, memory_order_release);
}

/* How far a batch is done. */
struct progress {
	unsigned int i; /* range ... */
	uint64_t off; /* ... and byte */
};

/* As many ranges as fit; returns the number of bytes. */
static uint32_t fill(struct ask *q, const struct transfer_batch *b,
		     struct progress at)
{
	struct urxe_bounce_slot *s = q->slot;
	uint32_t bytes = 0, n = 0;
	uint64_t len;

	for (; at.i < b->n && n < URXE_BOUNCE_RANGES; at.i++, at.off = 0) {
		len = b->remote[at.i].iov_len - at.off;
		if (len > URXE_BOUNCE_BYTES - bytes)
			len = URXE_BOUNCE_BYTES - bytes;
		if (!len)
			break;
		s->range[n].va = (uintptr_t)b->remote[at.i].iov_base + at.off;
		s->range[n].length = len;
		s->range[n].key = (uint32_t)load_relaxed(&b->key[at.i]->live);
		if (b->write)
			memcpy(q->data + bytes,
			       (char *)b->local[at.i].iov_base + at.off, len);
		bytes += len;
		n++;
	}
	s->op = b->write ? URXE_BOUNCE_WRITE : URXE_BOUNCE_READ;
	s->count = n;
	return bytes;
}

/* Go on by n bytes, which a read takes along. */
static void advance(struct ask *q, const struct transfer_batch *b,
		    struct progress *at, uint32_t n)
{
	const char *from = q->data;
	uint64_t len;

	while (n) {
		len = b->remote[at->i].iov_len - at->off;
		if (len > n)
			len = n;
		if (!b->write)
			memcpy((char *)b->local[at->i].iov_base + at->off, from,
			       len);
		from += len;
		n -= len;
		at->off += len;
		if (at->off == b->remote[at->i].iov_len) {
			at->i++;
			at->off = 0;
		}
	}
}

/* One slot's worth. */
static enum transfer_status step(const struct transfer_batch *b,
				 struct urxe_bouncer *to, struct progress *at,
				 uint64_t *moved)
{
	enum transfer_status status;
	uint32_t bytes, done;
	struct ask q;

	status = open_ask(&q, b->ctx, b->peer, to, b->committed);
	if (status)
		return status;
	bytes = fill(&q, b, *at);
	status = ask(&q);
	if (status)
		return status;
	done = q.slot->done < bytes ? q.slot->done : bytes;
	if (q.slot->error == EACCES)
		status = TRANSFER_REVOKED;
	else if (q.slot->error || done < bytes)
		status = TRANSFER_FAULT;
	advance(&q, b, at, done);
	*moved += done;
	close_ask(&q);
	return status;
}

enum transfer_status bounce_flush(const struct transfer_batch *b,
				  uint64_t *moved)
{
	enum transfer_status status = TRANSFER_OK;
	struct progress at = { 0 };
	struct urxe_bouncer *to;

	to = find(b->peer->arena, b->key[0]);
	if (!to) {
		if (!fabric_context_alive(b->peer->fabric, b->peer->slot,
					  b->peer->gen))
			return TRANSFER_GONE;
		return TRANSFER_DENIED;
	}
	while (at.i < b->n && !status) {
		if (at.off == b->remote[at.i].iov_len)
			at.i++; /* an empty range */
		else
			status = step(b, to, &at, moved);
	}
	return status;
}

static bool ping(struct urxe_context *ctx, struct urxe_peer *peer,
		 struct urxe_bouncer *b)
{
	struct ask q;

	if (open_ask(&q, ctx, peer, b, false))
		return false;
	q.slot->op = URXE_BOUNCE_PING;
	q.slot->count = 0;
	if (ask(&q))
		return false;
	close_ask(&q);
	return true;
}

bool bounce_answers(struct urxe_context *ctx, struct urxe_peer *peer)
{
	struct urxe_bouncer *b = peer->arena->bouncer;
	int i, saved = errno;
	bool ok = true;

	for (i = 0; ok && i < URXE_BOUNCERS; i++, b++)
		if (load_acquire(&b->pid) && !is_gone(b))
			ok = ping(ctx, peer, b);
	errno = saved;
	return ok;
}

static int ask_persist(struct ask *q, const struct urxe_key *k)
{
	int ret;

	q->slot->op = URXE_BOUNCE_PERSIST;
	q->slot->count = 1;
	q->slot->range[0].va = k->va;
	q->slot->range[0].length = 0;
	q->slot->range[0].key = (uint32_t)load_relaxed(&k->live);
	if (ask(q))
		return -EIO;
	ret = q->slot->error ? -EIO : 0;
	close_ask(q);
	return ret;
}

int bounce_persist(struct urxe_context *ctx, struct urxe_peer *peer,
		   const struct urxe_key *k)
{
	struct urxe_bouncer *to = find(peer->arena, k);
	int ret = -EIO, saved = errno;
	struct ask q;

	if (to && !open_ask(&q, ctx, peer, to, false))
		ret = ask_persist(&q, k);
	errno = saved;
	return ret;
}

/* What a dead requester asked for is done by now, or never. */
static void cancel_dead(struct urxe_fabric *f, struct urxe_arena *a,
			struct urxe_bouncer *b)
{
	uint32_t i, n = load_acquire(&b->slots);
	_Atomic uint64_t *slot;
	int saved = errno;
	uint64_t word;

	for (i = 0; i < n && i < URXE_BOUNCE_SLOTS; i++) {
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

static bool is_dead(void *b)
{
	return !look_for_life(b);
}

void bounce_quiesce(struct urxe_fabric *f, struct urxe_arena *a)
{
	struct urxe_bouncer *b;

	for (b = a->bouncer; b < a->bouncer + URXE_BOUNCERS; b++) {
		/* if a slot was taken before we could, it is at work */
		cancel_dead(f, a, b);
		presence_wait(&b->at_work, is_dead, b);
	}
}

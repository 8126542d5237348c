// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Copy path 4 (bounce buffers): the requester's side, and the destroyer's
 * wait.
 *
 * Where process_vm_* is forbidden, a thread of the process that owns the
 * memory, the bouncer (bounce_serve.c), copies between that memory and a ring
 * of bounce buffers in its arena.  shared/bounce_slot.h has the protocol, the
 * states of a slot and the memory order; tests/model/bounce.pml checks them.
 *
 * bounce_flush(), bounce_answers(), bounce_is_stuck() and bounce_persist()
 * run in the thread of the requester.  A destroyer (of a key, QP or SRQ) and
 * the resizer of a CQ call bounce_quiesce() after they have waited for the
 * guards; flushes, which must not wait, call bounce_quiesce_try().
 *
 * What can go wrong:
 *  - The bouncer or its process ended: TRANSFER_GONE.
 *  - The bouncer lives but makes no progress (SIGSTOP): TRANSFER_GONE after
 *    BOUNCE_TIMEOUT_NS, and b->stuck spares later requests the wait.  A
 *    committed request gets TRANSFER_DENIED after BOUNCE_COMMITTED_NS.
 *  - The process has no bouncer: TRANSFER_DENIED.  The ring cannot have
 *    memory: TRANSFER_GONE, or TRANSFER_DENIED if committed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/patience.h"
#include "base/thread.h"
#include "bounce.h"
#include "engine/core/log.h"
#include "engine/core/why_note.h"

/*
 * Before it sleeps, the requester polls its slot: SPINS times without a
 * pause, then for YIELD_NS with sched_yield().  Copying a slot takes about as
 * long as waking a sleeper.
 */
#define SPINS 2000
#define YIELD_NS 40000

/* interval of checks of the bouncer, and of the owners of its slots */
#define BOUNCE_CHECK_NS 20000000ull

/* Slots that one request may use at a time; other requests need some. */
#define REQ_SLOTS 4
static_assert(REQ_SLOTS <= URXE_BOUNCE_SLOTS, "slots exist");
/* A longer message is split, so that two CPUs copy at the same time. */
#define REQ_PIECE_BYTES 16384u

/* A slot that this request has claimed. */
struct piece {
	struct urxe_bounce_slot *slot;
	uint64_t word;
	uint32_t bytes;
};

/* A request: a sequence of slots, which the bouncer serves in order. */
struct req {
	struct urxe_context *ctx;
	struct urxe_peer *peer;
	struct urxe_bouncer *b;
	struct urxe_bounce_ring *ring;
	uint64_t timeout; /* ns */
	bool committed;
	uint32_t cpu; /* the requester's CPU + 1; 0: unknown */
	bool here; /* the bouncer is bound to this CPU: sleep at once */
	/* [first, end) are posted; held: first - 1 is still claimed */
	struct piece piece[REQ_SLOTS];
	uint32_t first, end;
	bool held;
	/* the bouncer's progress counter, and how long it has not changed */
	uint32_t progress;
	struct patience patience;
	uint32_t turns; /* of a wait meanwhile */
};

static struct piece *req_piece(struct req *q, uint32_t i)
{
	return &q->piece[i % REQ_SLOTS];
}

/* Whether the bouncer's thread ended or its process is known to be dead. */
static bool bouncer_is_gone(struct urxe_bouncer *b)
{
	uint32_t owner = load_acquire(&b->owner);

	return !owner || load_acquire(&b->gone) == owner;
}

/*
 * Return the bouncer of the process that registered @k.  If it is gone,
 * return the entry of the one that is gone; NULL if there was none.
 */
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

/*
 * Whether the bouncer's thread and its process are alive.  If the process is
 * dead, record that in b->gone for all requesters.
 */
static bool bouncer_is_alive(struct urxe_fabric *f, struct urxe_bouncer *b)
{
	uint32_t owner = load_acquire(&b->owner);

	if (bouncer_is_gone(b))
		return false;
	if (!process_is_dead(f, owner))
		return true;
	store_release(&b->gone, owner);
	return false;
}

static void req_restart_clock(struct req *q)
{
	q->progress = load_relaxed(&q->b->progress);
	q->patience = patience_begin(q->timeout);
	q->turns = 0;
}

/* Whether the bouncer, which lives, made no progress for q->timeout. */
static bool req_is_overdue(struct req *q)
{
	uint32_t progress = load_relaxed(&q->b->progress);

	if (progress != q->progress) {
		req_restart_clock(q);
		return false;
	}
	return patience_ended(&q->patience);
}

/* The bouncer does not run: mark it stuck. */
static enum transfer_status req_give_up(struct req *q)
{
	urxe_note("process %d is not running: its bouncer thread does not copy",
		  (int)load_relaxed(&q->b->pid));
	store_seq_cst(&q->b->stuck, 1);
	/* when the bouncer runs again it clears `stuck` */
	event_count_ring(&q->b->wake);
	return q->committed ? TRANSFER_DENIED : TRANSFER_GONE;
}

/* Wait for the ring's memory, which the bouncer reserves at the first use. */
static enum transfer_status req_await_ring(struct req *q)
{
	if (load_acquire(&q->b->slots))
		return TRANSFER_OK;
	/* always ring: the requester that set `wanted` may be dead */
	store_seq_cst(&q->b->wanted, URXE_BOUNCE_WANTED);
	event_count_ring(&q->b->wake);
	while (!load_acquire(&q->b->slots)) {
		if (load_acquire(&q->b->wanted) == URXE_BOUNCE_REFUSED) {
			urxe_note(
				"no shared memory is left for bounce buffers");
			return q->committed ? TRANSFER_DENIED : TRANSFER_GONE;
		}
		if (!bouncer_is_alive(q->peer->fabric, q->b))
			return TRANSFER_GONE;
		if (req_is_overdue(q))
			return req_give_up(q);
		thread_give_way(++q->turns);
	}
	return TRANSFER_OK;
}

/* Claim @s, whose word is @word, for the next piece.  Acquire. */
static bool req_take_slot(struct req *q, struct urxe_bounce_slot *s,
			  uint64_t word)
{
	uint64_t mine = BOUNCE_CLAIM(word, q->ctx->slot, q->ctx->gen);

	if (!cas_acquire(&s->word, &word, mine))
		return false;
	*req_piece(q, q->end) = (struct piece){ .slot = s, .word = mine };
	event_count_init(&s->answered);
	return true;
}

/*
 * Claim a slot for the next piece: one that is free or, with @steal, one
 * whose requester is dead and that the bouncer is not serving.
 */
static bool req_find_slot(struct req *q, bool steal)
{
	uint32_t i, n = bouncer_slots(q->b);
	struct urxe_bounce_slot *s;
	uint64_t word;

	for (i = 0; i < n; i++) {
		s = &q->ring->slot[i];
		word = load_relaxed(&s->word);
		if (BOUNCE_STATE(word) != BOUNCE_FREE &&
		    (!steal || BOUNCE_STATE(word) == BOUNCE_SERVING ||
		     BOUNCE_STATE(word) == BOUNCE_LEFT ||
		     fabric_context_alive(q->peer->fabric, BOUNCE_OWNER(word),
					  BOUNCE_GEN(word))))
			continue;
		if (req_take_slot(q, s, word))
			return true;
	}
	return false;
}

/* Whether at most one slot is free: other requesters may wait for one. */
static bool req_is_crowded(const struct req *q)
{
	uint32_t i, n = bouncer_slots(q->b), unused = 0;

	for (i = 0; i < n && unused < 2; i++)
		unused += BOUNCE_STATE(load_relaxed(&q->ring->slot[i].word)) ==
			  BOUNCE_FREE;
	return unused < 2;
}

/*
 * Wait for a slot and claim it.  A request that waits here has no slot, so
 * requesters cannot wait for each other.
 *
 * A requester that posts message after message would take the slot again that
 * it has just freed: on one CPU, before a waiting requester has run.  So it
 * yields first if slots are scarce.
 */
static enum transfer_status req_await_slot(struct req *q)
{
	uint64_t checked = q->patience.checked;
	bool check = false;

	if (req_is_crowded(q))
		sched_yield();
	while (!req_find_slot(q, check)) {
		if (check && !bouncer_is_alive(q->peer->fabric, q->b))
			return TRANSFER_GONE;
		if (req_is_overdue(q))
			return req_give_up(q);
		check = q->patience.checked - checked >= BOUNCE_CHECK_NS;
		if (check)
			checked = q->patience.checked;
		thread_give_way(++q->turns);
	}
	return TRANSFER_OK;
}

/* Change the slot's state (seq_cst).  False: its word has changed. */
static bool piece_move(struct piece *p, enum bounce_state to)
{
	uint64_t word = p->word;

	if (!cas_seq_cst(&p->slot->word, &word, bounce_word(word, to)))
		return false;
	p->word = bounce_word(p->word, to);
	return true;
}

/*
 * Whether the wait can end: the slot is DONE, or its word is not this
 * request's any more, in which case there is no answer.
 */
static bool piece_is_answered(const struct piece *p)
{
	uint64_t word = load_acquire(&p->slot->word);

	return word != p->word && word != bounce_word(p->word, BOUNCE_SERVING);
}

/*
 * Release a slot whose answer was read or is not waited for any more.  A slot
 * that is being served becomes LEFT, and the bouncer frees it.
 */
static void piece_leave(struct piece *p)
{
	uint64_t serving = bounce_word(p->word, BOUNCE_SERVING);
	uint64_t done = bounce_word(p->word, BOUNCE_DONE);

	if (!piece_move(p, BOUNCE_FREE) &&
	    !cas_seq_cst(&p->slot->word, &serving,
			 bounce_word(serving, BOUNCE_LEFT)))
		cas_seq_cst(&p->slot->word, &done,
			    bounce_word(done, BOUNCE_FREE));
}

/*
 * Release all slots, the last one first: when a slot is released, its
 * successor cannot be served any more.
 */
static void req_end(struct req *q)
{
	for (; q->end != q->first; q->end--)
		piece_leave(req_piece(q, q->end - 1));
	if (q->held)
		piece_leave(req_piece(q, q->first - 1));
	q->held = false;
}

/* Post the next piece, which the caller has filled. */
static enum transfer_status req_post(struct req *q)
{
	struct piece *p = req_piece(q, q->end), *before;
	struct urxe_bounce_slot *s = p->slot;

	s->cpu = q->cpu;
	s->posted = clock_now();
	store_relaxed(&s->after, 0);
	if (q->end != q->first || q->held) {
		before = req_piece(q, q->end - 1);
		store_relaxed(&s->after_slot, before->slot - q->ring->slot);
		store_relaxed(&s->after, BOUNCE_ID(before->word));
	}
	if (!piece_move(p, BOUNCE_POSTED))
		return TRANSFER_GONE;
	q->end++;
	return TRANSFER_OK;
}

/*
 * Sleep until the answer is there, for BOUNCE_CHECK_NS at most; then check
 * that the bouncer lives and runs.  TRANSFER_OK: the caller checks for the
 * answer.
 */
static enum transfer_status req_sleep(struct req *q, struct piece *p)
{
	struct urxe_bounce_slot *s = p->slot;
	uint32_t seen = event_count_read(&s->answered);

	if (!piece_is_answered(p))
		event_count_wait(&s->answered, seen, BOUNCE_CHECK_NS);
	if (piece_is_answered(p))
		return TRANSFER_OK;
	if (!bouncer_is_alive(q->peer->fabric, q->b))
		return TRANSFER_GONE;
	if (req_is_overdue(q)) {
		req_end(q);
		return req_give_up(q);
	}
	return TRANSFER_OK;
}

/* Wait for the answer; on TRANSFER_OK it is in the piece's slot. */
static enum transfer_status req_wait(struct req *q, struct piece *p)
{
	enum transfer_status status;
	unsigned int spins = q->here ? 0 : SPINS;
	uint64_t start;

	while (spins && !piece_is_answered(p))
		spins--;
	start = q->here ? 0 : clock_now();
	while (start && !piece_is_answered(p) && clock_now() - start < YIELD_NS)
		sched_yield();
	while (!piece_is_answered(p)) {
		status = req_sleep(q, p);
		if (status)
			return status;
	}
	return load_acquire(&p->slot->word) ==
			       bounce_word(p->word, BOUNCE_DONE) ?
		       TRANSFER_OK :
		       TRANSFER_GONE;
}

/*
 * The answer to the first piece was read.  Keep its slot until the next piece
 * is answered: the bouncer remembers only the last result of each slot, and
 * serves the next piece if that result was a success.
 */
static void req_advance(struct req *q)
{
	if (q->held)
		piece_leave(req_piece(q, q->first - 1));
	q->first++;
	q->held = q->first != q->end;
	if (!q->held)
		piece_leave(req_piece(q, q->first - 1));
}

/* Start a request to bouncer @b; wait for its ring if necessary. */
static enum transfer_status req_begin(struct req *q, struct urxe_context *ctx,
				      struct urxe_peer *peer,
				      struct urxe_bouncer *b, bool committed)
{
	struct urxe_arena *a = peer->arena;

	q->ctx = ctx;
	q->peer = peer;
	q->b = b;
	q->ring = &a->ring[b - a->bouncer];
	q->committed = committed;
	q->timeout = committed ? BOUNCE_COMMITTED_NS : BOUNCE_TIMEOUT_NS;
	q->cpu = (uint32_t)sched_getcpu() + 1; /* 0: unknown */
	q->here = q->cpu && load_relaxed(&b->cpu) == q->cpu;
	q->first = q->end = 0;
	q->held = false;
	if (bouncer_is_gone(b) || (!committed && load_seq_cst(&b->stuck)))
		return TRANSFER_GONE;
	req_restart_clock(q);
	return req_await_ring(q);
}

/* ------------------------------------------------------- copying */

/* A position in the runs of a batch. */
struct run_pos {
	unsigned int run;
	uint64_t off;
};

/*
 * Skip runs that are used up; return how many bytes, at most @n, the current
 * run has left.  0: the batch has no more.
 */
static uint32_t run_pos_next(const struct transfer_batch *b, struct run_pos *at,
			     uint32_t n)
{
	uint64_t len;

	while (at->run < b->n && at->off == b->local[at->run].iov_len) {
		at->run++;
		at->off = 0;
	}
	if (at->run == b->n)
		return 0;
	len = b->local[at->run].iov_len - at->off;
	return len < n ? len : n;
}

/* Return the local address of a position. */
static char *run_pos_address(const struct transfer_batch *b,
			     const struct run_pos *at)
{
	return (char *)b->local[at->run].iov_base + at->off;
}

/*
 * Fill the next piece with as many ranges as fit, and at most @most bytes, up
 * to a range that cannot be read; return the number of bytes.  0: the first
 * range cannot be read.
 */
static uint32_t req_fill(struct req *q, const struct transfer_batch *b,
			 struct run_pos *at, uint32_t most)
{
	struct piece *p = req_piece(q, q->end);
	struct urxe_bounce_slot *s = p->slot;
	char *data = q->ring->data[s - q->ring->slot];
	uint32_t n = 0, len;

	for (; n < URXE_BOUNCE_RANGES; n++, at->off += len, p->bytes += len) {
		len = run_pos_next(b, at, most - p->bytes);
		if (!len)
			break;
		s->range[n].va =
			(uintptr_t)b->remote[at->run].iov_base + at->off;
		s->range[n].length = len;
		s->range[n].key =
			(uint32_t)load_relaxed(&b->key[at->run]->live);
		if (b->write && !transfer_local(data + p->bytes,
						run_pos_address(b, at), len))
			break;
	}
	s->op = b->write ? URXE_BOUNCE_WRITE : URXE_BOUNCE_READ;
	s->count = n;
	return p->bytes;
}

/*
 * Copy @n bytes that were read to the local runs from @at on, up to a range
 * that cannot be written.  Return the number of bytes of the ranges before.
 */
static uint32_t req_scatter(const struct transfer_batch *b, struct run_pos *at,
			    const char *from, uint32_t n)
{
	uint32_t done = 0, len;

	for (; done < n; at->off += len, done += len) {
		len = run_pos_next(b, at, n - done);
		if (!len ||
		    !transfer_local(run_pos_address(b, at), from + done, len))
			break;
	}
	return done;
}

/*
 * Post pieces of the @left bytes from @at on, as long as slots are free.
 * Wait for a slot only if the request has none.
 */
static enum transfer_status req_post_some(struct req *q,
					  const struct transfer_batch *b,
					  struct run_pos *at, uint64_t *left)
{
	enum transfer_status status = TRANSFER_OK;
	uint64_t most = *left / REQ_SLOTS;
	uint32_t n;

	if (most < REQ_PIECE_BYTES)
		most = REQ_PIECE_BYTES;
	if (q->here || most > URXE_BOUNCE_BYTES)
		most = URXE_BOUNCE_BYTES;
	while (*left && !status && q->end - q->first + q->held < REQ_SLOTS) {
		if (q->end == q->first)
			status = req_await_slot(q);
		else if (!req_find_slot(q, false))
			break;
		if (status)
			break;
		n = req_fill(q, b, at, most);
		if (unlikely(!n)) {
			piece_leave(req_piece(q, q->end));
			/* the pieces before it are taken first */
			if (q->end == q->first)
				status = TRANSFER_FAULT;
			break;
		}
		*left -= n;
		status = req_post(q);
		if (!q->here)
			event_count_ring(&q->b->wake);
	}
	if (q->here)
		event_count_ring(&q->b->wake);
	return status;
}

/* Wait for the answer to the first piece and use it. */
static enum transfer_status req_take(struct req *q,
				     const struct transfer_batch *b,
				     struct run_pos *at, uint64_t *moved)
{
	struct piece *p = req_piece(q, q->first);
	const struct urxe_bounce_slot *s = p->slot;
	enum transfer_status status = req_wait(q, p);
	uint32_t done, error, stored;

	if (status)
		return status;
	done = s->done < p->bytes ? s->done : p->bytes;
	error = s->error;
	stored = b->write ? done :
			    req_scatter(b, at, q->ring->data[s - q->ring->slot],
					done);
	*moved += stored;
	if (unlikely(stored < done))
		return TRANSFER_FAULT;
	/*
	 * ECANCELED: the bouncer cancels a piece only if its predecessor
	 * failed.  All predecessors succeeded, so the slots are damaged.
	 */
	if (error == EACCES)
		status = TRANSFER_REVOKED;
	else if (error == ECANCELED)
		status = TRANSFER_GONE;
	else if (error || done < p->bytes)
		status = TRANSFER_FAULT;
	req_advance(q);
	return status;
}

/*
 * Copy a whole batch.  If the bouncer is bound to this CPU (q->here),
 * requester and bouncer alternate: the bouncer runs when all slots are
 * posted, the requester when all of them are done.  Otherwise both copy at
 * the same time.
 */
static enum transfer_status
req_copy(struct req *q, const struct transfer_batch *b, uint64_t *moved)
{
	struct run_pos from = { 0 }, to = { 0 };
	uint64_t left = b->bytes - *moved;
	enum transfer_status status;

	do {
		status = req_post_some(q, b, &from, &left);
		if (!status && q->here)
			status = req_wait(q, req_piece(q, q->end - 1));
		while (!status && q->first != q->end) {
			status = req_take(q, b, &to, moved);
			if (left && !q->here)
				break;
		}
	} while (!status && left);
	return status;
}

enum transfer_status bounce_flush(struct transfer_batch *b, uint64_t *moved)
{
	struct urxe_bouncer *to = bouncer_of(b->peer->arena, b->key[0]);
	const uint64_t before = *moved;
	enum transfer_status status;
	struct req q;

	if (!to)
		return fabric_context_alive(b->peer->fabric, b->peer->slot,
					    b->peer->gen) ?
			       TRANSFER_DENIED :
			       TRANSFER_GONE;
	status = req_begin(&q, b->ctx, b->peer, to, b->committed);
	if (!status)
		status = req_copy(&q, b, moved);
	req_end(&q);
	iov_advance(b->local, b->n, *moved - before);
	iov_advance(b->remote, b->n, *moved - before);
	return status;
}

void bounce_why(const struct transfer_batch *b, enum transfer_status status)
{
	struct urxe_bouncer *to = bouncer_of(b->peer->arena, b->key[0]);

	if (to && !load_acquire(&to->slots) &&
	    load_acquire(&to->wanted) == URXE_BOUNCE_REFUSED)
		why_note(BOUNCE_MEMORY, b->pid);
	else if (status == TRANSFER_GONE)
		why_note(STOPPED, b->pid);
	else if (to)
		why_note(BOUNCER_STUCK, b->pid,
			 BOUNCE_COMMITTED_NS / 1000000000);
	else
		why_note(FORBIDDEN, b->pid);
}

/* Make a request that moves no bytes.  True: the bouncer served it. */
static bool bounce_request(struct urxe_context *ctx, struct urxe_peer *peer,
			   struct urxe_bouncer *b, enum urxe_bounce_op op,
			   struct urxe_bounce_range range)
{
	struct urxe_bounce_slot *s;
	enum transfer_status status;
	struct req q;
	bool ok;

	if (req_begin(&q, ctx, peer, b, false) || req_await_slot(&q))
		return false;
	if (op == URXE_BOUNCE_PERSIST) {
		q.timeout = BOUNCE_SYNC_NS;
		req_restart_clock(&q);
	}
	s = req_piece(&q, 0)->slot;
	s->op = op;
	s->count = 0;
	s->range[0] = range;
	status = req_post(&q);
	event_count_ring(&b->wake);
	if (!status)
		status = req_wait(&q, req_piece(&q, 0));
	ok = !status && !s->error;
	req_end(&q);
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

bool bounce_is_stuck(const struct urxe_peer *peer)
{
	const struct urxe_bouncer *b = peer->arena->bouncer;
	int i;

	for (i = 0; load_relaxed(&peer->bounce) && i < URXE_BOUNCERS; i++, b++)
		if (load_acquire(&b->pid) && load_seq_cst(&b->stuck))
			return true;
	return false;
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

/* Free slots that dead requesters posted and that are not being served. */
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

/* The bouncer whose work a destroyer waits for. */
struct worker {
	struct urxe_fabric *f;
	struct urxe_bouncer *b;
};

/* Callback of presence_wait_within(): the bouncer is dead. */
static bool worker_is_dead(void *arg)
{
	struct worker *w = arg;

	/* if at_work is damaged, the bouncer corrects it when it wakes up */
	event_count_ring(&w->b->wake);
	return !bouncer_is_alive(w->f, w->b);
}

bool bounce_quiesce(struct urxe_fabric *f, struct urxe_arena *a,
		    struct patience *patience)
{
	struct worker w = { .f = f, .b = a->bouncer };

	for (; w.b < a->bouncer + URXE_BOUNCERS; w.b++) {
		/* other slots are being served: at_work is odd */
		bouncer_cancel_dead(f, a, w.b);
		if (!presence_wait_within(&w.b->at_work, patience,
					  worker_is_dead, &w))
			return false;
	}
	return true;
}

bool bounce_quiesce_try(struct urxe_fabric *f, struct urxe_arena *a)
{
	struct patience patience = patience_begin(QUIESCE_TRY_NS);

	return bounce_quiesce(f, a, &patience);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Copy path 4, the thread that copies for others: shared/bounce_slot.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "bounce.h"
#include "log.h"

/*
 * Where it runs.  After work it looks around for AWAKE_NS before it sleeps, if
 * that was not in vain the last times: then it has a CPU to itself and is there
 * for the next request.  But a CPU that the program polls on without a pause
 * is not to be had for that, and hard to come by after a sleep, while the
 * requester keeps another one busy with nothing but waiting.  So whom it has to
 * be woken for again and again, or who waited while others had its CPU, it
 * follows to his CPU: there the requester sleeps at once, and to change from
 * one thread to the other is all that has to be done.
 */
#define AWAKE_NS 20000
#define VAIN_MAX 63 /* so often it does not look around then */
#define FOLLOW_AFTER 8 /* that many times from one CPU, or once ... */
#define LATE_NS 1000000 /* ... who had to wait that long */

struct urxe_bouncing {
	pthread_t thread;
	sem_t ready; /* it has its place, or gave up */
	struct urxe_context *ctx;
	struct urxe_bouncer *b; /* NULL: there are URXE_BOUNCERS already */
	struct urxe_bounce_ring *ring;
	_Atomic bool stop;
	/* by slot, the last request: was all of it done? */
	struct {
		uint64_t id;
		bool whole;
	} served[URXE_BOUNCE_SLOTS];
	/* some come later; and those that would for ever, do not */
	bool later, never;
	/* CPUs, + 1: of whom it served last, and where it is bound to; or 0 */
	uint32_t from, cpu;
	uint32_t slow, slow_from; /* how often in a row, and from there */
	bool late; /* somebody had to wait for LATE_NS */
	uint32_t vain, sleeps; /* it looked around in vain; not this often */
};

/* ------------------------------------------------------- one request */

/* What the requester says it may touch: may it?  NULL if not. */
static const struct urxe_key *serve_key(const struct urxe_context *ctx,
					const struct urxe_bounce_range *r,
					uint32_t op)
{
	const uint32_t writes = IBV_ACCESS_LOCAL_WRITE |
				IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_ATOMIC;
	const struct urxe_key *k = &ctx->arena->key[URXE_KEY_INDEX(r->key)];

	if (URXE_KEY_INDEX(r->key) >= load_acquire(&ctx->arena->key_high))
		return NULL;
	/* seq_cst: we are at_work, see presence.h */
	if (load_seq_cst(&k->live) != URXE_MR_LIVE(r->key) ||
	    !mem_is_mine(ctx->self, k) ||
	    (k->kind != URXE_MEM_PRIVATE && k->kind != URXE_MEM_FILE) ||
	    (op == URXE_BOUNCE_WRITE && !(k->access & writes)) ||
	    r->va < k->va || r->length > k->length ||
	    r->va - k->va > k->length - r->length)
		return NULL;
	return k;
}

/* Bytes that lie in one piece in the file.  0 or errno. */
static uint32_t serve_iov(int fd, off_t from, struct iovec *iov, unsigned int n,
			  uint32_t op, uint32_t bytes, uint32_t *done)
{
	ssize_t ret;

	while (*done < bytes) {
		ret = (op == URXE_BOUNCE_WRITE ? preadv : pwritev)(
			fd, iov, (int)n, from + *done);
		if (ret < 0 && errno == EINTR)
			continue;
		if (ret <= 0)
			return ret ? (uint32_t)errno : EFAULT;
		*done += ret;
		iov_advance(iov, n, ret);
	}
	return 0;
}

static uint32_t serve_copy(struct urxe_bouncing *s,
			   const struct urxe_bounce_slot *slot, uint32_t op,
			   uint32_t *done)
{
	const struct urxe_context *ctx = s->ctx;
	const char *data = s->ring->data[slot - s->ring->slot];
	struct iovec iov[URXE_BOUNCE_RANGES];
	uint32_t i, n = slot->count, bytes = 0, error = 0, failed;
	struct urxe_bounce_range r;

	if (n > URXE_BOUNCE_RANGES)
		return EINVAL;
	for (i = 0; i < n; i++) {
		r = slot->range[i]; /* once: what was checked is what is used */
		if (!r.length || r.length > URXE_BOUNCE_BYTES - bytes ||
		    !serve_key(ctx, &r, op)) {
			error = EACCES;
			n = i; /* what comes before it is done */
			break;
		}
		iov[i].iov_base = (void *)(uintptr_t)r.va;
		iov[i].iov_len = r.length;
		bytes += r.length;
	}
	failed = serve_iov(ctx->cmd_fd, data - (const char *)ctx->arena, iov, n,
			   op, bytes, done);
	return failed ? failed : error;
}

static uint32_t serve_persist(struct urxe_bouncing *s,
			      const struct urxe_bounce_slot *slot)
{
	struct urxe_bounce_range r = slot->range[0];
	const struct urxe_key *k = serve_key(s->ctx, &r, URXE_BOUNCE_PERSIST);

	return k ? -mem_persist(s->ctx->self, k) : EACCES;
}

/* Is it its turn? */
enum turn { TURN_NOW, TURN_LATER, TURN_NEVER };

static enum turn serve_turn(struct urxe_bouncing *s,
			    const struct urxe_bounce_slot *slot)
{
	uint64_t after = load_relaxed(&slot->after), word;
	uint32_t i = load_relaxed(&slot->after_slot);

	if (!after)
		return TURN_NOW;
	if (i >= URXE_BOUNCE_SLOTS)
		return TURN_NEVER;
	if (s->served[i].id == after)
		return s->served[i].whole ? TURN_NOW : TURN_NEVER;
	word = load_acquire(&s->ring->slot[i].word);
	if (word != bounce_word(after, BOUNCE_POSTED) || s->never)
		return TURN_NEVER;
	s->later = true;
	return TURN_LATER;
}

static void serve_slot(struct urxe_bouncing *s, struct urxe_bounce_slot *slot,
		       uint64_t word, enum turn turn)
{
	uint32_t op = slot->op, done = 0, error = 0, i = slot - s->ring->slot;

	fetch_add_relaxed(&s->b->beat, 1);
	s->from = slot->cpu;
	s->late |= clock_now() - slot->posted > LATE_NS;
	if (turn == TURN_NEVER)
		error = ECANCELED;
	else if (op == URXE_BOUNCE_WRITE || op == URXE_BOUNCE_READ)
		error = serve_copy(s, slot, op, &done);
	else if (op == URXE_BOUNCE_PERSIST)
		error = serve_persist(s, slot);
	s->served[i].id = BOUNCE_ID(word);
	s->served[i].whole = !error;
	slot->error = error;
	slot->done = done;
	if (cas_seq_cst(&slot->word, &word, bounce_word(word, BOUNCE_DONE)))
		event_count_ring(&slot->answered);
	else if (BOUNCE_STATE(word) == BOUNCE_LEFT)
		store_release(&slot->word, bounce_word(word, BOUNCE_FREE));
}

static bool serve_if_posted(struct urxe_bouncing *s,
			    struct urxe_bounce_slot *slot)
{
	uint64_t word = load_acquire(&slot->word);
	enum turn turn;
	bool taken;

	if (BOUNCE_STATE(word) != BOUNCE_POSTED)
		return false;
	turn = serve_turn(s, slot);
	if (turn == TURN_LATER)
		return false;
	presence_enter(&s->b->at_work);
	taken = cas_seq_cst(&slot->word, &word,
			    bounce_word(word, BOUNCE_SERVING));
	if (taken)
		serve_slot(s, slot, bounce_word(word, BOUNCE_SERVING), turn);
	presence_leave(&s->b->at_work);
	return taken;
}

static bool serve_all(struct urxe_bouncing *s)
{
	uint32_t i, n = bouncer_slots(s->b);
	bool any = false;

	s->later = false;
	for (i = 0; i < n; i++)
		any |= serve_if_posted(s, &s->ring->slot[i]);
	/* they wait for each other: that is damage */
	s->never = s->later && !any;
	return any || s->never;
}

/* ------------------------------------------------------- the thread */

/* Slots that a bouncer before us left: their requesters see it and go. */
static void bouncer_clear_slots(struct urxe_bounce_ring *ring, uint32_t n)
{
	uint64_t word;
	uint32_t i;

	for (i = 0; i < n; i++) {
		word = load_relaxed(&ring->slot[i].word);
		store_release(&ring->slot[i].word,
			      (word & ~(BOUNCE_COUNT_ONE - 1)) +
				      BOUNCE_COUNT_ONE);
	}
}

/* Memory for the ring: all of it, or for one slot, or none. */
static void bouncer_reserve(struct urxe_bouncing *s)
{
	uint64_t at = (char *)s->ring - (char *)s->ctx->arena;
	uint64_t data = offsetof(struct urxe_bounce_ring, data);
	enum urxe_bounce_wanted wanted = URXE_BOUNCE_UNWANTED;
	uint32_t n = 0;

	if (!arena_reserve(s->ctx->cmd_fd, at, sizeof(*s->ring)))
		n = URXE_BOUNCE_SLOTS;
	else if (!arena_reserve(s->ctx->cmd_fd, at, data + URXE_BOUNCE_BYTES))
		n = 1;
	else
		wanted = URXE_BOUNCE_REFUSED;
	bouncer_clear_slots(s->ring, n);
	store_release(&s->b->slots, n);
	store_release(&s->b->wanted, wanted);
}

/* A bouncer's place that nobody has. */
static struct urxe_bouncer *bouncer_claim(struct urxe_context *ctx)
{
	struct urxe_arena *a = ctx->arena;
	uint32_t owner, me = process_id(ctx->fabric);
	struct urxe_bouncer *b;
	int round;

	/* those that were never used first: who asks for a dead one learns it
	 */
	for (round = 0; me && round < 2; round++) {
		for (b = a->bouncer; b < a->bouncer + URXE_BOUNCERS; b++) {
			owner = load_acquire(&b->owner);
			if (!round && load_relaxed(&b->pid))
				continue;
			if (owner && !process_is_dead(ctx->fabric, owner))
				continue;
			if (cas_acq_rel(&b->owner, &owner, me))
				return b;
		}
	}
	return NULL;
}

static void bouncer_announce(struct urxe_bouncing *s)
{
	struct urxe_bouncer *b = s->b;

	presence_clear(&b->at_work); /* what a dead one was at is over */
	store_release(&b->pid, 0);
	bouncer_clear_slots(s->ring, bouncer_slots(b));
	event_count_init(&b->wake);
	store_relaxed(&b->stuck, 0);
	store_relaxed(&b->cpu, 0);
	store_relaxed(&b->foreign, s->ctx->self->my_flag != 0);
	store_release(&b->pid, urxe_pid);
}

/* Run where the requester waits; not if that is none of our cgroup's CPUs. */
static void bouncer_follow(struct urxe_bouncing *s)
{
	cpu_set_t there;

	if (s->from > CPU_SETSIZE)
		return;
	CPU_ZERO(&there);
	CPU_SET(s->from - 1, &there);
	if (sched_setaffinity(0, sizeof(there), &there))
		return;
	s->cpu = s->from;
	store_relaxed(&s->b->cpu, s->cpu);
}

/* It has served; woken: it was asleep when the request came. */
static void bouncer_note(struct urxe_bouncing *s, bool woken)
{
	bool late = s->late, slow = woken || late;

	s->late = false;
	if (!slow || !s->from || s->from == s->cpu || s->from != s->slow_from)
		s->slow = 0;
	s->slow_from = s->from;
	if (!slow || !s->from || s->from == s->cpu)
		return;
	s->slow += late ? FOLLOW_AFTER : 1;
	if (s->slow < FOLLOW_AFTER)
		return;
	s->slow = 0;
	bouncer_follow(s);
}

/* How long to look around, after work. */
static uint64_t bouncer_awake(struct urxe_bouncing *s)
{
	if (s->cpu && s->from == s->cpu)
		return 0; /* the requester wants the CPU */
	if (!s->sleeps)
		return AWAKE_NS;
	s->sleeps--;
	return 0;
}

/* That was in vain. */
static void bouncer_rest(struct urxe_bouncing *s)
{
	s->vain = 2 * s->vain + 1;
	if (s->vain > VAIN_MAX)
		s->vain = VAIN_MAX;
	s->sleeps = s->vain;
}

static void bouncer_look_after(struct urxe_bouncing *s)
{
	struct urxe_bouncer *b = s->b;

	if (load_seq_cst(&b->stuck))
		store_seq_cst(&b->stuck, 0);
	if (presence_is_inside(&b->at_work)) /* damaged: we are here */
		presence_clear(&b->at_work);
	if (!bouncer_slots(b) && load_seq_cst(&b->wanted) == URXE_BOUNCE_WANTED)
		bouncer_reserve(s);
}

static void bouncer_work(struct urxe_bouncing *s)
{
	uint64_t now = clock_now(), last = now, awake = 0;
	bool woken = true;
	uint32_t seen;

	for (;;) {
		seen = event_count_read(&s->b->wake);
		if (load_acquire(&s->stop))
			return;
		bouncer_look_after(s);
		if (serve_all(s)) {
			now = last = clock_now();
			bouncer_note(s, woken);
			if (!woken)
				s->vain = s->sleeps = 0;
			awake = bouncer_awake(s);
			woken = false;
		} else if (now - last >= awake) {
			if (awake)
				bouncer_rest(s);
			awake = 0;
			event_count_wait(&s->b->wake, seen, EVENT_COUNT_NAP);
			woken = true;
			now = clock_now();
		} else {
			now = clock_now();
		}
	}
}

static void *bouncer_main(void *arg)
{
	struct urxe_bouncing *s = arg;

	s->b = bouncer_claim(s->ctx);
	if (s->b) {
		s->ring = &s->ctx->arena->ring[s->b - s->ctx->arena->bouncer];
		bouncer_announce(s);
	} else {
		urxe_note(
			"%d processes copy for others in this context: no more",
			URXE_BOUNCERS);
	}
	sem_post(&s->ready);
	if (!s->b)
		return NULL;
	bouncer_work(s);
	store_release(&s->b->owner, 0);
	return NULL;
}

/* ------------------------------------------------------- its life */

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;

void bounce_lock(void)
{
	pthread_mutex_lock(&start_lock);
}

void bounce_unlock(void)
{
	pthread_mutex_unlock(&start_lock);
}

/* False: there is none, because no thread can be made. */
static bool bouncer_start(struct urxe_context *ctx)
{
	struct urxe_bouncing *s;
	bool ok;

	pthread_mutex_lock(&start_lock);
	if (ctx->bouncing || !(s = calloc(1, sizeof(*s))))
		goto out;
	s->ctx = ctx;
	sem_init(&s->ready, 0, 0);
	if (thread_start(&s->thread, bouncer_main, s)) {
		ctx->bouncing = s;
		while (sem_wait(&s->ready) && errno == EINTR)
			;
	} else {
		sem_destroy(&s->ready);
		free(s);
	}
out:
	ok = ctx->bouncing;
	pthread_mutex_unlock(&start_lock);
	return ok;
}

void bounce_stop(struct urxe_context *ctx)
{
	struct urxe_bouncing *s = ctx->bouncing;

	if (!s)
		return;
	store_release(&s->stop, true);
	if (s->b)
		event_count_ring(&s->b->wake);
	pthread_join(s->thread, NULL);
	ctx->bouncing = NULL;
	sem_destroy(&s->ready);
	free(s);
}

/* Is process_vm_* forbidden to this process, whatever the target? */
static bool bounce_is_needed(void)
{
	static _Atomic int known; /* 0: not yet, 1: no, 2: yes */
	char from = 0, to;
	struct iovec here = { &to, 1 }, there = { &from, 1 };
	int answer = load_relaxed(&known), saved = errno;

	if (!answer) {
		answer = 2;
		if (process_vm_readv(urxe_pid, &here, 1, &there, 1, 0) == 1 &&
		    process_vm_writev(urxe_pid, &here, 1, &there, 1, 0) == 1)
			answer = 1;
		store_relaxed(&known, answer);
		errno = saved;
	}
	return answer == 2;
}

static int bounce_begin(struct urxe_context *ctx)
{
	if (bouncer_start(ctx))
		return 0;
	if (bounce_is_needed() || ctx->self->foreign_pids)
		return fabric_fail(
			EAGAIN,
			"no thread can be made that copies for others, and they may not do it");
	urxe_note(
		"no thread can be made that copies for others: who may not call process_vm_* does not reach this memory");
	return 0;
}

int bounce_expose(struct urxe_context *ctx)
{
	store_seq_cst(&ctx->exposed, true);
	return load_seq_cst(&ctx->has_private) ? bounce_begin(ctx) : 0;
}

int bounce_private(struct urxe_context *ctx)
{
	store_seq_cst(&ctx->has_private, true);
	return load_seq_cst(&ctx->exposed) || bounce_is_needed() ?
		       bounce_begin(ctx) :
		       0;
}

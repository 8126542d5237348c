// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Copy path 4 (bounce buffers): the bouncer.
 *
 * The bouncer is a thread that copies between the memory of its process and a
 * ring of bounce buffers in the context's arena, for requesters that may not
 * call process_vm_*.  shared/bounce_slot.h has the protocol, the states of a
 * slot and the memory order; tests/model/bounce.pml checks them.
 *
 * A process starts a bouncer for a context when private memory is registered
 * in it and other processes may access it, or when process_vm_* is forbidden
 * even on itself (bounce.h).  A context has at most URXE_BOUNCERS.
 * bounce_private() and bounce_expose() start it, under start_lock;
 * context_close() stops it.  It takes no lock, allocates nothing from the
 * heap and executes no work requests, so that requesters can wait for it.  It
 * does not trust requesters: it looks up each key again and reads each range
 * once.
 *
 * If no thread can be made, requesters that may not call process_vm_* do not
 * reach this memory.  That is an error (EAGAIN) only where it is known that
 * requesters need the bouncer.
 */
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
#include "engine/core/log.h"

/*
 * Polling and CPU placement.
 *
 * After work the bouncer polls for AWAKE_NS before it sleeps.  If that finds
 * nothing, it sleeps at once the next times (exponential backoff, at most
 * IDLE_ROUNDS_MAX times).  A bouncer that has a CPU to itself is thus ready for
 * the next request.
 *
 * If the program polls on that CPU without a pause, the bouncer cannot poll
 * there, and gets the CPU late after a sleep.  Meanwhile the requester keeps
 * another CPU busy by waiting.  So the bouncer binds itself to the
 * requester's CPU if it had to be woken FOLLOW_AFTER times in a row for
 * requests from that CPU, or if one of them waited for LATE_NS.  There the
 * requester sleeps at once, and a request costs two context switches.
 */
#define AWAKE_NS 20000
#define IDLE_ROUNDS_MAX 63 /* sleeps without polling before, at most */
#define FOLLOW_AFTER 8 /* slow requests in a row from one CPU */
#define LATE_NS 1000000 /* or one that waited that long */

struct urxe_bouncing {
	pthread_t thread;
	sem_t ready; /* posted when b is set, or there is none */
	bool realtime; /* the thread has real-time priority */
	struct urxe_context *ctx;
	struct urxe_bouncer *b; /* NULL: the context has URXE_BOUNCERS */
	struct urxe_bounce_ring *ring;
	_Atomic bool stop;
	/* by slot: the last request, and whether all of it was done */
	struct {
		uint64_t id;
		bool whole;
	} served[URXE_BOUNCE_SLOTS];
	/* later: a slot waits for its predecessor; never: cancel those */
	bool later, never;
	/* CPU + 1 of the last requester, and to which it is bound; 0: none */
	uint32_t from, cpu;
	uint32_t slow, slow_from; /* slow requests in a row; their CPU + 1 */
	bool late; /* a request waited for LATE_NS */
	/* backoff of polling; sleeps until it polls */
	uint32_t idle_rounds, sleeps;
};

/* ------------------------------------------------------- one request */

/*
 * Check a range that the requester names; return its key, or NULL if @op may
 * not touch the range.
 */
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
	/* seq_cst: at_work was set before, see presence.h */
	if (load_seq_cst(&k->live) != URXE_MR_LIVE(r->key) ||
	    !mem_is_mine(ctx->self, k) ||
	    (k->kind != URXE_MEM_PRIVATE && k->kind != URXE_MEM_FILE) ||
	    (op == URXE_BOUNCE_WRITE && !(k->access & writes)) ||
	    r->va < k->va || r->length > k->length ||
	    r->va - k->va > k->length - r->length)
		return NULL;
	return k;
}

/*
 * Copy between the ring, from @data on, and @iov.  0 or EFAULT; *done counts
 * the bytes that were copied.
 */
static uint32_t serve_mapped(char *data, const struct iovec *iov,
			     unsigned int n, uint32_t op, uint32_t *done)
{
	struct nofault f;

	for (; n; n--, iov++) {
		f = op == URXE_BOUNCE_WRITE ?
			    nofault_copy(iov->iov_base, data + *done,
					 iov->iov_len) :
			    nofault_copy(data + *done, iov->iov_base,
					 iov->iov_len);
		*done += iov->iov_len - f.left;
		if (f.left)
			return EFAULT;
	}
	return 0;
}

/*
 * The same by the kernel, where nofault.h has no signal handler: the data is
 * in file @fd, from offset @from on.  0 or errno.
 */
static uint32_t serve_file(int fd, off_t from, struct iovec *iov,
			   unsigned int n, uint32_t op, uint32_t bytes,
			   uint32_t *done)
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

/* Serve a READ or WRITE slot, up to the first range that is refused. */
static uint32_t serve_copy(struct urxe_bouncing *s,
			   const struct urxe_bounce_slot *slot, uint32_t op,
			   uint32_t *done)
{
	const struct urxe_context *ctx = s->ctx;
	char *data = s->ring->data[slot - s->ring->slot];
	struct iovec iov[URXE_BOUNCE_RANGES];
	uint32_t i, n = slot->count, bytes = 0, error = 0, failed;
	struct urxe_bounce_range r;

	if (n > URXE_BOUNCE_RANGES)
		return EINVAL;
	for (i = 0; i < n; i++) {
		r = slot->range[i]; /* copy: the requester can change it */
		if (!r.length || r.length > URXE_BOUNCE_BYTES - bytes ||
		    !serve_key(ctx, &r, op)) {
			error = EACCES;
			n = i; /* the ranges before it are served */
			break;
		}
		iov[i].iov_base = (void *)(uintptr_t)r.va;
		iov[i].iov_len = r.length;
		bytes += r.length;
	}
	failed = nofault_is_safe() ? serve_mapped(data, iov, n, op, done) :
				     serve_file(ctx->cmd_fd,
						data - (const char *)ctx->arena,
						iov, n, op, bytes, done);
	return failed ? failed : error;
}

static uint32_t serve_persist(struct urxe_bouncing *s,
			      const struct urxe_bounce_slot *slot)
{
	struct urxe_bounce_range r = slot->range[0];
	const struct urxe_key *k = serve_key(s->ctx, &r, URXE_BOUNCE_PERSIST);

	return k ? -mem_persist(s->ctx->self, k) : EACCES;
}

enum turn { TURN_NOW, TURN_LATER, TURN_NEVER };

/*
 * Whether a posted slot can be served: now, later because its predecessor is
 * only posted, or never because that failed or was left.
 */
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

	fetch_add_relaxed(&s->b->progress, 1);
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
	/* slots that wait for each other are damaged: cancel them */
	s->never = s->later && !any;
	return any || s->never;
}

/* ------------------------------------------------------- the thread */

/*
 * Free the slots of a previous bouncer, with a new count: requesters that
 * wait see another word and give up.
 */
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

/* Reserve memory for the ring: for all slots, for one, or none. */
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

/* Claim a free entry of arena.bouncer[]; NULL: there is none. */
static struct urxe_bouncer *bouncer_claim(struct urxe_context *ctx)
{
	struct urxe_arena *a = ctx->arena;
	uint32_t owner, me = process_id(ctx->fabric);
	struct urxe_bouncer *b;
	int round;

	/*
	 * Take entries that were never used first: the entry of a dead
	 * bouncer tells requesters that it is dead.
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

/* Initialize the entry; its pid is stored last (release). */
static void bouncer_announce(struct urxe_bouncing *s)
{
	struct urxe_bouncer *b = s->b;

	presence_clear(&b->at_work); /* the previous bouncer is dead */
	store_release(&b->pid, 0);
	bouncer_clear_slots(s->ring, bouncer_slots(b));
	event_count_init(&b->wake);
	store_relaxed(&b->stuck, 0);
	store_relaxed(&b->cpu, 0);
	store_relaxed(&b->foreign, s->ctx->self->my_flag != 0);
	store_release(&b->pid, urxe_pid);
}

/*
 * Bind the thread to the CPU on which the requester waits.  Without effect if
 * the cgroup does not have that CPU.
 */
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

/* Account for a request that was served; @woken: the bouncer slept before. */
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

/* Return how long to poll after work, ns. */
static uint64_t bouncer_awake(struct urxe_bouncing *s)
{
	if (s->realtime || (s->cpu && s->from == s->cpu))
		return 0; /* the program or the requester needs the CPU */
	if (!s->sleeps)
		return AWAKE_NS;
	s->sleeps--;
	return 0;
}

/* Polling found nothing: double the number of sleeps without it. */
static void bouncer_rest(struct urxe_bouncing *s)
{
	s->idle_rounds = 2 * s->idle_rounds + 1;
	if (s->idle_rounds > IDLE_ROUNDS_MAX)
		s->idle_rounds = IDLE_ROUNDS_MAX;
	s->sleeps = s->idle_rounds;
}

/* Clear `stuck`, correct a damaged at_work, make the ring if wanted. */
static void bouncer_check_state(struct urxe_bouncing *s)
{
	struct urxe_bouncer *b = s->b;

	if (load_seq_cst(&b->stuck))
		store_seq_cst(&b->stuck, 0);
	if (presence_is_inside(&b->at_work)) /* damaged: it is not serving */
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
		bouncer_check_state(s);
		if (serve_all(s)) {
			now = last = clock_now();
			bouncer_note(s, woken);
			if (!woken)
				s->idle_rounds = s->sleeps = 0;
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

	nofault_begin_thread();
	s->realtime = thread_is_realtime();
	s->b = bouncer_claim(s->ctx);
	if (s->b) {
		s->ring = &s->ctx->arena->ring[s->b - s->ctx->arena->bouncer];
		bouncer_announce(s);
	} else {
		urxe_note(
			"no bouncer thread for this process: the context already has %d bouncers",
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

/* Start the bouncer unless it runs.  False: no memory or no thread. */
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

/* Whether process_vm_* is forbidden to this process even on itself. */
static bool bounce_is_needed(void)
{
	static _Atomic int known; /* 0: not tried, 1: no, 2: yes */
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
			"the bouncer thread cannot be created, and peers are not permitted to access the memory of this process");
	urxe_note(
		"the bouncer thread cannot be created: peers that are denied process_vm_readv and process_vm_writev cannot access this memory");
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

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The completion ring: laps, wrap of positions, full and closed rings, dead
 * claimers, and producers during a replacement of the ring.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "shared/cq_ring.h"
#include "unit.h"

#define DEPTH 8

static struct urxe_cqe ring[DEPTH];
static _Atomic uint64_t claims[DEPTH];
static _Atomic uint32_t hint, head_seen, head_told;
static const struct cq_ring view = { ring,  claims,	DEPTH - 1,
				     &hint, &head_seen, &head_told };
static uint32_t head;

static void start(uint32_t first)
{
	memset(ring, 0xff, sizeof(ring));
	memset(claims, 0xff, sizeof(claims));
	cq_ring_init(&view, first);
	head = first;
}

static bool produce(uint64_t what)
{
	struct cq_slot s;

	if (cq_ring_claim(&view, 5, &s) != CQ_CLAIMED)
		return false;
	s.cqe->wr_id = what;
	cq_ring_publish(s.cqe, s.pos, memory_order_release);
	return true;
}

static struct urxe_cqe *ready(const struct cq_ring *r, uint32_t pos)
{
	struct urxe_cqe *e = &r->entry[pos & r->mask];

	return cq_ring_is_ready(e, pos) ? e : NULL;
}

static int64_t consume(void)
{
	struct urxe_cqe *e = ready(&view, head);
	int64_t what;

	if (!e)
		return -1;
	what = (int64_t)e->wr_id;
	cq_ring_release(&view, ++head);
	return what;
}

START_TEST(cqe_word_fields)
{
	uint64_t w = cqe_word(0xfedcba98, 0xabcdef, CQE_CLAIMED);

	ck_assert_uint_eq(cqe_pos(w), 0xfedcba98);
	ck_assert_uint_eq(cqe_owner(w), 0xabcdef);
	ck_assert_int_eq(cqe_state(w), CQE_CLAIMED);
}
END_TEST

/*
 * Positions start shortly before the wrap; batches of different sizes shift
 * the phase.
 */
START_TEST(ring_wraps)
{
	int64_t in = 0, out = 0;
	int i, j;

	start(0xffffffe0);
	for (i = 0; i < 100; i++) {
		for (j = 0; j <= i % DEPTH; j++)
			ck_assert(produce(in++));
		for (j = 0; j <= i % DEPTH; j++)
			ck_assert_int_eq(consume(), out++);
		ck_assert_int_eq(consume(), -1);
	}
	ck_assert_uint_lt(head, 0x1000); /* positions wrapped */
}
END_TEST

START_TEST(ring_full)
{
	const uint32_t first[] = { 0, 3, 0x80000000, 0xfffffffc };
	struct cq_slot s;
	uint32_t pos;
	size_t i;
	int j;

	for (i = 0; i < sizeof(first) / sizeof(*first); i++) {
		start(first[i]);
		for (j = 0; j < DEPTH; j++)
			ck_assert(produce(j));
		ck_assert_int_eq(cq_ring_claim(&view, 5, &s), CQ_FULL);
		ck_assert(!cq_ring_close(&view, &pos));
		ck_assert_int_eq(consume(), 0);
		ck_assert(produce(DEPTH));
		ck_assert(!produce(9));
		for (j = 1; j <= DEPTH; j++)
			ck_assert_int_eq(consume(), j);
	}
}
END_TEST

/* A stale hint, by less than a lap or by many, costs time only. */
START_TEST(late_hint)
{
	int64_t n = 0;
	int i;

	start(0xfffffff0);
	for (i = 0; i < 40; i++) {
		ck_assert(produce(n));
		ck_assert_int_eq(consume(), n++);
	}
	hint -= 3;
	ck_assert(produce(n));
	hint -= 30;
	ck_assert(produce(n + 1));
	ck_assert_int_eq(consume(), n);
	ck_assert_int_eq(consume(), n + 1);
}
END_TEST

/*
 * A corrupted hint costs a producer some steps, or makes the ring appear
 * full.
 */
START_TEST(damaged_hint)
{
	uint32_t lag, i;

	start(0xfffffff0);
	for (lag = 1; lag < 1u << 31; lag += 0x1234567) {
		atomic_store(&hint, head - lag);
		ck_assert(produce(lag));
		ck_assert_int_eq(consume(), lag);
	}
	for (i = 0; i < DEPTH; i++)
		atomic_store(&claims[i], cqe_word(0x70000000 * i, 9, 77));
	for (i = 0; i < 100; i++) {
		atomic_store(&hint, 0x7654321 * i);
		ck_assert(!produce(1));
	}
}
END_TEST

START_TEST(claimed_is_not_ready)
{
	struct cq_slot a, b;

	start(7);
	ck_assert_int_eq(cq_ring_claim(&view, 1, &a),
			 CQ_CLAIMED);
	ck_assert_int_eq(cq_ring_claim(&view, 2, &b),
			 CQ_CLAIMED);
	ck_assert_uint_eq(b.pos, a.pos + 1);
	b.cqe->wr_id = 2;
	cq_ring_publish(b.cqe, b.pos, memory_order_release);
	ck_assert_int_eq(consume(), -1); /* in the order of claims */
	a.cqe->wr_id = 1;
	cq_ring_publish(a.cqe, a.pos, memory_order_seq_cst);
	ck_assert_int_eq(consume(), 1);
	ck_assert_int_eq(consume(), 2);
}
END_TEST

START_TEST(dead_claimer)
{
	struct cq_slot s;
	uint64_t w;
	int lap;

	start(0xfffffffd);
	for (lap = 0; lap < 3 * DEPTH; lap++) {
		ck_assert_int_eq(cq_ring_claim(&view, 77, &s), CQ_CLAIMED);
		ck_assert(produce(lap));
		w = claims[head & (DEPTH - 1)];
		ck_assert(cq_ring_is_claimed(w, head));
		ck_assert_uint_eq(cqe_owner(w), 77);
		ck_assert_int_eq(consume(), -1);
		cq_ring_release(&view, ++head);
		ck_assert_int_eq(consume(), lap);
		/*
		 * the released slot is not taken for a claim of the next lap
		 */
		ck_assert(!cq_ring_is_claimed(w, head - 2 + DEPTH));
	}
	/* the claimer was slow, not dead */
	ck_assert_int_eq(cq_ring_claim(&view, 77, &s),
			 CQ_CLAIMED);
	s.cqe->wr_id = 1000;
	cq_ring_publish(s.cqe, s.pos, memory_order_release);
	ck_assert(cq_ring_is_claimed(claims[head & (DEPTH - 1)], head));
	ck_assert_int_eq(consume(), 1000);
}
END_TEST

/* Each state that the protocol can produce is valid. */
START_TEST(valid_states)
{
	struct cq_slot s;
	uint32_t end;
	int i;

	start(0xfffffffb);
	for (i = 0; i < 3 * DEPTH; i++) {
		ck_assert(cq_ring_valid(&view));
		ck_assert_int_eq(cq_ring_claim(&view, 3, &s), CQ_CLAIMED);
		ck_assert(cq_ring_valid(&view));
		cq_ring_publish(s.cqe, s.pos, memory_order_release);
		ck_assert(cq_ring_valid(&view));
		if (i % 3)
			consume();
		while (i >= DEPTH && consume() >= 0)
			;
	}
	for (i = 0; i < DEPTH; i++)
		ck_assert(produce(i));
	ck_assert_msg(cq_ring_valid(&view), "full");
	consume();
	ck_assert(cq_ring_close(&view, &end));
	ck_assert_msg(cq_ring_valid(&view), "ended");
}
END_TEST

static bool valid_with(_Atomic uint64_t *at, uint64_t word)
{
	uint64_t was = *at;
	bool valid;

	*at = word;
	valid = cq_ring_valid(&view);
	*at = was;
	return valid;
}

START_TEST(invalid_states)
{
	start(0);
	produce(0);
	produce(1);
	ck_assert(cq_ring_valid(&view));
	ck_assert(!valid_with(&claims[1], cqe_word(0, 0, CQE_CLAIMED)));
	ck_assert(!valid_with(&claims[1], cqe_word(9 + DEPTH, 0, CQE_CLAIMED)));
	ck_assert(!valid_with(&claims[1], cqe_word(1, 0, CQE_MOVED + 1)));
	ck_assert(!valid_with(&claims[1], cqe_word(1, 0, CQE_READY)));
	ck_assert(valid_with(&claims[1], cqe_word(1, 0xffffff, CQE_CLAIMED)));
	ck_assert(valid_with(&claims[1], cqe_word(1, 0, CQE_MOVED)));
	ck_assert(!valid_with(&claims[1], cqe_word(1, 7, CQE_MOVED)));
	/* no slot after a free one is claimed */
	ck_assert(!valid_with(&claims[0], cqe_word(0 - DEPTH, 0, CQE_CLAIMED)));
	ck_assert(!valid_with(&claims[3], cqe_word(3, 0, CQE_CLAIMED)));
	/* a ring that was closed after its first entry has no second one */
	ck_assert(!valid_with(&claims[0], cqe_word(0, 0, CQE_MOVED)));
	/* an entry that was not claimed is not filled */
	ck_assert(valid_with(&ring[1].word, cqe_word(1 - DEPTH, 0, CQE_READY)));
	ck_assert(!valid_with(&ring[1].word, cqe_word(1, 7, CQE_READY)));
	ck_assert(!valid_with(&ring[1].word, cqe_word(1, 0, CQE_CLAIMED)));
	ck_assert(!valid_with(&ring[1].word, cqe_word(2, 0, CQE_READY)));
	ck_assert(!valid_with(&ring[1].word,
			      cqe_word(1 + DEPTH, 0, CQE_READY)));
}
END_TEST

START_TEST(ring_closed)
{
	struct cq_slot s;
	uint32_t end, n;

	for (n = 0; n < DEPTH; n++) {
		uint32_t i;

		start(0xfffffffa);
		for (i = 0; i < n; i++)
			ck_assert(produce(i));
		hint -= n / 2;
		ck_assert(cq_ring_close(&view, &end));
		ck_assert_uint_eq(end, 0xfffffffa + n);
		/* the same with an older hint */
		for (i = 0; i <= n; i++) {
			hint = 0xfffffffa + i;
			ck_assert_int_eq(cq_ring_claim(&view, 5, &s), CQ_MOVED);
		}
		for (i = 0; i < n; i++)
			ck_assert_int_eq(consume(), i);
		ck_assert_uint_eq(head, end);
		ck_assert_int_eq(consume(), -1);
		/* released slots do not reopen the ring */
		hint = 0xfffffffa;
		ck_assert_int_eq(cq_ring_claim(&view, 5, &s), CQ_MOVED);
	}
}
END_TEST

/* ------------------------------------------------------- with threads */

#define PRODUCERS 3
#define EACH ((unsigned int)turns_of(100000))
#define MAX_DEPTH 32

/* As in struct urxe_cq_sh; a ring's index stands for its address. */
static struct {
	struct urxe_cqe entry[MAX_DEPTH];
	_Atomic uint64_t claim[MAX_DEPTH];
} rings[2];
static uint32_t masks[2];
static _Atomic uint32_t hints[2], seen[2], heads[2];

static struct cq_ring ring_of(uint64_t gen)
{
	return (struct cq_ring){ rings[gen & 1].entry, rings[gen & 1].claim,
				 masks[gen & 1],       &hints[gen & 1],
				 &seen[gen & 1],       &heads[gen & 1] };
}

/* generations; the parity is the ring's index */
static _Atomic uint64_t now, next;
static struct urxe_guard guard[PRODUCERS];

static void put(uint64_t what)
{
	enum cq_claim got = CQ_FULL;
	struct cq_ring r;
	struct cq_slot s;
	uint64_t gen;
	int hop;

	gen = atomic_load_explicit(&now, memory_order_seq_cst);
	/* delay some producers at the critical points */
	if (what % 16 == 5)
		sched_yield();
	for (hop = 0; hop < 2; hop++) {
		r = ring_of(gen);
		got = cq_ring_claim(&r, 1, &s);
		if (got != CQ_MOVED)
			break;
		gen = atomic_load_explicit(&next, memory_order_relaxed);
	}
	if (got != CQ_CLAIMED)
		abort();
	if (what % 16 == 12)
		sched_yield();
	s.cqe->wr_id = what;
	cq_ring_publish(s.cqe, s.pos, memory_order_release);
}

/*
 * How many entries each producer may still publish, so that no ring
 * overflows.
 */
static _Atomic int credits[PRODUCERS];

static void *producer(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	uint64_t i;

	for (i = 0; i < EACH; i++) {
		while (atomic_load_explicit(&credits[me],
					    memory_order_acquire) <= 0)
			sched_yield();
		atomic_fetch_sub_explicit(&credits[me], 1,
					  memory_order_relaxed);
		presence_enter(&guard[me].requester);
		put((uint64_t)me << 32 | i);
		presence_leave(&guard[me].requester);
	}
	return NULL;
}

static uint64_t expected[PRODUCERS];

static void check(uint64_t what)
{
	uint64_t who = what >> 32;

	ck_assert_uint_lt(who, PRODUCERS);
	ck_assert_uint_eq(what & UINT32_MAX, expected[who]);
	expected[who]++;
	atomic_fetch_add_explicit(&credits[who], 1, memory_order_release);
}

static unsigned int poll_ring(uint64_t gen)
{
	const struct cq_ring r = ring_of(gen);
	struct urxe_cqe *e;
	unsigned int n = 0;

	while ((e = ready(&r, head))) {
		check(e->wr_id);
		cq_ring_release(&r, ++head);
		n++;
	}
	return n;
}

static void wait_guards(void)
{
	int i;

	for (i = 0; i < PRODUCERS; i++)
		presence_wait(&guard[i].requester, NULL, NULL);
}

static void open_ring(uint64_t gen, uint32_t depth)
{
	struct cq_ring r;

	masks[gen & 1] = depth - 1;
	r = ring_of(gen);
	cq_ring_init(&r, 0);
}

/* The steps of provider/engine/poll/cq_resize.c. */
static void replace(uint64_t gen, uint32_t depth)
{
	struct cq_ring r = ring_of(gen);
	uint32_t end;

	open_ring(gen + 1, depth);
	atomic_store_explicit(&next, gen + 1, memory_order_relaxed);
	while (!cq_ring_close(&r, &end))
		poll_ring(gen);
	atomic_store_explicit(&now, gen + 1, memory_order_seq_cst);
	wait_guards();
	poll_ring(gen);
	ck_assert_uint_eq(head, end);
	/* makes a later access to the old ring visible */
	memset(&rings[gen & 1], 0xee, sizeof(rings[0]));
	head = 0;
}

static void run_producers(bool resize)
{
	pthread_t t[PRODUCERS];
	unsigned int got = 0, turns = 0, i;
	uint64_t gen = 0, total = 0;

	memset(expected, 0, sizeof(expected));
	memset(guard, 0, sizeof(guard));
	head = 0;
	atomic_store(&now, 0);
	open_ring(0, 8);
	for (i = 0; i < PRODUCERS; i++)
		atomic_store(&credits[i], 2);
	for (i = 0; i < PRODUCERS; i++)
		pthread_create(&t[i], NULL, producer, (void *)(uintptr_t)i);
	while (total < PRODUCERS * EACH) {
		got = poll_ring(gen);
		if (!got)
			sched_yield();
		if (resize && ++turns % 8 == 0) {
			replace(gen, 8u << turns / 8 % 3);
			gen++;
		}
		for (total = 0, i = 0; i < PRODUCERS; i++)
			total += expected[i];
	}
	for (i = 0; i < PRODUCERS; i++)
		pthread_join(t[i], NULL);
	ck_assert_uint_eq(poll_ring(gen), 0);
}

START_TEST(many_producers)
{
	run_producers(false);
}
END_TEST

START_TEST(resized_meanwhile)
{
	run_producers(true);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cq_ring");

	add(s, cqe_word_fields);
	add(s, ring_wraps);
	add(s, ring_full);
	add(s, late_hint);
	add(s, damaged_hint);
	add(s, claimed_is_not_ready);
	add(s, dead_claimer);
	add(s, ring_closed);
	add(s, valid_states);
	add(s, invalid_states);
	add(s, many_producers);
	add(s, resized_meanwhile);
	return run_suite(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The completion ring between processes: many producers, and dead ones. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared/cq_ring.h"
#include "unit.h"

#define DEPTH 8u
#define MASK (DEPTH - 1)

/* In memory that children share. */
struct shared {
	_Atomic uint32_t hint;
	_Atomic uint32_t go;
	_Atomic uint32_t number; /* of the next producer */
	struct urxe_cqe ring[DEPTH];
};

static struct shared *new_ring(uint32_t first)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert(s != MAP_FAILED);
	cq_ring_init(s->ring, DEPTH, first);
	atomic_store(&s->hint, first);
	return s;
}

static bool produce(struct shared *s, uint16_t owner, uint64_t wr_id)
{
	const struct cq_ring r = { s->ring, MASK, &s->hint };
	struct cq_slot slot;

	if (cq_ring_claim(&r, owner, &slot) != CQ_CLAIMED)
		return false;
	slot.cqe->wr_id = wr_id;
	slot.cqe->qpn = owner;
	cq_ring_publish(slot.cqe, slot.pos, memory_order_release);
	return true;
}

/* The entry at head, or NULL; the caller releases it. */
static struct urxe_cqe *look(struct shared *s, uint32_t head)
{
	struct urxe_cqe *e = &s->ring[head & MASK];

	if (atomic_load_explicit(&e->word, memory_order_acquire) !=
	    cqe_word(head, 0, CQE_READY))
		return NULL;
	return e;
}

static const uint32_t firsts[] = { 0, 5, INT32_MAX - 3u, UINT32_MAX - 3u };
#define FIRSTS ((int)(sizeof(firsts) / sizeof(*firsts)))

#define PRODUCERS 4
#define EACH 50000

static int producer(void *arg)
{
	struct shared *s = arg;
	uint32_t i, me = atomic_fetch_add(&s->number, 1);

	while (!atomic_load(&s->go))
		sched_yield();
	for (i = 0; i < EACH; i++)
		while (!produce(s, (uint16_t)me, i))
			sched_yield();
	return 0;
}

/* Nothing is lost or doubled; each producer's completions stay in order. */
START_TEST(processes)
{
	struct shared *s = new_ring(firsts[_i]);
	uint32_t head = firsts[_i], n, next[PRODUCERS] = { 0 };
	struct urxe_cqe *e;
	pid_t pid[PRODUCERS];

	for (n = 0; n < PRODUCERS; n++)
		pid[n] = spawn(producer, s);
	atomic_store(&s->go, 1);
	for (n = 0; n < PRODUCERS * EACH; n++, head++) {
		while (!(e = look(s, head)))
			sched_yield();
		ck_assert_uint_lt(e->qpn, PRODUCERS);
		ck_assert_uint_eq(e->wr_id, next[e->qpn]);
		next[e->qpn]++;
		cq_ring_release(e, head, DEPTH);
	}
	ck_assert_ptr_null(look(s, head));
	for (n = 0; n < PRODUCERS; n++)
		ck_assert_int_eq(reap_child(pid[n]), 0);
}
END_TEST

static int produce_for_ever(void *arg)
{
	struct shared *s = arg;
	uint64_t i = 0;

	for (;;)
		if (produce(s, 3, i))
			i++;
	return 0;
}

/* Kill producers at any point: the poller goes on, and so do the others. */
START_TEST(killed_producers)
{
	struct shared *s = new_ring(0);
	uint32_t head = 0, round, n;
	struct urxe_cqe *e;
	uint64_t w;
	pid_t pid;

	for (round = 0; round < 50; round++) {
		pid = spawn(produce_for_ever, s);
		for (n = 0; n < 100 + round; n++, head++) {
			while (!(e = look(s, head)))
				sched_yield();
			cq_ring_release(e, head, DEPTH);
		}
		kill_child(pid);
		/* what it left: published entries, at most one claimed */
		for (n = 0;; head++) {
			e = &s->ring[head & MASK];
			w = atomic_load(&e->word);
			if (cqe_state(w) == CQE_FREE)
				break;
			if (cqe_state(w) == CQE_CLAIMED) {
				n++;
				ck_assert(cq_ring_skip(e, w, head, DEPTH));
			} else {
				cq_ring_release(e, head, DEPTH);
			}
		}
		ck_assert_uint_le(n, 1);
		ck_assert(produce(s, 1000, round));
		ck_assert_uint_eq(look(s, head)->wr_id, round);
		cq_ring_release(look(s, head), head, DEPTH);
		head++;
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cq_ring_processes");
	TCase *tc = tcase_create("processes");

	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, processes, 0, FIRSTS);
	suite_add_tcase(s, tc);
	add(s, killed_producers);
	return run_suite(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The completion ring between processes: several producers, and killed ones.
 */
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

/* In memory that is shared with the children. */
struct shared {
	struct urxe_cq_sh cq;
	_Atomic uint32_t go;
	_Atomic uint32_t number; /* the next producer's */
	struct urxe_cqe ring[DEPTH];
	_Atomic uint64_t claim[DEPTH];
};

static struct cq_ring ring_of(struct shared *s)
{
	struct cq_ring r;

	cq_ring_at(&r, s->ring, 3, &s->cq, 0);
	return r;
}

static struct shared *new_ring(uint32_t first)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct cq_ring r;

	ck_assert(s != MAP_FAILED);
	r = ring_of(s);
	cq_ring_init(&r, first);
	return s;
}

static bool produce(struct shared *s, uint16_t owner, uint64_t wr_id)
{
	const struct cq_ring r = ring_of(s);
	struct cq_slot slot;

	if (cq_ring_claim(&r, owner, &slot) != CQ_CLAIMED)
		return false;
	slot.cqe->wr_id = wr_id;
	slot.cqe->qpn = owner;
	cq_ring_publish(slot.cqe, slot.pos, memory_order_release);
	return true;
}

/* Return the entry at @head, or NULL.  The caller releases it. */
static struct urxe_cqe *look(struct shared *s, uint32_t head)
{
	struct urxe_cqe *e = &s->ring[head & MASK];

	return cq_ring_is_ready(e, head) ? e : NULL;
}

static void release(struct shared *s, uint32_t head)
{
	const struct cq_ring r = ring_of(s);

	cq_ring_release(&r, head);
}

static const uint32_t firsts[] = { 0, 5, INT32_MAX - 3u, UINT32_MAX - 3u };
#define FIRSTS ((int)(sizeof(firsts) / sizeof(*firsts)))

#define PRODUCERS 4
#define EACH ((unsigned int)turns_of(50000))

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

/* No entry is lost or duplicated.  Each producer's entries stay in order. */
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
		release(s, head + 1);
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

/*
 * Producers are killed at any point.  The poller and the other producers
 * continue.
 */
START_TEST(killed_producers)
{
	struct shared *s = new_ring(0);
	uint32_t head = 0, round, n;
	pid_t pid;

	for (round = 0; round < 50; round++) {
		pid = spawn(produce_for_ever, s);
		for (n = 0; n < 100 + round; n++, head++) {
			while (!look(s, head))
				sched_yield();
			release(s, head + 1);
		}
		kill_child(pid);
		/*
		 * left behind: published entries, and at most one claimed one
		 */
		for (n = 0;; head++) {
			if (!cq_ring_is_claimed(s->claim[head & MASK], head))
				break;
			n += !look(s, head);
			release(s, head + 1);
		}
		ck_assert_uint_le(n, 1);
		ck_assert(produce(s, 1000, round));
		ck_assert_uint_eq(look(s, head)->wr_id, round);
		release(s, ++head);
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

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Gates and queue locks (engine/core/lock.h): mutual exclusion. */
#include <pthread.h>
#include <sched.h>

#include "engine/core/lock.h"
#include "unit.h"

#define TURNS 5000 /* per outsider */

static struct urxe_lock lock;
static unsigned long counter; /* protected by lock, not atomic */
static _Atomic bool started, done;

static void *one_thread(void *arg)
{
	unsigned long *mine = arg;

	while (!atomic_load_explicit(&done, memory_order_acquire)) {
		urxe_lock(&lock);
		counter++;
		urxe_unlock(&lock);
		++*mine;
		atomic_store_explicit(&started, true, memory_order_relaxed);
	}
	return NULL;
}

static void *outsider(void *arg)
{
	int i;

	(void)arg;
	while (!atomic_load_explicit(&started, memory_order_relaxed))
		sched_yield();
	for (i = 0; i < TURNS;) {
		if (i % 3 == 0)
			urxe_lock_outside(&lock);
		else if (!urxe_trylock_outside(&lock))
			continue;
		counter++;
		urxe_unlock_outside(&lock);
		i++;
	}
	return NULL;
}

static void contend(bool single_threaded)
{
	unsigned long inside = 0;
	pthread_t t[3];

	counter = 0;
	atomic_store(&started, false);
	atomic_store(&done, false);
	urxe_lock_init(&lock, single_threaded);
	pthread_create(&t[0], NULL, one_thread, &inside);
	pthread_create(&t[1], NULL, outsider, NULL);
	pthread_create(&t[2], NULL, outsider, NULL);
	pthread_join(t[1], NULL);
	pthread_join(t[2], NULL);
	atomic_store_explicit(&done, true, memory_order_release);
	pthread_join(t[0], NULL);
	ck_assert_uint_eq(counter, 2 * TURNS + inside);
}

/* Several threads take the lock. */
START_TEST(mutex_of_threads)
{
	contend(false);
}
END_TEST

/*
 * One thread takes the lock as the gate's insider, and others from outside.
 */
START_TEST(insider_and_outsiders)
{
	contend(true);
}
END_TEST

START_TEST(trylock_outside)
{
	int single;

	for (single = 0; single < 2; single++) {
		urxe_lock_init(&lock, single);
		urxe_lock(&lock);
		ck_assert(!urxe_trylock_outside(&lock));
		urxe_unlock(&lock);
		ck_assert(urxe_trylock_outside(&lock));
		ck_assert(!urxe_trylock_outside(&lock));
		urxe_unlock_outside(&lock);
		urxe_lock(&lock);
		urxe_unlock(&lock);
		}
}
END_TEST

static int child(void *arg)
{
	(void)arg;
	if (!urxe_trylock_outside(&lock))
		return 1;
	urxe_unlock_outside(&lock);
	contend(true);
	return 0;
}

START_TEST(after_fork)
{
	urxe_lock_init(&lock, true);
	urxe_lock(&lock);
	urxe_unlock(&lock);
	ck_assert_int_eq(reap_child(spawn(child, NULL)), 0);
}
END_TEST

/*
 * After gate_wait() the insider does not use a pointer that was cleared
 * before.
 */
static int *_Atomic thing;
static struct urxe_gate gate;

static void *insider(void *arg)
{
	unsigned long *uses = arg;
	int *p;

	while (!atomic_load_explicit(&done, memory_order_acquire)) {
		gate_enter(&gate);
		p = atomic_load_explicit(&thing, memory_order_acquire);
		if (p) {
			ck_assert_int_eq(*p, 42);
			++*uses;
		}
		gate_leave(&gate);
	}
	return NULL;
}

START_TEST(gate_wait_excludes_insider)
{
	int copies[2] = { 0, 0 }, i;
	unsigned long uses = 0;
	pthread_t t;

	gate_init(&gate);
	atomic_store(&done, false);
	pthread_create(&t, NULL, insider, &uses);
	for (i = 0; i < TURNS; i++) {
		copies[i % 2] = 42;
		atomic_store_explicit(&thing, &copies[i % 2],
				      memory_order_release);
		atomic_store_explicit(&thing, NULL, memory_order_seq_cst);
		presence_barrier();
		gate_wait(&gate);
		copies[i % 2] = 0;
	}
	atomic_store_explicit(&done, true, memory_order_release);
	pthread_join(t, NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("lock");

	add(s, mutex_of_threads);
	add(s, insider_and_outsiders);
	add(s, trylock_outside);
	add(s, after_fork);
	add(s, gate_wait_excludes_insider);
	return run_suite(s);
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * In-use flags (base/presence.h): after presence_wait() the owner does not
 * use an object that was cleared before.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../pause.h"
#include "base/clock.h"
#include "base/presence.h"
#include "unit_base.h"

#define LAST_NS 300000000 /* duration of a stress test */

START_TEST(enter_and_leave)
{
	struct presence p = { UINT32_MAX - 2001 }; /* wraps */
	int i;

	for (i = 0; i < 2000; i++) {
		ck_assert(!presence_is_inside(&p));
		if (i % 2)
			presence_enter(&p);
		else
			presence_enter_private(&p);
		ck_assert(presence_is_inside(&p));
		presence_leave(&p);
	}
	ck_assert(!presence_is_inside(&p));
}
END_TEST

/*
 * The owner died in a critical section; its successor continues with the same
 * word.
 */
START_TEST(successor_of_dead_owner)
{
	struct presence p = { 0 };
	uint32_t seq;

	presence_enter(&p);
	seq = p.seq;
	presence_enter(&p);
	ck_assert_uint_eq(p.seq, seq); /* waiters need not check again */
	presence_clear(&p);
	ck_assert(!presence_is_inside(&p));
	ck_assert_uint_ne(p.seq, seq);
	seq = p.seq;
	presence_clear(&p);
	ck_assert_uint_eq(p.seq, seq);
}
END_TEST

static bool count(void *arg)
{
	return ++*(int *)arg == 3;
}

START_TEST(dead_owner)
{
	struct presence p = { 0 };
	int asked = 0;

	presence_wait(&p, count, &asked);
	presence_wait(&p, NULL, NULL);
	ck_assert_int_eq(asked, 0); /* no critical section: not called */
	presence_enter(&p);
	presence_wait(&p, count, &asked);
	ck_assert_int_eq(asked, 3);
}
END_TEST

static bool is_never_dead(void *arg)
{
	(void)arg;
	return false;
}

/* A wait ends at its deadline, and a wait that need not wait has none. */
START_TEST(deadline)
{
	struct presence p = { 0 };
	struct patience patience = patience_begin(0);
	uint64_t until;
	int asked = 0;

	ck_assert(presence_wait_within(&p, &patience, NULL, NULL));
	presence_enter(&p);
	ck_assert(!presence_wait_within(&p, &patience, NULL, NULL));
	patience = patience_begin(20000000);
	until = patience.checked + 20000000;
	ck_assert(!presence_wait_within(&p, &patience, is_never_dead, NULL));
	ck_assert_uint_ge(clock_now(), until);
	patience = patience_begin(UINT64_MAX);
	ck_assert(presence_wait_within(&p, &patience, count, &asked));
	/* also if there was no time for many turns */
	asked = 2;
	patience = patience_begin(0);
	ck_assert(presence_wait_within(&p, &patience, count, &asked));
}
END_TEST

/*
 * Shared by one owner and one destroyer, threads or processes.  One of each
 * makes them meet most often.
 */
struct shared {
	struct presence p;
	_Atomic bool stop;
	_Atomic uint32_t thing; /* index of value[] + 1; 0: destroyed */
	int value[2];
	_Atomic uint32_t wrong, used;
};

static struct shared *new_shared(void)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert(s != MAP_FAILED);
	return s;
}

static void use(struct shared *s)
{
	uint32_t i = atomic_load_explicit(&s->thing, memory_order_seq_cst);
	int k;

	if (!i)
		return;
	for (k = 0; k < 50; k++)
		atomic_signal_fence(memory_order_seq_cst); /* delay */
	if (s->value[i - 1] != 42)
		atomic_store_explicit(&s->wrong, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->used, 1, memory_order_relaxed);
}

static bool stopped(struct shared *s)
{
	return atomic_load_explicit(&s->stop, memory_order_relaxed);
}

static int owner(void *arg)
{
	struct shared *s = arg;

	while (!stopped(s)) {
		presence_enter(&s->p);
		use(s);
		presence_leave(&s->p);
	}
	return 0;
}

static void *owner_thread(void *arg)
{
	owner(arg);
	return NULL;
}

static void *private_owner(void *arg)
{
	struct shared *s = arg;

	while (!stopped(s)) {
		presence_enter_private(&s->p);
		use(s);
		presence_leave(&s->p);
	}
	return NULL;
}

/*
 * Publish and destroy objects for LAST_NS, and until one was used.  On one CPU
 * this thread is rarely preempted while an object is published, so it yields
 * now and then.
 */
static void take_away(struct shared *s, bool private)
{
	uint64_t end = clock_now() + LAST_NS;
	int i, k;

	for (i = 0; clock_now() < end ||
		    !atomic_load_explicit(&s->used, memory_order_relaxed);
	     i++) {
		s->value[i % 2] = 42;
		atomic_store_explicit(&s->thing, i % 2 + 1,
				      memory_order_seq_cst);
		for (k = 0; k < i % 64; k++) /* for a varying time */
			atomic_signal_fence(memory_order_seq_cst);
		if (!(i % 64))
			sched_yield();
		atomic_store_explicit(&s->thing, 0, memory_order_seq_cst);
		if (private)
			presence_barrier();
		presence_wait(&s->p, NULL, NULL);
		s->value[i % 2] = 0;
	}
	atomic_store_explicit(&s->stop, true, memory_order_relaxed);
}

static void among_threads(void *(*fn)(void *), bool private)
{
	struct shared *s = new_shared();
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, fn, s), 0);
	take_away(s, private);
	pthread_join(t, NULL);
	ck_assert_uint_eq(s->wrong, 0);
	munmap(s, sizeof(*s));
}

START_TEST(threads)
{
	among_threads(owner_thread, false);
}
END_TEST

START_TEST(threads_private)
{
	among_threads(private_owner, true);
}
END_TEST

/* The same without membarrier(2). */
START_TEST(threads_private_without_membarrier)
{
	presence_cheap = false;
	among_threads(private_owner, true);
}
END_TEST

START_TEST(processes)
{
	struct shared *s = new_shared();
	pid_t pid = spawn(owner, s);

	take_away(s, false);
	ck_assert_int_eq(reap_child(pid), 0);
	ck_assert_uint_eq(s->wrong, 0);
	munmap(s, sizeof(*s));
}
END_TEST

static int enter_and_stop(void *arg)
{
	struct shared *s = arg;

	presence_enter(&s->p);
	raise(SIGSTOP);
	presence_leave(&s->p);
	return 0;
}

/* All processes are paused for longer than the limit: the wait continues. */
START_TEST(pause_of_all)
{
	struct shared *s = new_shared();
	pid_t user = spawn(enter_and_stop, s), pauser;
	struct patience patience;

	ck_assert_int_eq(waitpid(user, NULL, WUNTRACED), user);
	pauser = spawn(pause_parent, &user);
	patience = patience_begin(500000000);
	ck_assert(presence_wait_within(&s->p, &patience, NULL, NULL));
	ck_assert_int_eq(reap_child(pauser), 0);
	ck_assert_int_eq(reap_child(user), 0);
	munmap(s, sizeof(*s));
}
END_TEST

static bool is_dead(void *arg)
{
	siginfo_t info = { 0 };

	return !waitid(P_PID, (id_t) * (pid_t *)arg, &info,
		       WEXITED | WNOHANG | WNOWAIT) &&
	       info.si_pid;
}

static int enter_and_stay(void *arg)
{
	struct shared *s = arg;

	presence_enter(&s->p);
	for (;;)
		sched_yield();
	return 0;
}

static void *killer(void *arg)
{
	kill(*(pid_t *)arg, SIGKILL);
	return NULL;
}

/* The owner is killed while the destroyer waits for it. */
START_TEST(owner_killed)
{
	struct shared *s = new_shared();
	pid_t pid = spawn(enter_and_stay, s);
	pthread_t t;

	while (!presence_is_inside(&s->p))
		sched_yield();
	ck_assert_int_eq(pthread_create(&t, NULL, killer, &pid), 0);
	presence_wait(&s->p, is_dead, &pid);
	ck_assert(presence_is_inside(&s->p));
	pthread_join(t, NULL);
	ck_assert_int_eq(reap_child(pid), -SIGKILL);
	munmap(s, sizeof(*s));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("presence");

	add(s, enter_and_leave);
	add(s, successor_of_dead_owner);
	add(s, dead_owner);
	add(s, deadline);
	add(s, threads);
	add(s, threads_private);
	add(s, threads_private_without_membarrier);
	add(s, processes);
	add(s, pause_of_all);
	add(s, owner_killed);
	return run_suite(s);
}

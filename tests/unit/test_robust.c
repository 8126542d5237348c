// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Robust locks in shared memory: death of holders and waiters. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../pause.h"
#include "base/clock.h"
#include "unit.h"

#define ROUNDS 20000

struct locked {
	struct robust_lock lock;
	_Atomic uint32_t inside; /* number of the current holder */
	_Atomic uint32_t numbers;
	_Atomic uint32_t taken, broken, deaths;
	unsigned long counter; /* protected by lock, not atomic */
};

struct user {
	struct urxe_fabric *f;
	struct locked *l;
	int hold_us;
};

static struct user new_user(void)
{
	struct user u = { .f = new_fabric() };

	u.l = mmap(NULL, sizeof(*u.l), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(u.l != MAP_FAILED);
	return u;
}

static int take(struct user *u)
{
	return robust_lock(u->f, &u->l->lock, "the test's lock");
}

static int take_at_once(struct user *u)
{
	return robust_try(u->f, &u->l->lock);
}

static void give(struct user *u)
{
	robust_unlock(u->f, &u->l->lock);
}

/*
 * Lock, use and unlock.  If two are inside, one finds the number of the
 * other.
 */
static void use(struct user *u, uint32_t me)
{
	struct locked *l = u->l;
	uint32_t none = 0, mine = me;
	uint64_t until;
	int ret = take(u);

	if (ret == 1) {
		store_relaxed(&l->inside, 0);
		fetch_add_relaxed(&l->deaths, 1);
	}
	if (ret < 0 || !cas_relaxed(&l->inside, &none, me))
		fetch_add_relaxed(&l->broken, 1);
	l->counter++;
	until = clock_now() + (uint64_t)u->hold_us * 1000;
	while (u->hold_us && clock_now() < until)
		;
	if (!cas_relaxed(&l->inside, &mine, 0))
		fetch_add_relaxed(&l->broken, 1);
	fetch_add_relaxed(&l->taken, 1);
	give(u);
}

static int use_often(void *arg)
{
	struct user *u = arg;
	uint32_t me = fetch_add_relaxed(&u->l->numbers, 1) + 1;
	int i;

	for (i = 0; i < ROUNDS; i++)
		use(u, me);
	return 0;
}

static void *use_often_too(void *arg)
{
	use_often(arg);
	return NULL;
}

/* Exclusion among processes and threads. */
START_TEST(mutual_exclusion)
{
	struct user u = new_user();
	pid_t pid = spawn(use_often, &u);
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, use_often_too, &u), 0);
	use_often(&u);
	pthread_join(thread, NULL);
	ck_assert_int_eq(reap_child(pid), 0);
	ck_assert_uint_eq(u.l->broken, 0);
	ck_assert_uint_eq(u.l->counter, 3 * ROUNDS);
	ck_assert_uint_eq(u.l->lock.word, 0);
	fabric_close(u.f);
}
END_TEST

static int take_and_stay(void *arg)
{
	struct user *u = arg;

	take(u);
	store_release(&u->l->taken, 1);
	for (;;)
		pause();
	return 0;
}

static pid_t start_holder(struct user *u)
{
	pid_t pid = spawn(take_and_stay, u);

	while (!load_acquire(&u->l->taken))
		sched_yield();
	store_relaxed(&u->l->taken, 0);
	return pid;
}

static void kill_holder(struct user *u)
{
	kill_child(start_holder(u));
}

START_TEST(lock_outlives_holders)
{
	struct user u = new_user();
	int i;

	for (i = 0; i < 3; i++) {
		kill_holder(&u);
		ck_assert_int_eq(take(&u), 1);
		give(&u);
		ck_assert_int_eq(take(&u), 0);
		give(&u);
	}
	fabric_close(u.f);
}
END_TEST

static int take_and_die(void *arg)
{
	return take(arg);
}

/*
 * A process that repairs the state after a death may die, too: then the next
 * holder gets 1.
 */
START_TEST(death_during_repair)
{
	struct user u = new_user();

	kill_holder(&u);
	ck_assert_int_eq(reap_child(spawn(take_and_die, &u)), 1);
	ck_assert_int_eq(reap_child(spawn(take_and_die, &u)), 1);
	ck_assert_int_eq(take(&u), 1);
	give(&u);
	fabric_close(u.f);
}
END_TEST

/* If a holder dies, robust_lock() returns 1 to one of the waiters. */
START_TEST(owner_death_reported_once)
{
	struct user u = new_user();
	pid_t pid[4], holder;
	int i;

	holder = start_holder(&u);
	for (i = 0; i < 4; i++)
		pid[i] = spawn(take_and_die, &u);
	usleep(30000); /* some of them sleep by now */
	kill_child(holder);
	/* each exits with the lock held, so the next one gets 1 */
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(reap_child(pid[i]), 1);
	ck_assert_int_eq(take(&u), 1);
	give(&u);
	ck_assert_int_eq(take(&u), 0);
	give(&u);
	fabric_close(u.f);
}
END_TEST

/* Any corrupted value of the word counts as a dead holder. */
START_TEST(damaged_word)
{
	static const uint32_t word[] = { ROBUST_WAITERS, 1, 0x7fffffff,
					 UINT32_MAX, 0x12345678 };
	struct user u = new_user();

	process_id(u.f);
	store_relaxed(&u.l->lock.word, word[_i]);
	ck_assert_int_eq(take(&u), 1);
	/* the same if it is corrupted while the lock is held */
	store_relaxed(&u.l->lock.word, word[_i]);
	give(&u);
	ck_assert_int_eq(take(&u), 1);
	give(&u);
	ck_assert_int_eq(take(&u), 0);
	give(&u);
	fabric_close(u.f);
}
END_TEST

/*
 * A holder that is stopped makes robust_lock() time out.  The message has its
 * PID.
 */
START_TEST(stopped_holder_is_named)
{
	struct user u = new_user();
	pid_t pid = start_holder(&u);
	char name[32];

	kill(pid, SIGSTOP);
	ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);
	ck_assert_int_eq(take_at_once(&u), -EBUSY);
	ck_assert_int_eq(take(&u), -ETIMEDOUT);
	snprintf(name, sizeof(name), "pid %d (", pid);
	ck_assert_msg(strstr(fabric_why(), name) == fabric_why() &&
			      strstr(fabric_why(), "has held the test's lock") &&
			      strstr(fabric_why(), "is stopped"),
		      "%s", fabric_why());
	kill_child(pid);
	ck_assert_int_eq(take_at_once(&u), 1);
	give(&u);
	fabric_close(u.f);
}
END_TEST

static int take_and_stop(void *arg)
{
	struct user *u = arg;

	take(u);
	raise(SIGSTOP);
	give(u);
	return 0;
}

/*
 * All processes are paused for longer than the time limit, as in a virtual
 * machine: the waiter does not give up when it continues.
 */
START_TEST(pause_of_all)
{
	struct user u = new_user();
	pid_t holder = spawn(take_and_stop, &u), pauser;

	ck_assert_int_eq(waitpid(holder, NULL, WUNTRACED), holder);
	pauser = spawn(pause_parent, &holder);
	ck_assert_int_eq(robust_lock_within(u.f, &u.l->lock, "the test's lock",
					    500000000),
			 0);
	give(&u);
	ck_assert_int_eq(reap_child(pauser), 0);
	ck_assert_int_eq(reap_child(holder), 0);
	fabric_close(u.f);
}
END_TEST

static void *hold_a_while(void *arg)
{
	struct user *u = arg;

	take(u);
	store_release(&u->l->taken, 1);
	while (!load_acquire(&u->l->deaths))
		usleep(100);
	usleep(50000);
	store_relaxed(&u->l->taken, 0);
	give(u);
	return NULL;
}

static int take_in_child(void *arg)
{
	struct user *u = arg;
	int ret;

	store_release(&u->l->deaths, 1); /* let the holder continue */
	ret = take(u);
	if (!ret && load_relaxed(&u->l->taken))
		ret = 2; /* the parent's thread still has it */
	give(u);
	return ret;
}

/*
 * A forked child does not take the lock held by its parent for its own, nor
 * for one of a dead process.
 */
START_TEST(fork_while_held)
{
	struct user u = new_user();
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, hold_a_while, &u), 0);
	while (!load_acquire(&u.l->taken))
		sched_yield();
	ck_assert_int_eq(reap_child(spawn(take_in_child, &u)), 0);
	pthread_join(thread, NULL);
	fabric_close(u.f);
}
END_TEST

/* ------------------------------------------------------- namespaces */

#define WORKERS 4
#define KILLS 120

/* Use the lock as PID 1 of a new PID namespace until killed. */
static int work_apart(void *arg)
{
	struct user *u = arg;
	uint32_t me = fetch_add_relaxed(&u->l->numbers, 1) + 1;
	pid_t pid;

	if (unshare(CLONE_NEWUSER | CLONE_NEWPID))
		return 77;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			use(u, me);
	}
	/* kill by its PID in the outer namespace */
	usleep(5000 + me * 7919 % 20000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

/*
 * Processes that all have PID 1 are killed while they hold the lock or wait
 * for it.  No death frees a lock whose holder is alive.
 */
START_TEST(holders_with_pid_1)
{
	struct user u = new_user();
	pid_t pid[WORKERS] = { 0 };
	int i, ret = 0;

	u.hold_us = 100;
	for (i = 0; i < KILLS + WORKERS && !ret; i++) {
		if (i >= WORKERS)
			ret = reap_child(pid[i % WORKERS]);
		if (i < KILLS)
			pid[i % WORKERS] = spawn(work_apart, &u);
	}
	if (ret == 77) {
		fprintf(stderr, "skipped: no PID namespaces here\n");
	} else {
		ck_assert_int_eq(ret, 0);
		ck_assert_uint_eq(u.l->broken, 0);
		ck_assert_uint_gt(u.l->deaths, 0);
		ck_assert_uint_gt(u.l->taken, 0);
	}
	fabric_close(u.f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("robust");

	add(s, mutual_exclusion);
	add(s, lock_outlives_holders);
	add(s, death_during_repair);
	add(s, owner_death_reported_once);
	add_loop(s, damaged_word, 5);
	add(s, stopped_holder_is_named);
	add(s, pause_of_all);
	add(s, fork_while_held);
	add(s, holders_with_pid_1);
	return run_suite(s);
}

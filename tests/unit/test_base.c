// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests of kernel-shim/base: clock, log2, threads, event counts. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log2.h"
#include "base/thread.h"
#include "unit_base.h"

#define MS 1000000ull

START_TEST(clock_advances)
{
	uint64_t start = clock_now();

	usleep(2000);
	ck_assert_uint_ge(clock_now() - start, 2 * MS);
}
END_TEST

START_TEST(powers_of_two)
{
	uint32_t i;

	ck_assert_uint_eq(log2_up(0), 0);
	ck_assert_uint_eq(log2_up(1), 0);
	for (i = 1; i < 32; i++) {
		ck_assert_uint_eq(log2_up(1u << i), i);
		ck_assert_uint_eq(log2_up((1u << (i - 1)) + 1), i);
		ck_assert_uint_eq(pow2_up((1u << (i - 1)) + 1), 1u << i);
	}
	ck_assert_uint_eq(pow2_up(0), 1);
}
END_TEST

static void *signals_blocked(void *arg)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	*(int *)arg = sigismember(&now, SIGINT) && sigismember(&now, SIGUSR1);
	return NULL;
}

/*
 * A thread of thread_start() has all signals blocked; the caller's mask is
 * unchanged.
 */
START_TEST(thread_takes_no_signals)
{
	sigset_t before, after;
	pthread_t t;
	int blocked = 0, i;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	ck_assert(thread_start(&t, signals_blocked, &blocked));
	pthread_join(t, NULL);
	ck_assert(blocked);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (i = 1; i < 32; i++)
		ck_assert_int_eq(sigismember(&before, i),
				 sigismember(&after, i));
}
END_TEST

/* ------------------------------------------------------- event counts */

static void *new_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert(p != MAP_FAILED);
	return p;
}

static void *priority_of_thread(void *arg)
{
	struct sched_param param;

	(void)arg;
	ck_assert_int_eq(sched_getparam(0, &param), 0);
	return (void *)(intptr_t)param.sched_priority;
}

static int started_priority(void)
{
	pthread_t thread;
	void *priority;

	ck_assert(thread_start(&thread, priority_of_thread, NULL));
	ck_assert_int_eq(pthread_join(thread, &priority), 0);
	return (int)(intptr_t)priority;
}

/*
 * Threads have a higher real-time priority than the thread that starts them,
 * unless there is none, or it is not permitted.
 */
START_TEST(thread_priority)
{
	const int max = sched_get_priority_max(SCHED_RR);
	struct sched_param param = { .sched_priority = 3 };
	const struct rlimit none = { 0 };

	ck_assert_int_eq(started_priority(), 0);
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		return; /* this needs CAP_SYS_NICE */
	ck_assert_int_eq(started_priority(), 4);
	ck_assert_int_eq(
		sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param),
		0);
	ck_assert_int_eq(started_priority(), 4);
	ck_assert_int_eq(sched_setscheduler(0, SCHED_FIFO, &param), 0);
	param.sched_priority = max;
	ck_assert_int_eq(sched_setscheduler(0, SCHED_RR, &param), 0);
	ck_assert_int_eq(started_priority(), max);
	param.sched_priority = 3;
	ck_assert_int_eq(sched_setscheduler(0, SCHED_RR, &param), 0);
	if (setrlimit(RLIMIT_RTPRIO, &none) || setuid(65534))
		return; /* this needs CAP_SETUID */
	ck_assert_int_eq(started_priority(), 3);
}
END_TEST

START_TEST(event_count_returns)
{
	struct event_count e = { 0 };
	uint64_t start = clock_now();
	uint32_t seen = event_count_read(&e);

	errno = 0;
	ck_assert_int_eq(event_count_wait(&e, seen, 5 * MS), 0);
	ck_assert_uint_ge(clock_now() - start, 5 * MS);
	event_count_ring(&e);
	ck_assert_int_eq(event_count_wait(&e, seen, EVENT_COUNT_FOR_EVER), 0);
	ck_assert_uint_eq(e.sleepers, 0);
	ck_assert_int_eq(errno, 0);
}
END_TEST

static void on_alarm(int sig)
{
	(void)sig;
}

START_TEST(event_count_interrupted)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct event_count e = { 0 };

	sigaction(SIGALRM, &sa, NULL);
	ualarm(5000, 5000); /* a signal arrives during the sleep */
	ck_assert_int_eq(event_count_wait(&e, 0, EVENT_COUNT_FOR_EVER), -EINTR);
	ck_assert_uint_eq(e.sleepers, 0);
}
END_TEST

/* Two threads or processes alternate; each sleeps until the other rings. */
#define ROUNDS 20000

struct table {
	struct event_count bell[2];
	_Atomic uint32_t turn;
};

static void play(struct table *t, uint32_t me)
{
	uint32_t i, seen;

	for (i = 0; i < ROUNDS; i++) {
		for (;;) {
			seen = event_count_read(&t->bell[me]);
			if (atomic_load_explicit(&t->turn,
						 memory_order_acquire) == me)
				break;
			event_count_wait(&t->bell[me], seen,
					 EVENT_COUNT_FOR_EVER);
		}
		atomic_store_explicit(&t->turn, !me, memory_order_release);
		event_count_ring(&t->bell[!me]);
	}
}

static int play_1(void *arg)
{
	play(arg, 1);
	return 0;
}

static void *play_1_thread(void *arg)
{
	play(arg, 1);
	return NULL;
}

START_TEST(event_count_threads)
{
	struct table t = { 0 };
	pthread_t thread;

	ck_assert(thread_start(&thread, play_1_thread, &t));
	play(&t, 0);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(t.bell[0].sleepers + t.bell[1].sleepers, 0);
}
END_TEST

START_TEST(event_count_processes)
{
	struct table *t = new_shared(sizeof(*t));
	pid_t pid = spawn(play_1, t);

	play(t, 0);
	ck_assert_int_eq(reap_child(pid), 0);
	ck_assert_uint_eq(t->bell[0].sleepers + t->bell[1].sleepers, 0);
}
END_TEST

#define WAITV 449

static int wait_forbidden(void *arg)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WAITV, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(*code), code };
	struct event_count e = { 0 };
	_Atomic uint32_t other = 0;
	const struct futex_word word = { &other, 0 };

	(void)arg;
	if (!event_count_takes_words())
		return 0; /* kernel before 5.16 */
	event_count_wait_words(&e, 0, &word, 1, MS);
	if (!event_count_takes_words())
		return 1; /* a timeout is no reason to give up futex_waitv */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return 0;
	event_count_wait_words(&e, 0, &word, 1, MS);
	return event_count_takes_words() || e.sleepers ? 2 : 0;
}

/*
 * event_count_wait_words() returns if a seccomp filter that was installed
 * later forbids futex_waitv: it then reports that it takes no words.
 */
START_TEST(futex_waitv_forbidden_later)
{
	ck_assert_int_eq(reap_child(spawn(wait_forbidden, NULL)), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("base");

	add(s, clock_advances);
	add(s, powers_of_two);
	add(s, thread_takes_no_signals);
	add(s, event_count_returns);
	add(s, event_count_interrupted);
	add(s, event_count_threads);
	add(s, event_count_processes);
	add(s, futex_waitv_forbidden_later);
	add(s, thread_priority);
	return run_suite(s);
}

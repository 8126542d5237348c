// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Idle processes use no CPU time: service threads sleep while nothing
 * happens, and wake up when a peer exits.
 */
#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../harness.h"

/*
 * Number of voluntary context switches of all threads of this process except
 * the main thread.
 */
static long naps(void)
{
	char path[320], line[128];
	struct dirent *e;
	long n, sum = 0;
	FILE *f;
	DIR *d;

	d = opendir("/proc/self/task");
	ck_nonnull(d);
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.' || atoi(e->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status",
			 e->d_name);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) ==
			    1)
				sum += n;
		if (f)
			fclose(f);
	}
	closedir(d);
	return sum;
}

#define CHECK_MS 2000
#define NAPS 4 /* wake-ups in CHECK_MS; a 10 Hz timer makes 20 */
#define LOOKS 10

static void do_count_naps(struct node *b, void *arg)
{
	long *n = arg;

	(void)b;
	*n = naps();
}

static void do_arm(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(ibv_req_notify_cq(b->rcq, 0));
}

static sem_t opened, over;

/*
 * Open the device first, so that this thread holds the process's `life` mutex
 * (process_publish_liveness()), and exit when `over` is posted.
 */
static void *open_and_end(void *ctx)
{
	*(struct ibv_context **)ctx = open_device();
	sem_post(&opened);
	sem_wait(&over);
	return NULL;
}

/*
 * Two connected processes whose CQs are armed make at most NAPS wake-ups in
 * CHECK_MS.  With _i = 1, the thread of a that opened the device first has
 * exited.
 */
START_TEST(idle_wakeups)
{
	struct opts o = default_opts();
	struct ibv_context *first;
	long a, b, then_b;
	pthread_t thread;
	struct duo d;
	int i;

	if (_i) {
		ck_ok(pthread_create(&thread, NULL, open_and_end, &first));
		sem_wait(&opened);
	}
	o.channel = true;
	duo_open(&d, TWO_PROCESSES, MEM_FILE, MEM_FILE, &o);
	if (_i) {
		sem_post(&over);
		ck_ok(pthread_join(thread, NULL));
	}
	for (i = 0; i < 2; i++) {
		b_recv(&d, i, 0, 8);
		ck_ok(post(&d, i ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, i, 0, 8, 0,
			   0));
		wait_wc(d.a.scq);
	}
	do_arm(&d.a, NULL);
	on_b(&d, do_arm, &i, sizeof(i));
	/* on a busy machine, work of before may still be in progress */
	for (i = 0; i < LOOKS; i++) {
		on_b(&d, do_count_naps, &then_b, sizeof(then_b));
		a = naps();
		sleep_ms(CHECK_MS);
		a = naps() - a;
		on_b(&d, do_count_naps, &b, sizeof(b));
		b -= then_b;
		if (a <= NAPS && b <= NAPS)
			break;
	}
	ck_assert_int_le(a, NAPS);
	ck_assert_int_le(b, NAPS);
	duo_close(&d);
	if (_i)
		ck_ok(ibv_close_device(first));
}
END_TEST

/* Number of arenas in the fabric: one per open context. */
static int arenas(void)
{
	const char *fabric = getenv("URXE_FABRIC"), *dir = getenv("URXE_DIR");
	char path[512];
	struct dirent *e;
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s/ctx", dir, fabric);
	d = opendir(path);
	ck_nonnull(d);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static double ms_until_one_arena(void)
{
	double begin = now_ms();

	while (arenas() > 1) {
		ck_assert_msg(now_ms() < begin + WAIT_MS,
			      "the dead one's arena is still there");
		sleep_ms(1);
	}
	return now_ms() - begin;
}

/*
 * Return the ms from the exit of b by signal @by until b's arena is removed.
 * No process calls verbs meanwhile, so only the exit of b can wake a's
 * service thread.
 */
static double death(int by)
{
	struct opts o = default_opts();
	struct duo d;
	double ms;

	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	wait_wc(d.a.scq);
	sleep_ms(50); /* until a's service thread sleeps */
	signal(SIGPIPE, SIG_DFL);
	kill(d.pid, by);
	ck_assert_int_eq(reap_child(d.pid), -by);
	ms = ms_until_one_arena();
	node_close(&d.a);
	return ms;
}

/* The exit of a peer is detected within a second, without any verb call. */
START_TEST(peer_exit_detected)
{
	may_leak();
	expect_within(1000, death, SIGKILL);
}
END_TEST

static void do_close(struct node *b, void *arg)
{
	(void)arg;
	node_close(b);
	ck_assert_int_eq(arenas(), 1);
}

/* When ibv_close_device returns, the context's arena has been removed. */
START_TEST(close_removes_arena)
{
	struct opts o = default_opts();
	struct duo d;
	int none = 0;

	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	wait_wc(d.a.scq);
	on_b(&d, do_close, &none, sizeof(none));
	ck_assert_int_eq(arenas(), 1);
	kill(d.pid, SIGKILL);
	reap_child(d.pid);
	node_close(&d.a);
}
END_TEST

/* CPU time in ms that this process uses in @sleep ms of sleep. */
static double ms_of_cpu(double sleep)
{
	struct timespec from, to;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	sleep_ms(sleep);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	return (to.tv_sec - from.tv_sec) * 1e3 +
	       (to.tv_nsec - from.tv_nsec) / 1e6;
}

#define ENDS 4
#define ENDED_MS 150
/*
 * ms of CPU time.  A thread that polls without pause uses 400, or 50 if other
 * processes use the CPUs.
 */
#define WORK_MS 20

static double ms_after_ends(int unused)
{
	struct ibv_context *ctx;
	double ms = 0;
	int i;

	(void)unused;
	for (i = 0; i < ENDS; i++) {
		ctx = open_device();
		ck_ok(ibv_close_device(ctx));
		ms += ms_of_cpu(ENDED_MS);
	}
	return ms;
}

/*
 * Closing a context wakes the service threads of the fabric's other
 * processes.  They do not busy-wait after that.
 */
START_TEST(close_of_peer_costs_no_cpu)
{
	struct opts o = default_opts();
	struct duo d;

	o.channel = true;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	wait_wc(d.a.scq);
	do_arm(&d.a, NULL);
	expect_within(WORK_MS, ms_after_ends, 0);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("quiet");

	sem_init(&opened, 0, 0);
	sem_init(&over, 0, 0);
	add_loop(s, idle_wakeups, 2);
	add(s, peer_exit_detected);
	add(s, close_removes_arena);
	add(s, close_of_peer_costs_no_cpu);
	return run(s);
}

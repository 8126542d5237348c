// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * More polling threads than CPUs: an idle poller yields (engine/core/idle.h).
 * The test counts the polls that find the CQ empty: a time slice of nothing but
 * polling has some hundred thousand. While other processes use the CPU,
 * pollers keep their time slices, and the count means nothing.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "../harness.h"

#define ROUNDS 20
#define VAIN (2000ull * ROUNDS) /* limit; about 300 per round are normal */
#define GAMES 50

/* Bind the thread to the first CPU that it may use. */
static void share_one_cpu(void)
{
	cpu_set_t may, one;
	int cpu = 0;

	ck_ok(sched_getaffinity(0, sizeof(may), &may));
	while (!CPU_ISSET(cpu, &may))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	ck_ok(sched_setaffinity(0, sizeof(one), &one));
}

/* The verb that polls. */
enum by { BY_POLL_CQ, BY_START_POLL, BY_COUNT };

static bool poll_once(struct ibv_cq *cq, enum by by)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq;
	struct ibv_wc wc;

	if (by == BY_POLL_CQ)
		return ibv_poll_cq(cq, 1, &wc) == 1;
	if (ibv_start_poll(ex, &attr))
		return false;
	ibv_end_poll(ex);
	return true;
}

struct game {
	struct duo *d;
	enum by by;
	uint64_t vain;
	double cpu; /* CPU time of the process in ms */
};

static double cpu_ms(void)
{
	struct timespec ts;

	ck_ok(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts));
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* One end of ROUNDS ping-pongs. @answers: the end that replies, b. */
static void play(struct node *n, struct game *g, bool answers)
{
	struct ibv_sge sge = node_sge(n, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	double start = cpu_ms();
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if (!answers)
			ck_ok(post_wr(n->qp, &wr));
		while (!poll_once(n->rcq, g->by))
			g->vain++;
		ck_ok(post_recv(n, 0, 0, 64));
		if (answers)
			ck_ok(post_wr(n->qp, &wr));
		wait_wc(n->scq);
	}
	g->cpu = cpu_ms() - start;
}

static void do_post_recv(struct node *b, void *arg)
{
	(void)arg;
	share_one_cpu();
	ck_ok(post_recv(b, 0, 0, 64));
}

static void do_answer(struct node *b, void *arg)
{
	play(b, arg, true);
}

static void *answer(void *arg)
{
	struct game *g = arg;

	on_b(g->d, do_answer, g, sizeof(*g));
	return NULL;
}

/*
 * Replace the receive CQ by one of ibv_create_cq_ex, as ibv_start_poll needs
 * it, and create the QP anew.
 */
static void use_ex_cq(struct node *n)
{
	struct ibv_cq_init_attr_ex a = { .cqe = 16 };

	if (n->qp)
		ck_ok(ibv_destroy_qp(n->qp));
	ck_ok(ibv_destroy_cq(n->rcq));
	n->rcq = ibv_cq_ex_to_cq(ibv_create_cq_ex(n->ctx, &a));
	ck_nonnull(n->rcq);
	node_make_qp(n);
}

static void do_use_ex_cq(struct node *b, void *arg)
{
	use_ex_cq(b);
	*(struct addr *)arg = node_addr(b);
}

/*
 * Play one game. *vain is the number of empty polls of a. Return whether it
 * means something: a and b had more than 70% of the CPU.
 */
static bool play_both(struct duo *d, enum by by, uint64_t *vain)
{
	struct game a = { .d = d, .by = by }, b = a;
	double start = now_ms();
	pthread_t t;

	ck_ok(pthread_create(&t, NULL, answer, &b));
	play(&d->a, &a, false);
	ck_ok(pthread_join(t, NULL));
	*vain = a.vain;
	return a.cpu + b.cpu > 0.7 * (now_ms() - start);
}

/*
 * Two processes that poll on one CPU do not use up their time slices: of the
 * games that mean something, in at least one *vain is at most VAIN.
 */
START_TEST(pollers_yield_time_slices)
{
	struct opts o = default_opts();
	uint64_t vain = 0;
	bool told = false;
	struct duo d;
	int i;

	duo_open_unconnected(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	if (_i == BY_START_POLL) {
		do_use_ex_cq(&d.a, &d.at_a);
		on_b(&d, do_use_ex_cq, &d.at_b, sizeof(d.at_b));
	}
	duo_connect(&d);
	do_post_recv(&d.a, NULL);
	on_b(&d, do_post_recv, NULL, 0);
	for (i = 0; i < GAMES && (!told || vain > VAIN); i++)
		told |= play_both(&d, _i, &vain);
	ck_assert_msg(!told || vain <= VAIN, "they wait for time slices");
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("one_cpu");

	add_loop(s, pollers_yield_time_slices, BY_COUNT);
	return run(s);
}

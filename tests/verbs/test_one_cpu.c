// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * More pollers than CPUs: they give way to each other.  What is counted is how
 * often a poller looks in vain, which does not depend on what else the machine
 * does; a time slice of nothing but polling is some hundred thousand times.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>

#include "harness.h"

#define ROUNDS 300
#define VAIN (10000ull * ROUNDS) /* polls of one process; some 300 a round */
#define PAIRS 2

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

/* Which of the two verbs that poll. */
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
};

/* One end; b answers. */
static void play(struct node *n, struct game *g, bool answers)
{
	struct ibv_sge sge = node_sge(n, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if (!answers)
			ck_ok(post_wr(n->qp, &wr));
		while (!poll_once(n->rcq, g->by))
			if (g->vain++ == VAIN)
				ck_abort_msg("they wait for time slices");
		ck_ok(post_recv(n, 0, 0, 64));
		if (answers)
			ck_ok(post_wr(n->qp, &wr));
		wait_wc(n->scq);
	}
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
	struct game g = *(struct game *)arg;

	on_b(g.d, do_answer, &g, sizeof(g));
	return NULL;
}

/* CQs are made by ibv_create_cq, or by ibv_create_cq_ex. */
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

static void play_both(enum by by)
{
	struct opts o = default_opts();
	struct duo d;
	struct game g = { .d = &d, .by = by };
	pthread_t t;

	duo_open_unconnected(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	if (by == BY_START_POLL) {
		do_use_ex_cq(&d.a, &d.at_a);
		on_b(&d, do_use_ex_cq, &d.at_b, sizeof(d.at_b));
	}
	duo_connect(&d);
	do_post_recv(&d.a, NULL);
	on_b(&d, do_post_recv, NULL, 0);
	ck_ok(pthread_create(&t, NULL, answer, &g));
	play(&d.a, &g, false);
	ck_ok(pthread_join(t, NULL));
	duo_close(&d);
}

START_TEST(two_pollers)
{
	play_both(_i);
}
END_TEST

static int pair(void *arg)
{
	play_both(*(enum by *)arg);
	return 0;
}

/* Each of them waits for one of three others. */
START_TEST(four_pollers)
{
	enum by by = _i;
	pid_t pid[PAIRS];
	int i;

	for (i = 0; i < PAIRS; i++)
		pid[i] = spawn(pair, &by);
	for (i = 0; i < PAIRS; i++)
		ck_assert_int_eq(reap_child(pid[i]), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite("one_cpu");

	add_loop(s, two_pollers, BY_COUNT);
	add_loop(s, four_pollers, BY_COUNT);
	return run(s);
}

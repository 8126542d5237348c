// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A thread removes memory while WRs that use it are posted.  Each WR has
 * exactly one completion: success, the error of the removed memory, or a
 * flush after it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vanish.h"

#define BATCH 8 /* WRs that are posted together, each with a page */

static const struct traffic {
	enum ibv_wr_opcode op;
	uint32_t len;
} traffics[] = {
	{ IBV_WR_RDMA_WRITE, PAGE },
	{ IBV_WR_RDMA_READ, PAGE },
	{ IBV_WR_SEND, PAGE },
	{ IBV_WR_SEND, 64 },
};
#define TRAFFICS 4

static const enum where places[] = { SAME_PROCESS, TWO_PROCESSES };
#define PLACES 2
static const enum kind kinds[] = { KIND_PRIVATE, KIND_SHARED };
#define KINDS 2

/* The number of rounds of each test. */
static int rounds(void)
{
	return getenv("URXE_TEST_LONG") ? 1000 : turns_of(100);
}

/* ------------------------------------------------------- the remover */

/* A thread of the process that has the memory. */
static struct {
	pthread_t thread;
	struct node *n;
	/* pipes: commands, and a byte for each that is done */
	int command[2], done[2];
} remover;

#define RESTORE 'r'
#define QUIT 'q'
/* other commands: enum way */

static void *remover_run(void *arg)
{
	char c;

	(void)arg;
	while (read(remover.command[0], &c, 1) == 1 && c != QUIT) {
		if (c == RESTORE)
			node_restore(remover.n);
		else
			node_vanish(remover.n, (enum way)c, MESSAGE,
				    BATCH * PAGE);
		ck_assert_int_eq(write(remover.done[1], "", 1), 1);
	}
	return NULL;
}

static void do_start(struct node *n, void *arg)
{
	(void)arg;
	remover.n = n;
	ck_ok(pthread_create(&remover.thread, NULL, remover_run, NULL));
}

static void do_join(struct node *n, void *arg)
{
	(void)n;
	(void)arg;
	ck_ok(pthread_join(remover.thread, NULL));
}

static void command(char c)
{
	ck_assert_int_eq(write(remover.command[1], &c, 1), 1);
}

static void await_done(void)
{
	char byte;

	ck_assert(fd_readable(remover.done[0], WAIT_MS));
	ck_assert_int_eq(read(remover.done[0], &byte, 1), 1);
}

/* ------------------------------------------------------- traffic */

struct race {
	struct traffic t;
	enum side side;
	enum kind kind;
	/* of the last batch at each end */
	int successes[SIDES], errors[SIDES];
};

static size_t page_of(int i)
{
	return MESSAGE + (size_t)i * PAGE;
}

static void do_receives(struct node *b, void *arg)
{
	const struct race *r = arg;
	int i;

	for (i = 0; i < BATCH; i++)
		ck_ok(post_recv(b, (uint64_t)i, page_of(i), r->t.len));
}

/*
 * Poll @n completions, which are in order: successes, one error, and flushed
 * WRs.
 */
static void take(struct ibv_cq *cq, struct race *r, enum side at, int n,
		 enum ibv_wc_status error)
{
	struct ibv_wc wc;
	int i;

	r->successes[at] = r->errors[at] = 0;
	for (i = 0; i < n; i++) {
		wc = wait_wc(cq);
		ck_assert_int_eq((int)wc.wr_id, i);
		if (!wc.status && !r->errors[at]) {
			r->successes[at]++;
			continue;
		}
		ck_assert_int_eq(wc.status,
				 r->errors[at] ? IBV_WC_WR_FLUSH_ERR : error);
		r->errors[at]++;
	}
	expect_none(cq, 0);
}

/*
 * Poll the receives.  If a removed page of b was found by a, all of them have
 * completions, else as many as messages were sent.
 */
static void do_take(struct node *b, void *arg)
{
	struct race *r = arg;
	const bool broken = r->side == PEERS && r->errors[MINE];

	take(b->rcq, r, PEERS, broken ? BATCH : r->successes[MINE],
	     IBV_WC_LOC_PROT_ERR);
}

/* The pages that were read have the words of b's pages. */
static void check_reads(struct duo *d, const struct race *r)
{
	uint64_t first, last;
	int i;

	for (i = 0; i < r->successes[MINE]; i++) {
		node_get(&d->a, page_of(i), &first, 8);
		node_get(&d->a, page_of(i + 1) - 8, &last, 8);
		ck_assert(first == (uint64_t)-1 && last == (uint64_t)-1);
	}
}

/* Post a batch and check its completions.  Return whether one failed. */
static bool run_batch(struct duo *d, struct race *r)
{
	const bool sends = r->t.op == IBV_WR_SEND;
	const bool reads = r->t.op == IBV_WR_RDMA_READ && r->side == PEERS;
	int i;

	if (sends)
		on_b(d, do_receives, r, sizeof(*r));
	if (reads)
		memset((char *)d->a.buf + MESSAGE, 0, BATCH * PAGE);
	for (i = 0; i < BATCH; i++)
		ck_ok(post(d, r->t.op, (uint64_t)i, page_of(i), r->t.len,
			   page_of(i), 0));
	take(d->a.scq, r, MINE, BATCH,
	     r->side == MINE ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_OP_ERR);
	if (reads)
		check_reads(d, r);
	r->errors[PEERS] = 0;
	if (sends)
		on_b(d, do_take, r, sizeof(*r));
	return r->errors[MINE] || r->errors[PEERS];
}

static void do_fill(struct node *b, void *arg)
{
	(void)arg;
	memset((char *)b->buf + MESSAGE, 0xff, BATCH * PAGE);
}

static void do_reset(struct node *n, void *arg)
{
	(void)arg;
	ck_ok(qp_to(n->qp, IBV_QPS_RESET));
}

/* Reset both QPs, or replace them. */
static void connect_again(struct duo *d, bool renew)
{
	if (renew) {
		duo_renew(d);
		return;
	}
	do_reset(&d->a, NULL);
	on_b(d, do_reset, NULL, 0);
	duo_connect(d);
}

/* One round: traffic until the memory is gone, and a batch after that. */
static void run_round(struct duo *d, struct race *r, enum way way)
{
	bool failed = false;

	on_b(d, do_fill, NULL, 0);
	command((char)way);
	while (!failed && !fd_readable(remover.done[0], 0))
		failed = run_batch(d, r);
	await_done();
	if (!failed)
		ck_assert(run_batch(d, r));
	command(RESTORE);
	await_done();
}

/*
 * Memory is removed at one end while traffic uses it, in private and shared
 * memory.  _i selects traffic, place, memory and side.
 */
START_TEST(removed_during_traffic)
{
	struct race r = { .t = traffics[_i % TRAFFICS],
			  .kind = kinds[_i / TRAFFICS % KINDS],
			  .side = _i / TRAFFICS / KINDS % SIDES };
	struct opts o = default_opts();
	struct duo d;
	int i;

	if (!faults_are_caught() || under_adoption())
		return;
	ck_ok(pipe(remover.command));
	ck_ok(pipe(remover.done));
	vanish_open(&d, places[_i / TRAFFICS / KINDS / SIDES], r.kind, r.kind,
		    &o);
	if (r.side == MINE)
		do_start(&d.a, NULL);
	else
		on_b(&d, do_start, NULL, 0);
	for (i = 0; i < rounds(); i++) {
		run_round(&d, &r,
			  r.kind == KIND_SHARED ? WAY_TRUNCATE :
			  i / 2 % 2		? WAY_NONE :
						  WAY_UNMAP);
		connect_again(&d, i % 2);
	}
	command(QUIT);
	if (r.side == MINE)
		do_join(&d.a, NULL);
	else
		on_b(&d, do_join, NULL, 0);
	exchange_once(&d);
	vanish_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("vanish_races");

	add_loop(s, removed_during_traffic, TRAFFICS * KINDS * SIDES * PLACES);
	return run(s);
}

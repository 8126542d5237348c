// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The same seed reproduces the same run.  With one thread, all that the
 * program observes is the same.  With two processes, what was drawn for each
 * WR is the same, whatever the timing is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../verbs/types.h"
#include "with.h"

#define ROUNDS 30
#define LEN 256
#define FETCHED 1024 /* offset in a's buffer, destination of READs */
#define WORD 2048 /* offset in b's buffer, target of atomics */
#define LOST_OF 256
#define TRIES 10
#define LOOKS 3000 /* polls of a round, more than it needs */

/*
 * Observations of a run, in memory shared with the process that started it: a
 * hash for each round, and a bitmap of lost WRITEs.
 */
struct seen {
	uint64_t round[ROUNDS];
	uint64_t lost[LOST_OF / 64];
};

static void see(uint64_t *hash, const void *data, size_t len)
{
	const unsigned char *p = data;

	while (len--)
		*hash = (*hash ^ *p++) * 0x100000001b3;
}

static unsigned int see_completions(uint64_t *hash, struct ibv_cq *cq)
{
	struct ibv_wc wc[8];
	int i, n = ibv_poll_cq(cq, 8, wc);

	ck_assert_int_ge(n, 0);
	for (i = 0; i < n; i++) {
		if (!getenv("URXE_FAULTS"))
			ck_assert_int_eq(wc[i].status, IBV_WC_SUCCESS);
		see(hash, &wc[i].status, sizeof(wc[i].status));
		see(hash, &wc[i].wr_id, sizeof(wc[i].wr_id));
	}
	see(hash, &n, sizeof(n));
	return (unsigned int)n;
}

/* Post all WRs at once, then hash completions and memory after each poll. */
static void see_round(struct duo *d, unsigned int n, uint64_t *hash)
{
	unsigned int done = 0, posted = 7, looks = 0;

	node_fill(&d->a, 0, LEN, n);
	b_recv(d, 100, 3 * LEN, LEN);
	ck_ok(post(d, IBV_WR_RDMA_WRITE, 1, 0, LEN, 0, 0));
	ck_ok(post(d, IBV_WR_RDMA_READ, 2, FETCHED, LEN, LEN, 0));
	ck_ok(post(d, IBV_WR_RDMA_WRITE, 3, 8, LEN - 8, LEN, 0));
	ck_ok(post_atomic(d, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, FETCHED + LEN,
			  WORD, n, 0));
	ck_ok(post(d, IBV_WR_SEND, 5, 0, LEN, 0, 0));
	ck_ok(post(d, IBV_WR_RDMA_WRITE, 6, 0, LEN, 2 * LEN, 0));
	node_fill(&d->a, 0, LEN, n + 1);
	/* if a fault occurs, not all of them complete */
	while (done < posted && looks++ < LOOKS) {
		done += see_completions(hash, d->a.scq);
		done += see_completions(hash, d->b.rcq);
		see(hash, d->a.buf, FETCHED + LEN + 8);
		see(hash, d->b.buf, WORD + 8);
	}
}

/* Make the addresses differ from those of the last run. */
static void move_memory(void)
{
	const size_t n = (size_t)getpid() % 997 + 1;

	ck_assert_ptr_nonnull(malloc(16 * n)); /* never freed */
	ck_assert(mmap(NULL, 4096 * n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0) != MAP_FAILED);
}

static int run_alone(void *arg)
{
	struct opts o = default_opts();
	struct seen *seen = arg;
	unsigned int i;
	struct duo d;

	move_memory();
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	memset(d.b.buf, 0, WORD + 8);
	memset(d.a.buf, 0, FETCHED + LEN + 8);
	for (i = 0; i < ROUNDS && qp_state(d.a.qp) == IBV_QPS_RTS; i++)
		see_round(&d, i, &seen->round[i]);
	duo_close(&d);
	return 0;
}

/* UC with losses: record which of a's WRITEs to another process are lost. */
static int run_two(void *arg)
{
	struct opts o = default_opts();
	struct seen *seen = arg;
	unsigned int i;
	struct duo d;

	move_memory();
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	turn(&d, IBV_QPT_UC);
	b_fill(&d, 0, 8ul * LOST_OF, 1);
	for (i = 0; i < LOST_OF; i++) {
		node_fill(&d.a, 0, 8, i + 2);
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 8ul * i, 0));
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	}
	for (i = 0; i < LOST_OF; i++)
		if (!b_has(&d, 8ul * i, 8, i + 2))
			seen->lost[i / 64] |= 1ull << i % 64;
	duo_close(&d);
	return 0;
}

/*
 * Run @fn in a child with that program name and value of URXE_ADVERSARY.
 * Both determine the adversary's decisions.
 */
static struct seen run_as(int (*fn)(void *), const char *name,
			  const char *adversary)
{
	const int shared = MAP_SHARED | MAP_ANONYMOUS;
	struct seen *seen, result;
	pid_t pid;

	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, shared, -1, 0);
	ck_assert(seen != MAP_FAILED);
	setenv("URXE_ADVERSARY", adversary, 1);
	program_invocation_short_name = (char *)name;
	pid = spawn(fn, seen);
	ck_assert_int_eq(reap_child(pid), 0);
	result = *seen;
	munmap(seen, sizeof(*seen));
	return result;
}

static bool same(const struct seen *a, const struct seen *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/*
 * With one thread the run does not depend on time, also on a busy machine.
 * Another program name, seed or option gives another run.
 */
START_TEST(same_seed_same_run)
{
	static const struct {
		const char *name, *adversary;
	} others[] = {
		{ "another", "7" },
		{ "program", "8" },
		{ "program", "7,place=0" },
	};
	struct seen first = run_as(run_alone, "program", "7"), other;
	size_t i;

	for (i = 0; i < TRIES; i++) {
		other = run_as(run_alone, "program", "7");
		ck_assert_msg(same(&first, &other), "try %zu is another run",
			      i);
	}
	for (i = 0; i < sizeof(others) / sizeof(*others); i++) {
		other = run_as(run_alone, others[i].name, others[i].adversary);
		ck_assert_msg(memcmp(other.round, first.round,
				     sizeof(other.round[0])),
			      "%zu is not another run", i);
	}
}
END_TEST

/* With fault injection as well: the same WR fails, at the same poll. */
START_TEST(same_seed_same_run_with_faults)
{
	static const char *const rules[] = {
		"wr:nth=1000000:LOC_PROT_ERR;qp:nth=1000000:QP_FATAL",
		"wr:op=SEND:nth=20:REM_OP_ERR",
		"wr:op=RDMA_READ:nth=20:RETRY_EXC_ERR",
		"wr:p=0.02:LOC_PROT_ERR",
		"qp:at=post:nth=100:QP_FATAL",
	};
	const struct seen without = run_as(run_alone, "program", "7");
	struct seen first, other;
	int i;

	ck_ok(setenv("URXE_FAULTS", rules[_i], 1));
	first = run_as(run_alone, "program", "7");
	/* a rule that does not match, or not yet, changes nothing */
	ck_assert(same(&first, &without) == !_i);
	ck_assert_uint_eq(first.round[0], without.round[0]);
	for (i = 0; i < TRIES / 2; i++) {
		other = run_as(run_alone, "program", "7");
		ck_assert_msg(same(&first, &other), "try %d is another run", i);
	}
}
END_TEST

/* The same WRs are lost with the same seed and program name. */
START_TEST(seed_of_two_programs)
{
	static const char *const by[] = { "7,none,loss=30%", "7,loss=30%",
					  "8,none,loss=30%" };
	struct seen first, other;
	unsigned int i;

	first = run_as(run_two, "program", by[0]);
	ck_assert_uint_ne(first.lost[0], 0);
	ck_assert_uint_ne(~first.lost[0], 0);
	for (i = 0; i < 2; i++) { /* also with other options */
		other = run_as(run_two, "program", by[i]);
		ck_assert_msg(same(&first, &other), "%s: others are lost",
			      by[i]);
	}
	other = run_as(run_two, "program", by[2]);
	ck_assert_msg(!same(&first, &other), "the same for two seeds");
	other = run_as(run_two, "another", by[0]);
	ck_assert_msg(!same(&first, &other), "the same for two programs");
}
END_TEST

int main(void)
{
	Suite *s = suite("adversary, seeds");

	add(s, same_seed_same_run);
	add_loop(s, same_seed_same_run_with_faults, 5);
	add(s, seed_of_two_programs);
	return run(s);
}

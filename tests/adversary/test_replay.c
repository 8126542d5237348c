// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * With the same seed a program of one thread meets the same, poll by poll, on a
 * busy machine, too; with another seed something else.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../verbs/types.h"
#include "with.h"

#define STEPS 400

struct trace {
	uint64_t hash;
	unsigned int completions;
};

static struct trace *trace; /* a shared page */

static void note(uint64_t v)
{
	trace->hash = (trace->hash ^ v) * 0x100000001b3ull;
}

/* What a program can see: both CQs, and memory that it should not look at. */
static void look(struct duo *d)
{
	struct ibv_cq *cq[] = { d->a.scq, d->b.rcq };
	struct ibv_wc wc;
	size_t i;

	for (i = 0; i < 2; i++)
		if (ibv_poll_cq(cq[i], 1, &wc)) {
			note(wc.wr_id + 1000 * i);
			note(wc.status);
			trace->completions++;
		} else {
			note(7);
		}
	for (i = 0; i < 4096; i += 8) {
		note(*(uint64_t *)(void *)((char *)d->a.buf + i));
		note(*(uint64_t *)(void *)((char *)d->b.buf + i));
	}
}

static int run_traced(void *arg)
{
	static const int ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND,
				   IBV_WR_RDMA_READ,
				   IBV_WR_RDMA_WRITE_WITH_IMM };
	struct opts o = default_opts();
	struct duo d;
	uint64_t i;

	memset(trace, 0, sizeof(*trace));
	setenv("URXE_ADVERSARY", arg, 1);
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < STEPS; i++) {
		if (i % 8 == 1 || i % 8 == 3)
			b_recv(&d, i, 64 * (i % 4), 64);
		if (i % 8 < 4) {
			memset((char *)d.a.buf + 64 * (i % 4), (int)i, 64);
			ck_ok(post(&d, ops[i % 4], i, 64 * (i % 4), 64,
				   64 * (i % 4), 0));
		}
		look(&d);
	}
	ck_assert_uint_gt(trace->completions, STEPS / 4);
	_exit(0);
}

static struct trace traced(const char *with)
{
	ck_assert_int_eq(reap_child(spawn(run_traced, (void *)with)), 0);
	return *trace;
}

START_TEST(replay)
{
	struct trace first, again, other;

	trace = shared_page();
	first = traced("5,rnr=0,wake=0,slow=0");
	other = traced("6,rnr=0,wake=0,slow=0");
	again = traced("5,rnr=0,wake=0,slow=0");
	ck_assert_uint_eq(first.hash, again.hash);
	ck_assert_uint_ne(first.hash, other.hash);
}
END_TEST

int main(void)
{
	Suite *s = suite("adversary, replay");

	add(s, replay);
	return run(s);
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lesson 16: the same 64 WRITEs, with less work for the CPU and the device.
 */
#include <time.h>

#include "lesson.h"

enum { WRITES = 64, LIST = 16 };

struct way {
	const char *name;
	int list; /* number of WRs in each call of ibv_post_send */
	int signaled; /* one WR in this many is signaled */
	int inlined;
};

static const struct way ways[] = {
	{ "one by one", 1, 1, 0 },
	{ "one of 16 signaled", 1, LIST, 0 },
	{ "lists of 16", LIST, LIST, 0 },
	{ "lists of 16, inline", LIST, LIST, IBV_SEND_INLINE },
};

static struct side a, b;
static uint64_t *const out = (uint64_t *)a.memory;
static uint64_t *const in = (uint64_t *)b.memory;
static int calls, completions, done; /* done: number of WRITEs */

/* Post a list of WRITEs, from number `first` on, in one call. */
static void post_list(const struct way *way, int first)
{
	struct ibv_send_wr wr[LIST];
	struct ibv_sge sge[LIST];
	int i, n, from;

	for (i = 0; i < way->list; i++) {
		n = first + i;
		/* inline data is copied at once: reuse the words */
		from = way->inlined || BREAK == 3 ? i : n;
		out[from] = (uint64_t)n;
		sge[i] = part_of(&a, 8 * (size_t)from, BREAK == 2 ? 72 : 8);
		wr[i] = (struct ibv_send_wr){
			.wr_id = (uint64_t)n,
			.next = i + 1 < way->list ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = (unsigned int)way->inlined,
			.wr.rdma = { .remote_addr = (uintptr_t)&in[n],
				     .rkey = b.mr->rkey },
		};
		if ((n + 1) % way->signaled == 0 && BREAK != 1)
			wr[i].send_flags |= IBV_SEND_SIGNALED;
	}
	post_send(&a, wr);
	calls++;
}

/* Wait until n WRITEs are done.  A completion implies those before it. */
static void wait_for(int n)
{
	struct ibv_wc wc;

	while (done < n && BREAK != 1) {
		wc = next_completion(a.cq);
		if (wc.status != IBV_WC_SUCCESS)
			must(EIO, ibv_wc_status_str(wc.status));
		done = (int)wc.wr_id + 1;
		completions++;
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void measure(const struct way *way, int shown)
{
	double start = now();
	int n, right = 0;

	calls = completions = done = 0;
	memset(in, 0xff, MEMORY);
	for (n = 0; n < WRITES; n += way->list) {
		wait_for(n + way->list - 16); /* max_send_wr */
		post_list(way, n);
	}
	wait_for(WRITES);
	start = now() - start;
	for (n = 0; n < WRITES; n++)
		right += in[n] == (uint64_t)n;
	printf("%-20s %2d calls, %2d completions, %s", way->name, calls,
	       completions, right == WRITES ? "right" : "WRONG");
	if (shown)
		printf(", %.0f ns each", start / WRITES);
	printf("\n");
}

int main(int argc, char **argv)
{
	size_t i;

	(void)argv;
	make_pair(&a, &b, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		measure(&ways[i], argc > 1);
	close_pair(&a, &b);
	return 0;
}

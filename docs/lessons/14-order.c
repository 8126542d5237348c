/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lesson 14: ordering.  A passes messages to B in six ways. */
#include <stdbool.h>
#include <stddef.h>

#include "lesson.h"

enum { ROUNDS = 200, WORDS = 32 };

struct message {
	uint64_t data[WORDS];
	uint64_t flag; /* B may poll it */
	uint64_t source[WORDS]; /* A may READ it */
};

static struct side a, b;
static struct ibv_qp *qp[2]; /* A's QPs of two connections to B */
static struct message *const out = (struct message *)a.memory;
static struct message *const in = (struct message *)b.memory;
static int pending; /* number of A's outstanding WRs */

static void connect_twice(void)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		     IBV_ACCESS_REMOTE_READ;
	int i;

	make_pair(&a, &b, access);
	for (i = 0; i < 2; i++) {
		qp[i] = a.qp;
		if (i)
			break;
		side_make_qp(&a);
		side_make_qp(&b);
		connect_sides(&a, &b, usual_attr());
	}
}

/* WRITE from `local` in A's message to `remote` in B's, or READ back. */
static void post(int i, enum ibv_wr_opcode opcode, int flags, void *local,
		 void *remote, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)local, length, a.mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED | (unsigned int)flags,
		.wr.rdma = { .remote_addr = (uintptr_t)remote,
			     .rkey = b.mr->rkey },
	};

	a.qp = qp[i];
	post_send(&a, &wr);
	pending++;
}

static void poll_a(void)
{
	struct ibv_wc wc;

	if (!ibv_poll_cq(a.cq, 1, &wc))
		return;
	if (wc.status != IBV_WC_SUCCESS)
		must(EIO, ibv_wc_status_str(wc.status));
	pending--;
}

static void write_data(int i, enum ibv_wr_opcode opcode, int flags)
{
	post(i, opcode, flags, out->data, in->data, sizeof(in->data));
}

static void write_flag(int i)
{
	post(i, IBV_WR_RDMA_WRITE, 0, &out->flag, &in->flag, sizeof(in->flag));
}

/* A copies data at B from one place to another. */
static void copy(int fence)
{
	post(0, IBV_WR_RDMA_READ, BREAK == 1 ? fence : 0, out->data, in->source,
	     sizeof(in->source));
	while (BREAK == 2 && pending)
		poll_a();
	write_data(0, IBV_WR_RDMA_WRITE, BREAK == 1 ? 0 : fence);
}

static const char *const ways[] = {
	"one WRITE, data and flag",    "two WRITEs, data and flag",
	"the same, over two QPs",      "WRITE_WITH_IMM, no flag",
	"READ, and WRITE of its data", "the same, WRITE with a fence",
};

static void post_way(int way)
{
	switch (way) {
	case 0:
		post(0, IBV_WR_RDMA_WRITE, 0, out, in,
		     offsetof(struct message, source));
		break;
	case 1:
	case 2:
		write_data(0, IBV_WR_RDMA_WRITE, 0);
		write_flag(way == 1 ? 0 : 1);
		break;
	case 3:
		post_recv(&b, 0, part_of(&b, 0, 0)); /* b.qp is of the second */
		write_data(1, IBV_WR_RDMA_WRITE_WITH_IMM, 0);
		break;
	default:
		copy(way == 5 ? IBV_SEND_FENCE : 0);
	}
}

/* Does B assume that the data has arrived? */
static bool has_arrived(int way, uint64_t round)
{
	struct ibv_wc wc;

	if (way < 3)
		return __atomic_load_n(&in->flag, __ATOMIC_ACQUIRE) == round;
	return way == 3 ? ibv_poll_cq(b.cq, 1, &wc) > 0 : !pending;
}

/* Pass one message.  Return whether B has read anything else. */
static bool is_wrong(int way, uint64_t round)
{
	bool wrong = false;
	int i;

	for (i = 0; i < WORDS; i++) {
		in->source[i] = round;
		if (way < 4)
			out->data[i] = round;
	}
	out->flag = round;
	post_way(way);
	if (BREAK == 3)
		memset(out->data, 0xff, sizeof(out->data));
	while (!has_arrived(way, round))
		poll_a();
	for (i = 0; i < WORDS; i++)
		if (in->data[i] != round)
			wrong = true;
	while (pending)
		poll_a();
	return wrong;
}

int main(void)
{
	int way, i, wrong[6] = { 0 };
	uint64_t round = 0;

	connect_twice();
	for (i = 0; i < ROUNDS; i++)
		for (way = 0; way < 6; way++)
			wrong[way] += is_wrong(way, ++round);
	for (way = 0; way < 6; way++)
		printf("%-34s %s\n", ways[way], wrong[way] ? "WRONG" : "right");
	return 0;
}

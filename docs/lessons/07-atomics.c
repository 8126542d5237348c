/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lesson 7: atomics.  B adds to a word of A, and acquires a lock there. */
#include <inttypes.h>

#include "lesson.h"

static struct side a, b;

static uint64_t word, got; /* A's word, and B's buffer for its old value */
static struct ibv_mr *word_mr, *got_mr;

static void atomic(struct ibv_send_wr *wr)
{
	struct ibv_sge sge = { .addr = (uintptr_t)&got,
			       .length = BREAK == 2 ? 4 : 8,
			       .lkey = got_mr->lkey };

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	wr->wr.atomic.remote_addr = (uintptr_t)&word + (BREAK == 1 ? 4 : 0);
	wr->wr.atomic.rkey = word_mr->rkey;
	post_send(&b, wr);
	if (print_completion(&b).status != IBV_WC_SUCCESS) {
		printf("A has %" PRIu64 "\n", word);
		exit(1);
	}
	printf("  B gets %" PRIu64 ", A has %" PRIu64 "\n", got, word);
}

static void fetch_add(uint64_t wr_id, int64_t add)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD };

	wr.wr.atomic.compare_add = (uint64_t)add;
	printf("add %" PRId64 "\n", add);
	atomic(&wr);
}

static void compare_swap(uint64_t wr_id, uint64_t compare, uint64_t swap)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .opcode = IBV_WR_ATOMIC_CMP_AND_SWP };

	wr.wr.atomic.compare_add = compare;
	wr.wr.atomic.swap = swap;
	printf("if it is %" PRIu64 ", make it %" PRIu64 "\n", compare, swap);
	atomic(&wr);
}

int main(void)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_qp_attr attr = usual_attr();
	struct ibv_context *ctx = open_device();

	if (BREAK != 3)
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	side_open(&a, "A", ctx, 0);
	side_open(&b, "B", ctx, 0);
	word_mr = ibv_reg_mr(a.pd, &word, sizeof(word), access);
	must_have(word_mr, "ibv_reg_mr of A");
	got_mr = ibv_reg_mr(b.pd, &got, sizeof(got), IBV_ACCESS_LOCAL_WRITE);
	must_have(got_mr, "ibv_reg_mr of B");
	side_make_qp(&a);
	side_make_qp(&b);
	if (BREAK == 4)
		attr.qp_access_flags &= ~IBV_ACCESS_REMOTE_ATOMIC;
	if (BREAK == 5)
		attr.max_dest_rd_atomic = 0;
	connect_sides(&a, &b, attr);

	word = 100;
	fetch_add(1, 5);
	fetch_add(2, -1);
	compare_swap(3, 104, 7);
	compare_swap(4, 104, 9);
	must(ibv_dereg_mr(word_mr), "ibv_dereg_mr");
	must(ibv_dereg_mr(got_mr), "ibv_dereg_mr");
	close_pair(&a, &b);
	return 0;
}

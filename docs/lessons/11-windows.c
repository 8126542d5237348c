/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lesson 11: memory windows.  A may write to a few bytes of B, for a while.
 */
#include "lesson.h"

enum { SIZE = 16, RIGHT = IBV_ACCESS_REMOTE_WRITE };

static struct side a, b;
static uint64_t writes; /* number of A's WRITEs */

/* Print the next completion of this side.  Exit on an error. */
static void expect_success(const struct side *s)
{
	if (print_completion(s).status != IBV_WC_SUCCESS)
		exit(0);
}

/* 16 bytes of B's memory, from offset on, which A may write */
static struct ibv_mw_bind_info window(size_t offset)
{
	struct ibv_mw_bind_info info = {
		.mr = b.mr,
		.addr = (uintptr_t)b.memory + offset,
		.length = SIZE,
		.mw_access_flags = RIGHT,
	};

	return info;
}

/*
 * Type 1: a call that posts to the send queue.  The device chooses the rkey.
 */
static void bind_1(struct ibv_mw *mw, size_t offset)
{
	struct ibv_mw_bind bind = { .wr_id = 11,
				    .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = window(offset) };
	uint32_t before = mw->rkey;

	must(ibv_bind_mw(b.qp, mw, &bind), "ibv_bind_mw");
	printf("B binds at %d, type 1: %s rkey\n", (int)offset,
	       mw->rkey == before ? "the same" : "a new");
	expect_success(&b);
}

/* Type 2: a WR.  The program chooses the low 8 bits of the rkey. */
static uint32_t bind_2(struct ibv_mw *mw, size_t offset)
{
	struct ibv_send_wr wr = {
		.wr_id = 12,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = mw,
			     .rkey = ibv_inc_rkey(mw->rkey),
			     .bind_info = window(offset) },
	};

	post_send(&b, &wr);
	printf("B binds at %d, type 2\n", (int)offset);
	expect_success(&b);
	return wr.bind_mw.rkey;
}

static void write_to(size_t offset, uint32_t rkey)
{
	struct ibv_sge sge = part_of(&a, 0, SIZE);
	struct ibv_send_wr wr = {
		.wr_id = ++writes,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)b.memory + offset,
			     .rkey = rkey },
	};

	printf("A writes at %d\n", (int)offset);
	post_send(&a, &wr);
	expect_success(&a);
}

/* A invalidates the rkey with the message that it sends to B. */
static void send_with_invalidate(uint32_t rkey)
{
	struct ibv_send_wr wr = { .wr_id = 13,
				  .opcode = IBV_WR_SEND_WITH_INV,
				  .send_flags = IBV_SEND_SIGNALED,
				  .invalidate_rkey = rkey };
	struct ibv_wc wc;

	printf("A sends, and invalidates the rkey\n");
	post_recv(&b, 14, part_of(&b, 0, SIZE));
	post_send(&a, &wr);
	expect_success(&a);
	wc = print_completion(&b);
	if (wc.wc_flags & IBV_WC_WITH_INV)
		printf("B: %s rkey was invalidated\n",
		       wc.invalidated_rkey == rkey ? "this" : "another");
}

int main(void)
{
	struct ibv_mw *one, *two;
	uint32_t rkey;

	/* the memory region permits no remote access */
	make_pair(&a, &b,
		  BREAK == 2 ? IBV_ACCESS_LOCAL_WRITE :
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	one = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
	must_have(one, "ibv_alloc_mw");
	two = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	must_have(two, "ibv_alloc_mw");
	if (BREAK == 1)
		write_to(64, b.mr->rkey);

	bind_1(one, 64);
	write_to(BREAK == 3 ? 65 : 64, one->rkey);
	rkey = one->rkey;
	bind_1(one, 128);
	write_to(BREAK == 4 ? 64 : 128, BREAK == 4 ? rkey : one->rkey);
	printf("ibv_dereg_mr: %s\n", strerror(ibv_dereg_mr(b.mr)));

	rkey = bind_2(two, 256);
	if (BREAK == 5)
		bind_2(two, 512);
	write_to(256, rkey);
	send_with_invalidate(rkey);
	write_to(256, rkey);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lesson 4: RDMA WRITE and READ.  B posts all WRs, A takes no part. */
#include <arpa/inet.h>

#include "lesson.h"

#define OFFSET 64
#define LENGTH 32

static struct side a, b;

static void put(struct side *s, size_t offset, const char *text)
{
	snprintf(s->memory + offset, MEMORY - offset, "%s", text);
}

static struct ibv_wc rdma(enum ibv_wr_opcode opcode, uint64_t wr_id,
			  size_t offset)
{
	struct ibv_sge sge = part_of(&b, 0, LENGTH);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(7), /* only WRITE_WITH_IMM sends it */
		.wr.rdma = { .remote_addr = (uintptr_t)a.memory + offset,
			     .rkey = a.mr->rkey },
	};
	struct ibv_wc wc;

	post_send(&b, &wr);
	wc = print_completion(&b);
	if (wc.status == IBV_WC_SUCCESS)
		return wc;
	printf("A has \"%s\", QP of A: %s\n", a.memory + offset,
	       state_of(a.qp));
	exit(1);
}

int main(void)
{
	int permits = BREAK == 1 ?
			      IBV_ACCESS_REMOTE_READ :
			      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	size_t offset = BREAK == 3 ? MEMORY - 8 : OFFSET;
	struct ibv_qp_attr attr = usual_attr();
	struct ibv_context *ctx = open_device();
	struct ibv_wc wc;

	side_open(&a, "A", ctx, IBV_ACCESS_LOCAL_WRITE | permits);
	side_open(&b, "B", ctx, BREAK == 4 ? 0 : IBV_ACCESS_LOCAL_WRITE);
	side_make_qp(&a);
	side_make_qp(&b);
	if (BREAK == 2)
		attr.qp_access_flags = 0;
	if (BREAK == 5)
		attr.max_rd_atomic = 0;
	if (BREAK == 6)
		attr.rnr_retry = 1;
	connect_sides(&a, &b, attr);

	put(&b, 0, "written by B");
	printf("B writes\n");
	rdma(IBV_WR_RDMA_WRITE, 1, offset);
	printf("A has \"%s\", and %d completions\n", a.memory + offset,
	       ibv_poll_cq(a.cq, 1, &wc));

	put(&a, offset, "changed by A");
	printf("B reads\n");
	rdma(IBV_WR_RDMA_READ, 2, offset);
	printf("B has \"%s\"\n", b.memory);

	put(&b, 0, "with a word to A");
	if (BREAK != 6)
		post_recv(&a, 11, part_of(&a, 0, 0));
	printf("B writes, with immediate data\n");
	rdma(IBV_WR_RDMA_WRITE_WITH_IMM, 3, offset);
	wc = print_completion(&a);
	printf("A has \"%s\", %d bytes, immediate data %d\n", a.memory + offset,
	       (int)wc.byte_len, (int)ntohl(wc.imm_data));
	close_pair(&a, &b);
	return 0;
}

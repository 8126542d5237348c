/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lesson 5: keys and protection domains.  A registers its memory twice. */
#include "lesson.h"

static struct side a, b;

static void rdma(enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t rkey)
{
	struct ibv_sge sge = part_of(&b, 0, 16);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)a.memory, .rkey = rkey },
	};
	struct ibv_wc wc;

	if (BREAK == 5)
		sge.lkey = a.mr->lkey;
	post_send(&b, &wr);
	wc = print_completion(&b);
	if (wc.status == IBV_WC_SUCCESS)
		return;
	printf("A has \"%s\"; QP of B: %s, QP of A: %s\n", a.memory,
	       state_of(b.qp), state_of(a.qp));
	exit(1);
}

static struct ibv_mr *register_memory(struct ibv_pd *pd, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, a.memory, MEMORY, access);

	must_have(mr, "ibv_reg_mr");
	return mr;
}

int main(void)
{
	struct ibv_mr *reading, *writing;

	make_pair(&a, &b, IBV_ACCESS_LOCAL_WRITE);
	strcpy(a.memory, "A's");
	reading = register_memory(a.pd, IBV_ACCESS_REMOTE_READ);
	writing = register_memory(BREAK == 3 ? b.pd : a.pd,
				  (BREAK == 6 ? 0 : IBV_ACCESS_LOCAL_WRITE) |
					  IBV_ACCESS_REMOTE_WRITE);
	printf("one memory, two keys: %s\n",
	       reading->rkey == writing->rkey ? "equal" : "different");

	printf("B reads with the first key\n");
	rdma(IBV_WR_RDMA_READ, 1, reading->rkey);
	printf("B has \"%s\"\n", b.memory);

	strcpy(b.memory, "B's");
	printf("B writes with the second key\n");
	rdma(IBV_WR_RDMA_WRITE, 2,
	     BREAK == 1 ? reading->rkey :
	     BREAK == 2 ? writing->rkey + 1 :
			  writing->rkey);
	printf("A has \"%s\"\n", a.memory);

	printf("A deregisters the second key; B reads with the first key\n");
	must(ibv_dereg_mr(writing), "ibv_dereg_mr");
	rdma(IBV_WR_RDMA_READ, 3, reading->rkey);
	if (BREAK == 4) {
		printf("B writes with the second key\n");
		rdma(IBV_WR_RDMA_WRITE, 4, writing->rkey);
	}
	must(ibv_dereg_mr(reading), "ibv_dereg_mr");
	close_pair(&a, &b);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lesson 6: device memory.  B writes to the memory of A's NIC. */
#include "lesson.h"

#define LENGTH 32
#define OFFSET 64
#define DM_SIZE 4096

static struct side a, b;

static void rdma(enum ibv_wr_opcode opcode, uint64_t wr_id, uint64_t addr,
		 uint32_t rkey)
{
	struct ibv_sge sge = part_of(&b, 0, LENGTH);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = addr, .rkey = rkey },
	};

	post_send(&b, &wr);
	if (print_completion(&b).status != IBV_WC_SUCCESS)
		exit(1);
}

int main(void)
{
	struct ibv_alloc_dm_attr attr = { .length = DM_SIZE };
	uint64_t addr = BREAK == 4 ? DM_SIZE - 8 : OFFSET;
	int access = 0;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	char text[LENGTH];

	make_pair(&a, &b, IBV_ACCESS_LOCAL_WRITE);
	dm = ibv_alloc_dm(a.pd->context, &attr);
	must_have(dm, "ibv_alloc_dm");
	if (BREAK != 1)
		access |= IBV_ACCESS_ZERO_BASED;
	if (BREAK != 2)
		access |= IBV_ACCESS_LOCAL_WRITE;
	if (BREAK != 3)
		access |= IBV_ACCESS_REMOTE_WRITE;
	access |= IBV_ACCESS_REMOTE_READ;
	mr = ibv_reg_dm_mr(a.pd, dm, 0, DM_SIZE, access);
	must_have(mr, "ibv_reg_dm_mr");
	printf("A has %d bytes of device memory\n", (int)mr->length);

	strcpy(b.memory, "written by B into A's device");
	printf("B writes\n");
	rdma(IBV_WR_RDMA_WRITE, 1, addr, mr->rkey);
	must(ibv_memcpy_from_dm(text, dm, BREAK == 5 ? addr + 1 : addr, LENGTH),
	     "ibv_memcpy_from_dm");
	printf("A copies out \"%s\"\n", text);

	must(ibv_memcpy_to_dm(dm, OFFSET, "put there by A\0\0", 16),
	     "ibv_memcpy_to_dm");
	printf("B reads\n");
	rdma(IBV_WR_RDMA_READ, 2, addr, mr->rkey);
	printf("B has \"%s\"\n", b.memory);

	if (BREAK != 6)
		must(ibv_dereg_mr(mr), "ibv_dereg_mr");
	must(ibv_free_dm(dm), "ibv_free_dm");
	close_pair(&a, &b);
	return 0;
}

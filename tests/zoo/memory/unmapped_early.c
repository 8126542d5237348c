// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <sys/mman.h>

#include "../zoo.h"

PROGRAM(.name = "unmapped-early",
	.wrong = "memory is unmapped before it is deregistered",
	.seen = "open-mpi/ompi#4509, linux-rdma/rdma-core#834",
	.rule = "mr-unmapped")
{
	char *at = mmap(NULL, BUF, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	struct pair p;

	PAIR(&p);
	expect(at != MAP_FAILED, "mmap fails");
	mr = ibv_reg_mr(the_pd(), at, BUF, IBV_ACCESS_LOCAL_WRITE);
	expect(mr, "ibv_reg_mr fails");
	POST(&p.a, .op = IBV_WR_RDMA_WRITE, .addr = at, .lkey = mr->lkey,
	     .len = 64, .flags = IBV_SEND_SIGNALED);
	wait_for(&p.a);
	if (corrected)
		ibv_dereg_mr(mr);
	munmap(at, BUF);
	if (!corrected)
		ibv_dereg_mr(mr);
}

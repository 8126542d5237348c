// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * errors: with --timing, a WR that is never answered fails when its retries are
 * exhausted, and no WR behind one that has failed is executed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "rail.h"

#define DEPTH 3
#define ROOM 64 /* of the target of a WR */

/* Post WRITEs of 8 bytes, in one call; of @wrong the lkey is wrong. */
static void post(struct rail *r, unsigned int wrong)
{
	struct ibv_send_wr wr[DEPTH], *bad;
	struct ibv_sge sge[DEPTH];
	unsigned int i;

	*r->buffer = 'x';
	for (i = 0; i < DEPTH; i++) {
		sge[i] = (struct ibv_sge){ (uintptr_t)r->buffer, 8,
					   r->mr->lkey ^ (i == wrong) };
		wr[i] = (struct ibv_send_wr){ .wr_id = i,
					      .sg_list = &sge[i],
					      .num_sge = 1,
					      .opcode = IBV_WR_RDMA_WRITE };
		wr[i].next = i + 1 < DEPTH ? &wr[i + 1] : NULL;
		wr[i].wr.rdma.remote_addr =
			(uintptr_t)r->buffer + (i + 1) * ROOM;
		wr[i].wr.rdma.rkey = r->mr->rkey;
	}
	check(!ibv_post_send(r->qp, wr, &bad), "ibv_post_send");
}

static void expect(struct rail *r, const enum ibv_wc_status status[DEPTH])
{
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < DEPTH; i++) {
		while (!ibv_poll_cq(r->cq, 1, &wc))
			;
		if (wc.wr_id == i && wc.status == status[i])
			continue;
		fprintf(stderr, "WR %u: WR %llu, status %s\n", i,
			(unsigned long long)wc.wr_id,
			ibv_wc_status_str(wc.status));
		exit(1);
	}
}

static void open_with(struct rail *r, struct ibv_device *device, bool answers)
{
	union ibv_gid gid;

	rail_open(r, device, DEPTH, (DEPTH + 1) * ROOM);
	rail_init(r);
	rail_gid(r, &gid);
	rail_connect(r, answers ? r->qp->qp_num : r->qp->qp_num ^ 1, &gid);
}

int main(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct rail r;

	check(devices && *devices, "devices");
	open_with(&r, *devices, false);
	post(&r, DEPTH);
	expect(&r, (const enum ibv_wc_status[]){ IBV_WC_RETRY_EXC_ERR,
						 IBV_WC_WR_FLUSH_ERR,
						 IBV_WC_WR_FLUSH_ERR });
	rail_close(&r);

	open_with(&r, *devices, true);
	post(&r, 1);
	expect(&r, (const enum ibv_wc_status[]){ IBV_WC_SUCCESS,
						 IBV_WC_LOC_PROT_ERR,
						 IBV_WC_WR_FLUSH_ERR });
	if (!r.buffer[ROOM] || r.buffer[2 * ROOM] || r.buffer[3 * ROOM]) {
		fprintf(stderr, "the WR behind the failed one was executed\n");
		return 1;
	}
	rail_close(&r);
	ibv_free_device_list(devices);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * speed OPCODE RAILS COUNT SIZE: post COUNT WRs of SIZE bytes over RC
 * connections of the first RAILS devices, each with itself, and print how many
 * microseconds pass until all are complete.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rail.h"

struct queue {
	struct rail rail;
	unsigned int posted, done;
};

static struct queue queue[RAILS];
static unsigned int count, size;
static enum ibv_wr_opcode opcode;

static void queue_open(struct queue *q, struct ibv_device *device)
{
	union ibv_gid gid;

	rail_open(&q->rail, device, count, 2ull * size);
	rail_init(&q->rail);
	rail_gid(&q->rail, &gid);
	rail_connect(&q->rail, q->rail.qp->qp_num, &gid);
}

static void queue_post(struct queue *q)
{
	struct rail *r = &q->rail;
	struct ibv_sge sge = { (uintptr_t)r->buffer, size, r->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = q->posted++,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)r->buffer + size;
	wr.wr.rdma.rkey = r->mr->rkey;
	check(!ibv_post_send(r->qp, &wr, &bad), "ibv_post_send");
}

static void queue_poll(struct queue *q)
{
	struct ibv_wc wc;

	if (!ibv_poll_cq(q->rail.cq, 1, &wc))
		return;
	if (wc.status != IBV_WC_SUCCESS || wc.wr_id != q->done) {
		fprintf(stderr, "WR %llu, status %s\n",
			(unsigned long long)wc.wr_id,
			ibv_wc_status_str(wc.status));
		exit(1);
	}
	q->done++;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
	struct ibv_device **devices;
	unsigned int i, rails, done = 0;
	uint64_t begin;
	int n;

	if (argc != 5)
		return 2;
	opcode = strcmp(argv[1], "read") ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
	rails = (unsigned int)atoi(argv[2]);
	count = (unsigned int)atoi(argv[3]);
	size = (unsigned int)atoi(argv[4]);
	devices = ibv_get_device_list(&n);
	check(devices && rails <= RAILS && (unsigned int)n >= rails, "devices");
	for (i = 0; i < rails; i++)
		queue_open(&queue[i], devices[i]);
	ibv_free_device_list(devices);
	begin = now();
	for (i = 0; i < count; i++)
		queue_post(&queue[i % rails]);
	while (done < count)
		for (i = done = 0; i < rails; i++) {
			queue_poll(&queue[i]);
			done += queue[i].done;
		}
	printf("%llu\n", (unsigned long long)(now() - begin) / 1000);
	for (i = 0; i < rails; i++)
		rail_close(&queue[i].rail);
	return 0;
}

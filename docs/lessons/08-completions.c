/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lesson 8: completions and events: notification without constant polling */
#include <poll.h>

#include "lesson.h"

static struct side a, b;
static struct ibv_comp_channel *channel;

static void arm(void)
{
	must(ibv_req_notify_cq(b.cq, BREAK == 5 ? 1 : 0), "ibv_req_notify_cq");
}

/* Wait for an event, up to 100 ms. */
static int wait_for_event(void)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };

	return poll(&fd, 1, 100) == 1;
}

static void take_event(const char *of)
{
	struct ibv_cq *cq;
	void *context;

	if (!wait_for_event()) {
		printf("%s: no event\n", of);
		return;
	}
	must(ibv_get_cq_event(channel, &cq, &context) ? errno : 0,
	     "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	printf("%s: an event\n", of);
}

/* Post a WRITE of 8 bytes.  If unsignaled, it completes only on an error. */
static void write_to_a(uint64_t wr_id, int flags)
{
	struct ibv_sge sge = part_of(&b, 0, 8);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = (unsigned int)flags,
		.wr.rdma = { .remote_addr = (uintptr_t)a.memory,
			     .rkey = a.mr->rkey },
	};

	if (BREAK == 3 && wr_id == 2)
		wr.wr.rdma.rkey++;
	post_send(&b, &wr);
}

static void poll_all(void)
{
	struct ibv_wc wc;
	int n = 0, failed = 0;

	while (ibv_poll_cq(b.cq, 1, &wc) > 0) {
		printf("  wr_id %d: %s\n", (int)wc.wr_id,
		       ibv_wc_status_str(wc.status));
		failed |= wc.status != IBV_WC_SUCCESS;
		n++;
	}
	printf("  completions: %d\n", n);
	if (failed)
		exit(1);
}

/* Replace B's CQ by one that has a completion channel. */
static void replace_cq(void)
{
	struct ibv_context *ctx = b.pd->context;

	channel = ibv_create_comp_channel(ctx);
	must_have(channel, "ibv_create_comp_channel");
	must(ibv_destroy_cq(b.cq), "ibv_destroy_cq");
	b.cq = ibv_create_cq(ctx, 64, NULL, channel, 0);
	must_have(b.cq, "ibv_create_cq");
}

int main(void)
{
	struct ibv_context *ctx = open_device();
	int i, every;

	side_open(&a, "A", ctx,
		  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	side_open(&b, "B", ctx, 0);
	replace_cq();
	side_make_qp(&a);
	side_make_qp(&b);
	connect_sides(&a, &b, usual_attr());

	printf("armed; two WRITEs, and a third that is signaled\n");
	if (BREAK != 1)
		arm();
	write_to_a(1, 0);
	write_to_a(2, 0);
	write_to_a(3, BREAK == 2 ? 0 : IBV_SEND_SIGNALED);
	take_event("the third");
	poll_all();

	printf("not armed; a fourth\n");
	write_to_a(4, IBV_SEND_SIGNALED);
	take_event("the fourth");
	poll_all();

	printf("armed, polled once more; a fifth\n");
	arm();
	poll_all();
	write_to_a(5, IBV_SEND_SIGNALED);
	take_event("the fifth");
	poll_all();

	for (i = 6; i < 100; i++) {
		every = i % 8 == 0 && BREAK != 4;
		write_to_a((uint64_t)i, every ? IBV_SEND_SIGNALED : 0);
		if (every)
			next_completion(b.cq);
	}
	printf("94 more, each eighth signaled\n");
	side_close(&b);
	must(ibv_destroy_comp_channel(channel), "ibv_destroy_comp_channel");
	side_close(&a);
	must(ibv_close_device(ctx), "ibv_close_device");
	return 0;
}
